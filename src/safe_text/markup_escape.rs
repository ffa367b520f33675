//! Escaping for any renderer: no markup of Slack, Markdown, HTML or Discord, no mention, no autolinked URL, no control character,
//! nothing invisible.
//!
//! A character that could be any of these is written as a JSON escape, `\u003c` for `<`, so nothing is lost: a literal backslash is
//! written `\u005c`, so two different texts never look the same. Escapes that Markdown would resolve (`\"`, `\/`, `\\`) are not
//! used. An underscore, an at sign and a colon stay where they cannot be markup, so that names, addresses and times stay readable.
//! Bare domains and addresses stay as they are; if a renderer turns them into links, the link target is the visible text.
//!
//! Callers write `"` around the text, `: ` after a label and `…[3 characters not shown]…` into a gap. So the exact forms also escape
//! lookalikes of these: a colon before a space, and characters that look like quotes, colons and brackets.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use super::is_hidden;
use crate::json::{MAX_DEPTH, Value};

/// The maximum number of combining marks shown on one character; more of them cover the lines above.
const MAX_MARKS: usize = 2;

/// Escaped text with a length limit. Text that is too long keeps its beginning and its end; its [`Display`](fmt::Display) is
/// one line with the number of missing characters between the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EscapedText {
    /// The whole text, or its beginning.
    pub text: String,
    /// How many characters of the original are not shown.
    pub left_out: usize,
    /// Its end, if characters are left out before it.
    pub end: String,
}

impl fmt::Display for EscapedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.left_out {
            0 => Ok(()),
            1 => write!(f, "…[1 character not shown]…{}", self.end),
            count => write!(f, "…[{count} characters not shown]…{}", self.end),
        }
    }
}

/// Escapes a text exactly: different texts have different forms, and the form between quotes, with `"` escaped, is a
/// JSON string of the text.
///
/// ```
/// use callgate::safe_text::escape_markup;
/// assert_eq!(escape_markup("ana@example.com, snake_case, 10:30:00"), "ana@example.com, snake_case, 10:30:00");
/// assert_eq!(escape_markup("<b>@everyone</b>"), r"\u003cb\u003e\u0040everyone\u003c/b\u003e");
/// assert_eq!(escape_markup("https://example.com"), r"https\u003a//example.com");
/// ```
pub fn escape_markup(text: &str) -> String {
    escape_markup_up_to(text, usize::MAX).text
}

/// Escapes a text, limited to `limit` characters.
pub fn escape_markup_up_to(text: &str, limit: usize) -> EscapedText {
    let mut writer = EscapeWriter::new(limit);
    writer.text(text, EscapeForm::Exact);
    writer.finish()
}

/// Escapes a text and quotes it as a JSON string, limited to `limit` characters.
pub fn escape_quoted(text: &str, limit: usize) -> EscapedText {
    let mut writer = EscapeWriter::new(limit);
    writer.quoted(text);
    writer.finish()
}

/// Escapes a name: unquoted if it consists of ASCII letters, digits and the punctuation of identifiers, addresses and times,
/// otherwise quoted, so that the end of the name is always visible. Limited to `limit` characters.
///
/// ```
/// use callgate::safe_text::escape_name;
/// assert_eq!(escape_name("send_email", 100).text, "send_email");
/// assert_eq!(escape_name("send on mail", 100).text, "\"send on mail\"");
/// ```
pub fn escape_name(name: &str, limit: usize) -> EscapedText {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+' | ':');
    match !name.is_empty() && name.chars().all(is_plain) && escape_markup(name) == name {
        true => escape_markup_up_to(name, limit),
        false => escape_quoted(name, limit),
    }
}

/// Escapes a JSON value, limited to `limit` characters. In full it is JSON text of the same value.
///
/// ```
/// use callgate::safe_text::escape_json;
/// use callgate::json::json;
/// let escaped = escape_json(&json!({"to": "ana@example.com", "body": "*now*\n"}), 100);
/// assert_eq!(escaped.text, r#"{"to": "ana@example.com", "body": "\u002anow\u002a\n"}"#);
/// ```
pub fn escape_json(value: &Value, limit: usize) -> EscapedText {
    let mut writer = EscapeWriter::new(limit);
    writer.value(value, 0);
    writer.finish()
}

/// Escapes a message, limited to `limit` characters. Existing escapes stay, so messages composed of escaped values can pass through
/// this function repeatedly; white space collapses to one space. So this is not exact: two messages may look the same.
pub fn escape_message(text: &str, limit: usize) -> EscapedText {
    let mut writer = EscapeWriter::new(limit);
    writer.text(&text.split_whitespace().collect::<Vec<_>>().join(" "), EscapeForm::Message);
    writer.finish()
}

/// Escapes markup and everything beyond ASCII: reveals the real characters of a text that looks like something else.
pub fn escape_non_ascii(text: &str, limit: usize) -> EscapedText {
    let mut writer = EscapeWriter::new(limit);
    writer.text(text, EscapeForm::SpelledOut);
    writer.finish()
}

