//! Tools as the providers of models accept them: names, and the JSON Schema that each understands.
//!
//! A schema is only ever shown looser than it is: what a model sends is checked against the tool's own schema all the same.
//!
//! Where the limits are from: names of OpenAI and Gemini, and names of Gemini's parameters, from the providers' API references
//! (`FunctionDefinition.name`, `FunctionDeclaration.name`); Gemini's keywords from its `Schema` object; that Anthropic and OpenAI refuse
//! `oneOf`, `anyOf` and `allOf` at the top from their error messages, as in anthropics/claude-code#5319.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ToolDescriptor;
use crate::json::{self, MAX_DEPTH};
use crate::message::Dialect;

/// The longest name of a tool that every provider takes.
const LONGEST_NAME: usize = 64;

/// Tools for a request to a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderTools {
    /// The value of the request's `tools`.
    pub tools: Value,
    /// Which tool is meant by each name: its server and its own name.
    pub names: BTreeMap<String, (Option<String>, String)>,
}

/// The tools as a request of this dialect has them. Names that a provider refuses are exchanged for others; of two tools of one name
/// each gets its own.
pub fn for_provider(tools: &[ToolDescriptor], dialect: Dialect) -> ProviderTools {
    let mut names = BTreeMap::new();
    let mut listed = Vec::new();
    let mut mapped = Map::new();
    for tool in tools {
        let name = accepted_name(tool, &names);
        names.insert(name.clone(), (tool.server.clone(), tool.name.clone()));
        let description = tool.description.clone().unwrap_or_default();
        let schema = tool.input_schema.clone().unwrap_or_else(|| json!({}));
        let mut parameters = at_top(&schema);
        listed.push(match dialect {
            Dialect::OpenaiChat => json!({
                "type": "function",
                "function": { "name": name, "description": description, "parameters": complete(parameters, 0) },
            }),
            Dialect::OpenaiResponses => json!({
                "type": "function", "name": name, "description": description,
                "parameters": complete(parameters, 0), "strict": false,
            }),
            Dialect::Anthropic => {
                json!({ "name": name, "description": description, "input_schema": parameters })
            }
            Dialect::AiSdk => {
                mapped.insert(name, json!({ "description": description, "inputSchema": parameters }));
                continue;
            }
            Dialect::Gemini => {
                let definitions = definitions(&schema);
                parameters = in_openapi(&parameters, &definitions, 0);
                let empty = parameters.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
                match empty {
                    // An object without properties is refused; without parameters a function takes none.
                    true => json!({ "name": name, "description": description }),
                    false => json!({ "name": name, "description": description, "parameters": parameters }),
                }
            }
        });
    }
    let tools = match dialect {
        Dialect::AiSdk => mapped.into(),
        Dialect::Gemini => json!([{ "functionDeclarations": listed }]),
        _ => listed.into(),
    };
    ProviderTools { tools, names }
}

/// Letters, digits, `_` and `-`, a letter or `_` first, at most 64: what all take.
fn accepted_name(tool: &ToolDescriptor, taken: &BTreeMap<String, (Option<String>, String)>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut name: String = tool.name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    if name.len() <= LONGEST_NAME && !taken.contains_key(&name) {
        return name;
    }
    // The digest of what it really is keeps it apart, and the same from request to request.
    let digest = json::digest(&json!([tool.server, tool.name])).to_string();
    let mark: String = digest.chars().take(8).collect();
    let kept: String = name.chars().take(LONGEST_NAME - mark.len() - 1).collect();
    format!("{kept}_{mark}")
}

/// A schema whose top is a plain object: properties of alternatives stand side by side, and only what all alternatives require is
/// required.
fn at_top(schema: &Value) -> Value {
    let mut top = schema.as_object().cloned().unwrap_or_default();
    let mut alternatives = Vec::new();
    for key in ["oneOf", "anyOf", "allOf"] {
        let all = key == "allOf";
        for branch in top.shift_remove(key).as_ref().and_then(Value::as_array).into_iter().flatten() {
            alternatives.push((all, at_top(branch)));
        }
    }
    for key in ["enum", "not", "const", "if", "then", "else"] {
        top.shift_remove(key);
    }
    top.insert("type".to_owned(), "object".into());
    let mut properties = top.shift_remove("properties").and_then(owned_object).unwrap_or_default();
    let mut required = names_in(top.shift_remove("required").as_ref());
    let mut in_each: Option<Vec<String>> = None;
    for (all, branch) in &alternatives {
        for (name, property) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
            // Two alternatives may mean different things by one name: then anything is shown.
            match properties.get(name) {
                Some(known) if !json::equal(known, property) => {
                    drop(properties.insert(name.clone(), json!({})))
                }
                _ => drop(properties.insert(name.clone(), property.clone())),
            }
        }
        let of_branch = names_in(branch.get("required"));
        match (all, in_each.as_mut()) {
            (true, _) => required.extend(of_branch),
            (false, None) => in_each = Some(of_branch),
            (false, Some(in_each)) => in_each.retain(|name| of_branch.contains(name)),
        }
    }
    required.extend(in_each.unwrap_or_default());
    required.sort();
    required.dedup();
    top.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        top.insert("required".to_owned(), required.into());
    }
    // What one alternative forbids another may have.
    if !alternatives.is_empty() {
        top.shift_remove("additionalProperties");
    }
    top.into()
}

