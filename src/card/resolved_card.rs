//! The card of a resolved approval request.

use super::call_digest::answer_digest;
use super::model::{Card, CardField, CardStatus, FieldKind};
use super::pending_card::{
    call_fields, digest_field, policies_field, question_text, request_arguments, tool_name, with_prefix,
};
use super::truncation::{CardExtent, message, name, names, quoted, value};
use crate::json::Value;
use crate::message::{RequestPart, ResponsePart};

/// The resolution of an approval request, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// The outcome.
    pub kind: ResolutionKind,
    /// Who decided: principals that the host verified.
    pub by: Vec<String>,
    /// When, in RFC 3339.
    pub at: Option<String>,
    /// The reason.
    pub reason: Option<String>,
}

/// The outcome of an approval request.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolutionKind {
    /// The call may run unchanged.
    Approved,
    /// The call may run with these arguments.
    Edited(Value),
    /// This replaces the tool's result.
    Answered(Value),
    /// The call must not run.
    Denied,
    /// The run is cancelled.
    Cancelled,
    /// No answer arrived in time.
    Expired,
}

impl ResolutionKind {
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
    /// Reads the resolution from a response that counts. If a response contains several, the strictest applies.
    fn from(response: &ResponsePart) -> Self {
        let resolved = match (&response.output, &response.edited_input) {
            _ if response.cancel => ResolutionKind::Cancelled,
            _ if !response.approved => ResolutionKind::Denied,
            (Some(output), _) => ResolutionKind::Answered(output.clone()),
            (None, Some(edited)) => ResolutionKind::Edited(edited.clone()),
            (None, None) => ResolutionKind::Approved,
        };
        Self { kind: resolved, by: Vec::new(), at: None, reason: response.reason.clone() }
    }
}

impl Card {
    /// Creates the card that replaces the pending one.
    pub fn resolved(request: &RequestPart, resolution: &Resolution) -> Self {
        Self::resolved_with_extent(request, resolution, CardExtent::Bounded)
    }

    /// Creates the card with as much of the call and the answer as `extent` allows.
    pub fn resolved_with_extent(request: &RequestPart, resolution: &Resolution, extent: CardExtent) -> Self {
        let (status, word) = resolution.kind.status();
        let limits = extent.limits();
        let title = message(request.card.title.as_deref(), limits.title);
        let title = title.unwrap_or_else(|| tool_name(request, limits));
        let arguments = request_arguments(request, limits);
        let mut fields = Vec::new();
        let answer = match &resolution.kind {
            ResolutionKind::Edited(edited) => {
                fields.extend(call_fields(request, &[edited], limits));
                fields.extend(arguments.changed_fields(request.input.as_ref(), edited));
                Some(edited)
            }
            other => {
                fields.extend(call_fields(request, &[], limits));
                fields.extend(arguments.fields(request.input.as_ref()));
                match other {
                    ResolutionKind::Answered(output) => {
                        fields.push(CardField::new(FieldKind::Answer, "Answer", value(output, limits.value)));
                        Some(output)
                    }
                    _ => None,
                }
            }
        };
        fields.push(digest_field(request));
        fields.extend(answer.map(|answer| {
            CardField::with_text(FieldKind::Digest, "Digest of the answer", answer_digest(request, answer))
        }));
        fields.extend(policies_field(request, limits));
        let reason = resolution.reason.as_ref().filter(|text| !text.trim().is_empty());
        for (kind, label, value) in [
            (FieldKind::Reason, "Reason", reason.map(|text| quoted(text, limits.text))),
            (FieldKind::By, "By", names(&resolution.by, limits)),
            (FieldKind::At, "At", resolution.at.as_ref().map(|text| name(text, limits.name))),
        ] {
            fields.extend(value.map(|value| CardField::new(kind, label, value)));
        }
        Self::assemble(status, with_prefix(word, title), question_text(request, limits), fields, Vec::new())
    }
}
