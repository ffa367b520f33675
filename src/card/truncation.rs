//! Truncation: how much of each text a card shows, and how it marks the rest.

use crate::json::Value;
use crate::safe_text::{self, EscapedText};

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
/// Maximum number of arguments shown.
pub const MAX_ARGUMENTS: usize = 24;
/// Maximum number of notes shown.
pub const MAX_NOTES: usize = 5;
/// Maximum number of policies named, and of people who decided.
pub const MAX_NAMES: usize = 8;
/// Characters of all texts of a card together. Follows from the other limits.
pub const MAX_CARD: usize = 40_000;

/// Maximum number of argument parts shown in addition to the arguments.
pub const MAX_PARTS: usize = 12;

/// How much of a call a card shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardExtent {
    /// What fits into a chat message or a form: at most [`MAX_CARD`] characters.
    #[default]
    Bounded,
    /// Everything.
    Complete,
}

/// The limits of a card, in characters and fields.
pub(super) struct CardLimits {
    pub(super) title: usize,
    pub(super) text: usize,
    pub(super) name: usize,
    pub(super) label: usize,
    pub(super) value: usize,
    pub(super) arguments: usize,
    pub(super) parts: usize,
    pub(super) notes: usize,
    pub(super) names: usize,
}

const BOUNDED: CardLimits = CardLimits {
    title: MAX_TITLE,
    text: MAX_TEXT,
    name: MAX_NAME,
    label: MAX_LABEL,
    value: MAX_VALUE,
    arguments: MAX_ARGUMENTS,
    parts: MAX_PARTS,
    notes: MAX_NOTES,
    names: MAX_NAMES,
};

const COMPLETE: CardLimits = CardLimits {
    title: usize::MAX,
    text: usize::MAX,
    name: usize::MAX,
    label: usize::MAX,
    value: usize::MAX,
    arguments: usize::MAX,
    parts: usize::MAX,
    notes: usize::MAX,
    names: usize::MAX,
};

impl CardExtent {
    pub(super) fn limits(self) -> &'static CardLimits {
        match self {
            Self::Bounded => &BOUNDED,
            Self::Complete => &COMPLETE,
        }
    }
}

/// Truncated text, and how many characters are left out.
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) left_out: usize,
}

impl From<EscapedText> for Shown {
    fn from(unmarked: EscapedText) -> Self {
        Self { left_out: unmarked.left_out, text: unmarked.to_string() }
    }
}

/// A name, exact, quoted unless it is plain.
pub(super) fn name(text: &str, limit: usize) -> Shown {
    safe_text::escape_name(text, limit).into()
}

/// Names, and how many more there are. Returns `None` for an empty list.
pub(super) fn names(of: &[String], limits: &CardLimits) -> Option<Shown> {
    let named: Vec<Shown> = of.iter().take(limits.names).map(|of| name(of, limits.label)).collect();
    let more = of.len().saturating_sub(named.len());
    let left_out = named.iter().map(|name| name.left_out).sum::<usize>() + more;
    let mut text = named.into_iter().map(|name| name.text).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    (!text.is_empty()).then_some(Shown { text, left_out })
}

/// A text, exact and quoted.
pub(super) fn quoted(text: &str, limit: usize) -> Shown {
    safe_text::escape_quoted(text, limit).into()
}

/// A JSON value, exact.
pub(super) fn value(value: &Value, limit: usize) -> Shown {
    safe_text::escape_json(value, limit).into()
}

/// A message that may contain escaped values. Returns `None` if it is absent or blank.
pub(super) fn message(text: Option<&str>, limit: usize) -> Option<Shown> {
    let displayed = Shown::from(safe_text::escape_message(text?, limit));
    (!displayed.text.is_empty()).then_some(displayed)
}
