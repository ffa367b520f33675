//! OpenAI Responses: an array of items, in which calls and results are beside the messages.

use std::collections::BTreeSet;

use super::approval_json::{self, object};
use super::approval_parts::{RequestPart, ResponsePart};
use super::call_arguments;
use super::content_blocks;
use super::dialect::Dialect;
use super::history::{Message, Role};
use super::part::{CallPart, Part, PartContent, ResultPart, ResultStatus, SourceSlot};
use super::segments::{self, Segment};
use crate::json::{Map, Value};

const DIALECT: Dialect = Dialect::OpenaiResponses;
const TEXTS: [&str; 3] = ["input_text", "output_text", "text"];

const CALL: &str = "function_call";
const RESULT: &str = "function_call_output";
/// Tools that accept free text.
const CUSTOM_CALL: &str = "custom_tool_call";
const CUSTOM_RESULT: &str = "custom_tool_call_output";

/// The provider's own approvals, for calls that it runs itself on an MCP server: they belong to no call of the host.
const HOSTED_REQUEST: &str = "mcp_approval_request";
const HOSTED_RESPONSE: &str = "mcp_approval_response";

pub(super) fn read(json: &Value) -> Message {
    let whole = |role, content| segments::message_of_one_part(DIALECT, role, json, content);
    let Some(map) = json.as_object() else { return whole(Role::Other(String::new()), PartContent::Other) };
    let role = map.get("role").and_then(Value::as_str).map(Role::from_name);
    let kind = match (map.get("type"), role) {
        (None, Some(role)) => return read_message(map, role),
        (Some(kind), Some(role)) if kind == "message" => return read_message(map, role),
        (Some(Value::String(kind)), _) => kind.as_str(),
        _ => "",
    };
    let (role, content) = match kind {
        CALL => (Role::Assistant, read_call(map).map(PartContent::Call)),
        CUSTOM_CALL => (Role::Assistant, read_custom_call(map).map(PartContent::Call)),
        RESULT | CUSTOM_RESULT => (Role::Tool, read_result(map).map(PartContent::Result)),
        HOSTED_REQUEST => (Role::Assistant, read_hosted_request(map).map(PartContent::Request)),
        HOSTED_RESPONSE => (Role::Tool, read_hosted_response(map).map(PartContent::Response)),
        kind => {
            let role = approval_json::role_of_item(kind).unwrap_or_else(|| role_of_unknown(kind));
            let content = approval_json::read(json, &role);
            (role, content)
        }
    };
    whole(role, content.unwrap_or(PartContent::Other))
}

/// The role of an item that is preserved unchanged: the provider's own tools, reasoning, and unknown items.
fn role_of_unknown(kind: &str) -> Role {
    match kind {
        "" | "item_reference" => Role::Other(String::new()),
        kind if kind.ends_with("_output") => Role::Tool,
        _ => Role::Assistant,
    }
}

fn read_message(map: &Map, role: Role) -> Message {
    let (parts, emptied) = content_blocks::read_content(DIALECT, map.get("content"), |block| {
        approval_json::read(block, &role).unwrap_or_else(|| content_blocks::text_content(block, &TEXTS))
    });
    let mut frame = map.clone();
    if let Some(emptied) = emptied {
        frame.insert("content", emptied);
    }
    Message::with_frame(DIALECT, role, frame, parts)
}

fn read_call(map: &Map) -> Option<CallPart> {
    Some(CallPart {
        id: content_blocks::string_or_empty(map, "call_id")?,
        name: map.get("name")?.as_str()?.to_owned(),
        input: match map.get("arguments") {
            Some(Value::String(text)) => call_arguments::parse(text),
            other => call_arguments::read(other),
        },
    })
}

fn read_custom_call(map: &Map) -> Option<CallPart> {
    Some(CallPart {
        id: content_blocks::string_or_empty(map, "call_id")?,
        name: map.get("name")?.as_str()?.to_owned(),
        // Free text, even where it looks like JSON.
        input: map.get("input")?.as_str()?.into(),
    })
}

fn read_result(map: &Map) -> Option<ResultPart> {
    Some(ResultPart {
        call_id: content_blocks::string_or_empty(map, "call_id")?,
        name: map.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        output: content_blocks::read_output(DIALECT, map.get("output"), &TEXTS),
        status: ResultStatus::Output,
    })
}

fn read_hosted_request(map: &Map) -> Option<RequestPart> {
    let id = map.get("id")?.as_str()?;
    Some(RequestPart {
        approval_id: id.to_owned(),
        tool_call_id: id.to_owned(),
        tool_name: Some(map.get("name")?.as_str()?.to_owned()),
        input: Some(call_arguments::parse(map.get("arguments")?.as_str()?)),
        ..RequestPart::default()
    })
}

