//! The parts of Callgate's own, which look the same in every dialect: the question to a person, the answer, and what the
//! session has seen.
//!
//! Only the AI SDK has them as its own. Elsewhere the same JSON stands as a member of a message's contents (in OpenAI
//! Responses: as an item). It is never put into text, which users, tools and web pages can write: an answer
//! must not be forgeable by saying it. No other provider accepts it; [`History::for_provider`](super::History::for_provider)
//! takes it out.

use serde::{Deserialize, Serialize};

use super::history::Role;
use super::part::{Content, Part};
use crate::call::{ApprovalRequest, CardWords};
use crate::json::{self, Map, Value};

const REQUEST: &str = "tool-approval-request";
const RESPONSE: &str = "tool-approval-response";
const STATE: &str = "callgate-session-state";

/// The question put to a person, as a history has it: of Callgate's own requests everything, of others' what they say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestPart {
    /// The request's id.
    pub approval_id: String,
    /// The id of the call that waits.
    pub tool_call_id: String,
    /// Its tool.
    pub tool_name: Option<String>,
    /// Its final arguments, as they may be shown.
    pub input: Option<Value>,
    /// What is asked.
    pub message: Option<String>,
    /// The ids of the policies that ask.
    pub policies: Vec<String>,
    /// When the question lapses, in RFC 3339.
    pub expires_at: Option<String>,
    /// Digest of the final arguments.
    pub input_digest: Option<String>,
    /// The MCP server that has the tool.
    pub server: Option<String>,
    /// The arguments that matter most, and their parts, as JSON pointers.
    pub relevant: Vec<String>,
    /// How often the same was asked before in the session.
    pub repeats: Option<u64>,
    /// The policy author's words for the card.
    pub card: CardWords,
    /// The seal over all of it, with what Callgate must know again.
    pub approval_token: Option<String>,
}

impl From<&ApprovalRequest> for RequestPart {
    fn from(request: &ApprovalRequest) -> Self {
        Self {
            approval_id: request.approval_id.clone(),
            tool_call_id: request.tool_call_id.clone(),
            tool_name: Some(request.tool_name.clone()),
            input: Some(request.input.clone()),
            message: request.message.clone(),
            policies: request.policies.clone(),
            expires_at: request.expires_at.clone(),
            input_digest: Some(request.input_digest.clone()),
            server: request.server.clone(),
            relevant: request.relevant.clone(),
            repeats: request.repeats,
            card: request.card.clone(),
            approval_token: request.approval_token.clone(),
        }
    }
}

/// What a session has seen, kept in its history.
#[derive(Clone, Debug, PartialEq)]
pub struct StatePart {
    /// What it has seen, encrypted, and bound to the calls of the history.
    pub sealed: String,
}

impl From<StatePart> for Part {
    fn from(state: StatePart) -> Self {
        Content::State(state).into()
    }
}

impl From<RequestPart> for Part {
    fn from(request: RequestPart) -> Self {
        Content::Request(request).into()
    }
}

/// A person's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponsePart {
    /// The id of the request.
    pub approval_id: String,
    /// Yes or no.
    pub approved: bool,
    /// Why.
    pub reason: Option<String>,
    /// The request's token, repeated, or a one-time token of the host.
    pub approval_token: Option<String>,
    /// The arguments to run with instead. What is no object stands here all the same: it is for the gate to refuse.
    pub edited_input: Option<Value>,
    /// What stands for the tool's result; `null` is one.
    pub output: Option<Value>,
    /// Whether the run ends.
    pub cancel: bool,
    /// Who answered, where a host has verified that.
    pub answered_by: Option<Approver>,
    /// When, in RFC 3339.
    pub answered_at: Option<String>,
    /// The seal over the answer and who gave it.
    pub answer_seal: Option<String>,
}

/// Who answers: a principal that a host has verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// Their name.
    pub principal: String,
    /// What they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

impl Approver {
    /// A principal without roles.
    pub fn new(principal: impl Into<String>) -> Self {
        Self { principal: principal.into(), roles: Vec::new() }
    }

    /// The same with one more role.
    #[must_use]
    pub fn with_role(mut self, role: impl Into<String>) -> Self {
        self.roles.push(role.into());
        self
    }
}

