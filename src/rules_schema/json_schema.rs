//! Generates a JSON Schema from the [`Shape`](super::Shape) tables, for editors.

use super::{RecordShape, Shape};
use crate::json::{Map, Value, json};

/// A constraint between the keys of a record, which its fields do not express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyConstraint {
    /// The record's name.
    pub record: &'static str,
    /// Exactly one of these keys is present.
    pub one_of: Vec<&'static str>,
    /// At least one of these keys is present.
    pub any_of: Vec<&'static str>,
    /// If the first key of a pair is present, one of the others is, too.
    pub together: Vec<(&'static str, Vec<&'static str>)>,
}

impl KeyConstraint {
    /// Adds it in a form in which editors offer every key, report the missing one, and highlight the surplus key.
    fn add_to(&self, schema: &mut Map) {
        let of = self.record.replace('_', " ");
        if !self.any_of.is_empty() {
            let none = format!("{of} needs one of the keys {}", self.any_of.join(", "));
            let choices = self.any_of.iter().map(|key| json!({ "required": [key], "errorMessage": none }));
            schema.insert("anyOf", choices.collect());
            return;
        }
        let none = format!("a {of} has exactly one of the keys {}", self.one_of.join(", "));
        let choices = self.one_of.iter().map(|key| json!({ "required": [key], "errorMessage": none }));
        schema.insert("anyOf", choices.collect());
        let mut later = self.one_of.as_slice();
        let mut alone: Vec<Value> = Vec::new();
        while let [key, rest @ ..] = later {
            later = rest;
            if !rest.is_empty() {
                let two = format!("a {of} has this or `{key}`, not both");
                let others: Map =
                    [(format!("^({})$", rest.join("|")), Value::Bool(false))].into_iter().collect();
                let then = json!({ "patternProperties": others, "errorMessage": two });
                alone.push(json!({ "if": { "required": [key] }, "then": then }));
            }
        }
        schema.insert("allOf", alone.into());
        let single = self.together.iter().filter(|(_, needed)| needed.len() == 1);
        let single = single.map(|(key, needed)| ((*key).to_owned(), json!(needed)));
        schema.insert("dependentRequired", Value::Object(single.collect()));
        let several = self.together.iter().filter(|(_, needed)| needed.len() > 1);
        let several: Map = several
            .map(|(key, needed)| {
                let message = format!("`{key}` needs one of the keys {}", needed.join(", "));
                let choices = needed.iter().map(|key| json!({ "required": [key], "errorMessage": message }));
                ((*key).to_owned(), json!({ "anyOf": choices.collect::<Vec<_>>() }))
            })
            .collect();
        if !several.is_empty() {
            schema.insert("dependentSchemas", Value::Object(several));
        }
    }
}

/// Returns the JSON Schema (draft 2020-12) of files whose root is `record`.
pub fn json_schema(record: &'static RecordShape, title: &str, constraints: &[KeyConstraint]) -> Value {
    let mut definitions = Map::new();
    define(record, &mut definitions);
    for constraint in constraints {
        if let Some(definition) = definitions.get_mut(constraint.record).and_then(Value::as_object_mut) {
            constraint.add_to(definition);
        }
    }
    let mut schema = Map::new();
    schema.insert("$schema", "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title", title.into());
    schema.insert("$ref", reference(record));
    schema.insert("$defs", Value::Object(definitions));
    Value::Object(schema)
}

fn reference(record: &RecordShape) -> Value {
    format!("#/$defs/{}", record.name).into()
}

