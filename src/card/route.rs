//! From a click back to its question.

use super::action::{ActionId, Choice};
use super::payload::Payload;
use crate::message::{Content, History, Message, RequestPart, ResponsePart, approval_response};
use crate::text::{cut, inert};

/// A click with its question, and the answer that it makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed {
    /// Yes or no.
    pub choice: Choice,
    /// The question.
    pub request: RequestPart,
    /// The answer, with the question's token. A reason, changed arguments and the like are for the host to add.
    pub response: ResponsePart,
}

/// Why a click can't be taken for an answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RouteError {
    /// The history has no such question, or one that belongs to no call.
    #[error("no call of this history was asked about under `{key}`")]
    Unknown {
        /// The approval id of the action, or its digest.
        key: String,
    },
    /// Several open calls were asked about under this id.
    #[error("several calls of this history wait for `{key}`; ask for each under an id of its own")]
    Ambiguous {
        /// The approval id of the action, or its digest.
        key: String,
    },
    /// There is an answer already, and the first one counts.
    #[error("`{}` was {} already", cut(&inert(&.request.approval_id)), if *.approved { "approved" } else { "denied" })]
    Answered {
        /// The question. Where several people must answer, the host goes on with it.
        request: Box<RequestPart>,
        /// What the first answer says.
        approved: bool,
    },
    /// The call has a result.
    #[error("the call that `{}` asked about has a result already", cut(&inert(&.request.approval_id)))]
    Settled {
        /// The question.
        request: Box<RequestPart>,
    },
    /// The payload belongs to another card.
    #[error("the action is for `{key}`, and the payload beside it for `{}`", cut(&inert(.approval_id)))]
    OtherPayload {
        /// The approval id of the action, or its digest.
        key: String,
        /// That of the payload.
        approval_id: String,
    },
}

impl Routed {
    fn new(action: &ActionId, request: &RequestPart) -> Self {
        let choice = action.choice();
        let response = ResponsePart {
            approval_token: request.approval_token.clone(),
            ..approval_response(request.approval_id.clone(), choice == Choice::Approve)
        };
        Self { choice, request: request.clone(), response }
    }
}

/// Finds the question of a click in the history of its conversation. Errors where it is not there, is answered, or its call has
/// a result.
///
/// ```
/// use callgate::card::{ActionId, route};
/// use callgate::message::{Dialect, History};
/// use callgate::json::json;
///
/// let mut history = History::read(Dialect::AiSdk, &json!([{"role": "assistant", "content": [
///     {"type": "tool-call", "toolCallId": "c1", "toolName": "refund", "input": {"amount": 250}},
///     {"type": "tool-approval-request", "approvalId": "approval_c1", "toolCallId": "c1"}
/// ]}]))?;
/// let action: ActionId = "tool-approval:deny:approval_c1".parse()?;
/// let routed = route(&action, &history)?;
/// history.append_approval_response(routed.response)?;
/// assert_eq!(route(&action, &history).unwrap_err().to_string(), "`approval_c1` was denied already");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn route(action: &ActionId, history: &History) -> Result<Routed, RouteError> {
    let key = || action.key().to_owned();
    let open: Vec<&RequestPart> = history
        .find_approval_requests()
        .into_iter()
        .filter(|request| action.matches(&request.approval_id))
        .collect();
    match open.as_slice() {
        [request] => match history.find_approval_decision(&request.approval_id) {
            Some(decision) => Err(answered(request, decision)),
            None => Ok(Routed::new(action, request)),
        },
        [] => Err(closed(action, history).unwrap_or_else(|| RouteError::Unknown { key: key() })),
        _ => Err(RouteError::Ambiguous { key: key() }),
    }
}

/// Takes the question of a click from the payload beside it. Whether it was answered already only the history or a store knows.
pub fn route_payload(action: &ActionId, payload: &Payload) -> Result<Routed, RouteError> {
    let request = &payload.request;
    match action.matches(&request.approval_id) {
        true => Ok(Routed::new(action, request)),
        false => Err(RouteError::OtherPayload {
            key: action.key().to_owned(),
            approval_id: request.approval_id.clone(),
        }),
    }
}

fn answered(request: &RequestPart, decision: &ResponsePart) -> RouteError {
    RouteError::Answered { request: Box::new(request.clone()), approved: decision.approved }
}

/// What became of a question that is not open any more.
fn closed(action: &ActionId, history: &History) -> Option<RouteError> {
    let settled = history.occurrences().into_iter().rev().find_map(|call| {
        let request = call.request.filter(|request| action.matches(&request.approval_id))?;
        call.result.map(|_| RouteError::Settled { request: Box::new(request.clone()) })
    });
    // A provider's own request has no call that could have a result.
    settled.or_else(|| {
        let mut parts = history.messages().iter().flat_map(Message::parts);
        parts.find_map(|part| match part.content() {
            Content::Request(request) if action.matches(&request.approval_id) => {
                history.find_approval_decision(&request.approval_id).map(|first| answered(request, first))
            }
            _ => None,
        })
    })
}
