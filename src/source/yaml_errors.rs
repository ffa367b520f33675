//! Diagnostics for YAML syntax errors: problem and fix, for authors of rules files.

use granit_parser::{ErrorKind, ScanError};

use super::unsupported_yaml;
use crate::diagnostic::{Diagnostic, SourceId, Span, YAML_SYNTAX};

/// Converts a parser error to a diagnostic.
pub(super) fn syntax_diagnostic(source: SourceId, text: &str, error: &ScanError) -> Diagnostic {
    let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
    let here = |length: usize| Span::new(source, at, at + length);
    let next_char = text.get(at..).and_then(|rest| rest.chars().next());
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => unsupported_yaml::too_deep(here(1)),
        ErrorKind::DirectiveDisallowed => {
            let line = text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or("");
            unsupported_yaml::directive(here(line.trim_end().len()))
        }
        ErrorKind::UndeclaredTagHandle => {
            unsupported_yaml::tag(here(word_at(text, at).len()), word_at(text, at))
        }
        kind if is_about_tabs(kind) => {
            let (start, end) = indenting_tabs(text, at).unwrap_or((at, at));
            Diagnostic::new(
                &YAML_SYNTAX,
                Span::new(source, start, end),
                "tabs are not allowed for indentation; use spaces",
            )
            .with_help("replace each tab by two spaces; most editors can do that for a whole file")
        }
        ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::UnclosedQuotedScalar
        | ErrorKind::DocumentIndicatorInQuotedScalar => {
            let length = next_char.map_or(0, char::len_utf8);
            let open = Diagnostic::new(&YAML_SYNTAX, here(length), "a quoted string is not closed here")
                .with_help("close the quote; if the string continues, indent this line further than its key");
            match opening_quote(text, at) {
                Some(quote) => open.with_label(Span::new(source, quote, quote + 1), "opened here"),
                None => open,
            }
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            let (start, escape) = unknown_escape(text, at).unwrap_or((at, "\\"));
            let span = Span::new(source, start, start + escape.len());
            Diagnostic::new(&YAML_SYNTAX, span, format!("`{escape}` is not a valid escape in double quotes"))
                .with_help("double the backslash, or use single quotes, in which a backslash is literal")
        }
        ErrorKind::MappingValueNotAllowed => misplaced_colon(source, text, at),
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::ExpectedBlockSequenceEntry => {
            misplaced_line(source, text, at)
        }
        kind => {
            let (message, help) = message_and_help(kind, text, at);
            let diagnostic =
                Diagnostic::new(&YAML_SYNTAX, here(next_char.map_or(0, char::len_utf8)), message);
            match help {
                Some(help) => diagnostic.with_help(help),
                None => diagnostic,
            }
        }
    }
}

/// The start of the line of `at`, and the text of that line before `at`.
fn line_before(text: &str, at: usize) -> (usize, &str) {
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |index| index + 1);
    (start, text.get(start..at).unwrap_or(""))
}

fn misplaced_colon(source: SourceId, text: &str, at: usize) -> Diagnostic {
    let (line, before) = line_before(text, at);
    if before.contains(": ") {
        let message = "unexpected `:` inside an unquoted value";
        return Diagnostic::new(&YAML_SYNTAX, Span::new(source, at, at + 1), message)
            .with_help("quote the value, or start a new line for a mapping");
    }
    let key = before.trim_start_matches([' ', '-']);
    let span = Span::new(source, line + before.len() - key.len(), at);
    Diagnostic::new(&YAML_SYNTAX, span, format!("the key `{key}` is not allowed here"))
        .with_help("give it the indentation of its siblings; if the line above is a key, add its `:`")
}

fn misplaced_line(source: SourceId, text: &str, at: usize) -> Diagnostic {
    let (line, before) = line_before(text, at);
    let rest = text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or("").trim_end();
    let dash = before.find('-').filter(|_| before.trim() == "-");
    let (start, message, help) = match dash {
        Some(dash) => (
            line + dash,
            "a list item is not allowed between keys",
            "indent it under the key that it belongs to, or remove the `- `",
        ),
        None if before.trim().is_empty() => (
            at,
            "the indentation of this line matches no line above it",
            "give it the indentation of its siblings; a string on several lines is indented further than its key, \
             and a list item begins with `- `",
        ),
        None => (at, "unexpected text after the end of the value", "quote the whole value"),
    };
    Diagnostic::new(&YAML_SYNTAX, Span::new(source, start, at + rest.len()), message).with_help(help)
}

fn is_about_tabs(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInPlainScalar
            | ErrorKind::TabAtBlockScalarStart
    )
}

/// The first run of tabs before a line's first word, from the line of `at` on: the parser's position is slightly
/// before or after it.
fn indenting_tabs(text: &str, at: usize) -> Option<(usize, usize)> {
    let mut start = text.get(..at)?.rfind('\n').map_or(0, |index| index + 1);
    for line in text.get(start..)?.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = line.get(..indentation).and_then(|indentation| indentation.find('\t')) {
            let run = line.get(tab..).unwrap_or("");
            let length = run.len() - run.trim_start_matches('\t').len();
            return Some((start + tab, start + tab + length));
        }
        start += line.len();
    }
    let tab = at + text.get(at..)?.find('\t')?;
    Some((tab, tab + 1))
}

