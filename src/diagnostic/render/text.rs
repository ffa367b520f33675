//! Terminal output: the source lines with underlined problems, messages and help.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::hidden_characters::{escape_hidden, is_hidden};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, SourceFile, SourceId, SourceMap, Span};

/// In longer lines only the position is shown: the renderer takes a second per problem for a line of megabytes.
const MAX_LINE_BYTES: usize = 32 << 10;
/// The same if positions are farther apart: the renderer walks all text between them.
const MAX_SNIPPET_BYTES: usize = 256 << 10;

/// Renders each diagnostic as a paragraph ending in a line break, in order. `colour` enables ANSI escapes; escapes in the file's
/// text never reach the output.
pub fn text(diagnostics: &Diagnostics, sources: &SourceMap, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let paragraphs: Vec<_> =
        diagnostics.iter().map(|diagnostic| renderer.render(&[group(diagnostic, sources)]) + "\n").collect();
    paragraphs.join("\n")
}

fn group<'a>(diagnostic: &'a Diagnostic, sources: &'a SourceMap) -> Group<'a> {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group =
        Group::with_title(level.primary_title(escape_hidden(&diagnostic.message)).id(diagnostic.code.id));
    match (diagnostic.span, &diagnostic.file) {
        (Some(primary), _) => {
            for (source, marks) in marks_by_file(diagnostic, primary) {
                if let Some(source) = sources.get(source) {
                    group = match snippet(source, &marks) {
                        Some(snippet) => group.element(snippet),
                        None => group.elements(marks.iter().map(|mark| mark_origin(source, mark))),
                    };
                }
            }
        }
        (None, Some(file)) => group = group.element(Origin::path(escape_hidden(file))),
        (None, None) => {}
    }
    if let Some(policy) = &diagnostic.policy {
        group = group.element(Level::NOTE.message(format!("in policy `{}`", escape_hidden(policy))));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(escape_hidden(help)));
    }
    if let Some(fix) = &diagnostic.fix {
        group =
            group.element(Level::NOTE.message(format!("`--fix` can apply: {}", escape_hidden(&fix.title))));
    }
    group
}

/// A range to underline: the problem itself, or a labeled secondary position.
struct Underline<'a> {
    span: Span,
    label: Option<&'a str>,
}

/// Groups the marks by file, the file of the problem first.
fn marks_by_file(diagnostic: &Diagnostic, primary: Span) -> Vec<(SourceId, Vec<Underline<'_>>)> {
    let mut files = vec![(primary.source, vec![Underline { span: primary, label: None }])];
    for label in &diagnostic.labels {
        let mark = Underline { span: label.span, label: Some(&label.message) };
        match files.iter_mut().find(|(source, _)| *source == label.span.source) {
            Some((_, marks)) => marks.push(mark),
            None => files.push((label.span.source, vec![mark])),
        }
    }
    files
}

/// The position of a mark without its source line.
fn mark_origin<'a>(source: &'a SourceFile, mark: &Underline<'a>) -> Origin<'a> {
    let (line, column) = source.position(mark.span.start());
    Origin::path(escape_hidden(source.name())).line(line).char_column(column)
}

/// The source lines of the marks, so that a large file is not walked for each of its problems. Returns `None` if a line is too
/// long.
fn snippet<'a>(source: &'a SourceFile, marks: &[Underline<'a>]) -> Option<Snippet<'a, Annotation<'a>>> {
    let text = source.text();
    let ranges: Vec<_> = marks.iter().map(|mark| align_to_characters(text, mark.span)).collect();
    let first = ranges.iter().map(|range| range.start).min().unwrap_or(0);
    let last = ranges.iter().map(|range| range.end).max().unwrap_or(0);
    let start = text.get(..first).and_then(|before| before.rfind('\n')).map_or(0, |index| index + 1);
    let end = text.get(last..).and_then(|after| after.find('\n')).map_or(text.len(), |index| last + index);
    let lines = text.get(start..end).unwrap_or("");
    let lines = lines.strip_suffix('\r').filter(|shorter| start + shorter.len() >= last).unwrap_or(lines);
    if lines.len() > MAX_SNIPPET_BYTES || lines.lines().any(|line| line.len() > MAX_LINE_BYTES) {
        return None;
    }
    let (line, _) = source.position(start);
    let annotations = marks.iter().zip(ranges).map(|(mark, range)| {
        let kind = if mark.label.is_some() { AnnotationKind::Context } else { AnnotationKind::Primary };
        kind.span(range.start - start..range.end - start).label(mark.label.map(escape_hidden))
    });
    let snippet = Snippet::source(mask_hidden(lines)).line_start(line).path(escape_hidden(source.name()));
    Some(snippet.annotations(annotations))
}

/// Extends a span to whole characters: the renderer panics at any other position.
fn align_to_characters(text: &str, span: Span) -> Range<usize> {
    let start = text.floor_char_boundary(span.start());
    start..text.ceil_char_boundary(span.end()).max(start)
}

