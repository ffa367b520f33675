//! Derives a types-only schema: keeps the declared types and drops all other constraints.

use crate::json::{Map, Value};

/// Returns a schema of the types alone: required properties, ranges, lengths, patterns, formats and unknown names are left to `validate`.
///
/// OpenAPI's `nullable: true` is supported, and `enum` and `const` imply the types of their values.
pub(super) fn types_only(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut reduced = Map::new();
    let mut alternatives = Vec::new();
    for (keyword, value) in keywords {
        let value = match keyword.as_str() {
            "$schema" | "$id" | "$anchor" | "$ref" => value.clone(),
            "type" => nullable(keywords, value),
            "properties" | "patternProperties" | "$defs" | "definitions" => members(value),
            "items" | "prefixItems" | "allOf" => each(value),
            "additionalItems" | "additionalProperties" if value.is_object() => types_only(value),
            "anyOf" | "oneOf" => {
                alternatives.push(Value::Object(Map::from_iter([("anyOf".to_owned(), each(value))])));
                continue;
            }
            _ => continue,
        };
        reduced.insert(keyword.clone(), value);
    }
    if !reduced.contains_key("type")
        && let Some(types) = types_of_values(keywords)
    {
        reduced.insert("type", nullable(keywords, &types));
    }
    // Without the distinguishing constraints, several alternatives can match.
    if !alternatives.is_empty() {
        let all = reduced.remove("allOf");
        let mut all = all.and_then(|all| all.as_array().cloned()).unwrap_or_default();
        all.extend(alternatives);
        reduced.insert("allOf", Value::Array(all));
    }
    let is_nullable = keywords.get("nullable") == Some(&Value::Bool(true));
    let reduced = Value::Object(reduced);
    // `type` already allows null; references and alternatives do not.
    match is_nullable && ["$ref", "allOf"].iter().any(|keyword| reduced.get(keyword).is_some()) {
        true => crate::json::json!({ "anyOf": [reduced, { "type": "null" }] }),
        false => reduced,
    }
}

fn members(value: &Value) -> Value {
    match value {
        Value::Object(schemas) => {
            Value::Object(schemas.iter().map(|(name, schema)| (name.clone(), types_only(schema))).collect())
        }
        other => other.clone(),
    }
}

fn each(value: &Value) -> Value {
    match value {
        Value::Array(schemas) => Value::Array(schemas.iter().map(types_only).collect()),
        schema => types_only(schema),
    }
}

fn nullable(keywords: &Map, types: &Value) -> Value {
    let mut types = match types {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let null = Value::from("null");
    if keywords.get("nullable") == Some(&Value::Bool(true)) && !types.contains(&null) {
        types.push(null);
    }
    match types.as_slice() {
        [one] => one.clone(),
        _ => Value::Array(types),
    }
}

fn types_of_values(keywords: &Map) -> Option<Value> {
    let values = match (keywords.get("const"), keywords.get("enum")) {
        (Some(value), _) => std::slice::from_ref(value),
        (None, Some(values)) => values.as_array()?.as_slice(),
        (None, None) => return None,
    };
    let mut types: Vec<Value> = Vec::new();
    for value in values {
        let name = Value::from(crate::json::JsonType::from_value(value).name());
        if !types.contains(&name) {
            types.push(name);
        }
    }
    (!types.is_empty()).then_some(Value::Array(types))
}
