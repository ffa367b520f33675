//! The card model: plain data for any renderer.

use serde::Serialize;

use super::action_id::{ActionId, Choice};
use super::truncation::{MAX_BUTTON, Shown, message};
use crate::call::CardLabels;

/// The version of the card format.
pub const CARD_VERSION: u32 = 1;

/// An approval request or its resolution. All text is escaped and bounded: it can be displayed as is.
///
/// JSON members are in camel case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// [`CARD_VERSION`].
    pub version: u32,
    /// Pending, or the final status.
    pub status: CardStatus,
    /// One line.
    pub title: String,
    /// The question.
    pub text: String,
    /// What the approver must know, in order.
    pub fields: Vec<CardField>,
    /// The buttons; empty if there is nothing left to answer.
    pub actions: Vec<CardAction>,
    /// Whether parts of the arguments or texts are not shown. Fields give the details.
    pub incomplete: bool,
}

/// The status of an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CardStatus {
    /// It waits for an answer.
    Pending,
    /// The call may run.
    Approved,
    /// The call may run with other arguments.
    Edited,
    /// An approver supplied the result in place of the tool.
    Answered,
    /// The call must not run.
    Denied,
    /// The run is cancelled.
    Cancelled,
    /// No answer arrived in time.
    Expired,
}

impl CardStatus {
    /// Its name in JSON.
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

/// One labeled line of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CardField {
    /// What it is about.
    pub kind: FieldKind,
    /// Its label; for an argument the key as a JSON string, so that no key can imitate another label.
    pub label: String,
    /// Its value; for an argument JSON text.
    pub value: String,
    /// The previous value, if an approver changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// How many characters of the label, the value and the previous value are not shown; the texts mark the gap, too.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

impl CardField {
    /// Creates a field with a fixed label.
    pub(super) fn new(kind: FieldKind, label: &str, value: Shown) -> Self {
        Self { kind, label: label.to_owned(), value: value.text, was: None, left_out: value.left_out }
    }

    /// Creates a field with a fixed text.
    pub(super) fn with_text(kind: FieldKind, label: &str, text: String) -> Self {
        Self::new(kind, label, Shown { text, left_out: 0 })
    }

    /// Creates a field for an argument or a part of one.
    pub(super) fn argument(kind: FieldKind, label: Shown, value: Shown, was: Option<Shown>) -> Self {
        let before = was.as_ref().map_or(0, |was| was.left_out);
        Self {
            kind,
            label: label.text,
            value: value.text,
            was: was.map(|was| was.text),
            left_out: label.left_out + value.left_out + before,
        }
    }
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
    /// The server of the tool.
    Server,
    /// A warning.
    Note,
    /// An argument.
    Argument,
    /// An argument that an approver changed.
    Changed,
    /// An argument that an approver added.
    Added,
    /// An argument that an approver removed.
    Removed,
    /// A part, read by policies, of an argument that is too long to be shown in full. Its label is its path, `"order"."items"[0]`.
    Part,
    /// What is not shown.
    LeftOut,
    /// The short digest of the whole call or the whole answer, including hidden and redacted parts.
    Digest,
    /// The policies that require approval.
    Policies,
    /// When the request expires.
    Expires,
    /// The result that an approver supplied in place of the tool.
    Answer,
    /// The reason of the decision.
    Reason,
    /// Who decided.
    By,
    /// When.
    At,
}

impl FieldKind {
    /// Whether its label is an argument key, which the caller of the tool chose.
    pub fn is_argument(self) -> bool {
        matches!(self, Self::Argument | Self::Changed | Self::Added | Self::Removed | Self::Part)
    }
}

/// A button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CardAction {
    /// The [`ActionId`] as a string, which a click returns.
    pub id: String,
    /// The choice of a click.
    pub choice: Choice,
    /// The button text.
    pub label: String,
    /// The button style.
    pub style: ButtonStyle,
}

/// The style of a button.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ButtonStyle {
    /// The main action.
    Primary,
    /// A destructive action: deny.
    Danger,
}

impl ButtonStyle {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Danger => "danger",
        }
    }
}

impl CardAction {
    pub(super) fn new(choice: Choice, approval_id: &str, words: &CardLabels) -> Self {
        let (own, ours, style) = match choice {
            Choice::Approve => (&words.approve, "Approve", ButtonStyle::Primary),
            Choice::Deny => (&words.deny, "Deny", ButtonStyle::Danger),
        };
        let label = message(own.as_deref(), MAX_BUTTON).map_or_else(|| ours.to_owned(), |own| own.text);
        Self { id: ActionId::new(choice, approval_id).to_string(), choice, label, style }
    }
}
