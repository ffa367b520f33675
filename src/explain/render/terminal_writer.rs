//! A writer of coloured lines, with helpers that escape untrusted strings for a terminal.

use crate::safe_text::is_hidden;

pub const RED: &str = "\u{1b}[31m";
pub const GREEN: &str = "\u{1b}[32m";
pub const YELLOW: &str = "\u{1b}[33m";
pub const CYAN: &str = "\u{1b}[36m";
pub const BOLD: &str = "\u{1b}[1m";
pub const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// A text built line by line.
pub struct TerminalWriter {
    text: String,
    colour: bool,
}

impl TerminalWriter {
    pub fn new(colour: bool) -> Self {
        Self { text: String::new(), colour }
    }

    pub fn into_text(self) -> String {
        self.text
    }

    pub fn line(&mut self, indent: usize, text: &str) {
        let text = text.trim_end();
        if !text.is_empty() {
            self.text.extend(std::iter::repeat_n(' ', indent));
            self.text.push_str(text);
        }
        self.text.push('\n');
    }

    /// The text in this style, if colours are enabled.
    pub fn paint(&self, style: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }
}

/// An untrusted string on one line, with control and invisible characters escaped.
pub fn escape_invisible(text: &str) -> String {
    let hidden = |c: char| c.is_control() || is_hidden(c);
    text.chars().fold(String::with_capacity(text.len()), |mut line, c| {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c if hidden(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
        line
    })
}

/// The text, padded with spaces to `width` characters.
pub fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}
