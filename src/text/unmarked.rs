//! Text that no renderer takes for more than text: no markup of Slack, Markdown, HTML or Discord, no mention, no link made of a
//! URL, no control character, nothing invisible.
//!
//! What could be one of these is written as JSON writes it, `\u003c` for `<`, so that nothing is lost: a backslash of the
//! text itself is written `\u005c`, and so two different texts never look the same. Escapes that Markdown would
//! resolve (`\"`, `\/`, `\\`) are not used. An underscore, an at sign and a colon stay where they can't be markup, so that names,
//! addresses and times stay readable. Bare domains and addresses stay as they are; a renderer that makes links of them links what
//! can be read.

use std::fmt::Write;

use super::is_hidden;
use crate::json::{MAX_DEPTH, Value};

/// Combining marks on one character that are shown as such; more pile up over the lines above.
const MAX_MARKS: usize = 2;

/// Text that was made harmless, up to a length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmarked {
    /// What is shown.
    pub text: String,
    /// How many characters of the original are not.
    pub left_out: usize,
}

/// The text without markup, exactly: different texts have different forms, and the form between quotes, with `"` escaped, is a
/// JSON string of the text.
///
/// ```
/// use callgate::text::unmarked;
/// assert_eq!(unmarked("ana@example.com, snake_case, 10:30:00"), "ana@example.com, snake_case, 10:30:00");
/// assert_eq!(unmarked("<b>@everyone</b>"), r"\u003cb\u003e\u0040everyone\u003c/b\u003e");
/// assert_eq!(unmarked("https://example.com"), r"https\u003a//example.com");
/// ```
pub fn unmarked(text: &str) -> String {
    unmarked_up_to(text, usize::MAX).text
}

/// The same, at most `limit` characters of it.
pub fn unmarked_up_to(text: &str, limit: usize) -> Unmarked {
    let mut writer = Writer::new(limit);
    writer.text(text, Form::Exact);
    writer.unmarked
}

/// A JSON value without markup, at most `limit` characters of it. In full it is JSON text of the same value.
///
/// ```
/// use callgate::text::unmarked_json;
/// use callgate::json::json;
/// let shown = unmarked_json(&json!({"to": "ana@example.com", "body": "*now*\n"}), 100);
/// assert_eq!(shown.text, r#"{"to": "ana@example.com", "body": "\u002anow\u002a\n"}"#);
/// ```
pub fn unmarked_json(value: &Value, limit: usize) -> Unmarked {
    let mut writer = Writer::new(limit);
    writer.value(value, 0);
    writer.unmarked
}

/// A message without markup, at most `limit` characters of it. Escapes that stand in it stay, so that texts made of unmarked values
/// can pass here, also several times; white space is one space. So this is not exact: two messages may look the same.
pub fn unmarked_message(text: &str, limit: usize) -> Unmarked {
    let mut writer = Writer::new(limit);
    writer.text(&text.split_whitespace().collect::<Vec<_>>().join(" "), Form::Message);
    writer.unmarked
}

/// The text without markup and with everything beyond ASCII as escapes: what it really says, where it looks like something else.
pub fn spelled_out(text: &str, limit: usize) -> Unmarked {
    let mut writer = Writer::new(limit);
    writer.text(text, Form::SpelledOut);
    writer.unmarked
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Exact,
    /// Between quotes.
    Quoted,
    Message,
    SpelledOut,
}

struct Writer {
    unmarked: Unmarked,
    room: usize,
}

impl Writer {
    fn new(limit: usize) -> Self {
        Self { unmarked: Unmarked::default(), room: limit }
    }

    /// Shows what stands for one character, where there is room and nothing before was left out.
    fn unit(&mut self, unit: &str) {
        let length = unit.chars().count();
        if self.unmarked.left_out > 0 || length > self.room {
            self.unmarked.left_out += 1;
            return;
        }
        self.room -= length;
        self.unmarked.text.push_str(unit);
    }

