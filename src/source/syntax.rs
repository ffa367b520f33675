//! What the YAML parser refuses, in words for the person who wrote the file.

use granit_parser::{ErrorKind, ScanError};

use super::refusals;
use crate::diagnostic::{Diagnostic, SourceId, Span, YAML_SYNTAX};

/// A parser's error as a diagnostic.
pub(super) fn explain(source: SourceId, text: &str, error: &ScanError) -> Diagnostic {
    let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
    let here = |length: usize| Span::new(source, at, at + length);
    let next_char = text.get(at..).and_then(|rest| rest.chars().next());
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => refusals::too_deep(here(1)),
        ErrorKind::DirectiveDisallowed => {
            let line = text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or("");
            refusals::directive(here(line.trim_end().len()))
        }
        ErrorKind::UndeclaredTagHandle => refusals::tag(here(word_at(text, at).len()), word_at(text, at)),
        kind if is_about_tabs(kind) => {
            let (start, end) = indenting_tabs(text, at).unwrap_or((at, at));
            Diagnostic::new(&YAML_SYNTAX, Span::new(source, start, end), "tabs can't indent; use spaces")
                .help("replace each tab by two spaces; most editors can do so for a whole file")
        }
        ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::UnclosedQuotedScalar
        | ErrorKind::DocumentIndicatorInQuotedScalar => {
            let length = next_char.map_or(0, char::len_utf8);
            let open = Diagnostic::new(&YAML_SYNTAX, here(length), "a quoted text is still open here")
                .help("close the quote; if the text goes on, indent this line further than its key");
            match opening_quote(text, at) {
                Some(quote) => open.label(Span::new(source, quote, quote + 1), "opened here"),
                None => open,
            }
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            let (start, escape) = unknown_escape(text, at).unwrap_or((at, "\\"));
            let span = Span::new(source, start, start + escape.len());
            Diagnostic::new(&YAML_SYNTAX, span, format!("`{escape}` is no escape between double quotes"))
                .help("double the backslash, or use single quotes, in which a backslash is just itself")
        }
        ErrorKind::MappingValueNotAllowed => misplaced_colon(source, text, at),
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::ExpectedBlockSequenceEntry => {
            misplaced_line(source, text, at)
        }
        kind => {
            let (message, help) = words(kind, text, at);
            let diagnostic =
                Diagnostic::new(&YAML_SYNTAX, here(next_char.map_or(0, char::len_utf8)), message);
            match help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            }
        }
    }
}

/// Where the line of `at` starts, and what stands in it before.
fn line_before(text: &str, at: usize) -> (usize, &str) {
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |index| index + 1);
    (start, text.get(start..at).unwrap_or(""))
}

fn misplaced_colon(source: SourceId, text: &str, at: usize) -> Diagnostic {
    let (line, before) = line_before(text, at);
    if before.contains(": ") {
        let message = "a `:` stands inside an unquoted value";
        return Diagnostic::new(&YAML_SYNTAX, Span::new(source, at, at + 1), message)
            .help("quote the value, or begin a new line for a mapping");
    }
    let key = before.trim_start_matches([' ', '-']);
    let span = Span::new(source, line + before.len() - key.len(), at);
    Diagnostic::new(&YAML_SYNTAX, span, format!("the key `{key}` can't stand here"))
        .help("give it the indentation of its siblings; if the line above is a key, add its `:`")
}

