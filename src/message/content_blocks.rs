//! Content blocks that several dialects share, and the envelope for parts of other dialects.

use super::approval_parts::object;
use super::dialect::Dialect;
use super::part::{Part, PartContent, ResultOutput, SourceSlot};
use crate::json::{Map, Value};

/// The `type` of the envelope: `{type, dialect, slot?, part}`.
const ENVELOPE: &str = "callgate-part";

/// The member that wraps arguments that are not an object, in dialects that accept only objects. When read back they are
/// unwrapped, and no tool accepts them.
const ARGUMENTS: &str = "callgate:arguments";

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

/// Reads one element of an array of contents, and unwraps it if it is another dialect's part in an envelope.
pub(super) fn read_block(dialect: Dialect, block: &Value, content: impl Fn(&Value) -> PartContent) -> Part {
    match unwrap_envelope(dialect, block) {
        Some(part) => part,
        None => Part::from_source(dialect, SourceSlot::Content, block.clone(), content(block)),
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

/// Whether a block has one of Callgate's own types, which no provider accepts.
pub(super) fn has_own_type(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    kind == ENVELOPE || super::approval_parts::role_of_item(kind).is_some()
}

/// Writes a part that the dialect has no form for: approval parts in their portable form, parts of other dialects in an
/// envelope.
pub(super) fn write_foreign_part(dialect: Dialect, part: &Part) -> Value {
    if let Some(own) = part.source_in(dialect) {
        return own.json.clone();
    }
    if let Some(approval) = super::approval_parts::write(part) {
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

/// Parses arguments from JSON text. An empty string and `null` mean no arguments: `{}`. Text that is not JSON, has a
/// duplicate key or is nested too deeply is a string, which no tool accepts.
pub(super) fn parse_arguments(text: &str) -> Value {
    match crate::json::parse(text) {
        Ok(Value::Null) => Map::new().into(),
        Ok(arguments) => arguments,
        Err(_) if text.is_empty() => Map::new().into(),
        Err(_) => text.into(),
    }
}

/// Reads arguments from a JSON value. Models omit empty arguments, or send `null` or an empty string: this becomes `{}`,
/// for policies, approvals and the tool alike. Any other string stays a string, which no tool accepts.
pub(super) fn read_arguments(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => Map::new().into(),
        Some(Value::String(text)) if text.is_empty() => Map::new().into(),
        Some(other) => other.clone(),
    }
}

/// Wraps arguments that are not an object, for dialects that accept only objects.
pub(super) fn wrap_arguments(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        other => Map::from_iter([(ARGUMENTS.to_owned(), other.clone())]).into(),
    }
}

/// Unwraps such arguments; missing arguments are `{}`. Only a value that is not an object is unwrapped, so wrapping can't
/// make arguments acceptable.
pub(super) fn unwrap_arguments(input: Option<&Value>) -> Value {
    let boxed =
        input.and_then(Value::as_object).filter(|map| map.len() == 1).and_then(|map| map.get(ARGUMENTS));
    match boxed.filter(|inner| !inner.is_object()) {
        Some(inner) => inner.clone(),
        None => read_arguments(input),
    }
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
