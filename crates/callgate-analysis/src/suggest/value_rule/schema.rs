//! Rules as types of arguments: a name, or a JSON Schema.

use callgate::json::{Map, Value, json};

use super::{FieldRule, ValueRule};

impl FieldRule {
    /// The type, for `validate: { arguments }`: a name, or a JSON Schema.
    pub(in crate::suggest) fn argument_type(&self) -> Value {
        let schema = self.schema();
        let only_type = schema.as_object().filter(|members| members.len() == 1);
        match only_type.and_then(|members| members.get("type")).and_then(Value::as_str) {
            Some(name) if name != "array" && name != "null" => name.into(),
            _ => schema,
        }
    }

    fn schema(&self) -> Value {
        let mut schema = Map::new();
        let mut types = self.types.clone();
        types.extend(self.is_nullable.then_some("null").filter(|_| !types.is_empty()));
        match types.as_slice() {
            [] => return json!({}),
            [only] => schema.insert("type", (*only).into()),
            several => schema.insert("type", json!(several)),
        };
        match &self.rule {
            ValueRule::Items { item, .. } => {
                schema.insert("items", item.schema());
            }
            ValueRule::Members(members) => {
                let properties: Map =
                    members.iter().map(|(name, member)| (name.clone(), member.field.schema())).collect();
                let required: Vec<&String> =
                    members.iter().filter(|(_, member)| member.is_required).map(|(name, _)| name).collect();
                schema.insert("properties", properties.into());
                if !required.is_empty() {
                    schema.insert("required", json!(required));
                }
                schema.insert("additionalProperties", false.into());
            }
            _ => {}
        }
        Value::Object(schema)
    }
}