fn read_hosted_response(map: &Map) -> Option<ResponsePart> {
    Some(ResponsePart {
        approval_id: map.get("approval_request_id")?.as_str()?.to_owned(),
        approved: map.get("approve")?.as_bool()?,
        reason: map.get("reason").and_then(Value::as_str).map(str::to_owned),
        ..ResponsePart::default()
    })
}

/// Whether a request is the provider's own.
pub(super) fn is_hosted(request: &Part) -> bool {
    request.source_in(DIALECT).is_some_and(|source| {
        [HOSTED_REQUEST, HOSTED_RESPONSE]
            .map(Value::from)
            .contains(source.json.get("type").unwrap_or(&Value::Null))
    })
}

/// The answer to the provider's own request, in the provider's form.
pub(super) fn hosted_response(response: ResponsePart) -> Part {
    let json = object([
        ("type", Some(HOSTED_RESPONSE.into())),
        ("approval_request_id", Some(response.approval_id.clone().into())),
        ("approve", Some(response.approved.into())),
        ("reason", response.reason.clone().map(Value::from)),
    ]);
    Part::from_source(DIALECT, SourceSlot::Whole, json, PartContent::Response(response))
}

/// The ids of calls of custom tools, whose results have a type of their own.
fn custom_calls<'a>(messages: &[&'a Message]) -> BTreeSet<&'a str> {
    let parts = messages.iter().flat_map(|message| message.parts.iter());
    let custom =
        parts.filter(|part| part.source_in(DIALECT).is_some_and(|own| own.json.get("input").is_some()));
    custom
        .filter_map(|part| match part.content() {
            PartContent::Call(call) => Some(call.id.as_str()),
            _ => None,
        })
        .collect()
}

pub(super) fn write(messages: &[&Message]) -> Vec<Value> {
    let custom = custom_calls(messages);
    let mut items = Vec::new();
    for segment in segments::segments(DIALECT, messages, |_, _| false) {
        let mut pending_segment =
            Segment { role: segment.role.clone(), frame: segment.frame, parts: Vec::new() };
        for part in &segment.parts {
            let within = pending_segment.frame.is_some()
                && part.source_in(DIALECT).is_some_and(|own| own.slot == SourceSlot::Content);
            match write_item(part, &custom).filter(|_| !within) {
                Some(item) => {
                    finish(&mut pending_segment, &mut items);
                    items.push(item);
                }
                None => pending_segment.parts.push(part),
            }
            // A model message contains one text, unless it was read with more.
            if pending_segment.frame.is_none() && pending_segment.role == Role::Assistant {
                finish(&mut pending_segment, &mut items);
            }
        }
        finish(&mut pending_segment, &mut items);
    }
    items
}

fn finish(segment: &mut Segment, items: &mut Vec<Value>) {
    if segment.frame.is_some() || !segment.parts.is_empty() {
        let role = segments::new_message_role(&segment.role);
        items.push(segment.write(DIALECT, (role, "content"), true, |part| write_block(role, part)));
    }
    segment.frame = None;
    segment.parts.clear();
}

/// The part as a separate item. Returns `None` if it is not one.
fn write_item(part: &Part, custom: &BTreeSet<&str>) -> Option<Value> {
    let fresh = part.source_in(DIALECT).is_none();
    if let Some(item) = segments::whole_message_source(DIALECT, part) {
        return Some(item.clone());
    }
    match part.content() {
        PartContent::Call(call) if fresh => Some(object([
            ("type", Some(CALL.into())),
            ("call_id", Some(call.id.clone().into())),
            ("name", Some(call.name.clone().into())),
            ("arguments", Some(call.input.to_string().into())),
        ])),
        PartContent::Result(result) if fresh => {
            let kind = if custom.contains(result.call_id.as_str()) { CUSTOM_RESULT } else { RESULT };
            Some(object([
                ("type", Some(kind.into())),
                ("call_id", Some(result.call_id.clone().into())),
                (
                    "output",
                    Some(content_blocks::write_output(&result.output, |part| write_block("tool", part))),
                ),
            ]))
        }
        PartContent::Text(_) | PartContent::Other => None,
        _ => Some(content_blocks::write_foreign_part(DIALECT, part)),
    }
}

fn write_block(role: &str, part: &Part) -> Value {
    match (part.source_in(DIALECT), part.as_text()) {
        (None, Some(text)) if role == "assistant" => object([
            ("type", Some("output_text".into())),
            ("text", Some(text.into())),
            ("annotations", Some(Value::Array(Vec::new()))),
        ]),
        (None, Some(text)) => object([("type", Some("input_text".into())), ("text", Some(text.into()))]),
        _ => content_blocks::write_foreign_part(DIALECT, part),
    }
}
