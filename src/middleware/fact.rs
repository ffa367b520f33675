//! `fact`: stores a value from a completed call in the session, for the conditions of later calls.

use super::{KindDefinition, PolicyKind};
use crate::call::{CallView, NodeRef, SessionState};
use crate::diagnostic::{Diagnostic, INVALID_PATH};
use crate::json::Value;
use crate::matcher::{Truth, ValueSource};
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
        let key = node.get("key").map(|node| ValueSource::read(node, reader));
        let value = match node.get("value") {
            Some(node) => ValueSource::read(node, reader)?,
            None => ValueSource::Path(Path::parse("$.output").ok()?),
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
            Shape::String("a JSONPath such as `$.input.order_id`, or an expression"),
            "Stores one value for each value of this key. Default: only the latest value is stored.",
        ),
        FieldShape::optional(
            "value",
            Shape::String("a JSONPath such as `$.output`, or an expression"),
            "The value to store. Default: `$.output`.",
        ),
    ],
};

/// Settings of a `fact` policy.
#[derive(Debug)]
pub struct Fact {
    /// The fact's name.
    pub name: String,
    /// The key.
    pub key: Option<ValueSource>,
    /// The value.
    pub value: ValueSource,
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
        let key = match self.key.as_ref().map(|key| key.with_values(view, read_key)) {
            None => None,
            Some(Ok(key)) => Some(key),
            Some(Err(missing)) => return missing,
        };
        self.value.with_values(view, |values| match values {
            Err(_) => ExtractedFact::Unknown,
            Ok(values) if !self.value.is_singular() => {
                ExtractedFact::Value(key, values.iter().map(|value| value.to_json()).collect())
            }
            Ok([]) => ExtractedFact::Absent,
            Ok([value, ..]) => ExtractedFact::Value(key, value.to_json()),
        })
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

/// Returns the key, or what is known of the fact without one.
fn read_key(values: Result<&[NodeRef<'_>], Truth>) -> Result<String, ExtractedFact> {
    match values {
        Ok([]) => Err(ExtractedFact::Absent),
        Ok([key, ..]) => key_text(*key).ok_or(ExtractedFact::Unknown),
        Err(_) => Err(ExtractedFact::Unknown),
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
