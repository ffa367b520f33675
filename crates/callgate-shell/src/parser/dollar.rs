//! Expansions: `$NAME`, `${…}`, `$(…)`, `$((…))`, backquotes, `$'…'`.

use super::{Parser, SyntaxError, is_name};
use crate::syntax::{Parameter, Part, Word};

/// What happens to `\"` in backquotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapedQuote {
    /// The backslash stays.
    Kept,
    /// The backslash is removed.
    Removed,
    /// That depends on the shell.
    Refused,
}

impl Parser {
    /// Parses an expansion at `$` or a backquote. Returns `None` for a `$` that stands for itself.
    pub(super) fn parse_dollar(&mut self, is_quoted: bool) -> Result<Option<Vec<Part>>, SyntaxError> {
        if self.peek() == Some('`') {
            let part = self.parse_backquoted(is_quoted, EscapedQuote::Refused)?;
            return Ok(Some(vec![part]));
        }
        let Some(c) = self.peek_at(1) else { return Ok(None) };
        let one = |part| Ok(Some(vec![part]));
        match c {
            '(' => {
                self.position += 1;
                if self.peek_at(1) == Some('(')
                    && let Some(expression) = self.parse_arithmetic(2)?
                {
                    return one(Part::Arithmetic(expression));
                }
                self.position += 1;
                let list = self.parse_list()?;
                self.expect(")", "a `$(` is not closed")?;
                one(Part::Substitution { list, is_quoted })
            }
            '{' => {
                self.position += 2;
                let parameter = self.nested(|parser| parser.parse_braced(is_quoted))?;
                one(Part::Parameter(parameter))
            }
            '[' => Err(SyntaxError("it has a construct that is not understood")),
            '\'' if !is_quoted => {
                self.position += 2;
                one(Part::Quoted(self.parse_escaped_quoted()?))
            }
            '"' if !is_quoted => {
                self.position += 2;
                let mut parts = vec![Part::Quoted(String::new())];
                parts.append(&mut self.parse_double_quoted()?);
                Ok(Some(parts))
            }
            '@' | '*' | '#' | '?' | '-' | '$' | '!' | '0'..='9' => {
                self.position += 2;
                one(Part::Parameter(Parameter::plain(c.to_string(), is_quoted)))
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                self.position += 1;
                one(Part::Parameter(Parameter::plain(self.parse_variable_name(), is_quoted)))
            }
            _ => Ok(None),
        }
    }

    fn parse_variable_name(&mut self) -> String {
        let rest = self.chars.iter().skip(self.position);
        let name: String = rest.take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
        self.position += name.chars().count();
        name
    }

    /// Parses up to the closing `}`, behind `${`.
    fn parse_braced(&mut self, is_quoted: bool) -> Result<Parameter, SyntaxError> {
        const PROBLEM: SyntaxError = SyntaxError("an expansion with `${` is not understood");
        let is_length = self.peek() == Some('#') && self.peek_at(1) != Some('}');
        let is_indirect = self.peek() == Some('!') && self.peek_at(1) != Some('}');
        if is_length || is_indirect {
            self.position += 1;
        }
        let mut name = self.parse_variable_name();
        if name.is_empty() {
            let special = self.next().filter(|c| "@*#?-$!".contains(*c)).ok_or(PROBLEM)?;
            name = special.to_string();
        } else if !is_name(&name) && !name.chars().all(|c| c.is_ascii_digit()) {
            return Err(PROBLEM);
        }
        let mut parameter =
            Parameter { is_plain: !is_length, is_indirect, ..Parameter::plain(name, is_quoted) };
        if self.eat("[") {
            let mut index = self.parse_parts_until(']', is_quoted)?;
            self.expect("]", "an index is not closed")?;
            parameter.is_plain = false;
            parameter.argument.parts.append(&mut index.parts);
        }
        if self.eat("}") {
            return Ok(parameter);
        }
        parameter.is_plain = false;
        let operator = self.next().filter(|c| ":-=?+#%/^,@".contains(*c)).ok_or(PROBLEM)?;
        parameter.is_indirect |= operator == '@';
        parameter.assigns = operator == '=' || operator == ':' && self.peek() == Some('=');
        let mut argument = self.parse_parts_until('}', is_quoted)?;
        self.expect("}", "a `${` is not closed")?;
        parameter.argument.parts.append(&mut argument.parts);
        Ok(parameter)
    }

    pub(super) fn parse_backquoted(
        &mut self,
        is_quoted: bool,
        quote: EscapedQuote,
    ) -> Result<Part, SyntaxError> {
        self.position += 1;
        let mut inner = Vec::new();
        loop {
            match self.next().ok_or(SyntaxError("a backquote is not closed"))? {
                '`' => break,
                '\\' => {
                    let escaped = self.next().ok_or(SyntaxError("a backquote is not closed"))?;
                    if escaped == '"' && quote == EscapedQuote::Refused {
                        return Err(SyntaxError("an escaped quote in backquotes is not understood"));
                    }
                    let is_removed = matches!(escaped, '`' | '\\' | '$')
                        || quote == EscapedQuote::Removed && escaped == '"';
                    if !is_removed {
                        inner.push('\\');
                    }
                    inner.push(escaped);
                }
                c => inner.push(c),
            }
        }
        let list = self.parse_other(inner, |parser| {
            let list = parser.parse_list()?;
            match parser.peek() {
                None => Ok(list),
                Some(_) => Err(SyntaxError("a closing word or parenthesis has no beginning")),
            }
        })?;
        Ok(Part::Substitution { list, is_quoted })
    }

    /// Parses the inside of `$'…'`.
    fn parse_escaped_quoted(&mut self) -> Result<String, SyntaxError> {
        const UNCLOSED: SyntaxError = SyntaxError("a `$'` is not closed");
        let mut text = String::new();
        loop {
            let c = self.next().ok_or(UNCLOSED)?;
            match c {
                '\'' => return Ok(text),
                '\\' => {}
                c => {
                    text.push(c);
                    continue;
                }
            }
            match self.next().ok_or(UNCLOSED)? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'a' => text.push('\u{7}'),
                'b' => text.push('\u{8}'),
                'e' | 'E' => text.push('\u{1b}'),
                'f' => text.push('\u{c}'),
                'v' => text.push('\u{b}'),
                quoted @ ('\\' | '\'' | '"' | '?') => text.push(quoted),
                'x' => text.push(self.parse_code("", 16, 2)?),
                'u' => text.push(self.parse_code("", 16, 4)?),
                'U' => text.push(self.parse_code("", 16, 8)?),
                digit @ '0'..='7' => text.push(self.parse_code(&digit.to_string(), 8, 3)?),
                _ => return Err(SyntaxError("an escape in `$'…'` is not understood")),
            }
        }
    }

    /// Parses the digits of an escape. Only ASCII is understood: other bytes depend on the locale.
    fn parse_code(&mut self, begin: &str, radix: u32, max: usize) -> Result<char, SyntaxError> {
        let mut digits = begin.to_owned();
        while digits.len() < max && self.peek().is_some_and(|c| c.is_digit(radix)) {
            digits.extend(self.next());
        }
        let code = u32::from_str_radix(&digits, radix).ok().filter(|code| (1..128).contains(code));
        code.and_then(char::from_u32).ok_or(SyntaxError("an escape in `$'…'` is not understood"))
    }
}

impl Parameter {
    /// `$NAME`
    pub(crate) fn plain(name: String, is_quoted: bool) -> Self {
        Self {
            name,
            is_plain: true,
            is_indirect: false,
            assigns: false,
            argument: Word::default(),
            is_quoted,
        }
    }
}
