//! Kinds of tokens, and how numbers are written.

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
            Self::Url => {
                "URLs, and bare hosts as `http` and `https`, but not file names such as `report.pdf`; path and query are exact"
            }
            Self::Host => {
                "hosts of URLs, bare host names and IP addresses, but not file names such as `report.pdf`; subdomains are other hosts"
            }
            Self::Iban => "international bank account numbers (IBAN), also grouped",
            Self::Number => "numbers in ASCII digits, compared by value",
            Self::Path => "file paths: runs without white space, or quoted strings; letter case matters",
            Self::Word => {
                "one or more whole words; letter case does not matter, and hyphens and dots join words"
            }
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
