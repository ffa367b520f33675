//! Tokens of sources, and whether a subject is among them.

use std::collections::{HashMap, HashSet};

use super::boundary::is_hidden;
use super::number::NumberToken;
use super::token_format::{TokenFormat, check_length};
use super::token_kind::TokenKind;
use super::{Token, TokenError, link, path, word};
use crate::json::{Number, Value};
use crate::unicode;
use crate::work_limit;

/// Bytes of the words of a source that are searched for a phrase in one work unit.
const SEARCHED_PER_UNIT: u64 = 16;

/// A value that may be mentioned.
#[derive(Clone, Copy, Debug)]
pub enum TokenSubject<'a> {
    /// A string.
    Text(&'a str),
    /// A JSON number.
    Number(&'a Number),
}

/// The tokens of sources. Subjects are looked up by hash; words are searched.
#[derive(Clone, Debug)]
pub struct TokenIndex {
    format: TokenFormat,
    tokens: IndexedTokens,
}

#[derive(Clone, Debug)]
enum IndexedTokens {
    Forms(HashSet<String>),
    /// Each value of a number, and whether a number has surely this value.
    Numbers(HashMap<Number, bool>),
    /// All sources as [`word::encode`] returns them, with [`word::NOT_A_TOKEN`] between them.
    Words(String),
}

impl TokenFormat {
    /// Reads the tokens of sources: of each string at any depth of each value.
    ///
    /// # Errors
    /// Returns [`TokenError`] if the sources are longer than 1 MiB together.
    pub fn index<'a>(&self, sources: impl IntoIterator<Item = &'a Value>) -> Result<TokenIndex, TokenError> {
        TokenIndex::new(*self, sources)
    }

    /// Whether a subject equals a token of a source.
    ///
    /// # Errors
    /// Returns [`TokenError`] if this is undecided.
    ///
    /// ```
    /// use callgate::json::json;
    /// use callgate::tokens::{TokenFormat, TokenKind, TokenSubject};
    /// let emails = TokenFormat::new(TokenKind::Email);
    /// let task = json!("Forward it to john.doe@example.com");
    /// assert_eq!(emails.is_mentioned(TokenSubject::Text("john.doe@example.com"), [&task]), Ok(true));
    /// assert_eq!(emails.is_mentioned(TokenSubject::Text("doe@example.com"), [&task]), Ok(false));
    /// ```
    pub fn is_mentioned<'a>(
        &self,
        subject: TokenSubject<'_>,
        sources: impl IntoIterator<Item = &'a Value>,
    ) -> Result<bool, TokenError> {
        self.index(sources)?.mentions(subject)
    }
}

impl TokenIndex {
    pub(super) fn new<'a>(
        format: TokenFormat,
        sources: impl IntoIterator<Item = &'a Value>,
    ) -> Result<Self, TokenError> {
        let texts = collect_strings(sources);
        check_length(texts.iter().copied())?;
        let composed = texts.iter().map(|text| unicode::compose(text));
        let tokens = match format.kind() {
            TokenKind::Number => {
                IndexedTokens::Numbers(index_numbers(composed.flat_map(|text| format.scan_numbers(&text))))
            }
            TokenKind::Word => {
                let mut words = String::new();
                for text in composed {
                    words.push(word::NOT_A_TOKEN);
                    words.push_str(&word::encode(&text));
                }
                IndexedTokens::Words(words)
            }
            _ => {
                let mut forms = HashSet::new();
                for text in composed {
                    forms.extend(format.scan(&text).into_iter().flat_map(Token::forms));
                }
                IndexedTokens::Forms(forms)
            }
        };
        Ok(Self { format, tokens })
    }

    /// Whether a subject equals a token.
    ///
    /// # Errors
    /// Returns [`TokenError`] if the subject is not exactly one token, or equals a number in only one of its readings.
    pub fn mentions(&self, subject: TokenSubject<'_>) -> Result<bool, TokenError> {
        let kind = self.format.kind();
        let text = match subject {
            TokenSubject::Text(text) => text,
            TokenSubject::Number(number) => {
                return match &self.tokens {
                    IndexedTokens::Numbers(numbers) => mentions_number(numbers, number),
                    _ => Err(TokenError::NotOneToken(kind)),
                };
            }
        };
        check_length([text])?;
        if text.chars().any(|c| c.is_control() || is_hidden(c)) {
            return Err(TokenError::HiddenCharacter);
        }
        let text = unicode::compose(text);
        match &self.tokens {
            IndexedTokens::Forms(forms) => {
                let token = self.parse_subject(&text)?;
                Ok(token.forms().any(|form| forms.contains(&form)))
            }
            IndexedTokens::Numbers(numbers) => match self.format.scan_numbers(&text).as_slice() {
                [number] if number.range == (0..text.len()) => {
                    mentions_number(numbers, number.single_reading().ok_or(TokenError::AmbiguousSubject)?)
                }
                _ => Err(TokenError::NotOneToken(kind)),
            },
            IndexedTokens::Words(words) => {
                let phrase = word::encode_subject(&text).ok_or(TokenError::NotOneToken(kind))?;
                work_limit::spend_for(words.len(), SEARCHED_PER_UNIT)?;
                Ok(words.contains(&phrase))
            }
        }
    }

    /// Returns the one token that a composed text consists of.
    fn parse_subject(&self, text: &str) -> Result<Token, TokenError> {
        match self.format.kind() {
            TokenKind::Path => path::check_subject(text)?,
            TokenKind::Url | TokenKind::Host => link::check_subject(text)?,
            _ => {}
        }
        if self.format.kind() == TokenKind::Path {
            let form = path::parse_subject(text).ok_or(TokenError::NotOneToken(TokenKind::Path))?;
            return Ok(Token::new(0..text.len(), form));
        }
        let mut tokens = self.format.scan(text).into_iter();
        match (tokens.next(), tokens.next()) {
            (Some(token), None) if token.range == (0..text.len()) => Ok(token),
            _ => Err(TokenError::NotOneToken(self.format.kind())),
        }
    }
}

fn index_numbers(tokens: impl Iterator<Item = NumberToken>) -> HashMap<Number, bool> {
    let mut numbers = HashMap::new();
    for token in tokens {
        let (values, is_certain) = token.into_values();
        for value in values {
            *numbers.entry(value).or_default() |= is_certain;
        }
    }
    numbers
}

fn mentions_number(numbers: &HashMap<Number, bool>, subject: &Number) -> Result<bool, TokenError> {
    match numbers.get(subject) {
        Some(true) => Ok(true),
        Some(false) => Err(TokenError::AmbiguousNumber),
        None => Ok(false),
    }
}

/// Returns every string at any depth of the values.
fn collect_strings<'a>(sources: impl IntoIterator<Item = &'a Value>) -> Vec<&'a str> {
    let mut open: Vec<&Value> = sources.into_iter().collect();
    let mut texts = Vec::new();
    while let Some(next) = open.pop() {
        match next {
            Value::String(text) => texts.push(text.as_str()),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    texts
}
