//! The card itself: plain data for any renderer.

use serde::Serialize;

use super::action::{ActionId, Choice};
use super::shown::{MAX_BUTTON, message};
use crate::call::CardWords;

/// The version of the form of cards.
pub const CARD_VERSION: u32 = 1;

/// A question to a person, or what became of it. All its texts are unmarked and bounded: they can be shown as they are.
///
/// As JSON its members are in camel case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// [`CARD_VERSION`].
    pub version: u32,
    /// Whether it waits, and else how it ended.
    pub status: CardStatus,
    /// One line.
    pub title: String,
    /// The question.
    pub text: String,
    /// What the person must know, in order.
    pub fields: Vec<Field>,
    /// The buttons; none where there is nothing left to answer.
    pub actions: Vec<Action>,
    /// Whether something of the arguments or texts is not shown. Fields say what.
    pub incomplete: bool,
}

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CardStatus {
    /// It waits for a person.
    Pending,
    /// The call may run.
    Approved,
    /// The call may run with other arguments.
    Edited,
    /// A person answered in the tool's place.
    Answered,
    /// The call must not run.
    Denied,
    /// The run ends.
    Cancelled,
    /// Nobody answered in time.
    Expired,
}

impl CardStatus {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Edited => "edited",
            Self::Answered => "answered",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// One thing that a card tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// What it is about.
    pub kind: FieldKind,
    /// Its name; of an argument its key as a JSON string, so that no key can pass for another label.
    pub label: String,
    /// What it says; of an argument JSON text.
    pub value: String,
    /// What stood there before a person changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// How many characters of the label, the value and what was there before are not shown; the texts say so too, between their
    /// beginning and their end.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a field is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FieldKind {
    /// The tool's name.
    Tool,
    /// The server that the tool is on.
    Server,
    /// Something to look at twice.
    Note,
    /// An argument.
    Argument,
    /// An argument that a person changed.
    Changed,
    /// An argument that a person added.
    Added,
    /// An argument that a person took out.
    Removed,
    /// A part of an argument that is too long to be shown in full: one that policies read. Its label is its place, `"order"."items"[0]`.
    Part,
    /// What is not shown.
    LeftOut,
    /// The short digest of the whole call, or of the whole answer, also of all that is not shown or redacted.
    Digest,
    /// The policies that ask.
    Policies,
    /// When the question lapses.
    Expires,
    /// What a person answered in the tool's place.
    Answer,
    /// Why a person decided so.
    Reason,
    /// Who decided.
    By,
    /// When.
    At,
}

impl FieldKind {
    /// Whether its label is the key of an argument, which whoever calls the tool chose.
    pub fn is_argument(self) -> bool {
        matches!(self, Self::Argument | Self::Changed | Self::Added | Self::Removed | Self::Part)
    }
}

/// A button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// The [`ActionId`] as text, which a click brings back.
    pub id: String,
    /// What a click says.
    pub choice: Choice,
    /// The words on it.
    pub label: String,
    /// How it looks.
    pub style: Style,
}

/// How a button looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// The usual way on.
    Primary,
    /// Refuses.
    Danger,
}

impl Style {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Danger => "danger",
        }
    }
}

impl Action {
    pub(super) fn new(choice: Choice, approval_id: &str, words: &CardWords) -> Self {
        let (own, ours, style) = match choice {
            Choice::Approve => (&words.approve, "Approve", Style::Primary),
            Choice::Deny => (&words.deny, "Deny", Style::Danger),
        };
        let label = message(own.as_deref(), MAX_BUTTON).map_or_else(|| ours.to_owned(), |own| own.text);
        Self { id: ActionId::new(choice, approval_id).to_string(), choice, label, style }
    }
}