fn owned_object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn names_in(value: Option<&Value>) -> Vec<String> {
    let names = value.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What OpenAI misses where JSON Schema may leave it out: `items` of arrays, `properties` of objects.
fn complete(schema: Value, depth: usize) -> Value {
    match schema {
        Value::Object(mut members) if depth < MAX_DEPTH => {
            let is = |name: &str| members.get("type").and_then(Value::as_str) == Some(name);
            let (array, object) = (is("array"), is("object"));
            if array && !members.contains_key("items") {
                members.insert("items".to_owned(), json!({}));
            }
            if object && !members.contains_key("properties") {
                members.insert("properties".to_owned(), json!({}));
            }
            members.into_iter().map(|(key, value)| (key, complete(value, depth + 1))).collect()
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            items.into_iter().map(|item| complete(item, depth + 1)).collect()
        }
        other => other,
    }
}

fn definitions(schema: &Value) -> Map<String, Value> {
    let of = |key: &str| schema.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut all = of("definitions");
    all.extend(of("$defs"));
    all
}

/// The part of a schema that Gemini's `Schema` can say.
fn in_openapi(schema: &Value, definitions: &Map<String, Value>, depth: usize) -> Value {
    // What nests deeper, or refers to itself, is shown as anything.
    const DEEPEST: usize = 12;
    let Some(members) = schema.as_object().filter(|_| depth < DEEPEST) else {
        return json!({ "type": "string" });
    };
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return match definitions.get(name) {
            Some(definition) => in_openapi(definition, definitions, depth + 1),
            None => json!({ "type": "string" }),
        };
    }
    let inner = |value: &Value| in_openapi(value, definitions, depth + 1);
    let mut said = Map::new();
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
            said.insert(key.to_owned(), value.clone());
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
        said.insert("nullable".to_owned(), true.into());
    }
    let alternatives: Vec<Value> = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|key| members.get(*key).and_then(Value::as_array))
        .flatten()
        .filter(|branch| branch.get("type").and_then(Value::as_str) != Some("null"))
        .map(inner)
        .collect();
    if name.is_none() && !alternatives.is_empty() {
        said.insert("anyOf".to_owned(), alternatives.into());
        return said.into();
    }
    let name = name.unwrap_or("string");
    said.insert("type".to_owned(), name.into());
    let formats: &[&str] = match name {
        "string" => &["date-time", "enum"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    if let Some(format) =
        members.get("format").and_then(Value::as_str).filter(|format| formats.contains(format))
    {
        said.insert("format".to_owned(), format.into());
    }
    let values = members.get("enum").and_then(Value::as_array).cloned();
    let values = values.or_else(|| members.get("const").map(|value| vec![value.clone()]));
    if let Some(values) = values.filter(|values| name == "string" && values.iter().all(Value::is_string)) {
        said.insert("enum".to_owned(), values.into());
    }
    match name {
        "object" => {
            let properties = members.get("properties").and_then(Value::as_object).into_iter().flatten();
            let properties: Map<String, Value> =
                properties.map(|(name, property)| (name.clone(), inner(property))).collect();
            let required: Vec<String> = names_in(members.get("required"))
                .into_iter()
                .filter(|name| properties.contains_key(name))
                .collect();
            said.insert("properties".to_owned(), properties.into());
            if !required.is_empty() {
                said.insert("required".to_owned(), required.into());
            }
        }
        "array" => {
            let items = members.get("items").map_or_else(|| json!({ "type": "string" }), inner);
            said.insert("items".to_owned(), items);
        }
        _ => {}
    }
    said.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> ToolDescriptor {
        serde_json::from_value(json!({ "name": name, "description": "Does it.", "input_schema": schema }))
            .unwrap()
    }

    fn parameters(schema: Value, dialect: Dialect) -> Value {
        let tools = for_provider(&[tool("t", schema)], dialect).tools;
        let place = match dialect {
            Dialect::OpenaiChat => "/0/function/parameters",
            Dialect::OpenaiResponses => "/0/parameters",
            Dialect::Anthropic => "/0/input_schema",
            Dialect::Gemini => "/0/functionDeclarations/0/parameters",
            Dialect::AiSdk => "/t/inputSchema",
        };
        tools.pointer(place).cloned().unwrap_or_default()
    }

    #[test]
    fn names_are_exchanged_for_ones_that_are_taken_and_found_again() {
        let long = "x".repeat(80);
        let names = ["look", "admin.drop", "admin drop", "9lives", "größe", &long];
        let tools: Vec<_> = names.iter().map(|name| tool(name, json!({}))).collect();
        let form = regex::Regex::new("^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$").unwrap();
        for dialect in Dialect::ALL {
            let given = for_provider(&tools, dialect).names;
            assert_eq!(given.len(), names.len());
            for (given, (_, own)) in &given {
                assert!(form.is_match(given), "{given}");
                assert!(names.contains(&own.as_str()));
            }
            assert_eq!(given["look"], (None, "look".to_owned()));
        }
        let of = |server: &str| ToolDescriptor { server: Some(server.into()), ..tool("look", json!({})) };
        assert_eq!(for_provider(&[of("a"), of("b")], Dialect::Anthropic).names.len(), 2);
    }

    #[test]
    fn alternatives_at_the_top_are_shown_side_by_side() {
        let schema = json!({ "oneOf": [
            { "type": "object", "properties": { "id": { "type": "string" }, "why": { "type": "string" } }, "required": ["id", "why"] },
            { "type": "object", "properties": { "name": { "type": "string" }, "why": { "type": "string" } }, "required": ["name", "why"] },
        ] });
        for dialect in Dialect::ALL {
            let shown = parameters(schema.clone(), dialect);
            assert_eq!(
                (&shown["type"], &shown["required"]),
                (&json!("object"), &json!(["why"])),
                "{dialect}"
            );
            assert_eq!(shown["properties"].as_object().unwrap().len(), 3);
            assert!(shown.get("oneOf").is_none());
        }
        let shown = parameters(
            json!({ "allOf": [ { "properties": { "a": {} }, "required": ["a"] } ] }),
            Dialect::Anthropic,
        );
        assert_eq!(shown["required"], json!(["a"]));
    }

    #[test]
    fn a_tool_without_schema_or_properties_takes_none() {
        assert_eq!(parameters(json!({}), Dialect::OpenaiChat), json!({ "type": "object", "properties": {} }));
        assert_eq!(parameters(json!({}), Dialect::Gemini), Value::Null);
        let array = json!({ "properties": { "a": { "type": "array" } } });
        assert_eq!(parameters(array, Dialect::OpenaiResponses)["properties"]["a"]["items"], json!({}));
    }

    #[test]
    fn gemini_is_told_what_its_schema_can_say() {
        let shown = parameters(
            json!({
                "type": "object", "additionalProperties": false, "$schema": "x",
                "properties": {
                    "size": { "type": ["integer", "null"], "format": "int32", "exclusiveMinimum": 0, "minimum": 1 },
                    "kind": { "const": "a" },
                    "day": { "type": "string", "format": "date" },
                    "item": { "$ref": "#/$defs/Item" },
                    "either": { "anyOf": [ { "type": "string" }, { "type": "null" } ] },
                },
                "required": ["size", "gone"],
                "$defs": { "Item": { "type": "object", "properties": { "more": { "$ref": "#/$defs/Item" } } } },
            }),
            Dialect::Gemini,
        );
        assert_eq!(
            shown["properties"]["size"],
            json!({ "minimum": 1, "nullable": true, "type": "integer", "format": "int32" })
        );
        assert_eq!(shown["properties"]["kind"], json!({ "type": "string", "enum": ["a"] }));
        assert_eq!(shown["properties"]["day"], json!({ "type": "string" }));
        assert_eq!(shown["properties"]["item"]["type"], "object");
        assert_eq!(shown["properties"]["either"], json!({ "anyOf": [{ "type": "string" }] }));
        assert_eq!(shown["required"], json!(["size"]));
        for absent in ["additionalProperties", "$schema", "$defs"] {
            assert!(shown.get(absent).is_none(), "{absent}");
        }
    }
}
