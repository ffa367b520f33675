//! Human-in-the-loop approval through the client, by the channel that it supports: a result that requests input (protocol versions
//! since 2026-07-28), an elicitation while the call is open (before), or an error that says how to approve, after which an identical
//! call resumes.
//!
//! Approval through the client is anonymous. So if policies name approvers or require several, the client is not asked: such requests
//! are answered in the store.

use std::time::{Duration, Instant};

use data_encoding::BASE64URL_NOPAD;

use super::client_info::ClientInfo;
use super::jsonrpc::JsonRpcMessage;
use super::method;
use super::tool_calls::UpstreamExecutor;
use crate::call::{ApprovalRecord, ToolCall};
use crate::card::Card;
use crate::json::{self, Map, Value, json};
use crate::message::{RequestPart, ResponsePart, approval_response};

/// The key of our approval request among the `inputRequests` of a result.
const QUESTION: &str = "dev.callgate/approval";
/// The prefix of our `requestState`, which distinguishes it from a server's.
const STATE: &str = "callgate.1.";
/// The heading of our approval requests, reserved for them.
const HEADING: &str = "Callgate: approval needed";

/// The `resultType` of results that request input.
const INPUT_REQUIRED: &str = "input_required";

/// The parameters that a client returns to a server's own input request; preserved while ours is open.
const PRESERVED_PARAMS: [&str; 2] = ["requestState", "inputResponses"];

/// How long an approved call can be continued after its server requested input.
const GOING_ON: Duration = Duration::from_secs(30 * 60);

/// An approved call whose server requested input by its result: the client sends it again with that input. The approval covers the
/// continuation, once for each time that the server requests input.
#[derive(Clone, Debug)]
pub(super) struct ApprovedContinuation {
    call: ToolCall,
    /// The approval request that was answered.
    question: RequestPart,
    /// The server's `requestState`.
    state: Option<Value>,
    since: Instant,
}

impl ApprovedContinuation {
    /// Creates the continuation of an approved call from the response that requests input.
    pub(super) fn new(call: ToolCall, question: RequestPart, answer: &JsonRpcMessage) -> Self {
        let state = answer.result_value().and_then(|asks| asks.get("requestState").cloned());
        Self { call, question, state, since: Instant::now() }
    }

    /// Whether a call with this approval can be continued: its response requests input. Not if the approver edited the arguments: the
    /// client sends the original ones again.
    pub(super) fn is_possible(approved: &ApprovalRecord, answer: &JsonRpcMessage) -> bool {
        let asks_for_more = |result: &Value| result.get("resultType") == Some(&INPUT_REQUIRED.into());
        !approved.edited && !approved.remembered && answer.result_value().is_some_and(asks_for_more)
    }

    /// Whether a call continues this one, and its approval request equals the one that was answered.
    pub(super) fn is(&self, call: &ToolCall, frame: &JsonRpcMessage, question: &RequestPart) -> bool {
        let answered = &self.question;
        self.call.tool == call.tool
            && self.call.server == call.server
            && self.call.input == call.input
            && self.since.elapsed() < GOING_ON
            && frame.param("requestState") == self.state.as_ref()
            && (self.state.is_some() || frame.param("inputResponses").is_some())
            && answered.policies == question.policies
            && answered.input_digest.is_some()
            && answered.input_digest == question.input_digest
    }

    /// The given approval, as an answer to the current approval request.
    pub(super) fn answer(&self, question: &RequestPart) -> ResponsePart {
        ResponsePart {
            reason: Some(format!("goes on after {}", self.question.approval_id)),
            approval_token: question.approval_token.clone(),
            ..approval_response(&question.approval_id, true)
        }
    }
}

/// The answers that a client sends with a repeated call.
#[derive(Debug, Default)]
pub(super) struct ClientReply {
    pub(super) question: Option<RequestPart>,
    pub(super) answers: Vec<ResponsePart>,
    /// A person dismissed the request without an answer.
    pub(super) is_dismissed: bool,
}

