//! The card that says what became of a question.

use super::arguments::{arguments, changes};
use super::model::{Card, CardStatus, Field, FieldKind};
use super::pending::{prefixed, question, tool_of, what_is_called, who_asks};
use super::shown::{MAX_NAME, MAX_TEXT, MAX_TITLE, MAX_VALUE, exact, message, value};
use crate::json::Value;
use crate::message::{RequestPart, ResponsePart};

/// What became of a question, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// What.
    pub resolved: Resolved,
    /// Who decided: a principal that the host verified.
    pub by: Option<String>,
    /// When, in RFC 3339.
    pub at: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    /// The call may run as it is.
    Approved,
    /// The call may run with these arguments.
    Edited(Value),
    /// This stands for the tool's result.
    Answered(Value),
    /// The call must not run.
    Denied,
    /// The run ends.
    Cancelled,
    /// Nobody answered in time.
    Expired,
}

impl Resolved {
    fn status(&self) -> (CardStatus, &'static str) {
        match self {
            Self::Approved => (CardStatus::Approved, "Approved: "),
            Self::Edited(_) => (CardStatus::Edited, "Approved with changes: "),
            Self::Answered(_) => (CardStatus::Answered, "Answered by a person: "),
            Self::Denied => (CardStatus::Denied, "Denied: "),
            Self::Cancelled => (CardStatus::Cancelled, "Cancelled: "),
            Self::Expired => (CardStatus::Expired, "Expired: "),
        }
    }
}

impl From<&ResponsePart> for Resolution {
    /// What an answer says, if it counts. Of an answer that says several things the strictest.
    fn from(response: &ResponsePart) -> Self {
        let resolved = match (&response.output, &response.edited_input) {
            _ if response.cancel => Resolved::Cancelled,
            _ if !response.approved => Resolved::Denied,
            (Some(output), _) => Resolved::Answered(output.clone()),
            (None, Some(edited)) => Resolved::Edited(edited.clone()),
            (None, None) => Resolved::Approved,
        };
        Self { resolved, by: None, at: None, reason: response.reason.clone() }
    }
}

impl Card {
    /// The card that takes the place of the one that asked.
    pub fn resolved(request: &RequestPart, resolution: &Resolution) -> Self {
        let (status, word) = resolution.resolved.status();
        let title = message(request.card.title.as_deref(), MAX_TITLE).unwrap_or_else(|| tool_of(request));
        let mut fields = Vec::new();
        match &resolution.resolved {
            Resolved::Edited(edited) => {
                fields.extend(what_is_called(request, &[edited]));
                fields.extend(changes(request.input.as_ref(), edited));
            }
            Resolved::Answered(output) => {
                fields.extend(what_is_called(request, &[]));
                fields.extend(arguments(request.input.as_ref()));
                fields.push(Field::new(FieldKind::Answer, "Answer", value(output, MAX_VALUE)));
            }
            _ => {
                fields.extend(what_is_called(request, &[]));
                fields.extend(arguments(request.input.as_ref()));
            }
        }
        fields.extend(who_asks(request));
        for (kind, label, told) in [
            (FieldKind::Reason, "Reason", message(resolution.reason.as_deref(), MAX_TEXT)),
            (FieldKind::By, "By", resolution.by.as_ref().map(|text| exact(text, MAX_NAME))),
            (FieldKind::At, "At", resolution.at.as_ref().map(|text| exact(text, MAX_NAME))),
        ] {
            fields.extend(told.map(|told| Field::new(kind, label, told)));
        }
        Self::assemble(status, prefixed(word, title), question(request), fields, Vec::new())
    }
}