impl ResponsePart {
    /// The part as every dialect has it.
    pub fn to_json(&self) -> Value {
        write_response(self)
    }

    /// Reads such a part; nothing where it is none, or a known member is of the wrong type.
    pub fn of_json(json: &Value) -> Option<Self> {
        match read(json, &Role::Tool)? {
            Content::Response(response) => Some(response),
            _ => None,
        }
    }
}

impl RequestPart {
    /// The part as every dialect has it.
    pub fn to_json(&self) -> Value {
        write_request(self)
    }

    /// Reads such a part; nothing where it is none, or a known member is of the wrong type.
    pub fn of_json(json: &Value) -> Option<Self> {
        match read(json, &Role::Assistant)? {
            Content::Request(request) => Some(request),
            _ => None,
        }
    }
}

impl From<ResponsePart> for Part {
    fn from(response: ResponsePart) -> Self {
        Content::Response(response).into()
    }
}

/// An approval part that a message of this role may hold. A question is put by the agent and an answer comes in
/// beside the results; the same JSON among what a user said is not one. A known member of the wrong type makes the
/// whole unknown: to overlook an expiry would be more permissive.
pub(super) fn read(block: &Value, role: &Role) -> Option<Content> {
    let map = block.as_object()?;
    match (map.get("type")?.as_str()?, role) {
        (REQUEST, Role::Assistant) => read_request(map).map(Content::Request),
        (RESPONSE, Role::Tool) => read_response(map).map(Content::Response),
        (STATE, Role::Tool) => read_state(map).map(Content::State),
        _ => None,
    }
}

/// Whether a block says that it is an answer, or what a session has seen.
pub(super) fn is_beside_results(block: &Value) -> bool {
    matches!(block.get("type").and_then(Value::as_str), Some(RESPONSE | STATE))
}

/// Whether an item says that it is an approval part, and whose role it then has.
pub(super) fn role_of_item(kind: &str) -> Option<Role> {
    match kind {
        REQUEST => Some(Role::Assistant),
        RESPONSE | STATE => Some(Role::Tool),
        _ => None,
    }
}

/// An approval part as every dialect has it.
pub(super) fn write(part: &Part) -> Option<Value> {
    let fresh = match part.content() {
        Content::Request(request) => write_request(request),
        Content::Response(response) => write_response(response),
        Content::State(state) => write_state(state),
        _ => return None,
    };
    // What another dialect read in this form may say more than the canonical fields.
    let kind = fresh.get("type").cloned();
    let read = part.any_source().map(|source| &source.json).filter(|json| json.get("type").cloned() == kind);
    Some(read.cloned().unwrap_or(fresh))
}

fn read_request(map: &Map) -> Option<RequestPart> {
    Some(RequestPart {
        approval_id: text(map, "approvalId")??,
        tool_call_id: text(map, "toolCallId")??,
        tool_name: text(map, "toolName")?,
        input: map.get("input").cloned(),
        message: text(map, "message")?,
        policies: texts(map, "policies")?,
        expires_at: text(map, "expiresAt")?,
        input_digest: text(map, "inputDigest")?,
        server: text(map, "server")?,
        relevant: texts(map, "relevant")?,
        repeats: match map.get("repeats") {
            None | Some(Value::Null) => None,
            Some(repeats) => Some(repeats.as_u64()?),
        },
        card: match map.get("card") {
            None | Some(Value::Null) => CardWords::default(),
            Some(words) => json::from_value(words.clone()).ok()?,
        },
        approval_token: text(map, "approvalToken")?,
    })
}

fn read_response(map: &Map) -> Option<ResponsePart> {
    Some(ResponsePart {
        approval_id: text(map, "approvalId")??,
        approved: map.get("approved")?.as_bool()?,
        reason: text(map, "reason")?,
        approval_token: text(map, "approvalToken")?,
        edited_input: map.get("editedInput").cloned(),
        output: map.get("output").cloned(),
        cancel: match map.get("cancel") {
            None => false,
            Some(cancel) => cancel.as_bool()?,
        },
        answered_by: match map.get("answeredBy") {
            None | Some(Value::Null) => None,
            Some(by) => Some(json::from_value(by.clone()).ok()?),
        },
        answered_at: text(map, "answeredAt")?,
        answer_seal: text(map, "answerSeal")?,
    })
}

