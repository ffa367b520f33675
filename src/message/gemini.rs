//! Gemini `contents`: the roles model and user; calls and results as parts, often without ids.

use super::approval_json::{self, object};
use super::call_arguments;
use super::content_blocks;
use super::dialect::Dialect;
use super::history::{Message, Role};
use super::part::{CallPart, Part, PartContent, ResultOutput, ResultPart, ResultStatus};
use super::segments::{self, Segment};
use crate::json::{Map, Value};

const DIALECT: Dialect = Dialect::Gemini;

/// The API accepts both spellings of a member's name.
const CALL: [&str; 2] = ["functionCall", "function_call"];
const RESULT: [&str; 2] = ["functionResponse", "function_response"];

pub(super) fn read(json: &Value) -> Message {
    let Some(map) = json.as_object() else {
        return segments::message_of_one_part(DIALECT, Role::Other(String::new()), json, PartContent::Other);
    };
    let named = match map.get("role") {
        // The API's own default.
        None | Some(Value::Null) => Role::User,
        Some(Value::String(name)) => Role::from_name(name),
        Some(_) => {
            return segments::message_of_one_part(
                DIALECT,
                Role::Other(String::new()),
                json,
                PartContent::Other,
            );
        }
    };
    let is_result_or_answer = |block: &Value| {
        approval_json::is_answer_or_state(block) || member_in_either_spelling(block, RESULT).is_some()
    };
    let role = segments::role_of_user_message(named, map.get("parts"), is_result_or_answer);
    let (parts, emptied) = content_blocks::read_content(DIALECT, map.get("parts"), |block| {
        read_block(block, &role).unwrap_or(PartContent::Other)
    });
    let mut frame = map.clone();
    if let Some(emptied) = emptied {
        frame.insert("parts", emptied);
    }
    Message::with_frame(DIALECT, role, frame, parts)
}

fn member_in_either_spelling<'a>(block: &'a Value, names: [&str; 2]) -> Option<&'a Map> {
    names.iter().find_map(|name| block.get(name)?.as_object())
}

/// Whether a call has no id.
pub(super) fn has_no_id(call: &Part) -> bool {
    let own = call.source_in(DIALECT).and_then(|own| member_in_either_spelling(&own.json, CALL));
    own.is_some_and(|call| call.get("id").and_then(Value::as_str).unwrap_or_default().is_empty())
}

fn read_block(block: &Value, role: &Role) -> Option<PartContent> {
    if let Some(approval) = approval_json::read(block, role) {
        return Some(approval);
    }
    match (member_in_either_spelling(block, CALL), member_in_either_spelling(block, RESULT), role) {
        (Some(call), None, Role::Assistant) => Some(PartContent::Call(CallPart {
            id: content_blocks::string_or_empty(call, "id")?,
            name: call.get("name")?.as_str()?.to_owned(),
            input: call_arguments::unwrap(call.get("args")),
        })),
        (None, Some(result), Role::User | Role::Tool) => Some(PartContent::Result(read_result(result)?)),
        (None, None, _)
            if block.get("type").is_none() && block.get("thought") != Some(&Value::Bool(true)) =>
        {
            Some(PartContent::Text(block.get("text")?.as_str()?.to_owned()))
        }
        _ => None,
    }
}

fn read_result(map: &Map) -> Option<ResultPart> {
    let response = map.get("response");
    let (output, status) = match response.map(|response| (response.get("output"), response.get("error"))) {
        Some((Some(output), None)) => (ResultOutput::from_value(output.clone()), ResultStatus::Output),
        Some((None, Some(error))) => (ResultOutput::from_value(error.clone()), ResultStatus::Error),
        _ => (ResultOutput::from_value(response.cloned().unwrap_or_default()), ResultStatus::Output),
    };
    let output = match response.and_then(Value::as_object) {
        Some(response) => content_blocks::restore_unsupported_parts(DIALECT, output, response),
        None => output,
    };
    Some(ResultPart {
        call_id: content_blocks::string_or_empty(map, "id")?,
        name: content_blocks::string_or_empty(map, "name")?,
        output,
        status,
    })
}

pub(super) fn write(messages: &[&Message]) -> Vec<Value> {
    let segments = segments::segments(DIALECT, messages, segments::is_same_turn);
    let write = |segment: &Segment| {
        let role = match &segment.role {
            Role::Assistant => "model",
            Role::Tool => "user",
            Role::Developer => "system",
            other => segments::new_message_role(other),
        };
        segment.write(DIALECT, (role, "parts"), false, write_block)
    };
    segments.iter().map(write).collect()
}

fn write_block(part: &Part) -> Value {
    if part.source_in(DIALECT).is_some() {
        return content_blocks::write_foreign_part(DIALECT, part);
    }
    match part.content() {
        PartContent::Text(text) => object([("text", Some(text.clone().into()))]),
        PartContent::Call(call) => {
            let call = object([
                ("id", Some(call.id.clone().into())),
                ("name", Some(call.name.clone().into())),
                ("args", Some(call_arguments::wrap(&call.input))),
            ]);
            object([("functionCall", Some(call))])
        }
        PartContent::Result(result) => {
            let result = object([
                ("id", (!result.call_id.is_empty()).then(|| result.call_id.clone().into())),
                ("name", Some(result.name.clone().into())),
                ("response", Some(write_response(result))),
            ]);
            object([("functionResponse", Some(result))])
        }
        _ => content_blocks::write_foreign_part(DIALECT, part),
    }
}

fn write_response(result: &ResultPart) -> Value {
    let member = if result.status == ResultStatus::Output { "output" } else { "error" };
    let output = match &result.output {
        ResultOutput::Json(value) => value.clone(),
        other => other.text().into(),
    };
    let mut response = Map::from_iter([(member.to_owned(), output)]);
    content_blocks::add_unsupported_parts(DIALECT, &result.output, &mut response);
    response.into()
}
