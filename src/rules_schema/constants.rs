//! `{ data: NAME }`: inserts a constant of the bundle where a kind takes a number, a duration or a list.

use super::did_you_mean::did_you_mean;
use super::policy_reader::PolicyReader;
use super::shape::{FieldShape, RecordShape, Shape};
use crate::diagnostic::{Diagnostic, UNKNOWN_NAME, closest_match};
use crate::script::DefinitionName;
use crate::source::{MappingEntry, YamlNode, YamlValue};

/// The alternative of a shape that takes a constant.
pub const CONSTANT: Shape = Shape::Record(&RECORD);

static RECORD: RecordShape = RecordShape {
    name: "constant",
    doc: "A constant of the bundle, inserted when the rules are loaded.",
    fields: &[FieldShape::required(
        "data",
        Shape::String("the name of a constant"),
        "The name under `data`.",
    )],
};

/// Returns the node with all its constants inserted, or `None` if it has none. Unknown constants, and constants of a type that the place
/// does not take, are reported.
pub fn insert_constants(node: &YamlNode, shape: &Shape, reader: &mut PolicyReader<'_>) -> Option<YamlNode> {
    insert(node, shape, "", reader)
}

fn insert(node: &YamlNode, shape: &Shape, name: &str, reader: &mut PolicyReader<'_>) -> Option<YamlNode> {
    let value = match (shape, &node.value) {
        (Shape::Either(shapes), _) => {
            let chosen = shapes.iter().find(|shape| shape.accepts_type_of(node))?;
            return match chosen {
                Shape::Record(record) if std::ptr::eq(*record, &raw const RECORD) => {
                    let constant = find_constant(node, reader)?;
                    let others = shapes.iter().filter(|shape| !is_constant(shape));
                    let takes = others.clone().find(|shape| shape.accepts_type_of(&constant));
                    let expected = takes.or_else(|| others.clone().next())?;
                    reader.check_shape(expected, &constant, name);
                    Some(constant)
                }
                chosen => insert(node, chosen, name, reader),
            };
        }
        (Shape::Record(record), YamlValue::Mapping(entries)) => {
            let field = |key: &str| record.fields.iter().find(|field| field.name == key);
            let inserted: Vec<Option<YamlNode>> = entries
                .iter()
                .map(|entry| insert(&entry.value, &field(&entry.key)?.shape, &entry.key, reader))
                .collect();
            if inserted.iter().all(Option::is_none) {
                return None;
            }
            let entries = entries.iter().zip(inserted).map(|(entry, inserted)| MappingEntry {
                value: inserted.unwrap_or_else(|| entry.value.clone()),
                ..entry.clone()
            });
            YamlValue::Mapping(entries.collect())
        }
        _ => return None,
    };
    Some(YamlNode { value, span: node.span })
}

/// Whether a shape is that of a constant.
pub(super) fn is_constant(shape: &Shape) -> bool {
    matches!(shape, Shape::Record(record) if std::ptr::eq(*record, &raw const RECORD))
}

/// Whether a mapping is meant to be a constant: it has its key, if misspelled.
pub(super) fn is_meant_as_constant(node: &YamlNode) -> bool {
    let names = |entry: &MappingEntry| did_you_mean(&entry.key, ["data"].into_iter()).is_some();
    node.get("data").is_some() || node.entries().is_some_and(|entries| entries.iter().any(names))
}

fn find_constant(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<YamlNode> {
    let key = node.get("data")?;
    let name = key.as_str()?;
    if let Some(value) = reader.names.data().constant(name) {
        let constant = YamlNode::from_json(value, node.span);
        reader.use_definition(DefinitionName::Data(name.to_owned()));
        return Some(constant);
    }
    let help = match closest_match(name, reader.names.data().names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("define it: `data: {{ {name}: … }}`"),
    };
    reader.report(
        Diagnostic::new(&UNKNOWN_NAME, key.span, format!("unknown constant `{name}`")).with_help(help),
    );
    None
}