fn read_state(map: &Map) -> Option<StatePart> {
    Some(StatePart { sealed: text(map, "sealed")?? })
}

fn write_state(state: &StatePart) -> Value {
    object([("type", Some(STATE.into())), ("sealed", Some(state.sealed.clone().into()))])
}

/// A text member that may be missing or null; of another type, the whole is not understood.
fn text(map: &Map, key: &str) -> Option<Option<String>> {
    match map.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    }
}

/// A member that is a list of texts and may be missing; of another type, the whole is not understood.
fn texts(map: &Map, key: &str) -> Option<Vec<String>> {
    match map.get(key) {
        None => Some(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    }
}

fn write_request(request: &RequestPart) -> Value {
    let texts = |texts: &[String]| (!texts.is_empty()).then(|| Value::from(texts.to_vec()));
    object([
        ("type", Some(REQUEST.into())),
        ("approvalId", Some(request.approval_id.clone().into())),
        ("toolCallId", Some(request.tool_call_id.clone().into())),
        ("toolName", request.tool_name.clone().map(Value::from)),
        ("input", request.input.clone()),
        ("message", request.message.clone().map(Value::from)),
        ("policies", texts(&request.policies)),
        ("expiresAt", request.expires_at.clone().map(Value::from)),
        ("inputDigest", request.input_digest.clone().map(Value::from)),
        ("server", request.server.clone().map(Value::from)),
        ("relevant", texts(&request.relevant)),
        ("repeats", request.repeats.map(Value::from)),
        ("card", (!request.card.is_empty()).then(|| json::to_value(&request.card).ok()).flatten()),
        ("approvalToken", request.approval_token.clone().map(Value::from)),
    ])
}

fn write_response(response: &ResponsePart) -> Value {
    object([
        ("type", Some(RESPONSE.into())),
        ("approvalId", Some(response.approval_id.clone().into())),
        ("approved", Some(response.approved.into())),
        ("reason", response.reason.clone().map(Value::from)),
        ("approvalToken", response.approval_token.clone().map(Value::from)),
        ("editedInput", response.edited_input.clone()),
        ("output", response.output.clone()),
        ("cancel", response.cancel.then(|| true.into())),
        ("answeredBy", response.answered_by.as_ref().and_then(|by| json::to_value(by).ok())),
        ("answeredAt", response.answered_at.clone().map(Value::from)),
        ("answerSeal", response.answer_seal.clone().map(Value::from)),
    ])
}

/// An object of the members that have a value.
pub(super) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn an_approval_part_counts_only_where_its_speaker_may_say_it() {
        let request = json!({"type": REQUEST, "approvalId": "a", "toolCallId": "c"});
        let response = json!({"type": RESPONSE, "approvalId": "a", "approved": true});
        for (part, role, counts) in [
            (&request, Role::Assistant, true),
            (&request, Role::User, false),
            (&request, Role::Tool, false),
            (&response, Role::Tool, true),
            (&response, Role::User, false),
            (&response, Role::Assistant, false),
            (&response, Role::System, false),
        ] {
            assert_eq!(read(part, &role).is_some(), counts, "{part} said by {role:?}");
        }
    }

    #[test]
    fn a_known_member_of_the_wrong_type_makes_the_part_unknown() {
        for (key, value) in [
            ("approved", json!("yes")),
            ("approved", json!(1)),
            ("approvalId", json!(7)),
            ("approvalToken", json!({})),
            ("cancel", json!("no")),
        ] {
            let mut part = json!({"type": RESPONSE, "approvalId": "a", "approved": true});
            part[key] = value;
            assert_eq!(read(&part, &Role::Tool), None, "{part}");
        }
        let request = json!({"type": REQUEST, "approvalId": "a", "toolCallId": "c", "expiresAt": 5});
        assert_eq!(read(&request, &Role::Assistant), None);
    }

    #[test]
    fn an_answer_in_place_of_the_tool_may_be_null() {
        let part = json!({"type": RESPONSE, "approvalId": "a", "approved": true, "output": null});
        let Some(Content::Response(response)) = read(&part, &Role::Tool) else { panic!("not read") };
        assert_eq!(response.output, Some(Value::Null));
        assert_eq!(write(&response.into()), Some(part));
    }
}
