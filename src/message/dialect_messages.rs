//! Reads and writes messages in any dialect, and opens the envelopes around parts of other dialects.

use super::content_blocks::{ENVELOPE, has_own_type};
use super::dialect::Dialect;
use super::history::{Message, Role};
use super::part::{Part, PartContent, ResultOutput, SourceSlot};
use super::{ai_sdk, anthropic, gemini, openai_chat, openai_responses, segments};
use crate::json::{Map, Value};

impl Dialect {
    /// Reads a message. Parts of other dialects in it are taken out of their envelopes.
    pub(super) fn read_message(self, json: &Value) -> Message {
        let mut message = self.read_raw_message(json);
        for part in &mut message.parts {
            if let PartContent::Result(result) = part.content_mut()
                && let ResultOutput::Parts(parts) = &mut result.output
            {
                parts.iter_mut().for_each(|part| open_envelope(self, part));
            } else {
                open_envelope(self, part);
            }
        }
        message
    }

    /// Reads a message, without opening envelopes.
    fn read_raw_message(self, json: &Value) -> Message {
        match self {
            Self::OpenaiChat => openai_chat::read(json),
            Self::OpenaiResponses => openai_responses::read(json),
            Self::Anthropic => anthropic::read(json),
            Self::Gemini => gemini::read(json),
            Self::AiSdk => ai_sdk::read(json),
        }
    }

    /// Writes these messages; several can become one, and one several.
    pub(super) fn write_messages(self, messages: &[&Message]) -> Vec<Value> {
        match self {
            Self::OpenaiChat => openai_chat::write(messages),
            Self::OpenaiResponses => openai_responses::write(messages),
            Self::Anthropic => anthropic::write(messages),
            Self::Gemini => gemini::write(messages),
            Self::AiSdk => ai_sdk::write(messages),
        }
    }

    /// Whether this dialect gives a part no meaning, whatever the role of its message.
    fn is_unknown_part(self, slot: SourceSlot, part: &Value) -> bool {
        let model_message = |member: &str, value: Value| {
            Value::from(Map::from_iter([("role".to_owned(), "assistant".into()), (member.to_owned(), value)]))
        };
        let content_message =
            |role| segments::message_json(role, self.content_key(), vec![part.clone()].into());
        let messages = match slot {
            // The content of an OpenAI tool message is one result, not parts.
            SourceSlot::Content if self == Self::OpenaiChat => {
                ["user", "assistant"].map(content_message).to_vec()
            }
            SourceSlot::Content => ["user", "assistant", "tool"].map(content_message).to_vec(),
            SourceSlot::ToolCalls => vec![model_message("tool_calls", vec![part.clone()].into())],
            SourceSlot::FunctionCall => vec![model_message("function_call", part.clone())],
            SourceSlot::Refusal => return part.is_string(),
            SourceSlot::Whole => vec![part.clone()],
        };
        // AI SDK model messages contain results of the provider's own tools; these are recognised by the call beside them.
        let unknown = |message: &Message, part: &Part| match part.content() {
            PartContent::Other => true,
            PartContent::Result(_) => self == Self::AiSdk && message.role != Role::User,
            _ => false,
        };
        let mut read = messages.iter().map(|message| self.read_raw_message(message));
        read.all(|message| message.parts.iter().all(|part| unknown(&message, part)))
    }
}

/// Replaces a part that is an envelope with the part in it.
fn open_envelope(dialect: Dialect, part: &mut Part) {
    if *part.content() == PartContent::Other
        && let Some(source) = part.source_in(dialect)
        && source.slot == SourceSlot::Content
        && let Some(inner) = unwrap_envelope(dialect, &source.json)
    {
        *part = inner;
    }
}

/// The part in an envelope, which stays unknown. The envelope is not opened if its own dialect would understand the part:
/// otherwise anyone who can insert a block into user content could forge approvals or results through translation. Nor is
/// it opened if Callgate would not have written it in this form.
fn unwrap_envelope(dialect: Dialect, block: &Value) -> Option<Part> {
    let map = block.as_object()?;
    if map.get("type")?.as_str()? != ENVELOPE {
        return None;
    }
    let from = Dialect::from_name(map.get("dialect")?.as_str()?).ok().filter(|from| *from != dialect)?;
    let slot = match map.get("slot") {
        None => SourceSlot::Content,
        Some(name) => {
            let name = name.as_str()?;
            SourceSlot::ALL.into_iter().find(|slot| slot.name() == name && *slot != SourceSlot::Content)?
        }
    };
    let known = 3 + usize::from(slot != SourceSlot::Content);
    let part = map.get("part").filter(|_| map.len() == known)?;
    // Nested envelopes would have to be inspected again and again, so the part may contain none of Callgate's types.
    if contains_own_types(part) || !from.is_unknown_part(slot, part) {
        return None;
    }
    Some(Part::from_source(from, slot, part.clone(), PartContent::Other))
}

/// Whether any block in a value has one of Callgate's own types.
fn contains_own_types(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(contains_own_types),
        Value::Object(map) => has_own_type(value) || map.values().any(contains_own_types),
        _ => false,
    }
}