    fn literal(&mut self, text: &str) {
        text.chars().for_each(|c| self.unit(c.encode_utf8(&mut [0; 4])));
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(text) => self.quoted(text),
            Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => {
                self.room = 0;
                self.unit("…");
            }
            Value::Array(items) => {
                // Two brackets in a row begin a link to a page of a wiki.
                self.literal(if items.first().is_some_and(Value::is_array) { "[ " } else { "[" });
                for (index, item) in items.iter().enumerate() {
                    self.literal(if index > 0 { ", " } else { "" });
                    self.value(item, depth + 1);
                }
                self.literal("]");
            }
            Value::Object(map) => {
                self.literal("{");
                for (index, (key, item)) in map.iter().enumerate() {
                    self.literal(if index > 0 { ", " } else { "" });
                    self.quoted(key);
                    self.literal(": ");
                    self.value(item, depth + 1);
                }
                self.literal("}");
            }
            plain => self.literal(&plain.to_string()),
        }
    }

    fn quoted(&mut self, text: &str) {
        self.literal("\"");
        self.text(text, Form::Quoted);
        self.literal("\"");
    }

    fn text(&mut self, text: &str, form: Form) {
        let mut around = Around { before: "", after: text, escaped: true, marks: 0, form };
        for (index, c) in text.char_indices() {
            around.before = text.get(..index).unwrap_or_default();
            around.after = text.get(index + c.len_utf8()..).unwrap_or_default();
            around.marks = if is_mark(c) { around.marks + 1 } else { 0 };
            around.escaped = around.must_escape(c);
            match c {
                _ if !around.escaped => self.unit(c.encode_utf8(&mut [0; 4])),
                '\n' => self.unit(r"\n"),
                '\r' => self.unit(r"\r"),
                '\t' => self.unit(r"\t"),
                _ => self.unit(&escape(c)),
            }
        }
    }
}

/// `\u003c`; beyond the first plane two of them, as in JSON.
fn escape(c: char) -> String {
    let mut escape = String::with_capacity(12);
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(escape, "\\u{unit:04x}");
    }
    escape
}

/// What stands around a character.
struct Around<'a> {
    before: &'a str,
    after: &'a str,
    /// Whether the character before is escaped, or there is none.
    escaped: bool,
    /// How many combining marks stand in a row, with this one.
    marks: usize,
    form: Form,
}

impl Around<'_> {
    fn must_escape(&self, c: char) -> bool {
        let next = self.after.chars().next();
        let previous = self.before.chars().next_back();
        let within_word = is_alphanumeric(previous) && is_alphanumeric(next);
        match c {
            // Markup wherever they stand; and what ends an attribute or a JSON string, where it would.
            '<' | '>' | '&' | '`' | '*' | '~' | '|' | '#' | '[' | ']' | '^' => true,
            '"' => self.form == Form::Quoted,
            '\\' => self.form != Form::Message || !is_alphanumeric(next),
            // Discord underlines `__` also within a word, and takes letters beyond ASCII for the end of one.
            '_' => !within_word,
            '@' => !within_word || self.is_mass_mention(),
            ':' => self.after.starts_with("//") || self.is_emoji() || self.at_start(),
            // Mathematics; the dollar of an amount can begin some, but not end it.
            '$' => !next.is_some_and(|next| next.is_ascii_digit()) || !self.is_after_space(previous),
            '-' | '+' => self.is_list(next),
            '=' => self.at_start(),
            '.' => self.is_after_www() || self.is_number_of_list(next),
            ')' => self.is_number_of_list(next),
            // Renderers drop spaces at the ends, and those that follow others.
            ' ' => matches!(previous, None | Some(' ')) || next.is_none(),
            _ if c.is_ascii() => c.is_ascii_control(),
            _ => {
                self.form == Form::SpelledOut
                    || c.is_control()
                    || c.is_whitespace()
                    || is_hidden(c)
                    || is_undefined(c)
                    || is_mark(c) && (self.escaped || self.marks > MAX_MARKS)
            }
        }
    }

    /// Whether a line could begin here.
    fn at_start(&self) -> bool {
        self.before.is_empty() && self.form != Form::Quoted
    }

    fn is_after_space(&self, previous: Option<char>) -> bool {
        self.at_start() || previous == Some(' ') && !self.escaped
    }

    fn is_list(&self, next: Option<char>) -> bool {
        self.at_start() && !is_alphanumeric(next)
    }

    fn is_number_of_list(&self, next: Option<char>) -> bool {
        let digits = self.before.len();
        self.form != Form::Quoted
            && matches!(next, None | Some(' '))
            && (1..=9).contains(&digits)
            && self.before.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn is_mass_mention(&self) -> bool {
        ["everyone", "here", "channel", "group"]
            .iter()
            .any(|word| self.after.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
    }

    /// Whether the colon begins a short code, as `:tada:`. Of those of digits alone only two are emoji; the others are times.
    fn is_emoji(&self) -> bool {
        let of_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-');
        match self.after.split_once(':') {
            Some((code, _)) if !code.is_empty() && code.chars().all(of_code) => {
                matches!(code, "100" | "1234") || !code.bytes().all(|byte| byte.is_ascii_digit())
            }
            _ => false,
        }
    }

    fn is_after_www(&self) -> bool {
        let mut before = self.before.bytes().rev();
        before.by_ref().take(3).filter(|byte| matches!(byte, b'w' | b'W')).count() == 3
    }
}

fn is_alphanumeric(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric())
}

