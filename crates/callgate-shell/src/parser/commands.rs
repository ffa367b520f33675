//! Lists, `&&` and `||`, pipelines.

use super::{Parser, SyntaxError, is_word_end};
use crate::syntax::{List, ListItem, Node};

/// Words that end a list where a command could begin.
const CLOSING_WORDS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Parser {
    /// Parses commands up to the end, a closing parenthesis or word, or `;;`.
    pub(super) fn parse_list(&mut self) -> Result<List, SyntaxError> {
        self.nested(|parser| {
            let mut list = List::new();
            loop {
                parser.skip_lines()?;
                if parser.is_at_list_end() {
                    return Ok(list);
                }
                let node = parser.parse_and_or()?;
                parser.skip_blanks();
                let is_background = parser.peek() == Some('&') && parser.peek_at(1) != Some('&');
                list.push(ListItem { node, is_background });
                match parser.peek() {
                    Some('&') => parser.position += 1,
                    Some(';') if !matches!(parser.peek_at(1), Some(';' | '&')) => parser.position += 1,
                    Some('#' | '\n') => {}
                    _ if parser.is_at_list_end() => return Ok(list),
                    _ => return Err(SyntaxError("two commands have nothing between them")),
                }
            }
        })
    }

    /// Parses a list that has at least one command.
    pub(super) fn parse_full_list(&mut self) -> Result<List, SyntaxError> {
        let list = self.parse_list()?;
        if list.is_empty() { Err(SyntaxError("a compound command is empty")) } else { Ok(list) }
    }

    fn is_at_list_end(&self) -> bool {
        match self.peek() {
            None | Some(')') => true,
            Some(';') => matches!(self.peek_at(1), Some(';' | '&')),
            Some(_) => self.reserved_word().is_some_and(|word| CLOSING_WORDS.contains(&word.as_str())),
        }
    }

    /// The next word, if it has no quotes and expansions. It is reserved only where a command begins.
    pub(super) fn reserved_word(&self) -> Option<String> {
        let word: String =
            self.chars.iter().skip(self.position).take(16).take_while(|c| !is_word_end(**c)).collect();
        let is_plain = !word.contains(['\'', '"', '\\', '$', '`']);
        (is_plain && !word.is_empty()).then_some(word)
    }

    /// Consumes a reserved word if it is next.
    pub(super) fn eat_word(&mut self, wanted: &str) -> bool {
        let is_next = self.reserved_word().as_deref() == Some(wanted);
        if is_next {
            self.position += wanted.chars().count();
        }
        is_next
    }

    pub(super) fn expect_word(&mut self, wanted: &str, problem: &'static str) -> Result<(), SyntaxError> {
        self.skip_lines()?;
        if self.eat_word(wanted) { Ok(()) } else { Err(SyntaxError(problem)) }
    }

    fn parse_and_or(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.parse_pipeline()?;
        let mut links = 0;
        loop {
            self.skip_blanks();
            let is_and = self.eat("&&");
            if !is_and && !self.eat("||") {
                return Ok(left);
            }
            // The tree is as deep as the chain is long.
            links += 1;
            if links > 200 {
                return Err(SyntaxError("too many commands are joined by `&&` and `||`"));
            }
            self.skip_lines()?;
            let right = Box::new(self.parse_pipeline()?);
            left = match is_and {
                true => Node::And(Box::new(left), right),
                false => Node::Or(Box::new(left), right),
            };
        }
    }

    fn parse_pipeline(&mut self) -> Result<Node, SyntaxError> {
        let mut is_negated = false;
        loop {
            self.skip_blanks();
            if self.eat_word("!") {
                is_negated = !is_negated;
            } else if self.eat_word("time") {
                self.skip_blanks();
                self.eat_word("-p");
            } else {
                break;
            }
        }
        let first = self.parse_command()?;
        let mut commands = vec![first];
        loop {
            self.skip_blanks();
            if self.peek() != Some('|') || self.peek_at(1) == Some('|') {
                break;
            }
            self.position += 1;
            self.eat("&");
            self.skip_lines()?;
            commands.push(self.parse_command()?);
        }
        let node = match commands.len() {
            1 => commands.pop(),
            _ => Some(Node::Pipeline(commands)),
        };
        let node = node.ok_or(SyntaxError("a command is missing"))?;
        Ok(if is_negated { Node::Not(Box::new(node)) } else { node })
    }
}
