//! `ParseError`: a syntax error in JSON text, with its position.

/// A syntax error in JSON text, with line and column. Both count from one, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at line {line} column {column}")]
pub struct ParseError {
    /// The problem.
    pub kind: ParseErrorKind,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// The kinds of errors in JSON text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// The text ends within a value.
    #[error("unexpected end of the text")]
    UnexpectedEnd,
    /// The parser expected something else.
    #[error("expected {0}")]
    Expected(&'static str),
    /// There is more text after the value.
    #[error("unexpected text after the value")]
    TrailingText,
    /// An object has a key twice.
    #[error("duplicate key `{0}`")]
    DuplicateKey(String),
    /// Arrays and objects are nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    #[error("nested deeper than {} levels", super::MAX_DEPTH)]
    TooDeep,
    /// A number has a leading zero, lacks digits, or is followed by other characters.
    #[error("invalid number")]
    InvalidNumber,
    /// A backslash in a string does not start a JSON escape.
    #[error("invalid escape in a string")]
    InvalidEscape,
    /// An escaped UTF-16 surrogate is not part of a pair.
    #[error("lone surrogate in a string")]
    LoneSurrogate,
    /// A control character in a string is not escaped.
    #[error("unescaped control character in a string")]
    ControlCharacter,
    /// The bytes are not UTF-8.
    #[error("the text is not UTF-8")]
    InvalidUtf8,
}

impl ParseError {
    /// Whether the text is JSON for other parsers, which read it differently or up to other limits.
    pub(crate) fn is_ambiguous(&self) -> bool {
        use ParseErrorKind::{DuplicateKey, LoneSurrogate, TooDeep};
        matches!(self.kind, DuplicateKey(_) | LoneSurrogate | TooDeep)
    }
}

/// Line and column of a byte, both from one.
pub(super) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before.get(start..).unwrap_or_default().chars().count() + 1)
}
