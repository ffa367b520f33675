//! `fact`: stores a value from a completed call in the session, for the conditions of later calls.

use super::{KindDefinition, PolicyKind};
use crate::call::{CallView, NodeRef, SessionState};
use crate::diagnostic::{Diagnostic, INVALID_PATH};
use crate::json::Value;
use crate::path::Path;
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "fact",
    doc: "Stores a value from a call that ran in the session, under a name and an optional key. Later calls can test it: \
          `$.session.facts.NAME`, or `$.session.facts.NAME.KEY`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    reads_result: |_| true,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| {
        let name = node.get("name")?.as_str()?.to_owned();
        let key = node.get("key").map(|node| reader.read_path(node));
        let value = match node.get("value") {
            Some(node) => reader.read_path(node)?,
            None => Path::parse("$.output").ok()?,
        };
        let key = match key {
            Some(key) => Some(key?),
            None => None,
        };
        if let Some(node) = node.get("key").filter(|_| key.as_ref().is_some_and(|key| !key.is_singular())) {
            reader.report(Diagnostic::new(
                &INVALID_PATH,
                node.span,
                "`key` needs a path to a single value; this path may return several",
            ));
            return None;
        }
        Some(PolicyKind::Fact(Fact { name, key, value }))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "fact",
    doc: "The value, and the name it is stored under.",
    fields: &[
        FieldShape::required("name", Shape::String("a name"), "The fact's name."),
        FieldShape::optional(
            "key",
            Shape::String("a JSONPath such as `$.input.order_id`"),
            "Stores one value for each value of this key. Default: only the latest value is stored.",
        ),
        FieldShape::optional(
            "value",
            Shape::String("a JSONPath such as `$.output`"),
            "The value to store. Default: `$.output`.",
        ),
    ],
};

/// Settings of a `fact` policy.
#[derive(Debug)]
pub struct Fact {
    /// The fact's name.
    pub name: String,
    /// The path of the key.
    pub key: Option<Path>,
    /// The path of the value.
    pub value: Path,
}

/// The value of a fact in a call.
#[derive(Debug)]
pub enum ExtractedFact {
    /// The key or the value is absent.
    Absent,
    /// The key, if the fact has one, and the value.
    Value(Option<String>, Value),
    /// A value on the path has the wrong type, so the fact is unknown.
    Unknown,
}

impl Fact {
    /// Reads the fact from a completed call.
    pub fn extract(&self, view: &CallView<'_>) -> ExtractedFact {
        let key = match self.key.as_ref().map(|path| path.nodes(view)) {
            None => None,
            Some(Err(_)) => return ExtractedFact::Unknown,
            Some(Ok(nodes)) => match nodes.first().map(|node| key_text(*node)) {
                None => return ExtractedFact::Absent,
                Some(None) => return ExtractedFact::Unknown,
                Some(key) => key,
            },
        };
        let Ok(nodes) = self.value.nodes(view) else { return ExtractedFact::Unknown };
        if !self.value.is_singular() {
            return ExtractedFact::Value(key, nodes.iter().map(|node| node.to_json()).collect());
        }
        nodes.first().map_or(ExtractedFact::Absent, |node| ExtractedFact::Value(key, node.to_json()))
    }

    /// Stores the value in the session. A value that can't be read makes the fact unknown: tests of it are undecided.
    pub fn store(&self, found: ExtractedFact, session: &mut SessionState) {
        match found {
            ExtractedFact::Absent => {}
            ExtractedFact::Value(key, value) => session.set_fact(&self.name, key.as_deref(), value),
            ExtractedFact::Unknown => self.mark_unknown(session),
        }
    }

    /// Marks the fact as unknown.
    pub fn mark_unknown(&self, session: &mut SessionState) {
        session.mark_unknown(&format!("facts.{}", self.name));
    }
}

/// Returns a key as a string. Equal numbers have the same string.
fn key_text(node: NodeRef<'_>) -> Option<String> {
    match node {
        NodeRef::Text(text) => Some(text.to_owned()),
        NodeRef::Json(Value::String(text)) => Some(text.clone()),
        NodeRef::Json(Value::Number(number)) => match number.as_i64() {
            Some(whole) => Some(whole.to_string()),
            None => Some(number.canonical_text()),
        },
        NodeRef::Json(Value::Bool(value)) => Some(value.to_string()),
        NodeRef::Json(_) => None,
    }
}
