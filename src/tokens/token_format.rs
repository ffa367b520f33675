//! Extraction: text → its tokens of one kind, in normal form.

use super::amount::{self, MoneyAmount};
use super::number::NumberToken;
use super::token_kind::{DecimalMark, TokenKind};
use super::{Token, TokenError, email, iban, link, number, path, word};
use crate::unicode;
use crate::work_limit;

/// The maximum length of all sources of a test together, and of a subject, in bytes.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// What the tokens of a text are: their kind, and for numbers the decimal mark.
///
/// ```
/// use callgate::tokens::{TokenFormat, TokenKind};
/// let emails = TokenFormat::new(TokenKind::Email);
/// assert_eq!(emails.extract("Write to Ana@Example.com."), Ok(vec!["ana@example.com".to_owned()]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenFormat {
    kind: TokenKind,
    decimal: Option<DecimalMark>,
}

impl TokenFormat {
    /// Tokens of a kind. A number that can be read with either decimal mark is ambiguous.
    pub fn new(kind: TokenKind) -> Self {
        Self { kind, decimal: None }
    }

    /// Reads numbers with this decimal mark.
    #[must_use]
    pub fn with_decimal(self, decimal: DecimalMark) -> Self {
        Self { decimal: Some(decimal), ..self }
    }

    /// The kind.
    pub fn kind(&self) -> TokenKind {
        self.kind
    }

    /// Returns the normal forms of all tokens of a text, in order, each as often as it occurs. A bare host as a URL has two forms.
    ///
    /// # Errors
    /// Returns [`TokenError`] if the text is too long, or a number has two readings.
    pub fn extract(&self, text: &str) -> Result<Vec<String>, TokenError> {
        check_length([text])?;
        let text = unicode::compose(text);
        match self.kind {
            TokenKind::Word => Ok(word::words(&text)),
            TokenKind::Number => {
                let numbers = self.scan_numbers(&text).into_iter();
                let single =
                    numbers.map(|number| number.single_reading().map(|value| value.text().to_string()));
                single.collect::<Option<_>>().ok_or(TokenError::AmbiguousNumber)
            }
            _ => Ok(self.scan(&text).into_iter().flat_map(Token::forms).collect()),
        }
    }

    /// Returns the numbers of a text that have a currency beside them.
    ///
    /// # Errors
    /// See [`Self::extract`].
    pub fn extract_amounts(&self, text: &str) -> Result<Vec<MoneyAmount>, TokenError> {
        check_length([text])?;
        let text = unicode::compose(text);
        amount::find(&text, &self.scan_numbers(&text))
    }

    /// Returns the tokens of a composed text, for kinds other than numbers and words.
    pub(super) fn scan(&self, text: &str) -> Vec<Token> {
        match self.kind {
            TokenKind::Email => email::find(text),
            TokenKind::Url => link::find_urls(text),
            TokenKind::Host => link::find_hosts(text),
            TokenKind::Iban => iban::find(text),
            TokenKind::Path => path::find(text),
            TokenKind::Number | TokenKind::Word => Vec::new(),
        }
    }

    pub(super) fn scan_numbers(&self, text: &str) -> Vec<NumberToken> {
        number::find(text, self.decimal)
    }
}

/// Checks the length of texts, and spends the work units for reading them.
pub(super) fn check_length<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<(), TokenError> {
    let bytes = texts.into_iter().fold(0usize, |sum, text| sum.saturating_add(text.len()));
    if bytes > MAX_SOURCE_BYTES {
        return Err(TokenError::TooLong);
    }
    Ok(work_limit::spend_for(bytes, 1)?)
}
