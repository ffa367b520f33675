//! Types of JSON Schemas: schema of a tool's arguments → type of a value.

use std::cell::Cell;

use callgate::json::Value;
use callgate::script::{ObjectType, TypeKind, ValueType};

/// Maximum depth of nested references and schemas.
const MAX_DEPTH: usize = 12;
/// The most subschemas of one tool that are read.
const MAX_SCHEMAS: usize = 2_000;

/// Returns the type of the values that a schema permits: any value, where the schema has keywords that are not followed.
pub(super) fn schema_type(schema: &Value) -> ValueType {
    SchemaReader { root: schema, remaining: Cell::new(MAX_SCHEMAS) }.read(schema, 0)
}

/// Keywords beside `properties` that may list further members.
const MORE_MEMBERS: [&str; 9] = [
    "patternProperties",
    "unevaluatedProperties",
    "dependentSchemas",
    "if",
    "not",
    "anyOf",
    "oneOf",
    "allOf",
    "$dynamicRef",
];

struct SchemaReader<'s> {
    root: &'s Value,
    remaining: Cell<usize>,
}

impl SchemaReader<'_> {
    fn read(&self, schema: &Value, depth: usize) -> ValueType {
        let Some(remaining) = self.remaining.get().checked_sub(1).filter(|_| depth < MAX_DEPTH) else {
            return ValueType::ANY;
        };
        self.remaining.set(remaining);
        let Some(members) = schema.as_object() else { return ValueType::ANY };
        if members.contains_key("$dynamicRef") {
            return ValueType::ANY;
        }
        if let Some(reference) = members.get("$ref") {
            let target = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
            return match target.and_then(|pointer| self.root.pointer(pointer)) {
                Some(target) => self.read(target, depth + 1),
                None => ValueType::ANY,
            };
        }
        // Every other keyword only restricts these types.
        let own = self.read_own(schema, depth);
        let of = |key: &str| {
            let schemas = schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            schemas.iter().map(|schema| self.read(schema, depth + 1)).collect::<Vec<_>>()
        };
        let known = std::iter::once(own)
            .chain(["anyOf", "oneOf"].map(|key| ValueType::one_of(of(key))))
            .chain(of("allOf"))
            .find(|known| known.kinds().is_some())
            .unwrap_or(ValueType::ANY);
        match schema.get("nullable") {
            Some(Value::Bool(true)) => known.or_null(),
            _ => known,
        }
    }

    /// The type by `const`, `enum` and `type`.
    fn read_own(&self, schema: &Value, depth: usize) -> ValueType {
        if let Some(value) = schema.get("const") {
            return ValueType::permitted(&[value]);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return ValueType::permitted(&values.iter().collect::<Vec<_>>());
        }
        let words: Vec<&Value> = match schema.get("type") {
            Some(Value::Array(words)) => words.iter().collect(),
            Some(word) => vec![word],
            None => return ValueType::ANY,
        };
        ValueType::one_of(words.into_iter().map(|word| match word.as_str() {
            Some("null") => ValueType::new(TypeKind::Null),
            Some("boolean") => ValueType::new(TypeKind::Boolean),
            Some("integer" | "number") => ValueType::new(TypeKind::Number),
            Some("string") => ValueType::new(TypeKind::String),
            Some("array") => ValueType::array(match (schema.get("items"), schema.get("prefixItems")) {
                (Some(items), None) => self.read(items, depth + 1),
                _ => ValueType::ANY,
            }),
            Some("object") => ValueType::object(self.read_members(schema, depth)),
            _ => ValueType::ANY,
        }))
    }

    fn read_members(&self, schema: &Value, depth: usize) -> ObjectType {
        let properties = schema.get("properties").and_then(Value::as_object);
        let members = properties.into_iter().flatten();
        let members = members.map(|(key, member)| (key.to_string(), self.read(member, depth + 1))).collect();
        let others = match (schema.get("additionalProperties"), schema.get("patternProperties")) {
            (Some(others @ Value::Object(_)), None) => self.read(others, depth + 1),
            _ => ValueType::ANY,
        };
        let is_listed = properties.is_some_and(|properties| !properties.is_empty())
            && matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)))
            && MORE_MEMBERS.iter().all(|key| schema.get(key).is_none());
        ObjectType { members, others, is_listed, is_closed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::json;

    #[test]
    fn schemas_have_the_types_that_they_permit() {
        for (schema, described) in [
            (json!({ "type": "integer" }), "a number"),
            (json!({ "type": ["string", "null"] }), "null or a string"),
            (json!({ "enum": ["a", 1] }), "a number or a string"),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), "null or a string"),
            (json!({ "anyOf": [{ "type": "string" }, {}] }), "any value"),
            (json!({ "allOf": [{ "title": "x" }, { "type": "string" }] }), "a string"),
            (json!({ "type": "string", "nullable": true }), "null or a string"),
            (json!({ "$defs": { "n": { "type": "number" } }, "$ref": "#/$defs/n" }), "a number"),
            (json!({ "$ref": "#" }), "any value"),
            (json!({ "minimum": 1 }), "any value"),
            (json!(true), "any value"),
        ] {
            assert_eq!(schema_type(&schema).describe(), described, "{schema}");
        }
    }

    #[test]
    fn members_and_elements_have_their_types() {
        let schema = json!({
            "type": "object",
            "properties": { "items": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "number" } } } } },
            "additionalProperties": { "type": "string" }
        });
        let object = schema_type(&schema);
        assert_eq!(object.member("items").element().member("n").describe(), "a number");
        assert_eq!(object.member("items").element().member("m").describe(), "any value");
        assert_eq!(object.member("other").describe(), "a string");
    }
}
