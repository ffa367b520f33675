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

mod char_context;

use std::collections::VecDeque;
use std::fmt::{self, Write};

use crate::json::{MAX_DEPTH, Value};
use char_context::{CharContext, EscapeForm};

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
        let mut around = CharContext::new(text, form);
        for (index, c) in text.char_indices() {
            match c {
                _ if !around.advance(text, index, c) => {
                    self.unit(EscapeUnit::new(c.encode_utf8(&mut [0; 4]), Some(c)))
                }
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

#[cfg(test)]
mod tests;
