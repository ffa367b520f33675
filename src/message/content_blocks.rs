//! Content blocks that several dialects share, and the envelope for parts of other dialects.

use super::approval_json::{self, object};
use super::dialect::Dialect;
use super::part::{Part, PartContent, ResultOutput, SourceSlot};
use crate::json::{Map, Value};

/// The `type` of the envelope: `{type, dialect, slot?, part}`.
pub(super) const ENVELOPE: &str = "callgate-part";

/// A text block in the form of most dialects.
pub(super) fn text_block(text: &str) -> Value {
    object([("type", Some("text".into())), ("text", Some(text.into()))])
}

/// The text of a block with one of these types.
pub(super) fn text_of<'a>(block: &'a Value, kinds: &[&str]) -> Option<&'a str> {
    let kind = block.get("type")?.as_str()?;
    kinds.contains(&kind).then(|| block.get("text")?.as_str()).flatten()
}

/// Reads the content of a message: a string is one text (none if empty), and each element of an array is a part. Any other
/// value stays in the frame.
pub(super) fn read_content(
    dialect: Dialect,
    content_value: Option<&Value>,
    content: impl Fn(&Value) -> PartContent,
) -> (Vec<Part>, Option<Value>) {
    match content_value {
        Some(Value::String(text)) => {
            let parts = if text.is_empty() { Vec::new() } else { vec![Part::text(text.as_str())] };
            (parts, Some(Value::String(String::new())))
        }
        Some(Value::Array(blocks)) => {
            let read = |block: &Value| read_block(dialect, block, &content);
            (blocks.iter().map(read).collect(), Some(Value::Array(Vec::new())))
        }
        other => (Vec::new(), other.cloned()),
    }
}

fn read_block(dialect: Dialect, block: &Value, content: impl Fn(&Value) -> PartContent) -> Part {
    Part::from_source(dialect, SourceSlot::Content, block.clone(), content(block))
}

/// Whether a block has one of Callgate's own types, which no provider accepts.
pub(super) fn has_own_type(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    kind == ENVELOPE || approval_json::role_of_item(kind).is_some()
}

/// Writes a part that the dialect has no form for: approval parts in their portable form, parts of other dialects in an
/// envelope.
pub(super) fn write_foreign_part(dialect: Dialect, part: &Part) -> Value {
    if let Some(own) = part.source_in(dialect) {
        return own.json.clone();
    }
    if let Some(approval) = approval_json::write(part) {
        return approval;
    }
    let Some(source) = part.original_source() else { return Value::Null };
    let slot = (source.slot != SourceSlot::Content).then(|| source.slot.name().into());
    object([
        ("type", Some(ENVELOPE.into())),
        ("dialect", Some(source.dialect.name().into())),
        ("slot", slot),
        ("part", Some(source.json.clone())),
    ])
}

/// A string member; empty if missing or null. Returns `None` if it has another type.
pub(super) fn string_or_empty(map: &Map, key: &str) -> Option<String> {
    match map.get(key) {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => None,
    }
}

/// The member for parts of an output that the dialect does not support.
const PARTS: &str = "callgate:parts";

/// Reads an output that is a string or an array of blocks.
pub(super) fn read_output(dialect: Dialect, content: Option<&Value>, kinds: &[&str]) -> ResultOutput {
    match content {
        Some(Value::Array(blocks)) => ResultOutput::Parts(
            blocks
                .iter()
                .map(|block| read_block(dialect, block, |block| text_content(block, kinds)))
                .collect(),
        ),
        None | Some(Value::Null) => ResultOutput::Text(String::new()),
        Some(other) => ResultOutput::from_value(other.clone()),
    }
}

/// The content of a text block of these types; other blocks are unknown.
pub(super) fn text_content(block: &Value, kinds: &[&str]) -> PartContent {
    text_of(block, kinds).map_or(PartContent::Other, |text| PartContent::Text(text.to_owned()))
}

/// Writes an output as a string or an array of blocks.
pub(super) fn write_output(output: &ResultOutput, block: impl Fn(&Part) -> Value) -> Value {
    match output {
        ResultOutput::Parts(parts) if !parts.is_empty() => parts.iter().map(block).collect::<Vec<_>>().into(),
        other => other.text().into(),
    }
}

/// Adds the parts of an output that its written form does not support: all except texts.
pub(super) fn add_unsupported_parts(dialect: Dialect, output: &ResultOutput, written: &mut Map) {
    let ResultOutput::Parts(parts) = output else { return };
    let silent: Vec<Value> = parts
        .iter()
        .filter(|part| part.as_text().is_none())
        .map(|part| write_foreign_part(dialect, part))
        .collect();
    if !silent.is_empty() {
        written.insert(PARTS.to_owned(), silent.into());
    }
}

/// Restores these parts.
pub(super) fn restore_unsupported_parts(
    dialect: Dialect,
    output: ResultOutput,
    written: &Map,
) -> ResultOutput {
    let Some(Value::Array(silent)) = written.get(PARTS) else { return output };
    let silent = silent.iter().map(|block| read_block(dialect, block, |_| PartContent::Other));
    ResultOutput::Parts([Part::text(output.text())].into_iter().chain(silent).collect())
}
