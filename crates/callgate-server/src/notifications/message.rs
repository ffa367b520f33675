//! A message: what happened, for programs and for people.

use callgate::card::{Card, CardAction, call_digest};
use callgate::json::{Value, json};
use callgate::message::RequestPart;
use callgate::safe_text::escape_controls;
use callgate::{EngineEvent, EngineEventKind};

use crate::session_name::shown_name;

/// The longest text of a message, in characters.
const MAX_TEXT: usize = 2_000;

/// What messages are sent about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    ApprovalRequested,
    ApprovalAnswered,
}

impl MessageKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ApprovalRequested => "approval_requested",
            Self::ApprovalAnswered => "approval_answered",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::ApprovalRequested, Self::ApprovalAnswered].into_iter().find(|kind| kind.name() == name)
    }
}

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) kind: MessageKind,
    /// One line.
    pub(super) title: String,
    /// The question or the answer.
    pub(super) text: String,
    /// The arguments as text, for channels that show them.
    pub(super) arguments: Option<String>,
    /// The members for programs, without the arguments.
    pub(super) data: Value,
    /// The arguments, redacted.
    pub(super) input: Value,
    /// What finds the request on the approvals page.
    pub(super) search: String,
    /// How the request is answered. `None` if the arguments as text are not the whole call: nobody should approve what they can't see.
    pub(super) answers: Option<AnswerButtons>,
}

/// How a request is answered in a chat product.
#[derive(Clone, Debug)]
pub(super) struct AnswerButtons {
    /// The unique id of the request.
    pub(super) request: String,
    /// The digest of what the message shows.
    pub(super) digest: String,
    pub(super) actions: Vec<CardAction>,
}

impl Message {
    /// The message about an event. `None` if there is none.
    pub(super) fn from_event(event: &EngineEvent<'_>) -> Option<Self> {
        let session = event.run.map(|run| run.session.unwrap_or(run.conversation));
        let session = session.map(|name| shown_name(name).to_owned());
        let place = session.as_deref().map(|name| format!(" (session {name})")).unwrap_or_default();
        match &event.kind {
            EngineEventKind::ApprovalRequested(request) => {
                let part = RequestPart::from(*request);
                let card = Card::pending(&part);
                let arguments = card.to_text();
                let is_whole = !card.incomplete && arguments.chars().count() <= MAX_TEXT;
                let conversation = event.run.map(|run| run.conversation).filter(|_| is_whole);
                let answers = conversation.map(|conversation| AnswerButtons {
                    request: format!("{conversation}/{}", request.approval_id),
                    digest: call_digest(&part),
                    actions: card.actions.clone(),
                });
                let data = json!({
                    "id": request.tool_call_id,
                    "approval": request.approval_id,
                    "tool": request.tool_name,
                    "server": request.server,
                    "session": session,
                    "message": request.message,
                    "policies": request.policies,
                    "expires_at": request.expires_at,
                });
                Some(Self {
                    kind: MessageKind::ApprovalRequested,
                    title: line(&format!("Approve {}?{place}", request.tool_name)),
                    text: line(request.message.as_deref().unwrap_or("The call needs an approval.")),
                    arguments: Some(bounded(&arguments)),
                    data,
                    input: request.input.clone(),
                    search: request.tool_name.clone(),
                    answers,
                })
            }
            EngineEventKind::ApprovalDecided(decision) => {
                let answer = if decision.approved { "approved" } else { "not approved" };
                let by = match decision.by.is_empty() {
                    true => String::new(),
                    false => format!(" by {}", decision.by.join(", ")),
                };
                let data = json!({
                    "id": decision.tool_call_id,
                    "approval": decision.approval_id,
                    "tool": decision.tool_name,
                    "session": session,
                    "approved": decision.approved,
                    "code": decision.code,
                    "by": decision.by,
                    "comment": decision.reason,
                });
                Some(Self {
                    kind: MessageKind::ApprovalAnswered,
                    title: line(&format!("{}: {answer}{by}{place}", decision.tool_name)),
                    text: line(decision.reason.as_deref().unwrap_or_default()),
                    arguments: None,
                    data,
                    input: Value::Null,
                    search: decision.tool_name.clone(),
                    answers: None,
                })
            }
            _ => None,
        }
    }
}

/// A text of bounded length without invisible characters.
fn line(text: &str) -> String {
    bounded(&escape_controls(text))
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
