//! A cursor over the text of a query: reads the tokens of RFC 9535, and reports what it can't read.

use std::ops::Range;

use super::PathError;
use crate::json::{Number, Value};

/// The maximum nesting of brackets and parentheses, which bounds the recursion of the parser.
const MAX_NESTING: usize = 8;
/// The largest whole number of a query (I-JSON, RFC 9535 section 2.1).
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The white space that RFC 9535 allows between tokens.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

#[derive(Clone, Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    nesting: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, nesting: 0 }
    }

    /// The whole text.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// The byte position of the next character.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The text that was not read yet.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The text of a range.
    pub(super) fn slice(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Reads `token` if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Reads `token`, or reports the next character.
    pub(super) fn expect(&mut self, token: &str) -> Result<(), PathError> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Reads an opening bracket or parenthesis, if it comes next, and the white space after it.
    pub(super) fn open(&mut self, bracket: &str) -> Result<bool, PathError> {
        let start = self.at;
        if !self.eat(bracket) {
            return Ok(false);
        }
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            let message = format!("brackets and parentheses nest deeper than {MAX_NESTING}");
            return Err(PathError::new(message, start..self.at));
        }
        self.skip_space();
        Ok(true)
    }

    /// Reads white space and a closing bracket or parenthesis, if it comes next.
    pub(super) fn close(&mut self, bracket: &str) -> bool {
        self.skip_space();
        let found = self.eat(bracket);
        self.nesting -= usize::from(found);
        found
    }

    pub(super) fn skip_space(&mut self) {
        self.skip_while(|c| WHITE_SPACE.contains(&c));
    }

    /// Reads a name in shorthand notation.
    pub(super) fn name(&mut self) -> Result<&'t str, PathError> {
        let start = self.at;
        if !self.peek().is_some_and(is_name_start) {
            return Err(self.unexpected());
        }
        self.skip_while(is_name_part);
        let name = self.slice(start..self.at);
        if name.contains(char::is_whitespace) {
            return Err(PathError::new(format!("`{name}` contains white space"), start..self.at)
                .with_help("write the name in brackets and quotes: `['…']`"));
        }
        Ok(name)
    }

    /// Reads a string in single or double quotes, if one comes next.
    pub(super) fn string(&mut self) -> Result<Option<String>, PathError> {
        let Some(quote @ ('\'' | '"')) = self.peek() else { return Ok(None) };
        self.at += 1;
        let mut string = String::new();
        loop {
            match self.peek() {
                Some(c) if c == quote => {
                    self.at += 1;
                    return Ok(Some(string));
                }
                Some('\\') => {
                    self.at += 1;
                    string.push(self.escaped(quote)?);
                }
                Some(c) if c >= ' ' => {
                    self.at += c.len_utf8();
                    string.push(c);
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self, quote: char) -> Result<char, PathError> {
        let start = self.at;
        let c = self.peek().ok_or_else(|| self.unexpected())?;
        self.at += c.len_utf8();
        Ok(match c {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '/' | '\\' => c,
            _ if c == quote => c,
            'u' => return self.code_point(),
            _ => {
                self.at = start;
                return Err(self.unexpected());
            }
        })
    }

    /// Reads the digits of `\uXXXX`, and the second half of a surrogate pair.
    fn code_point(&mut self) -> Result<char, PathError> {
        let start = self.at;
        let first = self.code_unit()?;
        let units = match first {
            0xd800..=0xdbff if self.eat("\\u") => vec![first, self.code_unit()?],
            _ => vec![first],
        };
        let mut characters = char::decode_utf16(units);
        match (characters.next(), characters.next()) {
            (Some(Ok(c)), None) => Ok(c),
            _ => Err(PathError::new("a lone surrogate is not a character", start..self.at)),
        }
    }

    fn code_unit(&mut self) -> Result<u16, PathError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|c| c.to_digit(16)).and_then(|digit| u16::try_from(digit).ok());
            unit = unit << 4 | digit.ok_or_else(|| self.unexpected())?;
            self.at += 1;
        }
        Ok(unit)
    }

    /// Reads a whole number without a leading zero, if one comes next: an index or a bound of a slice.
    pub(super) fn integer(&mut self) -> Result<Option<i64>, PathError> {
        let start = self.at;
        if !self.peek().is_some_and(|c| c == '-' || c.is_ascii_digit()) {
            return Ok(None);
        }
        let is_negative = self.eat("-");
        if is_negative && self.peek() == Some('0') {
            return Err(self.unexpected());
        }
        self.whole_part(start)?;
        Ok(self.slice(start..self.at).parse().ok())
    }

    /// Reads a number literal, if one comes next.
    pub(super) fn number(&mut self) -> Result<Option<Value>, PathError> {
        let start = self.at;
        if !self.peek().is_some_and(|c| c == '-' || c.is_ascii_digit()) {
            return Ok(None);
        }
        self.eat("-");
        self.whole_part(start)?;
        let whole = self.at;
        if self.eat(".") {
            self.digits()?;
        }
        if self.eat("e") || self.eat("E") {
            let _ = self.eat("+") || self.eat("-");
            self.digits()?;
        }
        let range = start..self.at;
        let written = self.slice(range.clone());
        let number = if self.at == whole {
            written.parse::<i64>().ok().map(Value::from)
        } else {
            written.parse::<Number>().ok().map(Value::Number)
        };
        number.map(Some).ok_or_else(|| PathError::new(format!("`{written}` is not a number"), range))
    }

    /// Reads `0`, or digits that don't start with it. `start` is where the number starts, with its sign.
    fn whole_part(&mut self, start: usize) -> Result<(), PathError> {
        let first_digit = self.at;
        if !self.eat("0") {
            self.digits()?;
        } else if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Err(self.unexpected());
        }
        match self.slice(first_digit..self.at).parse::<u64>() {
            Ok(number) if number <= MAX_INTEGER => Ok(()),
            _ => Err(PathError::new("the number is too large for a path", start..self.at)
                .with_help("whole numbers in paths go up to 9007199254740991")),
        }
    }

    fn digits(&mut self) -> Result<(), PathError> {
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Err(self.unexpected());
        }
        self.skip_while(|c| c.is_ascii_digit());
        Ok(())
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    }

    /// The error for a text that can't continue with the next character.
    pub(super) fn unexpected(&self) -> PathError {
        let Some(c) = self.peek() else {
            return PathError::new("the path ends too early", 0..self.text.len());
        };
        let error =
            PathError::new(format!("the path is not valid at `{c}`"), self.at..self.at + c.len_utf8());
        match c {
            '=' => error.with_help("equality is `==`"),
            '&' => error.with_help("both conditions are `&&`"),
            '|' => error.with_help("either condition is `||`"),
            '-' => error.with_help(
                "write a name with other characters than letters, digits and `_` in brackets and quotes: `['…']`",
            ),
            _ => error,
        }
    }
}

fn is_name_start(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii()
}

pub(super) fn is_name_part(c: char) -> bool {
    is_name_start(c) || c.is_ascii_digit()
}
