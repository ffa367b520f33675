//! Arithmetic: `((…))` and `$((…))`, of which only the expansions matter.

use super::{Parser, SyntaxError};
use crate::syntax::{Part, Word};

impl Parser {
    /// Parses an expression in two parentheses, `skip` characters before it. Returns `None`, at the same position, if the parentheses are those
    /// of subshells: `((a); b)`.
    pub(super) fn parse_arithmetic(&mut self, skip: usize) -> Result<Option<Word>, SyntaxError> {
        let begin = self.position;
        self.position += skip;
        let expression = self.nested(Self::parse_expression);
        // What fails here may be right as commands; whoever parses it next reports what is wrong.
        match expression {
            Ok(Some(expression)) => Ok(Some(expression)),
            Ok(None) | Err(_) => {
                self.position = begin;
                Ok(None)
            }
        }
    }

    fn parse_expression(&mut self) -> Result<Option<Word>, SyntaxError> {
        let (mut parts, mut open) = (Vec::new(), 0_usize);
        loop {
            let Some(c) = self.peek() else { return Ok(None) };
            match c {
                ')' if open > 0 => open -= 1,
                ')' => {
                    return match self.eat("))") {
                        true => Ok(Some(Word { parts })),
                        false => Ok(None),
                    };
                }
                '(' => open += 1,
                '$' | '`' => {
                    if let Some(mut expansion) = self.parse_dollar(true)? {
                        parts.append(&mut expansion);
                        continue;
                    }
                }
                '"' => {
                    self.position += 1;
                    parts.append(&mut self.parse_double_quoted()?);
                    continue;
                }
                '\'' => {
                    self.position += 1;
                    parts.push(Part::Quoted(self.parse_single_quoted()?));
                    continue;
                }
                '\\' => self.position += 1,
                _ => {}
            }
            parts.push(Part::Bare(c.to_string()));
            self.position += 1;
        }
    }
}
