//! Compound commands: groups, subshells, `if`, loops, `case`, functions, `((…))` and `[[…]]`.

use super::{Parser, SyntaxError, is_name, is_word_end};
use crate::syntax::{Compound, Node, Word};

impl Parser {
    /// Parses a compound or simple command.
    pub(super) fn parse_command(&mut self) -> Result<Node, SyntaxError> {
        self.nested(|parser| {
            let Some(compound) = parser.parse_compound()? else { return parser.parse_simple() };
            let mut redirections = Vec::new();
            loop {
                parser.skip_blanks();
                match parser.parse_redirection()? {
                    Some(redirection) => redirections.push(redirection),
                    None => return Ok(Node::Compound(compound, redirections)),
                }
            }
        })
    }

    fn parse_compound(&mut self) -> Result<Option<Compound>, SyntaxError> {
        self.skip_blanks();
        if self.peek() == Some('(') {
            if self.peek_at(1) == Some('(')
                && let Some(expression) = self.parse_arithmetic(2)?
            {
                return Ok(Some(Compound::Arithmetic(expression)));
            }
            self.position += 1;
            let list = self.parse_full_list()?;
            self.expect(")", "a `(` is not closed")?;
            return Ok(Some(Compound::Subshell(list)));
        }
        let Some(word) = self.reserved_word() else { return Ok(None) };
        Ok(Some(match word.as_str() {
            "{" => {
                self.eat_word("{");
                let list = self.parse_full_list()?;
                self.expect_word("}", "a `{` is not closed")?;
                Compound::Group(list)
            }
            "if" => self.parse_if()?,
            "while" | "until" => {
                self.eat_word(&word);
                let condition = self.parse_full_list()?;
                Compound::While { condition, body: self.parse_do()? }
            }
            "for" | "select" => self.parse_for(&word)?,
            "case" => self.parse_case()?,
            "function" => {
                self.eat_word("function");
                self.skip_blanks();
                let name = self.parse_function_name()?;
                self.skip_blanks();
                if self.eat("(") {
                    self.skip_blanks();
                    self.expect(")", "a function's name is followed by something else than `()`")?;
                }
                self.parse_function_body(name)?
            }
            "[[" => {
                self.eat_word("[[");
                Compound::Test(self.parse_test()?)
            }
            "coproc" | "repeat" | "foreach" | "always" | "nocorrect" | "noglob" => {
                return Err(SyntaxError("it has a construct that is not understood"));
            }
            _ => return Ok(None),
        }))
    }

    fn parse_if(&mut self) -> Result<Compound, SyntaxError> {
        let (mut branches, mut otherwise) = (Vec::new(), Vec::new());
        self.eat_word("if");
        loop {
            let condition = self.parse_full_list()?;
            self.expect_word("then", "an `if` has no `then`")?;
            branches.push((condition, self.parse_full_list()?));
            self.skip_lines()?;
            if self.eat_word("elif") {
                continue;
            }
            if self.eat_word("else") {
                otherwise = self.parse_full_list()?;
            }
            self.expect_word("fi", "an `if` has no `fi`")?;
            return Ok(Compound::If { branches, otherwise });
        }
    }

    /// Parses `do list done`, or `{ list; }` in its place.
    fn parse_do(&mut self) -> Result<Vec<crate::syntax::ListItem>, SyntaxError> {
        self.skip_lines()?;
        let end = match self.eat_word("{") {
            true => "}",
            false => {
                self.expect_word("do", "a loop has no `do`")?;
                "done"
            }
        };
        let body = self.parse_full_list()?;
        self.expect_word(end, "a loop is not closed")?;
        Ok(body)
    }

    fn parse_for(&mut self, keyword: &str) -> Result<Compound, SyntaxError> {
        self.eat_word(keyword);
        self.skip_blanks();
        if self.peek() == Some('(') && self.peek_at(1) == Some('(') {
            let expression =
                self.parse_arithmetic(2)?.ok_or(SyntaxError("the expressions of a `for` are not closed"))?;
            self.skip_blanks();
            self.eat(";");
            let body = self.parse_do()?;
            return Ok(Compound::For { name: None, words: vec![expression], body });
        }
        let name = self.parse_name().ok_or(SyntaxError("a loop has no variable"))?;
        self.skip_lines()?;
        // Without `in`, the words are the positional parameters.
        let mut words = vec![Word::quoted("$@")];
        if self.eat_word("in") {
            words.clear();
            loop {
                self.skip_blanks();
                match self.peek() {
                    Some(c) if !is_word_end(c) => words.push(self.parse_word()?),
                    Some('<' | '>') if self.peek_at(1) == Some('(') => words.push(self.parse_word()?),
                    _ => break,
                }
            }
            if !matches!(self.peek(), Some(';' | '\n')) {
                return Err(SyntaxError("the words of a loop have no end"));
            }
        }
        self.eat(";");
        Ok(Compound::For { name: Some(name), words, body: self.parse_do()? })
    }

    fn parse_name(&mut self) -> Option<String> {
        let name = self.reserved_word().filter(|word| is_name(word))?;
        self.position += name.chars().count();
        Some(name)
    }

    fn parse_case(&mut self) -> Result<Compound, SyntaxError> {
        self.eat_word("case");
        self.skip_blanks();
        let subject = self.parse_word()?;
        self.expect_word("in", "a `case` has no `in`")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat_word("esac") {
                return Ok(Compound::Case { subject, arms });
            }
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.parse_word()?);
                self.skip_blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.expect(")", "a pattern of a `case` has no `)`")?;
            arms.push((patterns, self.parse_list()?));
            self.skip_lines()?;
            if !(self.eat(";;&") || self.eat(";;") || self.eat(";&")) {
                self.expect_word("esac", "a `case` has no `esac`")?;
                return Ok(Compound::Case { subject, arms });
            }
        }
    }

    fn parse_function_name(&mut self) -> Result<String, SyntaxError> {
        let name: String = self.chars.iter().skip(self.position).take_while(|c| !is_word_end(**c)).collect();
        if name.is_empty() || name.contains(['\'', '"', '\\', '$', '`', '=']) {
            return Err(SyntaxError("the name of a function is not understood"));
        }
        self.position += name.chars().count();
        Ok(name)
    }

    /// Parses the body of a function, behind its name and `()`.
    pub(super) fn parse_function_body(&mut self, name: String) -> Result<Compound, SyntaxError> {
        self.skip_lines()?;
        let body = Box::new(self.parse_command()?);
        match *body {
            Node::Compound(..) => Ok(Compound::Function { name, body }),
            _ => Err(SyntaxError("the body of a function is not a compound command")),
        }
    }

    /// Parses the words of `[[ … ]]`. What its operators are makes no difference to what runs.
    fn parse_test(&mut self) -> Result<Vec<Word>, SyntaxError> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                None => return Err(SyntaxError("a `[[` is not closed")),
                Some(_) if self.reserved_word().as_deref() == Some("]]") => {
                    self.eat_word("]]");
                    return Ok(words);
                }
                Some('<' | '>') if self.peek_at(1) == Some('(') => words.push(self.parse_word()?),
                Some('(' | ')' | '<' | '>' | '&' | '|') => self.position += 1,
                Some(';') => return Err(SyntaxError("a `[[` is not closed")),
                Some(_) => words.push(self.parse_word()?),
            }
        }
    }
}
