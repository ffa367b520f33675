//! OpenAI Chat Completions: calls beside the content, one `tool` message for each result, arguments and results as text.

use super::approval_json::{self, object};
use super::call_arguments;
use super::content_blocks;
use super::dialect::Dialect;
use super::history::{Message, Role};
use super::part::{CallPart, Part, PartContent, ResultPart, ResultStatus, SourceSlot};
use super::segments::{self, Segment};
use crate::json::{Map, Value};

const DIALECT: Dialect = Dialect::OpenaiChat;

pub(super) fn read(json: &Value) -> Message {
    let unknown = |role| segments::message_of_one_part(DIALECT, role, json, PartContent::Other);
    let Some(map) = json.as_object() else { return unknown(Role::Other(String::new())) };
    let Some(role) = map.get("role").and_then(Value::as_str).map(Role::from_name) else {
        return unknown(Role::Other(String::new()));
    };
    if role == Role::Tool && !contains_answers(map) {
        let result = read_result(map).map_or(PartContent::Other, PartContent::Result);
        return segments::message_of_one_part(DIALECT, role, json, result);
    }
    let mut frame = map.clone();
    let (mut parts, emptied) = content_blocks::read_content(DIALECT, map.get("content"), |block| {
        approval_json::read(block, &role).unwrap_or_else(|| content_blocks::text_content(block, &["text"]))
    });
    if let Some(emptied) = emptied {
        frame.insert("content", emptied);
    }
    if role == Role::Assistant {
        read_model_parts(map, &mut frame, &mut parts);
    }
    Message::with_frame(DIALECT, role, frame, parts)
}

/// Answers of approvers belong to no single call. The output of a tool is never searched for them.
fn contains_answers(map: &Map) -> bool {
    let blocks = map.get("content").and_then(Value::as_array);
    !map.contains_key("tool_call_id")
        && !map.contains_key("name")
        && blocks.is_some_and(|blocks| blocks.iter().any(approval_json::is_answer_or_state))
}

/// Reads the parts of a model's message besides its content.
fn read_model_parts(map: &Map, frame: &mut Map, parts: &mut Vec<Part>) {
    if let Some(Value::String(refusal)) = map.get("refusal").filter(|refusal| **refusal != "") {
        parts.push(Part::from_source(
            DIALECT,
            SourceSlot::Refusal,
            refusal.clone().into(),
            PartContent::Other,
        ));
        frame.insert("refusal", String::new().into());
    }
    if let Some(Value::Array(calls)) = map.get("tool_calls") {
        for call in calls {
            let content = read_call(call).map_or(PartContent::Other, PartContent::Call);
            parts.push(Part::from_source(DIALECT, SourceSlot::ToolCalls, call.clone(), content));
        }
        frame.insert("tool_calls", Value::Array(Vec::new()));
    }
    if let Some(call @ Value::Object(function)) = map.get("function_call") {
        let content = read_function(String::new(), function).map_or(PartContent::Other, PartContent::Call);
        parts.push(Part::from_source(DIALECT, SourceSlot::FunctionCall, call.clone(), content));
        frame.insert("function_call", Value::Null);
    }
}

fn read_call(call: &Value) -> Option<CallPart> {
    let map = call.as_object()?;
    let id = content_blocks::string_or_empty(map, "id")?;
    match (map.get("function"), map.get("custom")) {
        (Some(function), None) => read_function(id, function.as_object()?),
        (None, Some(custom)) => Some(CallPart {
            id,
            name: custom.get("name")?.as_str()?.to_owned(),
            // Free text, even where it looks like JSON.
            input: custom.get("input")?.as_str()?.into(),
        }),
        _ => None,
    }
}

fn read_function(id: String, function: &Map) -> Option<CallPart> {
    let name = function.get("name")?.as_str()?.to_owned();
    let input = match function.get("arguments") {
        Some(Value::String(text)) => call_arguments::parse(text),
        // Some servers send the arguments as a JSON value.
        other => call_arguments::read(other),
    };
    Some(CallPart { id, name, input })
}

fn read_result(map: &Map) -> Option<ResultPart> {
    Some(ResultPart {
        call_id: content_blocks::string_or_empty(map, "tool_call_id")?,
        name: map.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        output: content_blocks::read_output(DIALECT, map.get("content"), &["text"]),
        status: ResultStatus::Output,
    })
}

