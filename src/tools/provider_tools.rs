//! Tools in the request format of each provider, under names that the provider accepts.
//!
//! The limits of names are from the API references of OpenAI (`FunctionDefinition.name`) and Gemini
//! (`FunctionDeclaration.name`).

use std::collections::BTreeMap;

use super::ToolDescriptor;
use super::provider_schema::{add_required_keywords, definitions, flatten_top_level, to_gemini_schema};
use crate::json::{self, Map, Value, json};
use crate::message::Dialect;

/// The longest tool name that every provider accepts.
const MAX_NAME_LENGTH: usize = 64;

/// The tools of a request to a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderTools {
    /// The value of the request's `tools`.
    pub tools: Value,
    /// The server and the original name of the tool behind each name.
    pub names: BTreeMap<String, (Option<String>, String)>,
}

/// Converts tools to the request format of this dialect. Names that a provider rejects, and duplicate names, are replaced.
pub fn for_provider(tools: &[ToolDescriptor], dialect: Dialect) -> ProviderTools {
    let mut names = BTreeMap::new();
    let mut listed = Vec::new();
    let mut mapped = Map::new();
    for tool in tools {
        let name = unique_provider_name(tool, &names);
        names.insert(name.clone(), (tool.server.clone(), tool.name.clone()));
        let description = tool.description.clone().unwrap_or_default();
        let schema = tool.input_schema.clone().unwrap_or_else(|| json!({}));
        let mut parameters = flatten_top_level(&schema);
        listed.push(match dialect {
            Dialect::OpenaiChat => json!({
                "type": "function",
                "function": { "name": name, "description": description, "parameters": add_required_keywords(parameters, 0) },
            }),
            Dialect::OpenaiResponses => json!({
                "type": "function", "name": name, "description": description,
                "parameters": add_required_keywords(parameters, 0), "strict": false,
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
                parameters = to_gemini_schema(&parameters, &definitions, 0);
                let empty = parameters.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
                match empty {
                    // Gemini rejects an object without properties; a function without parameters takes none.
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

/// A unique name that all providers accept: letters, digits, `_` and `-`, first a letter or `_`, at most 64 characters.
fn unique_provider_name(
    tool: &ToolDescriptor,
    used_names: &BTreeMap<String, (Option<String>, String)>,
) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut name: String = tool.name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    if name.len() <= MAX_NAME_LENGTH && !used_names.contains_key(&name) {
        return name;
    }
    // The digest of server and name makes it unique, and stable between requests.
    let digest = json::digest(&json!([tool.server, tool.name])).to_string();
    let mark: String = digest.chars().take(8).collect();
    let prefix: String = name.chars().take(MAX_NAME_LENGTH - mark.len() - 1).collect();
    format!("{prefix}_{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> ToolDescriptor {
        json::from_value(json!({ "name": name, "description": "Does it.", "input_schema": schema })).unwrap()
    }

    fn parameters(schema: Value, dialect: Dialect) -> Value {
        let tools = for_provider(&[tool("t", schema)], dialect).tools;
        let pointer = match dialect {
            Dialect::OpenaiChat => "/0/function/parameters",
            Dialect::OpenaiResponses => "/0/parameters",
            Dialect::Anthropic => "/0/input_schema",
            Dialect::Gemini => "/0/functionDeclarations/0/parameters",
            Dialect::AiSdk => "/t/inputSchema",
        };
        tools.pointer(pointer).cloned().unwrap_or_default()
    }

    #[test]
    fn invalid_names_are_replaced_and_map_back_to_their_tools() {
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
    fn top_level_alternatives_are_merged_into_one_object() {
        let schema = json!({ "oneOf": [
            { "type": "object", "properties": { "id": { "type": "string" }, "why": { "type": "string" } }, "required": ["id", "why"] },
            { "type": "object", "properties": { "name": { "type": "string" }, "why": { "type": "string" } }, "required": ["name", "why"] },
        ] });
        for dialect in Dialect::ALL {
            let converted = parameters(schema.clone(), dialect);
            assert_eq!(
                (&converted["type"], &converted["required"]),
                (&json!("object"), &json!(["why"])),
                "{dialect}"
            );
            assert_eq!(converted["properties"].as_object().unwrap().len(), 3);
            assert!(converted.get("oneOf").is_none());
        }
        let converted = parameters(
            json!({ "allOf": [ { "properties": { "a": {} }, "required": ["a"] } ] }),
            Dialect::Anthropic,
        );
        assert_eq!(converted["required"], json!(["a"]));
    }

    #[test]
    fn a_tool_without_schema_or_properties_has_no_parameters() {
        assert_eq!(parameters(json!({}), Dialect::OpenaiChat), json!({ "type": "object", "properties": {} }));
        assert_eq!(parameters(json!({}), Dialect::Gemini), Value::Null);
        let array = json!({ "properties": { "a": { "type": "array" } } });
        assert_eq!(parameters(array, Dialect::OpenaiResponses)["properties"]["a"]["items"], json!({}));
    }

    #[test]
    fn gemini_schemas_contain_only_supported_keywords() {
        let converted = parameters(
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
            converted["properties"]["size"],
            json!({ "minimum": 1, "nullable": true, "type": "integer", "format": "int32" })
        );
        assert_eq!(converted["properties"]["kind"], json!({ "type": "string", "enum": ["a"] }));
        assert_eq!(converted["properties"]["day"], json!({ "type": "string" }));
        assert_eq!(converted["properties"]["item"]["type"], "object");
        assert_eq!(converted["properties"]["either"], json!({ "anyOf": [{ "type": "string" }] }));
        assert_eq!(converted["required"], json!(["size"]));
        for absent in ["additionalProperties", "$schema", "$defs"] {
            assert!(converted.get(absent).is_none(), "{absent}");
        }
    }
}
