//! Anthropic Messages: results in a user message right after the calls, before any text.

use super::approval_json::{self, object};
use super::call_arguments;
use super::content_blocks;
use super::dialect::Dialect;
use super::history::{Message, Role};
use super::part::{CallPart, Part, PartContent, ResultPart, ResultStatus};
use super::segments::{self, Segment};
use crate::json::{Map, Value};

const DIALECT: Dialect = Dialect::Anthropic;

pub(super) fn read(json: &Value) -> Message {
    let named = json.get("role").and_then(Value::as_str).map(Role::from_name);
    let (Some(map), Some(named)) = (json.as_object(), named) else {
        return segments::message_of_one_part(DIALECT, Role::Other(String::new()), json, PartContent::Other);
    };
    let is_result_or_answer = |block: &Value| {
        approval_json::is_answer_or_state(block)
            || block.get("type").and_then(Value::as_str) == Some("tool_result")
    };
    let role = segments::role_of_user_message(named, map.get("content"), is_result_or_answer);
    let (parts, emptied) = content_blocks::read_content(DIALECT, map.get("content"), |block| {
        read_block(block, &role).unwrap_or(PartContent::Other)
    });
    let mut frame = map.clone();
    if let Some(emptied) = emptied {
        frame.insert("content", emptied);
    }
    Message::with_frame(DIALECT, role, frame, parts)
}

fn read_block(block: &Value, role: &Role) -> Option<PartContent> {
    if let Some(approval) = approval_json::read(block, role) {
        return Some(approval);
    }
    let map = block.as_object()?;
    match (map.get("type")?.as_str()?, role) {
        ("text", _) => Some(PartContent::Text(map.get("text")?.as_str()?.to_owned())),
        ("tool_use", Role::Assistant) => Some(PartContent::Call(CallPart {
            id: content_blocks::string_or_empty(map, "id")?,
            name: map.get("name")?.as_str()?.to_owned(),
            input: call_arguments::unwrap(map.get("input")),
        })),
        ("tool_result", Role::User | Role::Tool) => Some(PartContent::Result(read_result(map)?)),
        _ => None,
    }
}

fn read_result(map: &Map) -> Option<ResultPart> {
    let failed = map.get("is_error").and_then(Value::as_bool).unwrap_or_default();
    Some(ResultPart {
        call_id: content_blocks::string_or_empty(map, "tool_use_id")?,
        name: String::new(),
        output: content_blocks::read_output(DIALECT, map.get("content"), &["text"]),
        status: if failed { ResultStatus::Error } else { ResultStatus::Output },
    })
}

pub(super) fn write(messages: &[&Message]) -> Vec<Value> {
    let segments = segments::segments(DIALECT, messages, segments::is_same_turn);
    let write = |segment: &Segment| {
        let role = match &segment.role {
            Role::Developer => "system",
            Role::Tool => "user",
            other => segments::new_message_role(other),
        };
        segment.write(DIALECT, (role, "content"), true, write_block)
    };
    segments.iter().map(write).collect()
}

fn write_block(part: &Part) -> Value {
    if part.source_in(DIALECT).is_some() {
        return content_blocks::write_foreign_part(DIALECT, part);
    }
    match part.content() {
        PartContent::Text(text) => content_blocks::text_block(text),
        PartContent::Call(call) => object([
            ("type", Some("tool_use".into())),
            ("id", Some(call.id.clone().into())),
            ("name", Some(call.name.clone().into())),
            ("input", Some(call_arguments::wrap(&call.input))),
        ]),
        PartContent::Result(result) => object([
            ("type", Some("tool_result".into())),
            ("tool_use_id", Some(result.call_id.clone().into())),
            ("content", Some(content_blocks::write_output(&result.output, write_block))),
            ("is_error", (result.status != ResultStatus::Output).then(|| true.into())),
        ]),
        _ => content_blocks::write_foreign_part(DIALECT, part),
    }
}
