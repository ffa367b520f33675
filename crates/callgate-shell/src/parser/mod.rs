//! Parser of shell text: POSIX `sh` with the extensions of bash. Text → [`SyntaxTree`].
//!
//! What it does not know is an error, and never skipped: a text that shells may read differently is not understood.

mod arithmetic;
mod commands;
mod compound;
mod dollar;
mod here_document;
mod simple_command;
mod words;

#[cfg(test)]
mod tests;

use crate::syntax::{SyntaxTree, Word};

/// The maximum number of bytes of a text.
pub const MAX_BYTES: usize = 64 * 1024;
/// How deep constructs may nest.
const MAX_DEPTH: usize = 40;
/// How many constructs a text may have.
const MAX_STEPS: usize = 100_000;

/// The text can't be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SyntaxError(pub &'static str);

/// A position in a text, with the here-documents that it has begun.
pub(crate) struct Parser {
    chars: Vec<char>,
    position: usize,
    depth: usize,
    /// The number of constructs that were begun, also of attempts that failed.
    steps: usize,
    documents: Vec<Word>,
    /// The here-documents whose bodies begin in the next line.
    pending: Vec<here_document::PendingDocument>,
}

/// Parses a text.
///
/// # Errors
/// [`SyntaxError`] if it is not valid, too long, nested too deep, or has a construct that the parser does not know.
pub(crate) fn parse(text: &str) -> Result<SyntaxTree, SyntaxError> {
    if text.len() > MAX_BYTES {
        return Err(SyntaxError("the text is longer than 64 KiB"));
    }
    if text.contains('\0') {
        return Err(SyntaxError("the text has a NUL character"));
    }
    let mut parser = Parser {
        chars: text.chars().collect(),
        position: 0,
        depth: 0,
        steps: 0,
        documents: Vec::new(),
        pending: Vec::new(),
    };
    let list = parser.parse_list()?;
    match parser.peek() {
        None => Ok(SyntaxTree { list, documents: parser.documents }),
        Some(_) => Err(SyntaxError("a closing word or parenthesis has no beginning")),
    }
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    fn peek_at(&self, distance: usize) -> Option<char> {
        self.chars.get(self.position + distance).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += 1;
        Some(next)
    }

    /// Consumes a text if it is next.
    fn eat(&mut self, text: &str) -> bool {
        let is_next = text.chars().enumerate().all(|(index, c)| self.peek_at(index) == Some(c));
        if is_next {
            self.position += text.chars().count();
        }
        is_next
    }

    fn expect(&mut self, text: &str, problem: &'static str) -> Result<(), SyntaxError> {
        if self.eat(text) { Ok(()) } else { Err(SyntaxError(problem)) }
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        self.steps += 1;
        if self.depth >= MAX_DEPTH || self.steps > MAX_STEPS {
            return Err(SyntaxError("it is nested too deep"));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Parses another text at this level: the inside of backquotes, the body of a here-document.
    fn parse_other<T>(
        &mut self,
        chars: Vec<char>,
        parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        self.nested(|parser| {
            let outer = (
                std::mem::replace(&mut parser.chars, chars),
                std::mem::take(&mut parser.position),
                std::mem::take(&mut parser.pending),
            );
            let result = parse(parser);
            (parser.chars, parser.position, parser.pending) = outer;
            result
        })
    }

    /// Skips blanks and escaped line ends.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.position += 1,
                Some('\\') if self.peek_at(1) == Some('\n') => self.position += 2,
                _ => return,
            }
        }
    }

    /// Skips blanks, comments and line ends, and reads the here-documents that begin behind a line end.
    fn skip_lines(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('#') => self.skip_comment(),
                Some('\n') => self.end_line()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.position += 1;
        }
    }
}

/// Whether a character ends an unquoted word.
fn is_word_end(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

/// Whether a text is the name of a variable or function.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