fn misplaced_line(source: SourceId, text: &str, at: usize) -> Diagnostic {
    let (line, before) = line_before(text, at);
    let rest = text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or("").trim_end();
    let dash = before.find('-').filter(|_| before.trim() == "-");
    let (start, message, help) = match dash {
        Some(dash) => (
            line + dash,
            "a list item stands among keys",
            "indent it under the key that it belongs to, or remove the `- `",
        ),
        None if before.trim().is_empty() => (
            at,
            "this line is indented like nothing above it",
            "give it the indentation of its siblings; a text over several lines is indented further than its key, \
             and a list item begins with `- `",
        ),
        None => (at, "something follows the end of the value", "put the whole value between quotes"),
    };
    Diagnostic::new(&YAML_SYNTAX, Span::new(source, start, at + rest.len()), message).help(help)
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

/// The first run of tabs before a line's first word, from the line of `at` on: the parser's own place is a little
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

/// The quote before `at` that begins a value and that no other of its kind follows.
fn opening_quote(text: &str, at: usize) -> Option<usize> {
    let before = text.get(..at)?;
    let quote = before.rfind(['"', '\''])?;
    before.get(..quote)?.ends_with([' ', '[', '{', ',']).then_some(quote)
}

/// The first backslash, from `at` on, whose next character makes no escape, with that character.
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

fn word_at(text: &str, at: usize) -> &str {
    text.get(at..).and_then(|rest| rest.split_whitespace().next()).unwrap_or("")
}

fn words(kind: &ErrorKind, text: &str, at: usize) -> (String, Option<String>) {
    let (message, help) = match kind {
        ErrorKind::InvalidColonPlacement => {
            ("a `:` can't stand here", "quote the value, or close the bracket above")
        }
        ErrorKind::BlockSequenceEntryNotAllowed => (
            "a list item can't begin here",
            "begin the list on a line of its own, or write it as `[…]`; a text that begins with `- ` is quoted",
        ),
        ErrorKind::BlockEntryInFlowCollection => {
            ("`- ` can't begin an item between brackets", "separate the items by `,`")
        }
        ErrorKind::ExpectedFlowMappingSeparator => (
            "`,` or `}` was expected here",
            "separate the entries by `,`, close the mapping by `}`, or quote the value",
        ),
        ErrorKind::ExpectedFlowSequenceSeparator => (
            "`,` or `]` was expected here",
            "separate the items by `,`, close the list by `]`, or quote the value",
        ),
        ErrorKind::InvalidIndentation | ErrorKind::InvalidFlowScalarIndent => (
            "this line is not indented far enough",
            "what stands between brackets is indented further than its key; is a `]` or `}` missing above?",
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
            ("this bracket closes nothing", "remove it, or quote it if it belongs to a text")
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "something follows the closing quote",
            "put the whole text between the quotes; write a quote inside as `''` or `\\\"`",
        ),
        ErrorKind::CommentNotSeparated => {
            ("a `#` stands directly after a value", "put a space before a comment, or quote the value")
        }
        ErrorKind::CommentInterceptedScalar => {
            ("a comment interrupts a text that goes on below", "quote the text, or move the comment")
        }
        ErrorKind::InvalidBlockScalarHeader => (
            "the first line of a block text goes on after `|` or `>`",
            "begin the text on the next line; quote it if it just begins with `|` or `>`",
        ),
        ErrorKind::MissingAnchorOrAliasName => {
            let sign = if text.get(at..).is_some_and(|rest| rest.starts_with('&')) { '&' } else { '*' };
            let kind = if sign == '&' { "an anchor" } else { "an alias" };
            return (
                format!("unquoted, `{sign}` begins {kind}, which has no name here"),
                Some(format!("quote the text: `\"{}\"`", word_at(text, at))),
            );
        }
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => {
            return (
                format!("the control character `{}` can't stand in a rules file", character.escape_default()),
                Some("remove it, or write it as an escape between double quotes".to_owned()),
            );
        }
        ErrorKind::UnexpectedCharacter { character } => {
            return (
                format!("a value can't begin with `{character}` unquoted"),
                Some("quote the value".to_owned()),
            );
        }
        ErrorKind::UnexpectedEofBlockMapping
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::ExpectedNodeContent => ("a value was expected here", "quote it if this is a text"),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            ("this line is no key and no value", "is a `:` missing, or a closing quote above?")
        }
        other => return (other.to_string(), None),
    };
    (message.to_owned(), Some(help.to_owned()))
}
