//! How much of each text a card shows, and how it says that there is more.

use super::model::{Field, FieldKind};
use crate::json::{self, Digest, Value};
use crate::text::{self, Unmarked};

/// Characters of a title.
pub const MAX_TITLE: usize = 150;
/// Characters of the question, and of a reason.
pub const MAX_TEXT: usize = 1500;
/// Characters on a button.
pub const MAX_BUTTON: usize = 40;
/// Characters of the name of a tool, a server or a person, and of a time.
pub const MAX_NAME: usize = 150;
/// Characters of the key of an argument.
pub const MAX_LABEL: usize = 60;
/// Characters of a value.
pub const MAX_VALUE: usize = 400;
/// Arguments that are shown.
pub const MAX_ARGUMENTS: usize = 24;
/// Notes that are shown.
pub const MAX_NOTES: usize = 5;
/// The characters of all texts of a card together. Follows from the other limits.
pub const MAX_CARD: usize = 32_000;

/// Text as it is shown, and how much of it is not.
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) left_out: usize,
}

impl Shown {
    /// Says in the text itself what is left out. What is cut short has its digest beside it: two values that differ
    /// only where they are not shown can still be told apart.
    fn of(unmarked: Unmarked, digest: impl Fn() -> Digest) -> Self {
        let Unmarked { mut text, left_out } = unmarked;
        if left_out > 0 {
            let short = digest().short();
            text = format!("{text}… ({left_out} more characters not shown; SHA-256 begins with {short})");
        }
        Self { text, left_out }
    }
}

/// A text by its exact characters; an empty one as `""`, so that something is to be seen.
pub(super) fn exact(text: &str, limit: usize) -> Shown {
    let text = if text.is_empty() { "\"\"" } else { text };
    Shown::of(text::unmarked_up_to(text, limit), || Digest::of(text.as_bytes()))
}

/// A JSON value, exactly.
pub(super) fn value(value: &Value, limit: usize) -> Shown {
    Shown::of(text::unmarked_json(value, limit), || json::digest(value))
}

/// A text in which unmarked values may stand; nothing where it says nothing.
pub(super) fn message(text: Option<&str>, limit: usize) -> Option<Shown> {
    let text = text?;
    let shown = Shown::of(text::unmarked_message(text, limit), || Digest::of(text.as_bytes()));
    (!shown.text.is_empty()).then_some(shown)
}

impl Field {
    /// A field with a label of ours.
    pub(super) fn new(kind: FieldKind, label: &str, shown: Shown) -> Self {
        Self { kind, label: label.to_owned(), value: shown.text, was: None, left_out: shown.left_out }
    }

    /// A field that says something of ours.
    pub(super) fn told(kind: FieldKind, label: &str, text: String) -> Self {
        Self::new(kind, label, Shown { text, left_out: 0 })
    }

    /// An argument.
    pub(super) fn argument(kind: FieldKind, key: &str, shown: Shown, was: Option<Shown>) -> Self {
        let label = exact(key, MAX_LABEL);
        let before = was.as_ref().map_or(0, |was| was.left_out);
        Self {
            kind,
            label: label.text,
            value: shown.text,
            was: was.map(|was| was.text),
            left_out: label.left_out + shown.left_out + before,
        }
    }
}
