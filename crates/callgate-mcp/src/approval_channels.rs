//! Human-in-the-loop approval through the client, by the channel that it supports: a result that requests input (protocol versions
//! since 2026-07-28), an elicitation while the call is open (before), or an error that says how to approve, after which an identical
//! call resumes.
//!
//! Approval through the client is anonymous. So if policies name approvers or require several, the client is not asked: such requests
//! are answered in the store.

use data_encoding::BASE64URL_NOPAD;

use super::client_info::ClientInfo;
use super::client_sender::ClientSender;
use super::connection::RequestTable;
use super::continuations::INPUT_REQUIRED;
use super::jsonrpc::JsonRpcMessage;
use super::method;
use callgate::card::Card;
use callgate::json::{self, Map, Value, json};
use callgate::message::{RequestPart, ResponsePart, approval_response};

/// The key of our approval request among the `inputRequests` of a result.
const APPROVAL_KEY: &str = "dev.callgate/approval";
/// The prefix of our `requestState`, which distinguishes it from a server's.
const STATE_PREFIX: &str = "callgate.1.";
/// The heading of our approval requests, reserved for them.
const HEADING: &str = "Callgate: approval needed";

/// The parameters that a client returns to a server's own input request; preserved while ours is open.
const PRESERVED_PARAMS: [&str; 2] = ["requestState", "inputResponses"];

/// The requests whose results may request input.
const INTERRUPTIBLE: [&str; 3] = [method::TOOLS_CALL, method::READ_RESOURCE, method::GET_PROMPT];

/// The answers that a client sends with a repeated call.
#[derive(Debug, Default)]
pub(super) struct ClientReply {
    pub(super) request: Option<RequestPart>,
    pub(super) answers: Vec<ResponsePart>,
    /// A person dismissed the request without an answer.
    pub(super) is_dismissed: bool,
}

/// Takes our approval request and its answers out of a repeated call, and restores the preserved parameters for the server.
pub(super) fn take_reply(message: &mut JsonRpcMessage) -> ClientReply {
    let state = message
        .param("requestState")
        .and_then(Value::as_str)
        .and_then(|text| text.strip_prefix(STATE_PREFIX));
    let Some(state) = state.map(str::to_owned) else { return ClientReply::default() };
    message.take_param("requestState");
    let given = message.take_param("inputResponses");
    let answer = given.as_ref().and_then(|given| given.get(APPROVAL_KEY));
    let state = BASE64URL_NOPAD.decode(state.as_bytes()).ok();
    let state = state.and_then(|bytes| json::parse(&String::from_utf8(bytes).ok()?).ok()).unwrap_or_default();
    let request = state.get("question").and_then(RequestPart::from_json);
    let is_dismissed = request.is_some()
        && answer.is_some_and(|answer| answer.get("action").and_then(Value::as_str) == Some("cancel"));
    let answers = match (&request, answer) {
        (Some(request), Some(answer)) => parse_answer(request, answer).into_iter().collect(),
        _ => Vec::new(),
    };
    // The input that the server had requested before.
    let preserved = state.get("carried").and_then(Value::as_object);
    for (name, value) in
        preserved.into_iter().flatten().filter(|(name, _)| PRESERVED_PARAMS.contains(&name.as_str()))
    {
        message.set_param(name, value.clone());
    }
    ClientReply { request, answers, is_dismissed }
}

/// The channel by which the client asks a person.
pub(super) enum ApprovalChannel {
    /// A result that requests input.
    InputRequired,
    /// An elicitation while the call is open.
    Elicitation,
    /// The client can't ask.
    Unavailable,
}

impl ApprovalChannel {
    pub(super) fn select(message: &JsonRpcMessage, client: &ClientInfo) -> Self {
        match message.meta(method::CLIENT_CAPABILITIES) {
            Some(capabilities)
                if supports_forms(capabilities) && INTERRUPTIBLE.contains(&message.method()) =>
            {
                Self::InputRequired
            }
            Some(_) => Self::Unavailable,
            None if client.capabilities().is_some_and(|capabilities| supports_forms(&capabilities)) => {
                Self::Elicitation
            }
            None => Self::Unavailable,
        }
    }
}

/// Whether a client supports elicitation by form. A client that names no mode does.
fn supports_forms(capabilities: &Value) -> bool {
    let Some(elicitation) = capabilities.get("elicitation") else { return false };
    let members = elicitation.as_object();
    members.is_some_and(|members| members.is_empty() || members.contains_key("form"))
}

/// Creates a result that requests approval of a call.
pub(super) fn input_required_result(call: &JsonRpcMessage, request: &RequestPart) -> Value {
    let mut state = Map::from_iter([("question".to_owned(), request.to_json())]);
    let preserved: Map = PRESERVED_PARAMS
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), call.param(name)?.clone())))
        .collect();
    if !preserved.is_empty() {
        state.insert("carried", Value::Object(preserved));
    }
    let state = BASE64URL_NOPAD.encode(Value::Object(state).to_string().as_bytes());
    json!({
        "resultType": INPUT_REQUIRED,
        "inputRequests": { APPROVAL_KEY: { "method": method::ELICIT, "params": approval_form(request, true) } },
        "requestState": format!("{STATE_PREFIX}{state}"),
    })
}

/// Asks by an elicitation while the call is open. Returns `None` if the client gives no answer.
pub(super) async fn elicit(
    requests: &RequestTable,
    sender: &ClientSender,
    request: &RequestPart,
) -> Option<ResponsePart> {
    let response = requests.request_client(method::ELICIT, approval_form(request, false), sender).await?;
    parse_answer(request, response.result_value()?)
}

/// The elicitation form of an approval request.
fn approval_form(request: &RequestPart, has_mode: bool) -> Value {
    let mut form = json!({
        "message": format!("{HEADING}\n\n{}", Card::pending(request).to_text()),
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
        form.insert("mode", "form".into());
    }
    form
}

/// Converts the client's response to an approval. Returns `None` if it neither approves nor denies.
fn parse_answer(request: &RequestPart, answer: &Value) -> Option<ResponsePart> {
    let content = |name: &str| answer.get("content")?.get(name)?.as_str();
    let approved = match (answer.get("action")?.as_str()?, content("decision")) {
        ("accept", Some("approve")) => true,
        ("accept", Some("deny")) | ("decline", _) => false,
        _ => return None,
    };
    Some(ResponsePart {
        reason: content("reason").filter(|reason| !reason.trim().is_empty()).map(str::to_owned),
        approval_token: request.approval_token.clone(),
        ..approval_response(&request.approval_id, approved)
    })
}

/// Whether a server's text could be mistaken for an approval request of the gateway.
pub(super) fn imitates_callgate(content: &Value) -> bool {
    let heading: String = method::plain("callgate").collect();
    match content {
        Value::String(text) => method::plain(text).collect::<String>().contains(&heading),
        Value::Array(items) => items.iter().any(imitates_callgate),
        Value::Object(members) => members
            .iter()
            .any(|(name, item)| imitates_callgate(item) || imitates_callgate(&Value::from(name.as_str()))),
        _ => false,
    }
}