#[derive(Clone, Copy, PartialEq)]
enum EscapeForm {
    Exact,
    /// Between quotes.
    Quoted,
    Message,
    SpelledOut,
}

/// Writes up to a limit: the beginning, and the end of the text that does not fit, for which a third is reserved.
struct EscapeWriter {
    beginning: String,
    /// The last unit of the beginning.
    last: Option<EscapeUnit>,
    /// How many characters the beginning can still take; zero after the first unit that did not fit.
    remaining: usize,
    end: VecDeque<EscapeUnit>,
    end_length: usize,
    end_limit: usize,
    left_out: usize,
}

/// The output for one character of the original.
struct EscapeUnit {
    text: String,
    length: usize,
    /// The character of the original, if it is written unescaped.
    content: Option<char>,
}

impl EscapeUnit {
    fn new(text: &str, content: Option<char>) -> Self {
        Self { text: text.to_owned(), length: text.chars().count(), content }
    }

    /// Next to a gap, a character has lost its neighbor and could be markup: only letters and digits stay unescaped.
    fn escape_beside_gap(&mut self) {
        if let Some(c) = self.content.filter(|c| !c.is_alphanumeric()) {
            self.text = escape(c);
        }
    }
}

impl EscapeWriter {
    fn new(limit: usize) -> Self {
        let end_limit = limit / 3;
        Self {
            beginning: String::new(),
            last: None,
            remaining: limit - end_limit,
            end: VecDeque::new(),
            end_length: 0,
            end_limit,
            left_out: 0,
        }
    }

    fn finish(mut self) -> EscapedText {
        if self.left_out > 0 {
            self.last.iter_mut().chain(self.end.front_mut()).for_each(EscapeUnit::escape_beside_gap);
        }
        let (mut text, mut end) = (self.beginning, String::new());
        text.extend(self.last.map(|unit| unit.text));
        let rest = if self.left_out > 0 { &mut end } else { &mut text };
        rest.extend(self.end.into_iter().map(|unit| unit.text));
        EscapedText { text, left_out: self.left_out, end }
    }

    fn unit(&mut self, unit: EscapeUnit) {
        if self.end.is_empty() && self.left_out == 0 && unit.length <= self.remaining {
            self.remaining -= unit.length;
            if let Some(before) = self.last.replace(unit) {
                self.beginning.push_str(&before.text);
            }
            return;
        }
        self.end_length += unit.length;
        self.end.push_back(unit);
        // The end may use what the beginning left of the limit, as long as nothing is left out.
        while self.end_length > self.end_limit + self.remaining {
            let Some(first) = self.end.pop_front() else { return };
            self.end_length -= first.length;
            self.left_out += 1;
        }
    }

    fn literal(&mut self, text: &str) {
        text.chars().for_each(|c| self.unit(EscapeUnit::new(c.encode_utf8(&mut [0; 4]), None)));
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(text) => self.quoted(text),
            Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => {
                self.literal("…");
                self.left_out += 1;
            }
            Value::Array(items) => {
                // Two brackets in a row begin a wiki link.
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
        self.text(text, EscapeForm::Quoted);
        self.literal("\"");
    }

    fn text(&mut self, text: &str, form: EscapeForm) {
        let mut around = CharContext { before: "", after: text, escaped: true, marks: 0, form };
        for (index, c) in text.char_indices() {
            around.before = text.get(..index).unwrap_or_default();
            around.after = text.get(index + c.len_utf8()..).unwrap_or_default();
            around.marks = if is_mark(c) { around.marks + 1 } else { 0 };
            around.escaped = around.must_escape(c);
            match c {
                _ if !around.escaped => self.unit(EscapeUnit::new(c.encode_utf8(&mut [0; 4]), Some(c))),
                '\n' => self.unit(EscapeUnit::new(r"\n", None)),
                '\r' => self.unit(EscapeUnit::new(r"\r", None)),
                '\t' => self.unit(EscapeUnit::new(r"\t", None)),
                _ => self.unit(EscapeUnit::new(&escape(c), None)),
            }
        }
    }
}

/// `\u003c`; a surrogate pair beyond the first plane, as in JSON.
fn escape(c: char) -> String {
    let mut escape = String::with_capacity(12);
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(escape, "\\u{unit:04x}");
    }
    escape
}

/// The context of a character.
struct CharContext<'a> {
    before: &'a str,
    after: &'a str,
    /// Whether the previous character is escaped, or there is none.
    escaped: bool,
    /// How many combining marks are in a row, including this one.
    marks: usize,
    form: EscapeForm,
}

