//! AI SDK model messages: typed outputs and native approval parts.

use std::collections::BTreeSet;

use super::approval_json::{self, object};
use super::call_arguments;
use super::content_blocks;
use super::dialect::Dialect;
use super::history::{Message, Role};
use super::part::{CallPart, Part, PartContent, ResultOutput, ResultPart, ResultStatus};
use super::segments::{self, Segment};
use crate::json::{Map, Value};

const DIALECT: Dialect = Dialect::AiSdk;

/// The output of a denial without a reason, as the SDK itself writes it.
pub(super) const DENIED: &str = "Tool execution denied.";

pub(super) fn read(json: &Value) -> Message {
    let role = json.get("role").and_then(Value::as_str).map(Role::from_name);
    let (Some(map), Some(role)) = (json.as_object(), role) else {
        return segments::message_of_one_part(DIALECT, Role::Other(String::new()), json, PartContent::Other);
    };
    let provider_executed = executed_by_provider(map);
    let (parts, emptied) = content_blocks::read_content(DIALECT, map.get("content"), |block| {
        read_block(block, &role, &provider_executed).unwrap_or(PartContent::Other)
    });
    let mut frame = map.clone();
    if let Some(emptied) = emptied {
        frame.insert("content", emptied);
    }
    Message::with_frame(DIALECT, role, frame, parts)
}

/// The calls that the provider itself executes: the host neither runs nor answers them, and they are preserved unchanged.
fn executed_by_provider(map: &Map) -> BTreeSet<&str> {
    let blocks = map.get("content").and_then(Value::as_array).into_iter().flatten();
    let provider_executed = blocks.filter(|block| block.get("providerExecuted") == Some(&Value::Bool(true)));
    provider_executed.filter_map(|block| block.get("toolCallId")?.as_str()).collect()
}

fn read_block(block: &Value, role: &Role, provider_executed: &BTreeSet<&str>) -> Option<PartContent> {
    if let Some(approval) = approval_json::read(block, role) {
        return Some(approval);
    }
    let map = block.as_object()?;
    let kind = map.get("type")?.as_str()?;
    if kind == "text" {
        return Some(PartContent::Text(map.get("text")?.as_str()?.to_owned()));
    }
    let id = content_blocks::string_or_empty(map, "toolCallId")?;
    match (kind, role) {
        ("tool-call" | "tool-result", Role::Assistant) if provider_executed.contains(id.as_str()) => None,
        ("tool-call", Role::Assistant) => Some(PartContent::Call(CallPart {
            id,
            name: map.get("toolName")?.as_str()?.to_owned(),
            input: call_arguments::read(map.get("input").or(map.get("args"))),
        })),
        ("tool-result", Role::Assistant | Role::Tool) => {
            let (output, status) = read_output(map.get("output").or(map.get("result")));
            let name = content_blocks::string_or_empty(map, "toolName")?;
            Some(PartContent::Result(ResultPart { call_id: id, name, output, status }))
        }
        _ => None,
    }
}

fn read_output(written: Option<&Value>) -> (ResultOutput, ResultStatus) {
    let kind = written.and_then(|written| written.get("type")).and_then(Value::as_str).unwrap_or_default();
    let value = written.and_then(|written| written.get("value"));
    let (output, status) = match (kind, value) {
        ("text" | "json", Some(value)) => (ResultOutput::from_value(value.clone()), ResultStatus::Output),
        ("error-text" | "error-json", Some(value)) => {
            (ResultOutput::from_value(value.clone()), ResultStatus::Error)
        }
        ("execution-denied", _) => {
            let reason = written.and_then(|written| written.get("reason")).and_then(Value::as_str);
            (ResultOutput::Text(reason.unwrap_or(DENIED).to_owned()), ResultStatus::Denied)
        }
        ("content", Some(value)) => {
            (content_blocks::read_output(DIALECT, Some(value), &["text"]), ResultStatus::Output)
        }
        // There is a result, whatever its form.
        _ => (ResultOutput::from_value(written.cloned().unwrap_or_default()), ResultStatus::Output),
    };
    match written.and_then(Value::as_object) {
        Some(written) => (content_blocks::restore_unsupported_parts(DIALECT, output, written), status),
        None => (output, status),
    }
}

pub(super) fn write(messages: &[&Message]) -> Vec<Value> {
    let joins = |last: &Segment, next: &Segment| {
        last.role == next.role && matches!(next.role, Role::Assistant | Role::Tool)
    };
    let mut written = Vec::new();
    for segment in segments::segments(DIALECT, messages, joins) {
        let role = match &segment.role {
            Role::Developer => "system",
            other => segments::new_message_role(other),
        };
        let plain = segment.role != Role::Tool;
        if segment.frame.is_none() && segment.role.is_instruction() {
            // A system message is one string.
            let alone = |part| Segment { role: Role::System, frame: None, parts: vec![part] };
            let each = segment.parts.iter().map(|part| alone(*part));
            written.extend(each.map(|segment| segment.write(DIALECT, (role, "content"), plain, write_block)));
        } else {
            written.push(segment.write(DIALECT, (role, "content"), plain, write_block));
        }
    }
    written
}

fn write_block(part: &Part) -> Value {
    if part.source_in(DIALECT).is_some() {
        return content_blocks::write_foreign_part(DIALECT, part);
    }
    match part.content() {
        PartContent::Text(text) => content_blocks::text_block(text),
        PartContent::Call(call) => object([
            ("type", Some("tool-call".into())),
            ("toolCallId", Some(call.id.clone().into())),
            ("toolName", Some(call.name.clone().into())),
            ("input", Some(call.input.clone())),
        ]),
        PartContent::Result(result) => object([
            ("type", Some("tool-result".into())),
            ("toolCallId", Some(result.call_id.clone().into())),
            ("toolName", Some(result.name.clone().into())),
            ("output", Some(write_output(result))),
        ]),
        _ => content_blocks::write_foreign_part(DIALECT, part),
    }
}

fn write_output(result: &ResultPart) -> Value {
    let (kind, member, value) = match (result.status, &result.output) {
        (ResultStatus::Denied, output) => ("execution-denied", "reason", output.text().into()),
        (ResultStatus::Error, ResultOutput::Json(value)) => ("error-json", "value", value.clone()),
        (ResultStatus::Error, output) => ("error-text", "value", output.text().into()),
        (ResultStatus::Output, ResultOutput::Text(text)) => ("text", "value", text.clone().into()),
        (ResultStatus::Output, ResultOutput::Json(value)) => ("json", "value", value.clone()),
        (ResultStatus::Output, ResultOutput::Parts(parts)) => {
            ("content", "value", parts.iter().map(write_block).collect::<Vec<_>>().into())
        }
    };
    let mut written = Map::from_iter([("type".to_owned(), kind.into()), (member.to_owned(), value)]);
    if result.status != ResultStatus::Output {
        content_blocks::add_unsupported_parts(DIALECT, &result.output, &mut written);
    }
    written.into()
}