/// Takes our approval request and its answers out of a repeated call, and restores the preserved parameters for the server.
pub(super) fn take_reply(frame: &mut JsonRpcMessage) -> ClientReply {
    let state = frame.param("requestState").and_then(Value::as_str).and_then(|text| text.strip_prefix(STATE));
    let Some(state) = state.map(str::to_owned) else { return ClientReply::default() };
    frame.take_param("requestState");
    let given = frame.take_param("inputResponses");
    let answer = given.as_ref().and_then(|given| given.get(QUESTION));
    let state = BASE64URL_NOPAD.decode(state.as_bytes()).ok();
    let state = state.and_then(|bytes| json::parse(&String::from_utf8(bytes).ok()?).ok()).unwrap_or_default();
    let question = state.get("question").and_then(RequestPart::from_json);
    let is_dismissed = question.is_some()
        && answer.is_some_and(|answer| answer.get("action").and_then(Value::as_str) == Some("cancel"));
    let answers = match (&question, answer) {
        (Some(question), Some(answer)) => answer_of(question, answer).into_iter().collect(),
        _ => Vec::new(),
    };
    // The input that the server had requested before.
    let carried = state.get("carried").and_then(Value::as_object);
    for (name, value) in
        carried.into_iter().flatten().filter(|(name, _)| PRESERVED_PARAMS.contains(&name.as_str()))
    {
        frame.set_param(name, value.clone());
    }
    ClientReply { question, answers, is_dismissed }
}

/// The channel by which the client asks a person.
pub(super) enum ApprovalChannel {
    /// A result that requests input.
    Result,
    /// An elicitation while the call is open.
    Elicitation,
    /// The client can't ask.
    None,
}

impl ApprovalChannel {
    pub(super) fn select(frame: &JsonRpcMessage, client: &ClientInfo) -> Self {
        match frame.meta(method::CLIENT_CAPABILITIES) {
            Some(capabilities) if supports_forms(capabilities) => Self::Result,
            Some(_) => Self::None,
            None if client.capabilities().is_some_and(|capabilities| supports_forms(&capabilities)) => {
                Self::Elicitation
            }
            None => Self::None,
        }
    }
}

/// Whether a client supports elicitation by form. A client that names no mode does.
fn supports_forms(capabilities: &Value) -> bool {
    let Some(elicitation) = capabilities.get("elicitation") else { return false };
    let members = elicitation.as_object();
    members.is_some_and(|members| members.is_empty() || members.contains_key("form"))
}

impl UpstreamExecutor<'_> {
    /// Creates a result that requests approval.
    pub(super) fn input_required_result(&self, question: &RequestPart) -> Value {
        let mut state = Map::from_iter([("question".to_owned(), question.to_json())]);
        let carried: Map = PRESERVED_PARAMS
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.frame.param(name)?.clone())))
            .collect();
        if !carried.is_empty() {
            state.insert("carried".to_owned(), Value::Object(carried));
        }
        let state = BASE64URL_NOPAD.encode(Value::Object(state).to_string().as_bytes());
        json!({
            "resultType": INPUT_REQUIRED,
            "inputRequests": { QUESTION: { "method": method::ELICIT, "params": form(question, true) } },
            "requestState": format!("{STATE}{state}"),
        })
    }

    /// Asks by an elicitation while the call is open. Returns `None` if the client gives no answer.
    pub(super) async fn elicit(&self, question: &RequestPart) -> Option<ResponsePart> {
        let answer = self.link.request_client(method::ELICIT, form(question, false), self.outlet).await?;
        answer_of(question, answer.result_value()?)
    }
}

/// The elicitation form of an approval request.
fn form(question: &RequestPart, has_mode: bool) -> Value {
    let mut form = json!({
        "message": format!("{HEADING}\n\n{}", Card::pending(question).to_text()),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "description": "Whether this call may run",
                    "enum": ["approve", "deny"],
                },
                "reason": { "type": "string", "title": "Reason", "description": "Told to the agent", "maxLength": 500 },
            },
            "required": ["decision"],
        },
    });
    if let (true, Some(form)) = (has_mode, form.as_object_mut()) {
        form.insert("mode".to_owned(), "form".into());
    }
    form
}

/// Converts the client's response to an approval. Returns `None` if it neither approves nor denies.
fn answer_of(question: &RequestPart, answer: &Value) -> Option<ResponsePart> {
    let content = |name: &str| answer.get("content")?.get(name)?.as_str();
    let approved = match (answer.get("action")?.as_str()?, content("decision")) {
        ("accept", Some("approve")) => true,
        ("accept", Some("deny")) | ("decline", _) => false,
        _ => return None,
    };
    Some(ResponsePart {
        reason: content("reason").filter(|reason| !reason.trim().is_empty()).map(str::to_owned),
        approval_token: question.approval_token.clone(),
        ..approval_response(&question.approval_id, approved)
    })
}

/// Whether a server's text could be mistaken for an approval request of the gateway.
pub(super) fn imitates_callgate(said: &Value) -> bool {
    let heading: String = method::plain("callgate").collect();
    match said {
        Value::String(text) => method::plain(text).collect::<String>().contains(&heading),
        Value::Array(items) => items.iter().any(imitates_callgate),
        Value::Object(members) => members
            .iter()
            .any(|(name, item)| imitates_callgate(item) || imitates_callgate(&Value::from(name.as_str()))),
        _ => false,
    }
}
