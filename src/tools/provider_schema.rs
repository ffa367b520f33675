//! JSON Schemas in the subset that each provider supports.
//!
//! A converted schema is never stricter than the original; the arguments of a call are always checked against the original.
//!
//! Sources of the limits: for Gemini, the keywords of its `Schema` object; for Anthropic and OpenAI, their error messages
//! about `oneOf`, `anyOf` and `allOf` at the top level, as in anthropics/claude-code#5319.

use crate::json::{MAX_DEPTH, Map, Value, json};

/// A schema whose top level is a plain object: the properties of all alternatives are merged, and only what every
/// alternative requires is required.
pub(super) fn flatten_top_level(schema: &Value) -> Value {
    let mut top = schema.as_object().cloned().unwrap_or_default();
    let mut alternatives = Vec::new();
    for key in ["oneOf", "anyOf", "allOf"] {
        let all = key == "allOf";
        for branch in top.remove(key).as_ref().and_then(Value::as_array).into_iter().flatten() {
            alternatives.push((all, flatten_top_level(branch)));
        }
    }
    for key in ["enum", "not", "const", "if", "then", "else"] {
        top.remove(key);
    }
    top.insert("type", "object".into());
    let mut properties = top.remove("properties").and_then(owned_object).unwrap_or_default();
    let mut required = string_array(top.remove("required").as_ref());
    let mut in_each: Option<Vec<String>> = None;
    for (all, branch) in &alternatives {
        for (name, property) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
            // Two alternatives may define one name differently: then any value is allowed.
            match properties.get(name) {
                Some(known) if known != property => drop(properties.insert(name.clone(), json!({}))),
                _ => drop(properties.insert(name.clone(), property.clone())),
            }
        }
        let of_branch = string_array(branch.get("required"));
        match (all, in_each.as_mut()) {
            (true, _) => required.extend(of_branch),
            (false, None) => in_each = Some(of_branch),
            (false, Some(in_each)) => in_each.retain(|name| of_branch.contains(name)),
        }
    }
    required.extend(in_each.unwrap_or_default());
    required.sort();
    required.dedup();
    top.insert("properties", properties.into());
    if !required.is_empty() {
        top.insert("required", required.into());
    }
    // One alternative may allow what another forbids.
    if !alternatives.is_empty() {
        top.remove("additionalProperties");
    }
    top.into()
}

fn owned_object(value: Value) -> Option<Map> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn string_array(value: Option<&Value>) -> Vec<String> {
    let names = value.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Adds the keywords that OpenAI requires and JSON Schema does not: `items` of arrays, `properties` of objects.
pub(super) fn add_required_keywords(schema: Value, depth: usize) -> Value {
    match schema {
        Value::Object(mut members) if depth < MAX_DEPTH => {
            let is = |name: &str| members.get("type").and_then(Value::as_str) == Some(name);
            let (array, object) = (is("array"), is("object"));
            if array && !members.contains_key("items") {
                members.insert("items", json!({}));
            }
            if object && !members.contains_key("properties") {
                members.insert("properties", json!({}));
            }
            members.into_iter().map(|(key, value)| (key, add_required_keywords(value, depth + 1))).collect()
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            items.into_iter().map(|item| add_required_keywords(item, depth + 1)).collect()
        }
        other => other,
    }
}

/// The schemas that `$ref` can refer to.
pub(super) fn definitions(schema: &Value) -> Map {
    let of = |key: &str| schema.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut all = of("definitions");
    all.extend(of("$defs"));
    all
}

/// The part of a schema that Gemini's `Schema` supports.
pub(super) fn to_gemini_schema(schema: &Value, definitions: &Map, depth: usize) -> Value {
    // A deeper schema, or a recursive one, is replaced with a plain string schema.
    const DEEPEST: usize = 12;
    let Some(members) = schema.as_object().filter(|_| depth < DEEPEST) else {
        return json!({ "type": "string" });
    };
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return match definitions.get(name) {
            Some(definition) => to_gemini_schema(definition, definitions, depth + 1),
            None => json!({ "type": "string" }),
        };
    }
    let inner = |value: &Value| to_gemini_schema(value, definitions, depth + 1);
    let mut converted = Map::new();
    for key in [
        "title",
        "description",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
    ] {
        if let Some(value) = members.get(key) {
            converted.insert(key.to_owned(), value.clone());
        }
    }
    let types: Vec<&str> = match members.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut real = types.iter().filter(|name| **name != "null");
    let guessed = match members {
        members if members.contains_key("properties") => Some("object"),
        members if members.contains_key("items") => Some("array"),
        members if members.contains_key("enum") || members.contains_key("const") => Some("string"),
        _ => None,
    };
    let name = real.next().copied().or(guessed);
    if types.contains(&"null") {
        converted.insert("nullable", true.into());
    }
    let alternatives: Vec<Value> = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|key| members.get(key).and_then(Value::as_array))
        .flatten()
        .filter(|branch| branch.get("type").and_then(Value::as_str) != Some("null"))
        .map(inner)
        .collect();
    if name.is_none() && !alternatives.is_empty() {
        converted.insert("anyOf", alternatives.into());
        return converted.into();
    }
    let name = name.unwrap_or("string");
    converted.insert("type", name.into());
    let formats: &[&str] = match name {
        "string" => &["date-time", "enum"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    if let Some(format) =
        members.get("format").and_then(Value::as_str).filter(|format| formats.contains(format))
    {
        converted.insert("format", format.into());
    }
    let values = members.get("enum").and_then(Value::as_array).cloned();
    let values = values.or_else(|| members.get("const").map(|value| vec![value.clone()]));
    if let Some(values) = values.filter(|values| name == "string" && values.iter().all(Value::is_string)) {
        converted.insert("enum", values.into());
    }
    match name {
        "object" => {
            let properties = members.get("properties").and_then(Value::as_object).into_iter().flatten();
            let properties: Map =
                properties.map(|(name, property)| (name.clone(), inner(property))).collect();
            let required: Vec<String> = string_array(members.get("required"))
                .into_iter()
                .filter(|name| properties.contains_key(name))
                .collect();
            converted.insert("properties", properties.into());
            if !required.is_empty() {
                converted.insert("required", required.into());
            }
        }
        "array" => {
            let items = members.get("items").map_or_else(|| json!({ "type": "string" }), inner);
            converted.insert("items", items);
        }
        _ => {}
    }
    converted.into()
}
