//! Kinds of tokens, and how numbers are written.

use super::amount::{self, MoneyAmount};
use super::number::NumberToken;
use super::token_index::{TokenIndex, TokenSubject, check_length};
use super::{Token, TokenError, email, iban, link, number, path, word};
use crate::json::Value;
use crate::unicode;

/// A kind of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "`description` documents each variant")]
pub enum TokenKind {
    Email,
    Url,
    Host,
    Iban,
    Number,
    Path,
    Word,
}

impl TokenKind {
    /// Every kind, in display order.
    pub const ALL: [Self; 7] =
        [Self::Email, Self::Url, Self::Host, Self::Iban, Self::Number, Self::Path, Self::Word];

    /// Parses the name of a kind.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name in rules files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Url => "url",
            Self::Host => "host",
            Self::Iban => "iban",
            Self::Number => "number",
            Self::Path => "path",
            Self::Word => "word",
        }
    }

    /// A one-line description of its tokens and their equality.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Email => "e-mail addresses; letter case does not matter",
            Self::Url => "URLs, and bare hosts as `http` and `https`; path and query are exact",
            Self::Host => "hosts of URLs, bare host names and IP addresses; subdomains are other hosts",
            Self::Iban => "international bank account numbers (IBAN), also grouped",
            Self::Number => "numbers in ASCII digits, compared by value",
            Self::Path => "file paths: runs without white space, or quoted strings; letter case matters",
            Self::Word => "one or more whole words; letter case does not matter",
        }
    }

    /// The name in messages, after "one".
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Email => "e-mail address",
            Self::Url => "URL or host",
            Self::Host => "host or URL",
            Self::Iban => "valid IBAN",
            Self::Number => "number",
            Self::Path => "file path",
            Self::Word => "phrase with at least two letters or digits",
        }
    }
}

/// The character before the fraction of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalMark {
    /// `1.5`
    Point,
    /// `1,5`
    Comma,
}

impl DecimalMark {
    /// Parses `.` or `,`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "." => Some(Self::Point),
            "," => Some(Self::Comma),
            _ => None,
        }
    }

    pub(super) fn as_char(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }
}

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