/// Marks that are drawn over or under what stands before; those that belong to a script are not among them.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Characters that look like anything or nothing: those for private use, and those that will never be any.
fn is_undefined(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..)
        || matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn ordinary_values_stay_as_they_are() {
        for text in [
            "ana@example.com",
            "first.last@mail.example.co.uk",
            "snake_case_name",
            "kebab-case",
            "3.14",
            "-5",
            "+49 30 1234567",
            "10:30:00",
            "2026-11-21T10:30:00Z",
            "costs $250, or $5.50",
            "Is it so? Yes (mostly): 100%!",
            "\"quoted\" and 'quoted'",
            "Größe, ação, Καλημέρα, Привет, שלום, مرحبا, नमस्ते, こんにちは, 你好, 안녕하세요",
            "path/to/file.txt",
            "e\u{301}",
        ] {
            assert_eq!(unmarked(text), text);
        }
    }

    #[test]
    fn what_could_be_markup_is_escaped() {
        for (text, shown) in [
            ("_it_", r"\u005fit\u005f"),
            ("a__b", r"a\u005f\u005fb"),
            ("@here", r"\u0040here"),
            ("x@everyone", r"x\u0040everyone"),
            (":tada:", r"\u003atada:"),
            (":100:", r"\u003a100:"),
            ("www.example.com", r"www\u002eexample.com"),
            ("- item", r"\u002d item"),
            ("1. item", r"1\u002e item"),
            ("===", r"\u003d=="),
            ("$x$", r"\u0024x\u0024"),
            ("$5$6", r"$5\u00246"),
            (" $5", r"\u0020\u00245"),
            (" a  b ", r"\u0020a \u0020b\u0020"),
            ("a\nb\u{1b}[0m", r"a\nb\u001b\u005b0m"),
            (r"a\n", r"a\u005cn"),
            ("\u{202e}\u{200b}\u{a0}", r"\u202e\u200b\u00a0"),
            ("\u{e0041}", r"\udb40\udc41"),
            ("e\u{301}\u{302}\u{303}", "e\u{301}\u{302}\\u0303"),
            ("<\u{338}", r"\u003c\u0338"),
        ] {
            assert_eq!(unmarked(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_message_of_unmarked_values_stays_as_it_is() {
        let message = format!("Pay {} to\n  {}?", unmarked("<1>"), unmarked("a\\b\nc"));
        assert_eq!(unmarked_message(&message, 100).text, r"Pay \u003c1\u003e to a\u005cb\nc?");
        assert_eq!(unmarked_message(r"a\*b", 100).text, r"a\u005c\u002ab");
    }

    #[test]
    fn what_is_too_long_ends_before_an_escape_and_is_counted() {
        assert_eq!(unmarked_up_to("ab<c", 7), Unmarked { text: "ab".to_owned(), left_out: 2 });
        assert_eq!(unmarked_up_to("ab<c", 9), Unmarked { text: unmarked("ab<c"), left_out: 0 });
        assert_eq!(unmarked_json(&json!([1, "a"]), 4).left_out, 4);
    }
}
