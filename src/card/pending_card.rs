//! The card of a pending approval request.

use super::action_id::Choice;
use super::argument_fields::ArgumentFields;
use super::call_digest::call_digest;
use super::confusables::confusable_notes;
use super::model::{CARD_VERSION, Card, CardAction, CardField, CardStatus, FieldKind};
use super::truncation::{CardExtent, CardLimits, Shown, message, name, names};
use crate::json::Value;
use crate::message::RequestPart;

impl Card {
    /// Creates the card of a pending request.
    ///
    /// ```
    /// use callgate::card::Card;
    /// use callgate::message::RequestPart;
    /// use callgate::json::json;
    ///
    /// let request = RequestPart {
    ///     approval_id: "approval_c1".into(),
    ///     tool_name: Some("refund".into()),
    ///     input: Some(json!({"amount": 250})),
    ///     message: Some("Refund 250 USD?".into()),
    ///     ..RequestPart::default()
    /// };
    /// let card = Card::pending(&request);
    /// assert_eq!(card.title, "Approval needed: refund");
    /// assert_eq!(card.actions[0].id, "tool-approval:approve:approval_c1");
    /// ```
    pub fn pending(request: &RequestPart) -> Self {
        Self::pending_with_extent(request, CardExtent::Bounded)
    }

    /// Creates the card with as much of the call as `extent` allows.
    pub fn pending_with_extent(request: &RequestPart, extent: CardExtent) -> Self {
        let (words, limits) = (&request.card, extent.limits());
        let mut fields = call_fields(request, &[], limits);
        fields.extend(request_arguments(request, limits).fields(request.input.as_ref()));
        fields.push(digest_field(request));
        fields.extend(policies_field(request, limits));
        if let Some(expires) = &request.expires_at {
            fields.push(CardField::new(FieldKind::Expires, "Expires", name(expires, limits.name)));
        }
        let title = message(words.title.as_deref(), limits.title)
            .unwrap_or_else(|| with_prefix("Approval needed: ", tool_name(request, limits)));
        let actions = [Choice::Approve, Choice::Deny]
            .map(|choice| CardAction::new(choice, &request.approval_id, words));
        Self::assemble(CardStatus::Pending, title, question_text(request, limits), fields, actions.into())
    }

    pub(super) fn assemble(
        status: CardStatus,
        title: Shown,
        text: Shown,
        fields: Vec<CardField>,
        actions: Vec<CardAction>,
    ) -> Self {
        let left_out = |field: &CardField| field.left_out > 0 || field.kind == FieldKind::LeftOut;
        let incomplete = title.left_out > 0 || text.left_out > 0 || fields.iter().any(left_out);
        Self {
            version: CARD_VERSION,
            status,
            title: title.text,
            text: text.text,
            fields,
            actions,
            incomplete,
        }
    }
}

/// The name of the tool, exactly.
pub(super) fn tool_name(request: &RequestPart, limits: &CardLimits) -> Shown {
    match &request.tool_name {
        Some(tool) => name(tool, limits.name),
        None => Shown { text: "an unnamed tool".to_owned(), left_out: 0 },
    }
}

pub(super) fn with_prefix(prefix: &str, value: Shown) -> Shown {
    Shown { text: format!("{prefix}{}", value.text), left_out: value.left_out }
}

pub(super) fn question_text(request: &RequestPart, limits: &CardLimits) -> Shown {
    message(request.message.as_deref(), limits.text).unwrap_or_else(|| {
        let Shown { text, left_out } = tool_name(request, limits);
        Shown { text: format!("May the agent call {text}?"), left_out }
    })
}

/// The fields of the tool and its server, and notes on confusable names in them, in the arguments and in `others`.
pub(super) fn call_fields(request: &RequestPart, others: &[&Value], limits: &CardLimits) -> Vec<CardField> {
    let mut fields = vec![CardField::new(FieldKind::Tool, "Tool", tool_name(request, limits))];
    if let Some(server) = &request.server {
        fields.push(CardField::new(FieldKind::Server, "Server", name(server, limits.name)));
    }
    let inputs: Vec<&Value> = request.input.iter().chain(others.iter().copied()).collect();
    fields.extend(confusable_notes(request.tool_name.as_deref(), request.server.as_deref(), &inputs, limits));
    fields
}

pub(super) fn request_arguments<'a>(request: &'a RequestPart, limits: &'a CardLimits) -> ArgumentFields<'a> {
    ArgumentFields { limits, relevant: &request.relevant }
}

pub(super) fn digest_field(request: &RequestPart) -> CardField {
    CardField::with_text(FieldKind::Digest, "Digest", call_digest(request))
}

pub(super) fn policies_field(request: &RequestPart, limits: &CardLimits) -> Option<CardField> {
    names(&request.policies, limits).map(|policies| CardField::new(FieldKind::Policies, "Policies", policies))
}