/// The quote before `at` that starts a value and is not closed.
fn opening_quote(text: &str, at: usize) -> Option<usize> {
    let before = text.get(..at)?;
    let quote = before.rfind(['"', '\''])?;
    before.get(..quote)?.ends_with([' ', '[', '{', ',']).then_some(quote)
}

/// The first backslash from `at` on that starts an invalid escape, with the next character.
fn unknown_escape(text: &str, at: usize) -> Option<(usize, &str)> {
    let mut characters = text.get(at..)?.char_indices();
    while let Some((offset, character)) = characters.next() {
        if character == '\\' {
            let (_, escaped) = characters.next()?;
            if !"0abt\tnvfre \"/\\N_LPxuU\r\n".contains(escaped) {
                let start = at + offset;
                return Some((start, text.get(start..start + 1 + escaped.len_utf8())?));
            }
        }
    }
    None
}

/// The string that is to be quoted: the word from here, or the path that this is part of, as in `path: $.input.to[*]`.
fn word_at(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or("");
    let path = before.rfind(char::is_whitespace).and_then(|space| text.get(space..)).map(str::trim_start);
    let path = path.and_then(|rest| rest.split([' ', ',', '}', '\n', '\r']).next());
    match path.filter(|path| path.starts_with('$')) {
        Some(path) => path,
        None => text.get(at..).and_then(|rest| rest.split_whitespace().next()).unwrap_or(""),
    }
}

fn message_and_help(kind: &ErrorKind, text: &str, at: usize) -> (String, Option<String>) {
    let (message, help) = match kind {
        ErrorKind::InvalidColonPlacement => {
            ("`:` is not allowed here", "quote the value, or close the bracket above")
        }
        ErrorKind::BlockSequenceEntryNotAllowed => (
            "a list item is not allowed here",
            "start the list on its own line, or write it as `[…]`; quote a string that starts with `- `",
        ),
        ErrorKind::BlockEntryInFlowCollection => {
            ("`- ` is not allowed between brackets", "separate the items by `,`")
        }
        ErrorKind::ExpectedFlowMappingSeparator => (
            "expected `,` or `}` here",
            "separate the entries by `,`, close the mapping by `}`, or quote the value",
        ),
        ErrorKind::ExpectedFlowSequenceSeparator => (
            "expected `,` or `]` here",
            "separate the items by `,`, close the list by `]`, or quote the value",
        ),
        ErrorKind::InvalidIndentation | ErrorKind::InvalidFlowScalarIndent => (
            "this line is not indented far enough",
            "indent text between brackets further than its key; check for a missing `]` or `}` above",
        ),
        ErrorKind::UnclosedFlowCollection { open } => {
            let close = if *open == '[' { ']' } else { '}' };
            return (format!("this `{open}` is never closed"), Some(format!("add the missing `{close}`")));
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            return (
                format!("this `{open}` is closed by `{close}`"),
                Some("make the brackets match".to_owned()),
            );
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            ("this bracket has no opening bracket", "remove it, or quote it if it belongs to a string")
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "unexpected text after the closing quote",
            "quote the whole string; escape a quote inside as `''` or `\\\"`",
        ),
        ErrorKind::CommentNotSeparated => {
            ("a `#` directly follows a value", "put a space before a comment, or quote the value")
        }
        ErrorKind::CommentInterceptedScalar => {
            ("a comment interrupts a string that continues below", "quote the string, or move the comment")
        }
        ErrorKind::InvalidBlockScalarHeader => (
            "unexpected text after the block indicator `|` or `>`",
            "start the string on the next line; quote it if it starts with `|` or `>`",
        ),
        ErrorKind::MissingAnchorOrAliasName => {
            let sign = if text.get(at..).is_some_and(|rest| rest.starts_with('&')) { '&' } else { '*' };
            let kind = if sign == '&' { "an anchor" } else { "an alias" };
            return (
                format!("an unquoted `{sign}` starts {kind}, but its name is missing"),
                Some(format!("quote the string: `\"{}\"`", word_at(text, at))),
            );
        }
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => {
            return (
                format!(
                    "the control character `{}` is not allowed in a rules file",
                    character.escape_default()
                ),
                Some("remove it, or write it as an escape in double quotes".to_owned()),
            );
        }
        ErrorKind::UnexpectedCharacter { character } => {
            return (
                format!("an unquoted value can't start with `{character}`"),
                Some("quote the value".to_owned()),
            );
        }
        ErrorKind::UnexpectedEofBlockMapping
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::ExpectedNodeContent => ("expected a value here", "quote it if it is a string"),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            "this line is neither a key nor a value",
            "check for a missing `:`, or a missing closing quote above",
        ),
        other => return (other.to_string(), None),
    };
    (message.to_owned(), Some(help.to_owned()))
}
