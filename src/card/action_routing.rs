//! Action routing: resolves a click to its approval request.

use super::action_id::{ActionId, Choice};
use super::payload::Payload;
use crate::message::{History, Message, PartContent, RequestPart, ResponsePart, approval_response};
use crate::safe_text::{escape_controls, truncate};

/// A click with its approval request, and the resulting response.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutedAction {
    /// Approve or deny.
    pub choice: Choice,
    /// The approval request.
    pub request: RequestPart,
    /// The response, with the request's token. The host adds a reason, edited arguments and the like.
    pub response: ResponsePart,
}

/// Why a click can't be used as a response.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The history has no such request, or one without a call.
    #[error("this history has no approval request `{key}`")]
    Unknown {
        /// The approval id of the action, or its digest.
        key: String,
    },
    /// Several pending calls have this approval id.
    #[error("several calls of this history wait for `{key}`; use a separate approval id for each call")]
    Ambiguous {
        /// The approval id of the action, or its digest.
        key: String,
    },
    /// There is already a response, and the first one counts.
    #[error("`{}` was already {}", truncate(&escape_controls(&.request.approval_id)), if *.approved { "approved" } else { "denied" })]
    AlreadyAnswered {
        /// The request. If several approvers must answer, the host continues with it.
        request: Box<RequestPart>,
        /// The first response.
        approved: bool,
    },
    /// The call has a result.
    #[error("the call of `{}` already has a result", truncate(&escape_controls(&.request.approval_id)))]
    AlreadyCompleted {
        /// The request.
        request: Box<RequestPart>,
    },
    /// The payload belongs to another card.
    #[error("the action is for `{key}`, but its payload is for `{}`", truncate(&escape_controls(.approval_id)))]
    PayloadMismatch {
        /// The approval id of the action, or its digest.
        key: String,
        /// That of the payload.
        approval_id: String,
    },
}

impl RoutedAction {
    fn new(action: &ActionId, request: &RequestPart) -> Self {
        let choice = action.choice();
        let response = ResponsePart {
            approval_token: request.approval_token.clone(),
            ..approval_response(request.approval_id.clone(), choice == Choice::Approve)
        };
        Self { choice, request: request.clone(), response }
    }
}

/// Finds the approval request of a click in the history of its conversation.
///
/// # Errors
/// Returns [`RouteError`] if the request is missing or answered, or if its call has a result.
///
/// ```
/// use callgate::card::{ActionId, route_action};
/// use callgate::message::{Dialect, History};
/// use callgate::json::json;
///
/// let mut history = History::read(Dialect::AiSdk, &json!([{"role": "assistant", "content": [
///     {"type": "tool-call", "toolCallId": "c1", "toolName": "refund", "input": {"amount": 250}},
///     {"type": "tool-approval-request", "approvalId": "approval_c1", "toolCallId": "c1"}
/// ]}]))?;
/// let action: ActionId = "tool-approval:deny:approval_c1".parse()?;
/// let routed = route_action(&action, &history)?;
/// history.append_approval_response(routed.response)?;
/// assert_eq!(route_action(&action, &history).unwrap_err().to_string(), "`approval_c1` was already denied");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn route_action(action: &ActionId, history: &History) -> Result<RoutedAction, RouteError> {
    let key = || action.key().to_owned();
    let open: Vec<&RequestPart> = history
        .find_approval_requests()
        .into_iter()
        .filter(|request| action.matches(&request.approval_id))
        .collect();
    match open.as_slice() {
        [request] => match history.find_approval_decision(&request.approval_id) {
            Some(decision) => Err(already_answered(request, decision)),
            None => Ok(RoutedAction::new(action, request)),
        },
        [] => Err(closed_reason(action, history).unwrap_or_else(|| RouteError::Unknown { key: key() })),
        _ => Err(RouteError::Ambiguous { key: key() }),
    }
}

/// Takes the approval request of a click from the payload next to it. Only the history or a store knows whether it was answered.
pub fn route_action_with_payload(action: &ActionId, payload: &Payload) -> Result<RoutedAction, RouteError> {
    let request = &payload.request;
    match action.matches(&request.approval_id) {
        true => Ok(RoutedAction::new(action, request)),
        false => Err(RouteError::PayloadMismatch {
            key: action.key().to_owned(),
            approval_id: request.approval_id.clone(),
        }),
    }
}

fn already_answered(request: &RequestPart, decision: &ResponsePart) -> RouteError {
    RouteError::AlreadyAnswered { request: Box::new(request.clone()), approved: decision.approved }
}

/// Why a request is not pending any more.
fn closed_reason(action: &ActionId, history: &History) -> Option<RouteError> {
    let settled = history.occurrences().into_iter().rev().find_map(|call| {
        let request = call.request.filter(|request| action.matches(&request.approval_id))?;
        call.result.map(|_| RouteError::AlreadyCompleted { request: Box::new(request.clone()) })
    });
    // A provider's own request has no call that could have a result.
    settled.or_else(|| {
        let mut parts = history.messages().iter().flat_map(Message::parts);
        parts.find_map(|part| match part.content() {
            PartContent::Request(request) if action.matches(&request.approval_id) => history
                .find_approval_decision(&request.approval_id)
                .map(|first| already_answered(request, first)),
            _ => None,
        })
    })
}