/// Replaces hidden characters in source lines by visible ones of the same byte length, so that offsets stay valid.
fn mask_hidden(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    text.chars()
        .map(|character| match character.len_utf8() {
            _ if !is_hidden(character) => character,
            2 => '¿',
            3 => char::REPLACEMENT_CHARACTER,
            _ => '\u{1fbc4}',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{DUPLICATE_ID, MISSING_PATH, UNKNOWN_KEY, render};

    fn one(file: &str, range: Range<usize>) -> String {
        let mut sources = SourceMap::default();
        let source = sources.add("a.yaml", file);
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(Diagnostic::new(&UNKNOWN_KEY, Span::new(source, range.start, range.end), "m"));
        text(&diagnostics, &sources, false)
    }

    #[test]
    fn renders_diagnostics_like_rustc() {
        let mut sources = SourceMap::default();
        let a = sources.add("a.yaml", "policies:\n  - id: x\n    tol: 1\n");
        let b = sources.add("b.yaml", "policies:\n  - id: x\n");
        let mut diagnostics = Diagnostics::default();
        let mut unknown = Diagnostic::new(&UNKNOWN_KEY, Span::new(a, 24, 27), "unknown key `tol`")
            .with_help("did you mean `tool`?");
        unknown.policy = Some("x".to_owned());
        diagnostics.push(unknown);
        diagnostics.push(
            Diagnostic::new(&DUPLICATE_ID, Span::new(b, 18, 19), "the id `x` is taken")
                .with_label(Span::new(a, 18, 19), "first here"),
        );
        diagnostics.push(Diagnostic::for_file(&MISSING_PATH, "c", "`c` does not exist"));
        assert_eq!(
            text(&diagnostics, &sources, false),
            "error[CG201]: unknown key `tol`
 --> a.yaml:3:5
  |
3 |     tol: 1
  |     ^^^
  |
  = note: in policy `x`
  = help: did you mean `tool`?

error[CG401]: the id `x` is taken
 --> b.yaml:2:9
  |
2 |   - id: x
  |         ^
  |
 ::: a.yaml:2:9
  |
2 |   - id: x
  |         - first here

error[CG002]: `c` does not exist
--> c
"
        );
        assert_eq!(render::summary(&diagnostics, &sources), "3 errors in 3 files");
        assert_eq!(render::summary(&Diagnostics::default(), &sources), "no problems");
    }

    #[test]
    fn columns_count_characters_and_wide_ones_are_fully_underlined() {
        let file = "日本: é\n名前: x\n";
        let start = file.find("名前").unwrap();
        let written = one(file, start..start + 6);
        assert!(written.contains("--> a.yaml:2:1\n"), "{written}");
        assert!(written.contains("| ^^^^\n"), "{written}");
    }

    #[test]
    fn escapes_terminal_control_characters() {
        let mut sources = SourceMap::default();
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}\u{200b}\u{7}\r";
        let source = sources.add(format!("{hostile}.yaml"), format!("{hostile}: x\n"));
        let mut diagnostics = Diagnostics::default();
        let mut diagnostic =
            Diagnostic::new(&UNKNOWN_KEY, Span::new(source, 0, 2), format!("key `{hostile}`"))
                .with_label(Span::new(source, 2, 3), hostile)
                .with_help(hostile);
        diagnostic.policy = Some(hostile.to_owned());
        diagnostics.push(diagnostic);
        diagnostics.push(Diagnostic::for_file(&MISSING_PATH, hostile, hostile));
        let written = text(&diagnostics, &sources, false);
        let acted_on: Vec<_> =
            written.chars().filter(|c| *c != '\n' && (c.is_control() || is_hidden(*c))).collect();
        assert!(acted_on.is_empty(), "{written}: {acted_on:?}");
        assert!(text(&diagnostics, &sources, true).contains("\u{1b}["));
    }

    #[test]
    fn truncates_long_lines_around_the_problem() {
        let file = format!("{}here{}", "a, ".repeat(3000), ", b".repeat(3000));
        let written = one(&file, 9000..9004);
        assert!(written.contains("here") && written.contains("^^^^"), "{written}");
        assert!(written.len() < 1000, "{written}");
    }

    #[test]
    fn shows_only_the_position_in_a_line_of_megabytes() {
        let file = format!("a: b\n{}here\n", "é".repeat(100_000));
        let start = file.find("here").unwrap();
        assert_eq!(one(&file, start..start + 4), "error[CG201]: m\n--> a.yaml:2:100001\n");
    }

    #[test]
    fn spans_at_edges_and_inside_characters_do_not_panic() {
        for file in ["", "\n", "é", "a: |\r\n  é\r\n\r\n", "日本\n\n"] {
            for start in 0..file.len() + 2 {
                for end in start..file.len() + 2 {
                    assert!(
                        one(file, start..end).starts_with("error[CG201]: m\n"),
                        "{file:?} {start}..{end}"
                    );
                }
            }
        }
    }
}
