//! Here-documents: `<<END`, `<<-END`, `<<'END'`.

use super::{Parser, SyntaxError};
use crate::syntax::{Part, Redirection, RedirectionKind, Word};

/// A here-document whose body begins in the next line.
#[derive(Debug)]
pub(super) struct PendingDocument {
    number: usize,
    delimiter: String,
    strips_tabs: bool,
    is_quoted: bool,
}

impl Parser {
    /// Parses the delimiter, behind `<<`.
    pub(super) fn begin_document(&mut self) -> Result<Redirection, SyntaxError> {
        let strips_tabs = self.eat("-");
        self.skip_blanks();
        let target = self.parse_word()?;
        let (mut delimiter, mut is_quoted) = (String::new(), false);
        for part in &target.parts {
            match part {
                Part::Bare(text) => delimiter.push_str(text),
                Part::Quoted(text) => {
                    delimiter.push_str(text);
                    is_quoted = true;
                }
                _ => return Err(SyntaxError("the end of a here-document is not understood")),
            }
        }
        if delimiter.contains('\n') {
            return Err(SyntaxError("the end of a here-document is not understood"));
        }
        let number = self.documents.len();
        self.documents.push(Word::default());
        self.pending.push(PendingDocument { number, delimiter, strips_tabs, is_quoted });
        Ok(Redirection { kind: RedirectionKind::HereDocument(number), target })
    }

    /// Consumes a line end, and the bodies of the here-documents that begin behind it.
    pub(super) fn end_line(&mut self) -> Result<(), SyntaxError> {
        self.position += 1;
        for document in std::mem::take(&mut self.pending) {
            let body = self.take_body(&document);
            let word = match document.is_quoted {
                true => Word::quoted(body),
                false => self.parse_other(body.chars().collect(), Self::parse_document_text)?,
            };
            if let Some(slot) = self.documents.get_mut(document.number) {
                *slot = word;
            }
        }
        Ok(())
    }

    fn take_body(&mut self, document: &PendingDocument) -> String {
        let mut body = String::new();
        while self.position < self.chars.len() {
            let mut line = String::new();
            while let Some(c) = self.next() {
                if c == '\n' {
                    break;
                }
                line.push(c);
                // An escaped line end joins two lines before the delimiter is looked for.
                if c == '\\' && !document.is_quoted && self.peek() == Some('\n') && !ends_escaped(&line) {
                    line.pop();
                    self.position += 1;
                }
            }
            let stripped = if document.strips_tabs { line.trim_start_matches('\t') } else { &line };
            if stripped == document.delimiter {
                return body;
            }
            body.push_str(stripped);
            body.push('\n');
        }
        body
    }
}

/// Whether the backslash at the end of a line is itself escaped.
fn ends_escaped(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 0
}
