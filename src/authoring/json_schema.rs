//! The tables of [`Shape`](super::Shape)s as a JSON Schema, for editors.

use serde_json::{Map, Value, json};

use super::{Record, Shape};

/// What the keys of a record have to do with each other, which its fields do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The record's name.
    pub record: &'static str,
    /// Of these keys exactly one is there.
    pub one_of: Vec<&'static str>,
    /// Where the first of a pair is there, the second is, too.
    pub together: Vec<(&'static str, &'static str)>,
}

impl Constraint {
    /// Written so that editors offer every key and name the missing one.
    fn add_to(&self, schema: &mut Map<String, Value>) {
        let choices: Vec<Value> = self.one_of.iter().map(|key| json!({ "required": [key] })).collect();
        schema.insert("oneOf".into(), choices.into());
        let needs = self.together.iter().map(|(key, needed)| ((*key).to_owned(), json!([needed])));
        schema.insert("dependentRequired".into(), Value::Object(needs.collect()));
    }
}

/// The JSON Schema (draft 2020-12) of files whose root is `record`.
pub fn json_schema(record: &'static Record, title: &str, constraints: &[Constraint]) -> Value {
    let mut definitions = Map::new();
    define(record, &mut definitions);
    for constraint in constraints {
        if let Some(definition) = definitions.get_mut(constraint.record).and_then(Value::as_object_mut) {
            constraint.add_to(definition);
        }
    }
    let mut schema = Map::new();
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".into(), title.into());
    schema.insert("$ref".into(), reference(record));
    schema.insert("$defs".into(), Value::Object(definitions));
    Value::Object(schema)
}

fn reference(record: &Record) -> Value {
    format!("#/$defs/{}", record.name).into()
}

/// Writes the definition of a record and, once each, of all that it names.
fn define(record: &'static Record, definitions: &mut Map<String, Value>) {
    if definitions.contains_key(record.name) {
        return;
    }
    // Taken before the fields are walked, so that a record which names itself ends here.
    definitions.insert(record.name.into(), Value::Null);
    let mut properties = Map::new();
    for field in record.fields {
        let mut schema = describe(&field.shape, definitions);
        if let Some(members) = schema.as_object_mut() {
            members.insert("description".into(), field.doc.into());
        }
        properties.insert(field.name.into(), schema);
    }
    let required: Vec<&str> =
        record.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": record.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    if let (Some(members), false) = (schema.as_object_mut(), required.is_empty()) {
        members.insert("required".into(), json!(required));
    }
    definitions.insert(record.name.into(), schema);
}

fn describe(shape: &Shape, definitions: &mut Map<String, Value>) -> Value {
    match shape {
        Shape::Any => json!({}),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::True => json!({ "const": true }),
        Shape::Text(form) => json!({ "type": "string", "title": form }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Integer(min, i64::MAX) => json!({ "type": "integer", "minimum": min }),
        Shape::Integer(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Word(words) => {
            let choices: Vec<Value> =
                words.iter().map(|(word, doc)| json!({ "const": word, "description": doc })).collect();
            json!({ "type": "string", "oneOf": choices })
        }
        Shape::Items(item) => json!({ "type": "array", "items": describe(item, definitions) }),
        Shape::List(item) => json!({ "type": "array", "minItems": 1, "items": describe(item, definitions) }),
        Shape::OneOrMany(item) => {
            let one = describe(item, definitions);
            let many = json!({ "type": "array", "minItems": 1, "items": one });
            json!({ "anyOf": [one, many] })
        }
        Shape::Record(record) => {
            define(record, definitions);
            json!({ "$ref": reference(record) })
        }
        Shape::Either(shapes) => {
            let choices: Vec<Value> = shapes.iter().map(|shape| describe(shape, definitions)).collect();
            json!({ "anyOf": choices })
        }
    }
}
