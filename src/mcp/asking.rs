//! How people are asked about a call, by whatever its client can do: a result that asks for input (the protocol since 2026-07-28), a
//! question of its own while the call is open (before), or an error that says how to approve, after which an identical call goes on.
//!
//! Whoever sits at the client answers without a name. So where policies say who may answer, or that several must, the client is not
//! asked: such questions are answered in the store.

use std::time::{Duration, Instant};

use data_encoding::BASE64URL_NOPAD;

use super::calls::Runner;
use super::client::Client;
use super::frame::Frame;
use super::method;
use crate::call::{Approved, ToolCall};
use crate::card::Card;
use crate::json::{self, Map, Value, json};
use crate::message::{RequestPart, ResponsePart, approval_response};

/// The key of our question among those of a result that asks for input.
const QUESTION: &str = "dev.callgate/approval";
/// What the state of our questions begins with, so that it is told from a server's own.
const STATE: &str = "callgate.1.";
/// Our questions begin so, and no server's may.
const HEADING: &str = "Callgate: approval needed";

/// The type of results that ask for input.
const INPUT_REQUIRED: &str = "input_required";

/// What a client gives back of a server's own question, which must not get lost behind ours.
const CARRIED: [&str; 2] = ["requestState", "inputResponses"];

/// How long an approved call may take to go on after its server asked for more.
const GOING_ON: Duration = Duration::from_secs(30 * 60);

/// An approved call whose server asked for more by its result: the client sends it again with what was asked for. That is the same
/// call to the person who approved it, once for each time that the server asks.
#[derive(Clone, Debug)]
pub(super) struct GoingOn {
    call: ToolCall,
    /// The question that was answered.
    question: RequestPart,
    /// What the server gave out to know the call again.
    state: Option<Value>,
    since: Instant,
}

impl GoingOn {
    /// An approved call whose answer asks for more.
    pub(super) fn new(call: ToolCall, question: RequestPart, answer: &Frame) -> Self {
        let state = answer.result_value().and_then(|asks| asks.get("requestState").cloned());
        Self { call, question, state, since: Instant::now() }
    }

    /// Whether a call that was approved so can go on: its answer asks for more. Not one whose arguments the person changed: what the client
    /// sends again are those before.
    pub(super) fn is_possible(approved: &Approved, answer: &Frame) -> bool {
        let asks_for_more = |result: &Value| result.get("resultType") == Some(&INPUT_REQUIRED.into());
        !approved.edited && !approved.remembered && answer.result_value().is_some_and(asks_for_more)
    }

    /// Whether it is this call that goes on, and the question about it is the one that was answered.
    pub(super) fn is(&self, call: &ToolCall, frame: &Frame, question: &RequestPart) -> bool {
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

    /// What the person said, to the question about it that stands now.
    pub(super) fn answer(&self, question: &RequestPart) -> ResponsePart {
        ResponsePart {
            reason: Some(format!("goes on after {}", self.question.approval_id)),
            approval_token: question.approval_token.clone(),
            ..approval_response(&question.approval_id, true)
        }
    }
}

/// What a client sends again with a call about which it was asked.
#[derive(Debug, Default)]
pub(super) struct Returned {
    pub(super) question: Option<RequestPart>,
    pub(super) answers: Vec<ResponsePart>,
    /// A person saw the question and did not answer it.
    pub(super) is_dismissed: bool,
}

/// Reads what comes back with a call; what is ours is taken out, and what was carried for the server is put back.
pub(super) fn returned(frame: &mut Frame) -> Returned {
    let state = frame.param("requestState").and_then(Value::as_str).and_then(|text| text.strip_prefix(STATE));
    let Some(state) = state.map(str::to_owned) else { return Returned::default() };
    frame.take_param("requestState");
    let given = frame.take_param("inputResponses");
    let answer = given.as_ref().and_then(|given| given.get(QUESTION));
    let state = BASE64URL_NOPAD.decode(state.as_bytes()).ok();
    let state = state.and_then(|bytes| json::parse(&String::from_utf8(bytes).ok()?).ok()).unwrap_or_default();
    let question = state.get("question").and_then(RequestPart::of_json);
    let is_dismissed = question.is_some()
        && answer.is_some_and(|answer| answer.get("action").and_then(Value::as_str) == Some("cancel"));
    let answers = match (&question, answer) {
        (Some(question), Some(answer)) => answer_of(question, answer).into_iter().collect(),
        _ => Vec::new(),
    };
    // What the server had asked for before, and is still to get.
    let carried = state.get("carried").and_then(Value::as_object);
    for (name, value) in carried.into_iter().flatten().filter(|(name, _)| CARRIED.contains(&name.as_str())) {
        frame.set_param(name, value.clone());
    }
    Returned { question, answers, is_dismissed }
}

/// How a client is asked.
pub(super) enum Way {
    /// By the result of its call.
    Result,
    /// While its call is open.
    Meanwhile,
    /// Not at all.
    None,
}

impl Way {
    pub(super) fn of(frame: &Frame, client: &Client) -> Self {
        match frame.meta(method::CLIENT_CAPABILITIES) {
            Some(capabilities) if takes_forms(capabilities) => Self::Result,
            Some(_) => Self::None,
            None if client.capabilities().is_some_and(|capabilities| takes_forms(&capabilities)) => {
                Self::Meanwhile
            }
            None => Self::None,
        }
    }
}

/// Whether a client can put a form to a person. One that does not say which forms takes those.
fn takes_forms(capabilities: &Value) -> bool {
    let Some(elicitation) = capabilities.get("elicitation") else { return false };
    let members = elicitation.as_object();
    members.is_some_and(|members| members.is_empty() || members.contains_key("form"))
}

impl Runner<'_> {
    /// Asks by the result of the call.
    pub(super) fn asking_result(&self, question: &RequestPart) -> Value {
        let mut state = Map::from_iter([("question".to_owned(), question.to_json())]);
        let carried: Map = CARRIED
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

    /// Asks while the call is open. Nothing where the client gives no answer.
    pub(super) async fn ask_meanwhile(&self, question: &RequestPart) -> Option<ResponsePart> {
        let answer = self.link.ask_client(method::ELICIT, form(question, false), self.outlet).await?;
        answer_of(question, answer.result_value()?)
    }
}

/// The form in which a client puts our question to a person.
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

/// What a person said; nothing where they said nothing that is clear.
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

/// Whether what a server says could be taken for a question of ours.
pub(super) fn imitates(said: &Value) -> bool {
    let heading: String = method::plain("callgate").collect();
    match said {
        Value::String(text) => method::plain(text).collect::<String>().contains(&heading),
        Value::Array(items) => items.iter().any(imitates),
        Value::Object(members) => {
            members.iter().any(|(name, item)| imitates(item) || imitates(&Value::from(name.as_str())))
        }
        _ => false,
    }
}
