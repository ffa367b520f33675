//! The cases of `switch`, read from the source: Rhai's syntax tree holds only their hashes.

use std::collections::BTreeMap;

use rhai::{Position, Token};

use super::parser::tokens;

/// The arms of each `switch` of a text, by the position of the word.
pub(super) type SwitchSources = BTreeMap<(usize, usize), Vec<ArmSource>>;

/// One arm: `1 | 2 if x => …`.
#[derive(Debug, Default)]
pub(super) struct ArmSource {
    /// Its cases; none for `_`.
    pub(super) cases: Vec<CaseSource>,
}

/// A case of an arm.
#[derive(Debug)]
pub(super) enum CaseSource {
    Null,
    Boolean(bool),
    String(String),
    /// The position of a number.
    Number(Position),
    /// The positions of the numbers of a range, and whether its end is one of them.
    Range(Position, Position, bool),
    /// Anything else, which is not supported.
    Other(Position),
}

/// Reads every `switch` of a text.
pub(super) fn read(text: &str) -> SwitchSources {
    if !text.contains("switch") {
        return SwitchSources::new();
    }
    let tokens = tokens(text);
    let switches = (0..).zip(&tokens).filter(|(_, (token, _))| *token == Token::Switch);
    let arms = switches.filter_map(|(index, (_, position))| {
        let mut reader = ArmReader { tokens: tokens.get(index + 1..)?, next: 0 };
        Some((position_key(*position), reader.arms()?))
    });
    arms.collect()
}

pub(super) fn position_key(position: Position) -> (usize, usize) {
    (position.line().unwrap_or(0), position.position().unwrap_or(0))
}

/// Reads the tokens after the word `switch`.
struct ArmReader<'t> {
    tokens: &'t [(Token, Position)],
    next: usize,
}

impl ArmReader<'_> {
    /// Returns `None` if the text has another form. The compiler compares the number of arms and cases with the syntax tree.
    fn arms(&mut self) -> Option<Vec<ArmSource>> {
        // The value ends at the brace of the arms: a map begins with another token.
        self.skip(|token| *token == Token::LeftBrace);
        self.advance()?;
        let mut arms = Vec::new();
        while self.peek()? != &Token::RightBrace {
            arms.push(self.pattern()?);
            self.skip_body()?;
        }
        Some(arms)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    fn advance(&mut self) -> Option<&(Token, Position)> {
        self.next += 1;
        self.tokens.get(self.next - 1)
    }

    /// Skips to a token outside of brackets.
    fn skip(&mut self, is_end: impl Fn(&Token) -> bool) {
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            if depth == 0 && is_end(token) {
                return;
            }
            match bracket(token) {
                Bracket::Opens => depth += 1,
                Bracket::Closes => depth = depth.saturating_sub(1),
                Bracket::None => {}
            }
            self.next += 1;
        }
    }

    /// Reads the cases of an arm, up to the arrow.
    fn pattern(&mut self) -> Option<ArmSource> {
        let start = self.next;
        self.skip(|token| matches!(token, Token::If | Token::DoubleArrow));
        let cases = self.tokens.get(start..self.next)?;
        self.skip(|token| *token == Token::DoubleArrow);
        self.advance()?;
        match cases {
            [(Token::Underscore, _)] => Some(ArmSource::default()),
            cases => Some(ArmSource {
                cases: cases.split(|(token, _)| *token == Token::Pipe).filter_map(read_case).collect(),
            }),
        }
    }

    /// Skips what an arm does, and the comma after it.
    fn skip_body(&mut self) -> Option<()> {
        let is_statement = matches!(
            self.peek()?,
            Token::LeftBrace
                | Token::If
                | Token::While
                | Token::Loop
                | Token::For
                | Token::Switch
                | Token::Try
        );
        if is_statement {
            loop {
                self.skip(|token| *token == Token::LeftBrace);
                self.advance()?;
                self.skip(|token| *token == Token::RightBrace);
                self.advance()?;
                if !matches!(self.peek()?, Token::Else | Token::Catch) {
                    break;
                }
            }
        } else {
            self.skip(|token| matches!(token, Token::Comma | Token::RightBrace));
        }
        if self.peek()? == &Token::Comma {
            self.next += 1;
        }
        Some(())
    }
}

enum Bracket {
    Opens,
    Closes,
    None,
}

fn bracket(token: &Token) -> Bracket {
    match token {
        Token::LeftBrace | Token::LeftParen | Token::LeftBracket | Token::MapStart => Bracket::Opens,
        Token::QuestionBracket => Bracket::Opens,
        Token::RightBrace | Token::RightParen | Token::RightBracket => Bracket::Closes,
        _ => Bracket::None,
    }
}

/// Reads a case from its tokens. Returns `None` if there are none.
fn read_case(tokens: &[(Token, Position)]) -> Option<CaseSource> {
    let (first, position) = tokens.first()?;
    let is_range = |token: &Token| matches!(token, Token::ExclusiveRange | Token::InclusiveRange);
    if let Some(at) = tokens.iter().position(|(token, _)| is_range(token)) {
        let (from, to) = tokens.split_at_checked(at)?;
        let range = match to {
            [(range, _), to @ ..] => Some((number(from), number(to), range == &Token::InclusiveRange)),
            [] => None,
        };
        return Some(match range {
            Some((Some(from), Some(to), inclusive)) => CaseSource::Range(from, to, inclusive),
            _ => CaseSource::Other(*position),
        });
    }
    Some(match (first, tokens.len()) {
        (Token::Unit, 1) => CaseSource::Null,
        (Token::True, 1) => CaseSource::Boolean(true),
        (Token::False, 1) => CaseSource::Boolean(false),
        (Token::StringConstant(text), 1) => CaseSource::String(text.to_string()),
        _ => number(tokens).map_or(CaseSource::Other(*position), CaseSource::Number),
    })
}

/// The position of a number with its sign.
fn number(tokens: &[(Token, Position)]) -> Option<Position> {
    let is_number = |token: &Token| matches!(token, Token::IntegerConstant(_) | Token::FloatConstant(_));
    match tokens {
        [(number, position)] if is_number(number) => Some(*position),
        [(Token::Minus | Token::UnaryMinus, position), (number, _)] if is_number(number) => Some(*position),
        _ => None,
    }
}