pub(super) fn write(messages: &[&Message]) -> Vec<Value> {
    // One message with all the calls must precede the results.
    let joins = |last: &Segment, next: &Segment| {
        last.frame.is_none()
            && next.frame.is_none()
            && (&last.role, &next.role) == (&Role::Assistant, &Role::Assistant)
    };
    let mut written = Vec::new();
    for segment in segments::segments(DIALECT, messages, joins) {
        let mut draft = MessageDraft::new(&segment);
        for part in &segment.parts {
            draft.add(part, &mut written);
        }
        draft.finish(&mut written);
    }
    written
}

/// A message under construction.
struct MessageDraft<'a> {
    role: &'a str,
    frame: Option<Map>,
    said: Vec<&'a Part>,
    calls: Vec<Value>,
    function_call: Option<Value>,
    refusal: Option<Value>,
}

impl<'a> MessageDraft<'a> {
    fn new(segment: &'a Segment) -> Self {
        Self {
            role: segments::new_message_role(&segment.role),
            frame: segment.frame.map(|frame| frame.json.clone()),
            said: Vec::new(),
            calls: Vec::new(),
            function_call: None,
            refusal: None,
        }
    }

    fn add(&mut self, part: &'a Part, written: &mut Vec<Value>) {
        let own = part.source_in(DIALECT);
        match (part.content(), own.map(|source| (source.slot, &source.json))) {
            (_, Some((SourceSlot::Whole, json))) => {
                self.finish(written);
                written.push(json.clone());
            }
            (PartContent::Result(result), _) => {
                self.finish(written);
                written.push(write_result(result));
            }
            (_, Some((SourceSlot::FunctionCall, json))) => self.function_call = Some(json.clone()),
            (_, Some((SourceSlot::Refusal, json))) => {
                if self.is_closed() {
                    self.finish(written);
                }
                self.refusal = Some(json.clone());
            }
            (_, Some((SourceSlot::ToolCalls, json))) => self.calls.push(json.clone()),
            (PartContent::Call(call), _) => self.calls.push(write_call(call)),
            _ => {
                if self.is_closed() {
                    self.finish(written);
                }
                self.said.push(part);
            }
        }
    }

    /// The content and a refusal precede the calls, so text after the calls starts another message.
    fn is_closed(&self) -> bool {
        self.refusal.is_some() || !self.calls.is_empty() || self.function_call.is_some()
    }

    fn finish(&mut self, written: &mut Vec<Value>) {
        let has_content = !self.said.is_empty() || self.is_closed();
        if self.frame.is_none() && !has_content {
            return;
        }
        let fresh = || Map::from_iter([("role".to_owned(), self.role.into())]);
        let was_read = self.frame.is_some();
        let mut map = self.frame.take().unwrap_or_else(fresh);
        let content = segments::content_json(map.get("content"), &self.said, true, write_block);
        // A model message without text has `null` content.
        if let Some(content) = content.or((!was_read).then_some(Value::Null)) {
            map.insert("content", content);
        }
        self.said.clear();
        if let Some(refusal) = self.refusal.take() {
            map.insert("refusal", refusal);
        }
        if !self.calls.is_empty() {
            map.insert("tool_calls", std::mem::take(&mut self.calls).into());
        }
        if let Some(call) = self.function_call.take() {
            map.insert("function_call", call);
        }
        written.push(map.into());
    }
}

fn write_block(part: &Part) -> Value {
    match (part.source_in(DIALECT), part.as_text()) {
        (None, Some(text)) => content_blocks::text_block(text),
        _ => content_blocks::write_foreign_part(DIALECT, part),
    }
}

fn write_call(call: &CallPart) -> Value {
    object([
        ("id", Some(call.id.clone().into())),
        ("type", Some("function".into())),
        (
            "function",
            Some(object([
                ("name", Some(call.name.clone().into())),
                ("arguments", Some(call.input.to_string().into())),
            ])),
        ),
    ])
}

fn write_result(result: &ResultPart) -> Value {
    object([
        ("role", Some("tool".into())),
        ("tool_call_id", Some(result.call_id.clone().into())),
        ("content", Some(content_blocks::write_output(&result.output, write_block))),
    ])
}
