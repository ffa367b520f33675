//! Simple commands: assignments, words and redirections.

use super::{Parser, SyntaxError, is_name, is_word_end};
use crate::syntax::{Assignment, Node, Part, Redirection, RedirectionKind, SimpleCommand, Word};

/// Operators of redirections, the longest first.
const OPERATORS: [(&str, RedirectionKind); 11] = [
    ("&>>", RedirectionKind::Write),
    ("<<<", RedirectionKind::HereString),
    ("&>", RedirectionKind::Write),
    (">>", RedirectionKind::Write),
    (">|", RedirectionKind::Write),
    ("<>", RedirectionKind::ReadWrite),
    ("<&", RedirectionKind::Duplicate),
    (">&", RedirectionKind::Duplicate),
    ("<<", RedirectionKind::HereDocument(0)),
    ("<", RedirectionKind::Read),
    (">", RedirectionKind::Write),
];

impl Parser {
    pub(super) fn parse_simple(&mut self) -> Result<Node, SyntaxError> {
        let mut command = SimpleCommand::default();
        loop {
            self.skip_blanks();
            if let Some(redirection) = self.parse_redirection()? {
                command.redirections.push(redirection);
                continue;
            }
            let is_process = matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(');
            match self.peek() {
                _ if is_process => {}
                Some('#') => break,
                Some('(') => match self.function_name(&command) {
                    Some(name) => {
                        self.position += 1;
                        self.skip_blanks();
                        self.expect(")", "a parenthesis follows a word")?;
                        let function = self.parse_function_body(name)?;
                        return Ok(Node::Compound(function, Vec::new()));
                    }
                    None => return Err(SyntaxError("a parenthesis follows a word")),
                },
                Some(c) if !is_word_end(c) => {}
                _ => break,
            }
            let begin = self.position;
            if command.words.is_empty()
                && let Some(assignment) = self.parse_assignment()?
            {
                command.assignments.push(assignment);
                continue;
            }
            self.position = begin;
            // `declare -a list=(…)`: an array can be an argument of the builtins that declare variables.
            if declares_variables(&command)
                && let Some(assignment) = self.parse_assignment()?
                && (assignment.is_partial || assignment.values.len() != 1)
            {
                command.assignments.push(assignment);
                continue;
            }
            self.position = begin;
            command.words.push(self.parse_word()?);
        }
        let is_empty =
            command.assignments.is_empty() && command.words.is_empty() && command.redirections.is_empty();
        if is_empty { Err(SyntaxError("a command is missing")) } else { Ok(Node::Simple(command)) }
    }

    /// The name of the function that is defined, if a parenthesis makes the command so far a definition.
    fn function_name(&self, command: &SimpleCommand) -> Option<String> {
        let is_only_word = command.assignments.is_empty() && command.redirections.is_empty();
        match command.words.as_slice() {
            [word] if is_only_word => word.as_bare().filter(|name| !name.contains('=')).map(str::to_owned),
            _ => None,
        }
    }

    /// Parses `NAME=value`, `NAME+=value`, `NAME[index]=value` or `NAME=(words)`. Returns `None` if the next word is none of these.
    fn parse_assignment(&mut self) -> Result<Option<Assignment>, SyntaxError> {
        let rest = self.chars.iter().skip(self.position);
        let name: String = rest.take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
        if !is_name(&name) {
            return Ok(None);
        }
        self.position += name.chars().count();
        let (mut values, mut is_partial) = (Vec::new(), false);
        if self.eat("[") {
            let index = self.parse_parts_until(']', false)?;
            self.expect("]", "an index is not closed")?;
            (values, is_partial) = (vec![index], true);
        }
        is_partial |= self.eat("+");
        if !self.eat("=") {
            return Ok(None);
        }
        if self.eat("(") {
            is_partial = true;
            loop {
                self.skip_lines()?;
                match self.peek() {
                    None => return Err(SyntaxError("an array is not closed")),
                    Some(')') => break,
                    Some(_) => values.push(self.parse_word()?),
                }
            }
            self.position += 1;
        } else if self.peek().is_some_and(|c| !is_word_end(c))
            || matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(')
        {
            values.push(self.parse_word()?);
        } else {
            values.push(Word::default());
        }
        Ok(Some(Assignment { name, is_partial, values }))
    }

    /// Parses a redirection. Returns `None` if something else is next.
    pub(super) fn parse_redirection(&mut self) -> Result<Option<Redirection>, SyntaxError> {
        let begin = self.position;
        self.skip_descriptor();
        let is_process = matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(');
        let found = OPERATORS.iter().find(|(text, _)| !is_process && self.eat(text));
        let Some((text, kind)) = found else {
            self.position = begin;
            return Ok(None);
        };
        if self.position > begin + text.chars().count() && text.starts_with('&') {
            // `2&>` is a word and `&>`.
            self.position = begin;
            return Ok(None);
        }
        if let RedirectionKind::HereDocument(_) = kind {
            return self.begin_document().map(Some);
        }
        self.skip_blanks();
        if self.peek().is_none_or(is_word_end) && self.peek_at(1) != Some('(') {
            return Err(SyntaxError("a redirection has no target"));
        }
        let target = self.parse_word()?;
        Ok(Some(Redirection { kind: *kind, target }))
    }

    /// Skips `2` or `{name}` before an operator.
    fn skip_descriptor(&mut self) {
        let begin = self.position;
        if self.eat("{") {
            while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                self.position += 1;
            }
            if !self.eat("}") || !matches!(self.peek(), Some('<' | '>')) {
                self.position = begin;
            }
            return;
        }
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.position += 1;
        }
        if !matches!(self.peek(), Some('<' | '>')) {
            self.position = begin;
        }
    }
}

/// Whether the arguments of a command may be arrays.
fn declares_variables(command: &SimpleCommand) -> bool {
    let builtins = ["declare", "typeset", "local", "export", "readonly"];
    let name = command.words.first().map(|word| word.parts.as_slice());
    matches!(name, Some([Part::Bare(text)]) if builtins.contains(&text.as_str()))
}