impl CharContext<'_> {
    fn must_escape(&self, c: char) -> bool {
        let next = self.after.chars().next();
        let previous = self.before.chars().next_back();
        let within_word = is_alphanumeric(previous) && is_alphanumeric(next);
        match c {
            // Always markup; or the end of an attribute or a JSON string.
            '<' | '>' | '&' | '`' | '*' | '~' | '|' | '#' | '[' | ']' | '^' => true,
            '"' => self.form == EscapeForm::Quoted,
            '\\' => self.form != EscapeForm::Message || !is_alphanumeric(next),
            // Discord underlines `__` inside words too, and treats letters beyond ASCII as the end of a word.
            '_' => !within_word,
            '@' => !within_word || self.is_mass_mention(),
            ':' => self.after.starts_with("//") || self.is_emoji() || self.at_start() || self.is_label(next),
            '\'' => self.is_exact() && (is_single_quote(previous) || is_single_quote(next)),
            // TeX math; the dollar sign of an amount can begin a formula, but not end it.
            '$' => !next.is_some_and(|next| next.is_ascii_digit()) || !self.is_after_space(previous),
            '-' | '+' => self.is_list(next),
            '=' => self.at_start(),
            '.' => self.is_after_www() || self.is_number_of_list(next),
            ')' => self.is_number_of_list(next),
            // Renderers drop leading, trailing and repeated spaces.
            ' ' => matches!(previous, None | Some(' ')) || next.is_none(),
            _ if c.is_ascii() => c.is_ascii_control(),
            _ => {
                self.form == EscapeForm::SpelledOut
                    || self.is_exact() && self.imitates_punctuation(c, previous, next)
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
        self.before.is_empty() && self.form != EscapeForm::Quoted
    }

    /// Whether lookalikes of the punctuation around the text are escaped. A message contains its author's own punctuation.
    fn is_exact(&self) -> bool {
        self.form != EscapeForm::Message
    }

    /// Whether a colon here could end a label.
    fn is_label(&self, next: Option<char>) -> bool {
        self.is_exact() && next.is_none_or(char::is_whitespace)
    }

    fn imitates_punctuation(&self, c: char, previous: Option<char>, next: Option<char>) -> bool {
        looks_like_punctuation(c)
            || is_single_quote(Some(c)) && (is_single_quote(previous) || is_single_quote(next))
    }

    fn is_after_space(&self, previous: Option<char>) -> bool {
        self.at_start() || previous == Some(' ') && !self.escaped
    }

    fn is_list(&self, next: Option<char>) -> bool {
        self.at_start() && !is_alphanumeric(next)
    }

    fn is_number_of_list(&self, next: Option<char>) -> bool {
        let digits = self.before.len();
        self.form != EscapeForm::Quoted
            && matches!(next, None | Some(' '))
            && (1..=9).contains(&digits)
            && self.before.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn is_mass_mention(&self) -> bool {
        ["everyone", "here", "channel", "group"]
            .iter()
            .any(|word| self.after.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
    }

    /// Whether the colon begins a short code such as `:tada:`. Of the digit-only codes only two are emoji; the others are times.
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

/// Two in a row look like a double quote.
fn is_single_quote(c: Option<char>) -> bool {
    c.is_some_and(|c| {
        matches!(c, '\'' | '`' | '´' | '\u{2b9}' | '\u{2bb}'..='\u{2bf}' | '\u{2c8}' | '\u{2ca}' | '\u{2cb}' | '\u{2018}'..='\u{201b}'
            | '\u{2032}' | '\u{2035}' | '\u{a78c}' | '\u{ff07}' | '\u{ff40}')
    })
}

/// Characters beyond ASCII that look like double quotes, colons or square brackets.
fn looks_like_punctuation(c: char) -> bool {
    matches!(c,
        // Double quotes.
        '\u{2ba}' | '\u{2dd}' | '\u{2ee}' | '\u{2f6}' | '\u{5f2}' | '\u{5f4}' | '\u{1cd3}' | '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2034}'
        | '\u{2036}' | '\u{2037}' | '\u{2057}' | '\u{275d}' | '\u{275e}' | '\u{2760}' | '\u{3003}' | '\u{301d}'..='\u{301f}'
        | '\u{ff02}' | '\u{1f676}'..='\u{1f678}'
        // Colons.
        | '\u{2d0}' | '\u{2f8}' | '\u{589}' | '\u{5c3}' | '\u{703}' | '\u{704}' | '\u{16ec}' | '\u{1803}' | '\u{1809}' | '\u{205a}'
        | '\u{2236}' | '\u{a4fd}' | '\u{a789}' | '\u{fe13}' | '\u{fe30}' | '\u{fe55}' | '\u{ff1a}'
        // Square brackets.
        | '\u{2045}' | '\u{2046}' | '\u{23a1}'..='\u{23a6}' | '\u{27e6}' | '\u{27e7}' | '\u{301a}' | '\u{301b}' | '\u{fe47}' | '\u{fe48}'
        | '\u{ff3b}' | '\u{ff3d}')
}

/// Combining marks drawn over or under the previous character, except those that belong to a script.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Characters without a defined shape: private use, and noncharacters.
fn is_undefined(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..)
        || matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
}

#[cfg(test)]
mod tests;
