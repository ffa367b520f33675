//! Members of a message's contents that several dialects share, and the envelope for those that only one understands.

use super::approval::object;
use super::dialect::Dialect;
use super::part::{Content, Output, Part, Slot};
use crate::json::{Map, Value};

/// The `type` of the envelope: `{type, dialect, slot?, part}`.
const ENVELOPE: &str = "callgate-part";

/// The member that stands for arguments which are no object, in dialects that take nothing else. Read back, they are
/// again what they were, and no tool takes them.
const ARGUMENTS: &str = "callgate:arguments";

/// A text block as most dialects have it.
pub(super) fn text_block(text: &str) -> Value {
    object([("type", Some("text".into())), ("text", Some(text.into()))])
}

/// The text of such a block.
pub(super) fn text_of<'a>(block: &'a Value, kinds: &[&str]) -> Option<&'a str> {
    let kind = block.get("type")?.as_str()?;
    kinds.contains(&kind).then(|| block.get("text")?.as_str()).flatten()
}

/// What a message says: a string is one text (an empty one says nothing), and of a list each member a part. Anything else
/// says nothing that is understood, and stays in the frame.
pub(super) fn read_said(
    dialect: Dialect,
    said: Option<&Value>,
    content: impl Fn(&Value) -> Content,
) -> (Vec<Part>, Option<Value>) {
    match said {
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

/// One member of a list of contents, out of its envelope where it has one of another dialect.
pub(super) fn read_block(dialect: Dialect, block: &Value, content: impl Fn(&Value) -> Content) -> Part {
    match opened(dialect, block) {
        Some(part) => part,
        None => Part::read(dialect, Slot::Content, block.clone(), content(block)),
    }
}

/// The part in an envelope, which stays unknown. One that its own dialect would understand is left in it: whoever may put
/// a block among what a user says must not be able to say more by it, once it is translated. So is what we
/// would not have written like this.
fn opened(dialect: Dialect, block: &Value) -> Option<Part> {
    let map = block.as_object()?;
    if map.get("type")?.as_str()? != ENVELOPE {
        return None;
    }
    let from = Dialect::from_name(map.get("dialect")?.as_str()?).ok().filter(|from| *from != dialect)?;
    let slot = match map.get("slot") {
        None => Slot::Content,
        Some(name) => {
            let name = name.as_str()?;
            Slot::ALL.into_iter().find(|slot| slot.name() == name && *slot != Slot::Content)?
        }
    };
    let known = 3 + usize::from(slot != Slot::Content);
    let part = map.get("part").filter(|_| map.len() == known)?;
    // What is inside must not be looked into over and over, so nothing of ours may be in it.
    if holds_ours(part) || !from.leaves_unknown(slot, part) {
        return None;
    }
    Some(Part::read(from, slot, part.clone(), Content::Other))
}

/// Whether anything in a value is of a kind that we made up.
fn holds_ours(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_ours),
        Value::Object(map) => is_ours(value) || map.values().any(holds_ours),
        _ => false,
    }
}

/// Whether a block is of a kind that we made up, and no provider accepts, wherever it stands.
pub(super) fn is_ours(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    kind == ENVELOPE || super::approval::role_of_item(kind).is_some()
}

/// A part that the dialect has no word for: approval parts in their portable form, those of other dialects in an envelope.
pub(super) fn write_unspoken(dialect: Dialect, part: &Part) -> Value {
    if let Some(own) = part.own(dialect) {
        return own.json.clone();
    }
    if let Some(approval) = super::approval::write(part) {
        return approval;
    }
    let Some(source) = part.any_source() else { return Value::Null };
    let slot = (source.slot != Slot::Content).then(|| source.slot.name().into());
    object([
        ("type", Some(ENVELOPE.into())),
        ("dialect", Some(source.dialect.name().into())),
        ("slot", slot),
        ("part", Some(source.json.clone())),
    ])
}

/// Arguments that stand as JSON text. An empty text and `null` are no arguments, `{}`. What is not JSON, has a duplicate key or nests too
/// deep is a string, which no tool takes.
pub(super) fn arguments_of(text: &str) -> Value {
    match crate::json::parse(text) {
        Ok(Value::Null) => Map::new().into(),
        Ok(arguments) => arguments,
        Err(_) if text.is_empty() => Map::new().into(),
        Err(_) => text.into(),
    }
}

/// Arguments that stand as a JSON value. Models that have none to give leave them out, or send `null` or an empty string: that is `{}`,
/// for policies, approvals and the tool alike. Any other string stays one, which no tool takes.
pub(super) fn arguments(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => Map::new().into(),
        Some(Value::String(text)) if text.is_empty() => Map::new().into(),
        Some(other) => other.clone(),
    }
}

/// Arguments for a dialect that takes only objects.
pub(super) fn boxed(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        other => Map::from_iter([(ARGUMENTS.to_owned(), other.clone())]).into(),
    }
}

/// Arguments of such a dialect, where none at all are `{}`. Only what is no object is taken out of its box, so nothing becomes acceptable by it.
pub(super) fn unboxed(input: Option<&Value>) -> Value {
    let boxed =
        input.and_then(Value::as_object).filter(|map| map.len() == 1).and_then(|map| map.get(ARGUMENTS));
    match boxed.filter(|inner| !inner.is_object()) {
        Some(inner) => inner.clone(),
        None => arguments(input),
    }
}

/// A text member that may be missing, empty where it is; of another type, the whole is not understood.
pub(super) fn text_or_empty(map: &Map, key: &str) -> Option<String> {
    match map.get(key) {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => None,
    }
}

/// The member that holds the parts of an output which its own dialect has no room for.
const PARTS: &str = "callgate:parts";

/// The output of a dialect whose outputs are texts or lists of blocks.
pub(super) fn read_output(dialect: Dialect, content: Option<&Value>, kinds: &[&str]) -> Output {
    match content {
        Some(Value::Array(blocks)) => Output::Parts(
            blocks
                .iter()
                .map(|block| read_block(dialect, block, |block| text_content(block, kinds)))
                .collect(),
        ),
        None | Some(Value::Null) => Output::Text(String::new()),
        Some(other) => Output::of(other.clone()),
    }
}

/// A text block of these kinds, or something unknown.
pub(super) fn text_content(block: &Value, kinds: &[&str]) -> Content {
    text_of(block, kinds).map_or(Content::Other, |text| Content::Text(text.to_owned()))
}

/// The output for such a dialect.
pub(super) fn write_output(output: &Output, block: impl Fn(&Part) -> Value) -> Value {
    match output {
        Output::Parts(parts) if !parts.is_empty() => parts.iter().map(block).collect::<Vec<_>>().into(),
        other => other.text().into(),
    }
}

/// Puts beside a written output what it can't hold: all parts but the texts.
pub(super) fn add_silent_parts(dialect: Dialect, output: &Output, written: &mut Map) {
    let Output::Parts(parts) = output else { return };
    let silent: Vec<Value> = parts
        .iter()
        .filter(|part| part.as_text().is_none())
        .map(|part| write_unspoken(dialect, part))
        .collect();
    if !silent.is_empty() {
        written.insert(PARTS.to_owned(), silent.into());
    }
}

/// Takes such parts up again.
pub(super) fn with_silent_parts(dialect: Dialect, output: Output, written: &Map) -> Output {
    let Some(Value::Array(silent)) = written.get(PARTS) else { return output };
    let silent = silent.iter().map(|block| read_block(dialect, block, |_| Content::Other));
    Output::Parts([Part::text(output.text())].into_iter().chain(silent).collect())
}
