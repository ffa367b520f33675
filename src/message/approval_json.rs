//! The JSON of approval parts, equal in every dialect.

use super::approval_parts::{RequestPart, ResponsePart, StatePart};
use super::history::Role;
use super::part::{Part, PartContent};
use crate::call::CardLabels;
use crate::json::{self, Map, Value};

const REQUEST: &str = "tool-approval-request";
const RESPONSE: &str = "tool-approval-response";
const STATE: &str = "callgate-session-state";

impl ResponsePart {
    /// The JSON of the part, equal in every dialect.
    pub fn to_json(&self) -> Value {
        write_response(self)
    }

    /// Reads a part. Returns `None` if it is not an answer, or a known member has the wrong type.
    pub fn from_json(json: &Value) -> Option<Self> {
        match read(json, &Role::Tool)? {
            PartContent::Response(response) => Some(response),
            _ => None,
        }
    }
}

impl RequestPart {
    /// The JSON of the part, equal in every dialect.
    pub fn to_json(&self) -> Value {
        write_request(self)
    }

    /// Reads a part. Returns `None` if it is not a request, or a known member has the wrong type.
    pub fn from_json(json: &Value) -> Option<Self> {
        match read(json, &Role::Assistant)? {
            PartContent::Request(request) => Some(request),
            _ => None,
        }
    }
}

/// Reads an approval part that a message of this role may contain: requests are in model messages, answers in tool
/// messages. The same JSON in a user message is ignored. A known member of the wrong type makes the whole part unknown:
/// ignoring an expiry, for example, would be more permissive.
pub(super) fn read(block: &Value, role: &Role) -> Option<PartContent> {
    let map = block.as_object()?;
    match (map.get("type")?.as_str()?, role) {
        (REQUEST, Role::Assistant) => read_request(map).map(PartContent::Request),
        (RESPONSE, Role::Tool) => read_response(map).map(PartContent::Response),
        (STATE, Role::Tool) => read_state(map).map(PartContent::State),
        _ => None,
    }
}

/// Whether the type of a block is that of an answer or of session state.
pub(super) fn is_answer_or_state(block: &Value) -> bool {
    matches!(block.get("type").and_then(Value::as_str), Some(RESPONSE | STATE))
}

/// The role of an item with this type. Returns `None` if it is not an approval part.
pub(super) fn role_of_item(kind: &str) -> Option<Role> {
    match kind {
        REQUEST => Some(Role::Assistant),
        RESPONSE | STATE => Some(Role::Tool),
        _ => None,
    }
}

/// The JSON of an approval part, equal in every dialect.
pub(super) fn write(part: &Part) -> Option<Value> {
    let fresh = match part.content() {
        PartContent::Request(request) => write_request(request),
        PartContent::Response(response) => write_response(response),
        PartContent::State(state) => write_state(state),
        _ => return None,
    };
    // A source in this form may have more members than the canonical ones.
    let kind = fresh.get("type").cloned();
    let read =
        part.original_source().map(|source| &source.json).filter(|json| json.get("type").cloned() == kind);
    Some(read.cloned().unwrap_or(fresh))
}

fn read_request(map: &Map) -> Option<RequestPart> {
    Some(RequestPart {
        approval_id: optional_string(map, "approvalId")??,
        tool_call_id: optional_string(map, "toolCallId")??,
        tool_name: optional_string(map, "toolName")?,
        input: map.get("input").cloned(),
        message: optional_string(map, "message")?,
        policies: string_array(map, "policies")?,
        expires_at: optional_string(map, "expiresAt")?,
        input_digest: optional_string(map, "inputDigest")?,
        server: optional_string(map, "server")?,
        relevant: string_array(map, "relevant")?,
        repeats: match map.get("repeats") {
            None | Some(Value::Null) => None,
            Some(repeats) => Some(repeats.as_u64()?),
        },
        card: match map.get("card") {
            None | Some(Value::Null) => CardLabels::default(),
            Some(words) => json::from_value(words.clone()).ok()?,
        },
        approval_token: optional_string(map, "approvalToken")?,
    })
}

fn read_response(map: &Map) -> Option<ResponsePart> {
    Some(ResponsePart {
        approval_id: optional_string(map, "approvalId")??,
        approved: map.get("approved")?.as_bool()?,
        reason: optional_string(map, "reason")?,
        approval_token: optional_string(map, "approvalToken")?,
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
        answered_at: optional_string(map, "answeredAt")?,
        answer_seal: optional_string(map, "answerSeal")?,
    })
}

fn read_state(map: &Map) -> Option<StatePart> {
    Some(StatePart { sealed: optional_string(map, "sealed")?? })
}

fn write_state(state: &StatePart) -> Value {
    object([("type", Some(STATE.into())), ("sealed", Some(state.sealed.clone().into()))])
}

/// An optional string member. Returns `None` if it has another type.
fn optional_string(map: &Map, key: &str) -> Option<Option<String>> {
    match map.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    }
}

/// An optional array of strings. Returns `None` if it has another type.
fn string_array(map: &Map, key: &str) -> Option<Vec<String>> {
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

/// An object of the members with a value.
pub(super) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn approval_parts_are_read_only_in_messages_of_their_role() {
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
    fn an_answer_may_replace_the_result_with_null() {
        let part = json!({"type": RESPONSE, "approvalId": "a", "approved": true, "output": null});
        let Some(PartContent::Response(response)) = read(&part, &Role::Tool) else { panic!("not read") };
        assert_eq!(response.output, Some(Value::Null));
        assert_eq!(write(&response.into()), Some(part));
    }
}
