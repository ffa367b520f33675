//! Output of commands: buffered stdout, messages on stderr, colours, and text layout for terminals.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Effects, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::exit::CommandError;
use callgate::diagnostic::{Diagnostics, SourceMap, render};
use callgate::engine::RejectionReason;
use callgate::policy::LoadedBundle;
use callgate::safe_text::{escape_name, is_hidden};

pub(super) const RED: Style = AnsiColor::Red.on_default();
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(super) const BOLD: Style = Style::new().effects(Effects::BOLD);
pub(super) const DIM: Style = Style::new().effects(Effects::DIMMED);

/// Buffered stdout.
pub(super) struct Output {
    writer: BufWriter<io::Stdout>,
    /// Whether to write colour escapes: on a terminal, and as `NO_COLOR` and `CLICOLOR` say.
    pub(super) colour: bool,
    /// The width of the terminal in columns; `None` if stdout is not a terminal.
    pub(super) width: Option<usize>,
}

impl Output {
    pub(super) fn stdout() -> Self {
        let stdout = io::stdout();
        let width = stdout.is_terminal().then(|| {
            let size = terminal_size::terminal_size_of(&stdout);
            size.map_or(80, |(terminal_size::Width(columns), _)| usize::from(columns).max(40))
        });
        let colour = AutoStream::choice(&stdout) != ColorChoice::Never;
        Self { writer: BufWriter::new(stdout), colour, width }
    }

    /// The text in this style, if colours are enabled.
    pub(super) fn paint<'t>(&self, style: Style, text: &'t str) -> Cow<'t, str> {
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}").into() } else { text.into() }
    }

    /// Flushes the buffer.
    pub(super) fn finish(&mut self) -> Result<(), CommandError> {
        Ok(self.writer.flush()?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Prints an error to stderr.
pub(super) fn print_error(message: impl Display) {
    print_message(RED.effects(Effects::BOLD), "error:", message);
}

/// Prints a warning to stderr.
pub(super) fn print_warning(message: impl Display) {
    print_message(YELLOW.effects(Effects::BOLD), "warning:", message);
}

/// Prints a note to stderr.
pub(super) fn print_note(message: impl Display) {
    print_message(CYAN.effects(Effects::BOLD), "note:", message);
}

fn print_message(style: Style, word: &str, message: impl Display) {
    let message = message.to_string();
    // A closed stderr does not stop the command.
    let _ = writeln!(anstream::stderr(), "{style}{word}{style:#} {}", escape_line(&message));
}

/// Prints the diagnostics of rules that can't be loaded to stderr.
pub(super) fn print_build_errors(built: &LoadedBundle) {
    print_diagnostics(&built.diagnostics, &built.sources);
}

/// Prints them with the names of files as the user knows them.
pub(super) fn print_displayed_build_errors(built: &LoadedBundle, displayed: &dyn Fn(&str) -> String) {
    let text = displayed(&render::text(&built.diagnostics, &built.sources, true));
    let _ = writeln!(anstream::stderr(), "{text}");
    print_error(displayed(&render::summary(&built.diagnostics, &built.sources).to_string()));
}

/// Prints diagnostics and their summary to stderr.
pub(super) fn print_diagnostics(diagnostics: &Diagnostics, sources: &SourceMap) {
    let text = render::text(diagnostics, sources, true);
    // The stream removes the colours where they are not supported.
    let _ = writeln!(anstream::stderr(), "{text}");
    print_error(render::summary(diagnostics, sources));
}

/// Prints the report of policy tests because of which rules were rejected to stderr, and the reason in one line.
pub(super) fn print_test_failures(text: &str, why: &RejectionReason) {
    let _ = writeln!(anstream::stderr(), "{text}");
    print_error(why.summary());
}

/// A number with its noun, singular or plural: `1 call`, `2 calls`.
pub(super) fn count_noun(count: usize, singular: &str, plural: &str) -> String {
    format!("{} {}", group_digits(count), if count == 1 { singular } else { plural })
}

/// A number with thousands separators: `12,345`.
pub(super) fn group_digits(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An untrusted name, in quotes unless it is plain, so that its end is unambiguous.
pub(super) fn quote_name(text: &str) -> String {
    escape_name(text, usize::MAX).text
}

/// Untrusted text in one line that is safe on a terminal: line breaks become spaces; control and hidden characters are escaped.
pub(super) fn escape_line(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() || is_hidden(c)) {
        return text.into();
    }
    text.chars()
        .fold(String::with_capacity(text.len()), |mut line, c| {
            match c {
                '\n' | '\r' | '\t' => line.push(' '),
                c if c.is_control() || is_hidden(c) => line.extend(c.escape_unicode()),
                c => line.push(c),
            }
            line
        })
        .into()
}

/// Quotes a string as one word of a shell command, with control and hidden characters escaped.
pub(super) fn quote_shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%:,".contains(c) || cfg!(windows) && c == '\\';
    let misleads = |c: char| c.is_control() || is_hidden(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if !text.contains(misleads) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let spelt = text.chars().fold(String::new(), |mut word, c| {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            c if misleads(c) => word.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => word.push(c),
        }
        word
    });
    format!("$'{spelt}'")
}

/// A time in RFC 3339, shown to the minute.
pub(super) fn format_time(time: &str) -> String {
    let read = time.parse::<jiff::Timestamp>();
    read.map_or_else(|_| time.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// The width of a text in columns.
pub(super) fn display_width(text: &str) -> usize {
    text.width()
}

/// Truncates a text to a width in columns, marked with `…`.
pub(super) fn truncate(text: &str, width: usize) -> Cow<'_, str> {
    if display_width(text) <= width {
        return text.into();
    }
    let mut left = width.saturating_sub(1);
    let fitting = text.chars().take_while(|c| {
        let room = left.checked_sub(c.width().unwrap_or(0));
        left = room.unwrap_or(0);
        room.is_some()
    });
    fitting.chain(['…']).collect()
}

/// Wraps a text to a width in columns, at spaces if possible.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let used_width = display_width(&line);
        if used_width > 0 && used_width + 1 + display_width(word) <= width {
            line.push(' ');
        } else if used_width > 0 {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if display_width(&line) + c.width().unwrap_or(0) > width && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_and_wraps_by_display_width() {
        assert_eq!(truncate("refund", 6), "refund");
        assert_eq!(truncate("refunds", 6), "refun…");
        assert_eq!(truncate("日本語", 5), "日本…");
        assert_eq!(truncate("日本語", 4), "日…");
        assert_eq!(wrap("not  outside acme", 11), ["not outside", "acme"]);
        assert_eq!(wrap("日本語日本語 a", 4), ["日本", "語日", "本語", "a"]);
        assert_eq!(wrap("", 10), Vec::<String>::new());
    }

    #[test]
    fn escapes_terminal_control_characters() {
        assert_eq!(escape_line("a\n`b`\u{1b}[2J\u{202e}é"), "a `b`\\u{1b}[2J\\u{202e}é");
    }

    #[test]
    fn large_numbers_are_grouped() {
        let texts = [0, 999, 1000, 1_234_567].map(group_digits);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }
}
