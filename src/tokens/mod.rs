//! Tokens of texts: e-mail addresses, URLs, hosts, IBANs, numbers, paths and words. Text → tokens in normal form, and whether a value
//! equals a whole token of a source.
//!
//! The longest token counts: `doe@example.com` is not mentioned in `john.doe@example.com`. Texts are compared in canonical composition
//! (NFC). A value that is not exactly one token is undecided; in a source, what touches an invisible character is not a token.
//! [`TextFolding`] is for comparisons that ignore letter case and look-alike characters.

mod amount;
mod boundary;
mod currency;
mod email;
mod file_name;
mod iban;
mod link;
mod number;
mod number_reading;
mod path;
mod text_folding;
mod token_error;
mod token_format;
mod token_kind;
mod token_index;

mod word;

pub use amount::MoneyAmount;
pub(crate) use iban::{iban_length, is_valid_iban};
pub use text_folding::{FoldedForms, TextFolding};
pub use token_error::TokenError;
pub use token_format::{MAX_SOURCE_BYTES, TokenFormat};
pub use token_index::{TokenIndex, TokenSubject};
pub use token_kind::{DecimalMark, TokenKind};

use std::ops::Range;

/// A token with its location in the composed text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    range: Range<usize>,
    /// The normal form. Two tokens are equal if they have a form in common.
    form: String,
    /// A second form: a bare host stands for two URLs.
    other_form: Option<String>,
}

impl Token {
    fn new(range: Range<usize>, form: String) -> Self {
        Self { range, form, other_form: None }
    }

    fn forms(self) -> impl Iterator<Item = String> {
        std::iter::once(self.form).chain(self.other_form)
    }
}

#[cfg(test)]
mod tests;
