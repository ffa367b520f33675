//! Detects arguments that a lenient server could read as others: many parse into structs and ignore case, at any depth.

use super::method;
use callgate::argument_schema::applicable_schemas;
use callgate::json::{self, Key, Value};

/// Returns the name of an argument, or of a nested member, that differs only in spelling from another one in the tool's schema.
pub(super) fn find_ambiguous<'a>(schema: &Value, arguments: &'a Value) -> Option<&'a str> {
    search(schema, &[schema], arguments, 0)
}

fn search<'a>(root: &Value, schemas: &[&Value], value: &'a Value, depth: usize) -> Option<&'a str> {
    if schemas.is_empty() || depth > json::MAX_DEPTH {
        return None;
    }
    let schemas = applicable_schemas(root, schemas);
    match value {
        Value::Object(members) => {
            let properties = schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
            let names: Vec<&str> = properties.flat_map(|all| all.keys()).map(Key::as_str).collect();
            method::find_ambiguous_member(members, &names).or_else(|| {
                members.iter().find_map(|(name, member)| {
                    let own = schemas.iter().filter_map(|schema| {
                        schema.get("properties")?.get(name).or_else(|| schema.get("additionalProperties"))
                    });
                    search(root, &own.collect::<Vec<_>>(), member, depth + 1)
                })
            })
        }
        Value::Array(items) => {
            let own: Vec<&Value> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
            items.iter().find_map(|item| search(root, &own, item, depth + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    #[test]
    fn finds_names_that_differ_only_in_case_at_any_depth() {
        let schema = json!({
            "properties": {
                "path": { "type": "string" },
                "edits": { "type": "array", "items": { "$ref": "#/$defs/Edit" } },
                "to": { "anyOf": [{ "type": "null" }, { "properties": { "address": {} } }] },
                "env": { "type": "object", "additionalProperties": { "type": "string" } },
                "tree": { "$ref": "#/$defs/Tree" },
            },
            "$defs": {
                "Edit": { "properties": { "oldText": {}, "newText": {} } },
                "Tree": { "properties": { "name": {}, "below": { "items": { "$ref": "#/$defs/Tree" } } } },
            },
        });
        for (arguments, found) in [
            (json!({ "Path": "x" }), Some("Path")),
            (json!({ "path": "x", "edits": [{ "oldText": "a" }, { "OldText": "a" }] }), Some("OldText")),
            (json!({ "to": { "Address": "x" } }), Some("Address")),
            (json!({ "tree": { "below": [{ "below": [{ "Name": 1 }] }] } }), Some("Name")),
            (json!({ "path": "x", "edits": [{ "oldText": "a", "newText": "b" }], "to": null }), None),
            // Names that the schema leaves to the caller.
            (json!({ "env": { "PATH": "a", "path": "b" }, "other": { "Path": 1 } }), None),
        ] {
            assert_eq!(find_ambiguous(&schema, &arguments), found, "{arguments}");
        }
    }
}
