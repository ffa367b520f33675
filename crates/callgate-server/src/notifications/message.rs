//! A message: what happened, for programs and for people.

use callgate::approval::BoundRequest;
use callgate::call::ApprovalRequest;
use callgate::card::{Card, CardAction, call_digest};
use callgate::json::{Value, json};
use callgate::message::{Approver, RequestPart};
use callgate::safe_text::escape_controls;
use callgate::seal::Keys;
use callgate::{EngineEvent, EngineEventKind};
use jiff::Timestamp;

use crate::answer_link::LinkSubject;
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
    pub(super) const ALL: [Self; 2] = [Self::ApprovalRequested, Self::ApprovalAnswered];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ApprovalRequested => "approval_requested",
            Self::ApprovalAnswered => "approval_answered",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The names of the values that templates of such messages can use.
    pub(super) fn value_names(self) -> &'static [&'static str] {
        match self {
            Self::ApprovalRequested => &["tool", "server", "session", "message", "policies", "expires_at"],
            Self::ApprovalAnswered => &["tool", "session", "answer", "approvers", "comment"],
        }
    }
}

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) kind: MessageKind,
    pub(super) source: MessageSource,
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
    /// What templates can use, in the order of [`MessageKind::value_names`].
    pub(super) values: Vec<String>,
    /// How the request is answered. `None` if the arguments as text are not the whole call: nobody should approve what they can't see.
    pub(super) answers: Option<AnswerButtons>,
    /// The request that links of the message answer.
    pub(super) linked: Option<LinkedRequest>,
}

/// The call that a message is about.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageSource {
    pub(super) approval_id: String,
    /// The name of the session in the store.
    pub(super) conversation: String,
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) tenant: Value,
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

/// A request that links answer. The page that they open shows the whole call.
#[derive(Clone, Debug)]
pub(super) struct LinkedRequest {
    pub(super) subject: LinkSubject,
    pub(super) expires: Option<Timestamp>,
    pub(super) actions: Vec<CardAction>,
    /// Who may answer. `None` if the request is invalid.
    bound: Option<BoundRequest>,
}

impl LinkedRequest {
    /// Whether an answer of this approver would count for one of the policies that require the approval.
    pub(super) fn accepts(&self, approver: &Approver) -> bool {
        self.bound.as_ref().is_some_and(|bound| {
            let requester = bound.requester.as_deref();
            let counts = |requirement: &callgate::approval::ApprovalRequirement| {
                requirement.accepts(Some(approver), requester, bound.comparison())
            };
            bound.requirements.iter().any(counts)
        })
    }
}

impl Message {
    /// The message about an event. `None` if there is none.
    pub(super) fn from_event(event: &EngineEvent<'_>, keys: &Keys) -> Option<Self> {
        let session = event.run.map(|run| run.session.unwrap_or(run.conversation));
        let session = session.map(|name| shown_name(name).to_owned());
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let mut source = MessageSource {
            conversation: text(event.run.map(|run| run.conversation)),
            tenant: event.call.and_then(|call| call.context.get("tenant").cloned()).unwrap_or_default(),
            ..MessageSource::default()
        };
        match &event.kind {
            EngineEventKind::ApprovalRequested(request) => {
                source.approval_id = request.approval_id.clone();
                (source.call, source.tool) = (request.tool_call_id.clone(), request.tool_name.clone());
                Some(Self::about_request(request, session, source, keys))
            }
            EngineEventKind::ApprovalDecided(decision) => {
                source.approval_id = decision.approval_id.clone();
                (source.call, source.tool) = (decision.tool_call_id.clone(), decision.tool_name.clone());
                let answer = if decision.approved { "approved" } else { "not approved" };
                let approvers = decision.by.join(", ");
                let by = if approvers.is_empty() { String::new() } else { format!(" by {approvers}") };
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
                let comment = text(decision.reason.as_deref());
                let values = vec![
                    source.tool.clone(),
                    text(session.as_deref()),
                    answer.to_owned(),
                    approvers,
                    comment,
                ];
                Some(Self {
                    kind: MessageKind::ApprovalAnswered,
                    title: line(&format!("{}: {answer}{by}{}", source.tool, place(session.as_deref()))),
                    text: line(decision.reason.as_deref().unwrap_or_default()),
                    arguments: None,
                    data,
                    input: Value::Null,
                    search: source.tool.clone(),
                    values,
                    answers: None,
                    linked: None,
                    source,
                })
            }
            _ => None,
        }
    }

    fn about_request(
        request: &ApprovalRequest,
        session: Option<String>,
        mut source: MessageSource,
        keys: &Keys,
    ) -> Self {
        let part = RequestPart::from(request);
        let bound = BoundRequest::open(&part, keys).ok();
        // The context of an event is redacted.
        if let Some(bound) = &bound {
            source.tenant = bound.tenant.clone();
        }
        let card = Card::pending(&part);
        let arguments = card.to_text();
        let is_whole = !card.incomplete && arguments.chars().count() <= MAX_TEXT;
        let has_session = !source.conversation.is_empty();
        let answers = (is_whole && has_session).then(|| AnswerButtons {
            request: format!("{}/{}", source.conversation, request.approval_id),
            digest: call_digest(&part),
            actions: card.actions.clone(),
        });
        let linked = has_session.then(|| LinkedRequest {
            subject: LinkSubject::new(&source.conversation, request),
            // A time that can't be read has passed: so the inbox reads it, too.
            expires: request.expires_at.as_deref().map(|at| at.parse().unwrap_or(Timestamp::MIN)),
            actions: card.actions.clone(),
            bound,
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
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let values = vec![
            request.tool_name.clone(),
            text(&request.server),
            text(&session),
            text(&request.message),
            request.policies.join(", "),
            text(&request.expires_at),
        ];
        Self {
            kind: MessageKind::ApprovalRequested,
            title: line(&format!("Approve {}?{}", request.tool_name, place(session.as_deref()))),
            text: line(request.message.as_deref().unwrap_or("The call needs an approval.")),
            arguments: Some(bounded(&arguments)),
            data,
            input: request.input.clone(),
            search: request.tool_name.clone(),
            values,
            answers,
            linked,
            source,
        }
    }
}

fn place(session: Option<&str>) -> String {
    session.map(|name| format!(" (session {name})")).unwrap_or_default()
}

/// A text of bounded length without invisible characters.
pub(super) fn line(text: &str) -> String {
    bounded(&escape_controls(text))
}

/// A text of bounded length.
pub(super) fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
