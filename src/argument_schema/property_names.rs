//! Declared properties of a schema, and how messages name them.

use crate::json::{Map, Value};
use crate::safe_text::{escape_controls, truncate};

/// A name in backticks.
pub(super) fn quote_name(text: &str) -> String {
    format!("`{}`", truncate(&escape_controls(text)))
}

/// A self-contained instruction.
pub(super) fn replacement_hint(known: &str, given: &str) -> String {
    format!("use {known} instead of {given}")
}

/// The properties that a subschema declares.
pub(super) fn properties(schema: &Value) -> Option<&Map> {
    schema.get("properties")?.as_object()
}

/// The schema of a property, with a top-level reference resolved.
pub(super) fn property_schema<'a>(root: &'a Value, schema: &'a Value, property: &str) -> Option<&'a Value> {
    let schema = properties(schema)?.get(property)?;
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    Some(target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema))
}