/// Adds the definition of a record and, once each, of all records that it refers to.
fn define(record: &'static RecordShape, definitions: &mut Map) {
    if definitions.contains_key(record.name) {
        return;
    }
    // Inserted before the fields are walked, so that recursion ends at a record that refers to itself.
    definitions.insert(record.name, Value::Null);
    let mut properties = Map::new();
    for field in record.fields {
        let mut schema = describe(&field.shape, definitions);
        if let Some(members) = schema.as_object_mut() {
            // Editors show a title as the heading of a hover text, and fall back to that of the parent.
            members.insert("title", field.name.into());
            describe_twice(members, field.doc, form(&field.shape));
        }
        properties.insert(field.name, schema);
    }
    let required: Vec<&str> =
        record.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({ "type": "object" });
    if let Some(members) = schema.as_object_mut() {
        describe_twice(members, record.doc, None);
        members.insert("properties", properties.into());
        members.insert("additionalProperties", false.into());
    }
    if let (Some(members), false) = (schema.as_object_mut(), required.is_empty()) {
        members.insert("required", json!(required));
    }
    definitions.insert(record.name, schema);
}

/// The format of a string, if the shape accepts a string and describes it.
fn form(shape: &Shape) -> Option<&'static str> {
    match shape {
        Shape::String(form) => Some(form),
        Shape::OneOrMany(item) => form(item),
        Shape::Either(shapes) => shapes.iter().find_map(form),
        _ => None,
    }
}

/// Adds a description as plain text and as Markdown (its actual format): editors that support only the first show the source.
fn describe_twice(schema: &mut Map, doc: &str, form: Option<&str>) {
    let text = match form {
        Some(form) => format!("{doc}\n\nWrite {form}."),
        None => doc.to_owned(),
    };
    // The description of a key is more specific than that of the record it holds.
    let choices = schema.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten();
    for choice in choices.filter_map(Value::as_object_mut).filter(|choice| choice.contains_key("$ref")) {
        insert_description(choice, &text);
    }
    insert_description(schema, &text);
}

fn insert_description(schema: &mut Map, text: &str) {
    schema.insert("description", text.into());
    schema.insert("markdownDescription", text.into());
}

fn describe(shape: &Shape, definitions: &mut Map) -> Value {
    match shape {
        Shape::Any => json!({}),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::True => json!({ "const": true }),
        Shape::String(form) => json!({ "type": "string", "description": form, "markdownDescription": form }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Integer(min, i64::MAX) => json!({ "type": "integer", "minimum": min }),
        Shape::Integer(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Word(words) => {
            let (choices, docs): (Vec<&str>, Vec<&str>) = words.iter().copied().unzip();
            json!({ "type": "string", "enum": choices, "enumDescriptions": docs, "markdownEnumDescriptions": docs })
        }
        Shape::List(item) => json!({ "type": "array", "items": describe(item, definitions) }),
        Shape::NonEmptyList(item) => {
            json!({ "type": "array", "minItems": 1, "items": describe(item, definitions) })
        }
        // Without a choice, editors show a single message.
        Shape::OneOrMany(item @ Shape::String(_)) => {
            let item = describe(item, definitions);
            json!({ "type": ["string", "array"], "minItems": 1, "items": item })
        }
        Shape::OneOrMany(item) => {
            let one = describe(item, definitions);
            let many = json!({ "type": "array", "minItems": 1, "items": one });
            json!({ "anyOf": choices(one).chain([many]).collect::<Vec<_>>() })
        }
        Shape::Record(record) => {
            define(record, definitions);
            json!({ "$ref": reference(record) })
        }
        Shape::Map(value) => {
            json!({ "type": "object", "additionalProperties": describe(value, definitions) })
        }
        Shape::Either(shapes) => {
            let all = shapes.iter().flat_map(|shape| choices(describe(shape, definitions)));
            json!({ "anyOf": all.collect::<Vec<_>>() })
        }
    }
}

/// The choices of a schema: editors show the description of a key only for direct choices.
fn choices(schema: Value) -> impl Iterator<Item = Value> {
    let all = match schema.get("anyOf") {
        Some(Value::Array(choices)) => choices.clone(),
        _ => vec![schema],
    };
    all.into_iter().map(undescribed)
}

/// A choice without its own description, which would hide that of the key.
fn undescribed(mut choice: Value) -> Value {
    if let Some(members) = choice.as_object_mut() {
        members.retain(|name, _| !matches!(name.as_str(), "description" | "markdownDescription"));
    }
    choice
}
