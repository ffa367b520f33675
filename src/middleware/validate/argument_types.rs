//! `validate: { arguments }`: types of arguments → a closed JSON Schema of an object.

use super::{compile_located, span_at_pointer};
use crate::argument_schema::ArgumentSchema;
use crate::diagnostic::{Diagnostic, OUT_OF_RANGE, UNKNOWN_VALUE};
use crate::json::{Map, Value, json};
use crate::rules_schema::{PolicyReader, Shape, did_you_mean};
use crate::source::{MappingEntry, YamlNode};

/// The greatest number of items of a list without `max`.
const DEFAULT_ITEMS: u64 = 1_000;
/// The names of types.
const TYPES: [&str; 6] = ["text", "string", "number", "integer", "boolean", "object"];

/// The type of one argument.
pub(super) const ARGUMENT: Shape = Shape::Either(&[
    Shape::String(
        "one of `text` (a string that is not empty), `string`, `number`, `integer`, `boolean` and `object`",
    ),
    Shape::Any,
]);

/// The keys of a list type.
const LIST_KEYS: [&str; 2] = ["list", "max"];

/// Reads the types of arguments.
pub(super) fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<ArgumentSchema> {
    let entries = node.entries()?;
    let mut is_valid = true;
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for entry in entries {
        let name = argument_name(entry);
        if properties.contains_key(name) {
            let message = format!("the argument `{name}` has two types");
            reader.report(
                Diagnostic::new(&UNKNOWN_VALUE, entry.key_span, message)
                    .with_help("an argument is required, or its name ends in `?`: remove one of the two"),
            );
            return None;
        }
        match schema_of(&entry.value, reader) {
            Some(schema) => drop(properties.insert(name.to_owned(), schema)),
            None => is_valid = false,
        }
        if !entry.key.ends_with('?') {
            required.push(Value::from(name));
        }
    }
    if !is_valid {
        return None;
    }
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    compile_located(&schema, reader, |pointer| {
        let mut parts = pointer.splitn(4, '/').skip(2);
        let name = parts.next().map(|name| name.replace("~1", "/").replace("~0", "~"));
        let rest = parts.next().map(|rest| format!("/{rest}")).unwrap_or_default();
        let entry = entries.iter().find(|entry| Some(argument_name(entry)) == name.as_deref());
        entry.map_or(node.span, |entry| span_at_pointer(&entry.value, &rest))
    })
}

fn argument_name(entry: &MappingEntry) -> &str {
    entry.key.strip_suffix('?').unwrap_or(&entry.key)
}

/// The JSON Schema of one type.
fn schema_of(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Value> {
    if node.get("list").is_some() && node.get("type").is_none() {
        return list_schema(node, reader);
    }
    if node.entries().is_some() {
        return Some(node.to_json());
    }
    match node.as_str() {
        Some("text") => return Some(json!({"type": "string", "minLength": 1})),
        Some(name) if TYPES.contains(&name) => return Some(json!({"type": name})),
        _ => {}
    }
    let near = node.as_str().and_then(|text| did_you_mean(text, TYPES.into_iter()));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let types = TYPES.map(|name| format!("`{name}`")).join(", ");
            format!("write one of {types}, `{{ list: TYPE }}`, or a JSON Schema")
        }
    };
    reader.report(Diagnostic::new(&UNKNOWN_VALUE, node.span, "this is not a type").with_help(help));
    None
}

fn list_schema(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Value> {
    let is_unknown = |entry: &&MappingEntry| !LIST_KEYS.contains(&entry.key.as_str());
    if let Some(unknown) = node.entries().unwrap_or_default().iter().find(is_unknown) {
        let message = format!("unknown key `{}` beside `list`", unknown.key);
        reader.report(
            Diagnostic::new(&UNKNOWN_VALUE, unknown.key_span, message)
                .with_help("a list takes `list` and `max`; for more write a JSON Schema"),
        );
        return None;
    }
    let max = match node.get("max") {
        None => DEFAULT_ITEMS,
        Some(max) => match max.as_number().and_then(|number| number.as_u64()).filter(|max| *max > 0) {
            Some(max) => max,
            None => {
                reader.report(
                    Diagnostic::new(&OUT_OF_RANGE, max.span, "`max` must be an integer of 1 or more")
                        .with_help("write a number such as `100`"),
                );
                return None;
            }
        },
    };
    let items = schema_of(node.get("list")?, reader)?;
    Some(json!({"type": "array", "items": items, "minItems": 1, "maxItems": max}))
}
