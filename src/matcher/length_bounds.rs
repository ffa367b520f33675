//! Bounds of `length:`.

use super::comparison::{FieldComparison, type_mismatch};
use super::truth::Truth;
use crate::call::NodeRef;
use crate::diagnostic::{Diagnostic, EMPTY_VALUE};
use crate::json::JsonType;
use crate::json::Value;
use crate::rules_schema::{FieldShape, PolicyReader, RecordShape, Shape};
use crate::source::YamlNode;

/// A number of characters, items or members.
pub const COUNT_SHAPE: Shape = Shape::Integer(0, i64::MAX);

/// The keys of `length:`.
pub static LENGTH_RECORD: RecordShape = RecordShape {
    name: "length",
    doc: "Bounds for a length.",
    fields: &[
        FieldShape::optional(
            "of",
            Shape::Word(&[
                ("characters", "the characters of a string"),
                ("items", "the elements of an array"),
                ("members", "the members of an object"),
            ]),
            "What is counted. The test is undecided for a value of another type. Default: depends on the value's type; an array or an \
             object in the arguments is undecided if a string in it would give another result.",
        ),
        FieldShape::optional("eq", COUNT_SHAPE, "The length equals this."),
        FieldShape::optional("ne", COUNT_SHAPE, "The length does not equal this."),
        FieldShape::optional("gt", COUNT_SHAPE, "The length is greater than this."),
        FieldShape::optional("gte", COUNT_SHAPE, "The length is this or greater."),
        FieldShape::optional("lt", COUNT_SHAPE, "The length is less than this."),
        FieldShape::optional("lte", COUNT_SHAPE, "The length is this or less."),
    ],
};

/// A compiled `length:`.
#[derive(Debug)]
pub struct LengthBounds {
    /// The type whose parts are counted. `None` for the type of the value.
    pub of: Option<JsonType>,
    /// The bounds, all of which must hold.
    pub bounds: Vec<(FieldComparison, u64)>,
}

impl LengthBounds {
    /// Reads `length:`.
    pub fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        if node.entries().is_some_and(<[_]>::is_empty) {
            reader.report(
                Diagnostic::new(&EMPTY_VALUE, node.span, "`length` is empty")
                    .with_help("write for example `{ lte: 10 }`"),
            );
            return None;
        }
        if let Some(number) = node.as_number() {
            return Some(Self { of: None, bounds: vec![(FieldComparison::Eq, number.as_u64()?)] });
        }
        let bound = |comparison: FieldComparison| {
            Some((comparison, node.get(comparison.name())?.as_number()?.as_u64()?))
        };
        let bounds: Vec<_> = FieldComparison::ALL.into_iter().filter_map(bound).collect();
        if bounds.is_empty()
            && node.entries().is_some_and(|entries| entries.iter().all(|entry| entry.key == "of"))
        {
            reader.report(
                Diagnostic::new(&EMPTY_VALUE, node.span, "`length` has no bound")
                    .with_help("add a bound: `{ of: items, lte: 10 }`"),
            );
            return None;
        }
        let of = match node.get("of").and_then(YamlNode::as_str) {
            Some("characters") => Some(JsonType::String),
            Some("items") => Some(JsonType::Array),
            Some("members") => Some(JsonType::Object),
            _ => None,
        };
        Some(Self { of, bounds })
    }

    /// Evaluates the bounds for a value.
    pub fn eval(&self, node: NodeRef<'_>) -> Truth {
        if let Some(of) = self.of
            && of != node.json_type()
        {
            return type_mismatch(node, "length", of.with_article());
        }
        let length = match node {
            NodeRef::Json(Value::Array(items)) => items.len(),
            NodeRef::Json(Value::Object(map)) => map.len(),
            _ => match node.as_str() {
                Some(text) => text.chars().count(),
                None => return type_mismatch(node, "length", "a string, an array or an object"),
            },
        };
        self.bounds.iter().all(|(comparison, bound)| comparison.holds((length as u64).cmp(bound))).into()
    }
}
