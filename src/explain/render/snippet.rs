//! Renders a snippet: the line of a location in a rules file, underlined.

use super::terminal_writer::{CYAN, DIM, TerminalWriter, escape_invisible};
use crate::diagnostic::{Location, SourceMap};

/// The maximum length of a displayed line, in bytes.
const MAX_LINE_BYTES: usize = 400;

/// Writes the location and, if the file is known, its line with the text underlined.
pub fn write_snippet(page: &mut TerminalWriter, indent: usize, at: &Location, sources: Option<&SourceMap>) {
    let location = page.paint(DIM, &format_location(at));
    page.line(indent, &location);
    let source = sources
        .and_then(|sources| sources.iter().map(|(_, source)| source).find(|source| source.name() == at.file));
    let line = source.and_then(|source| source.text().lines().nth(at.line.checked_sub(1)?));
    let Some(line) = line.filter(|line| line.len() <= MAX_LINE_BYTES) else { return };
    let characters: Vec<char> = line.chars().collect();
    let start = at.column.saturating_sub(1);
    // Of a text on several lines, the first is underlined.
    let end = if at.end_line > at.line { characters.len() } else { at.end_column.saturating_sub(1) };
    let leading = characters.iter().take_while(|c| c.is_whitespace()).count().min(start);
    let displayed: String = characters.iter().skip(leading).collect();
    let number = at.line.to_string();
    let before = escape_invisible(&characters.iter().skip(leading).take(start - leading).collect::<String>());
    let words =
        escape_invisible(&characters.iter().skip(start).take(end.saturating_sub(start)).collect::<String>());
    let gap = " ".repeat(before.chars().count());
    let under = page.paint(CYAN, &"^".repeat(words.chars().count().max(1)));
    let bar = page.paint(DIM, &format!("{number} |"));
    page.line(indent, &format!("{bar} {}", escape_invisible(&displayed)));
    let bar = page.paint(DIM, &format!("{} |", " ".repeat(number.len())));
    page.line(indent, &format!("{bar} {gap}{under}"));
}

/// `rules.yaml:7:31`
pub fn format_location(at: &Location) -> String {
    escape_invisible(&format!("{}:{}:{}", at.file, at.line, at.column))
}
