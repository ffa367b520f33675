//! Words: quotes and unquoted text.

use super::dollar::EscapedQuote;
use super::{Parser, SyntaxError, is_word_end};
use crate::syntax::{Part, Word};

/// Where parts of a word end.
#[derive(Clone, Copy, PartialEq)]
enum PartsEnd {
    /// At a blank or an operator.
    Word,
    /// At this character.
    Character(char),
    /// At the end of the text.
    Text,
}

impl Parser {
    /// Parses a word, which is not empty.
    pub(super) fn parse_word(&mut self) -> Result<Word, SyntaxError> {
        let begin = self.position;
        let word = self.parse_parts(PartsEnd::Word, false)?;
        if self.position == begin {
            return Err(SyntaxError("a word is missing"));
        }
        if self.peek() == Some('(') {
            // A pattern such as `@(a|b)`, a qualifier of zsh, or a function's definition, which has only a name before it.
            return match word.as_bare() {
                Some(name) if !name.ends_with(['?', '*', '+', '@', '!', '=']) => Ok(word),
                _ => Err(SyntaxError("a parenthesis follows a word")),
            };
        }
        Ok(word)
    }

    /// Parses the inside of `${…}` or of an index, up to this character.
    pub(super) fn parse_parts_until(&mut self, end: char, is_quoted: bool) -> Result<Word, SyntaxError> {
        self.parse_parts(PartsEnd::Character(end), is_quoted)
    }

    /// Parses the body of a here-document, in which only expansions have their meanings.
    pub(super) fn parse_document_text(&mut self) -> Result<Word, SyntaxError> {
        self.parse_parts(PartsEnd::Text, true)
    }

    fn parse_parts(&mut self, end: PartsEnd, is_quoted: bool) -> Result<Word, SyntaxError> {
        self.nested(|parser| {
            let mut parts = Vec::new();
            let mut bare = String::new();
            let flush = |bare: &mut String, parts: &mut Vec<Part>| {
                if !bare.is_empty() {
                    let text = std::mem::take(bare);
                    parts.push(if is_quoted { Part::Quoted(text) } else { Part::Bare(text) });
                }
            };
            while let Some(c) = parser.peek() {
                match end {
                    PartsEnd::Word if is_word_end(c) => {
                        let is_process = matches!(c, '<' | '>')
                            && parser.peek_at(1) == Some('(')
                            && parts.is_empty()
                            && bare.is_empty();
                        if !is_process {
                            break;
                        }
                        parser.position += 2;
                        let list = parser.parse_list()?;
                        parser.expect(")", "a `<(` is not closed")?;
                        parts.push(Part::Process { list, is_input: c == '<' });
                        continue;
                    }
                    PartsEnd::Character(end) if c == end => break,
                    _ => {}
                }
                match c {
                    '\\' => {
                        parser.position += 1;
                        let escaped = parser.next().ok_or(SyntaxError("it ends with a backslash"))?;
                        if escaped == '\n' {
                            continue;
                        }
                        // Between double quotes only these characters can be escaped.
                        let is_text = is_quoted
                            && !matches!(escaped, '$' | '`' | '\\')
                            && (end == PartsEnd::Text || !matches!(escaped, '"' | '}'));
                        flush(&mut bare, &mut parts);
                        let text = if is_text { format!("\\{escaped}") } else { escaped.to_string() };
                        parts.push(Part::Quoted(text));
                    }
                    '\'' if !is_quoted => {
                        parser.position += 1;
                        flush(&mut bare, &mut parts);
                        parts.push(Part::Quoted(parser.parse_single_quoted()?));
                    }
                    '"' if end != PartsEnd::Text => {
                        parser.position += 1;
                        flush(&mut bare, &mut parts);
                        // An empty string is a word, too.
                        parts.push(Part::Quoted(String::new()));
                        parts.append(&mut parser.parse_double_quoted()?);
                    }
                    '`' => {
                        flush(&mut bare, &mut parts);
                        // A `\"` in backquotes between double quotes is a `"`; in a here-document it stays.
                        let quote = match (is_quoted, end) {
                            (false, _) | (true, PartsEnd::Text) => EscapedQuote::Kept,
                            (true, PartsEnd::Character('"')) => EscapedQuote::Removed,
                            (true, _) => EscapedQuote::Refused,
                        };
                        parts.push(parser.parse_backquoted(is_quoted, quote)?);
                    }
                    '$' => match parser.parse_dollar(is_quoted)? {
                        Some(mut expansion) => {
                            flush(&mut bare, &mut parts);
                            parts.append(&mut expansion);
                        }
                        None => {
                            parser.position += 1;
                            bare.push('$');
                        }
                    },
                    c => {
                        parser.position += 1;
                        bare.push(c);
                    }
                }
            }
            flush(&mut bare, &mut parts);
            Ok(Word { parts })
        })
    }

    /// Parses up to the closing `'`, behind the opening one.
    pub(super) fn parse_single_quoted(&mut self) -> Result<String, SyntaxError> {
        let mut text = String::new();
        loop {
            match self.next().ok_or(SyntaxError("a `'` is not closed"))? {
                '\'' => return Ok(text),
                c => text.push(c),
            }
        }
    }

    /// Parses up to the closing `"`, behind the opening one.
    pub(super) fn parse_double_quoted(&mut self) -> Result<Vec<Part>, SyntaxError> {
        let word = self.parse_parts(PartsEnd::Character('"'), true)?;
        self.expect("\"", "a `\"` is not closed")?;
        Ok(word.parts)
    }
}
