//! `fact`: keeps a value out of a settled call for later calls to test.

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Record, Shape};
use crate::call::{CallView, Node, SessionState};
use crate::diagnostic::{Diagnostic, INVALID_PATH};
use crate::json::Value;
use crate::path::Path;

pub(super) static KIND: KindEntry = KindEntry {
    name: "fact",
    doc: "Keeps a value out of a call that ran, under a name and an optional key, for later calls to test: \
          `$.session.facts.NAME`, or `$.session.facts.NAME.KEY`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    after_tool: |_| true,
    needs_matcher: false,
    of_run: false,
    read: |node, reader| {
        let name = node.get("name")?.as_str()?.to_owned();
        let key = node.get("key").map(|node| reader.path(node));
        let value = match node.get("value") {
            Some(node) => reader.path(node)?,
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
                "a key is one value, and this path may yield several",
            ));
            return None;
        }
        Some(Kind::Fact(Fact { name, key, value }))
    },
};

static RECORD: Record = Record {
    name: "fact",
    doc: "What is kept, and under which name.",
    fields: &[
        Field::required("name", Shape::Text("a name"), "The fact's name."),
        Field::optional(
            "key",
            Shape::Text("a JSONPath such as `$.input.order_id`"),
            "Keeps one value for each value of this place. Without it: one value, the latest.",
        ),
        Field::optional(
            "value",
            Shape::Text("a JSONPath such as `$.output`"),
            "What is kept. Without it: `$.output`.",
        ),
    ],
};

/// A `fact` policy's own part.
#[derive(Debug)]
pub struct Fact {
    /// The fact's name.
    pub name: String,
    /// Where its key stands.
    pub key: Option<Path>,
    /// What is kept.
    pub value: Path,
}

/// What a call holds for a fact.
#[derive(Debug)]
pub enum Found {
    /// Its key or value is not there.
    Nothing,
    /// Its key, where it has one, and its value.
    Value(Option<String>, Value),
    /// A type on the way is wrong, so it is unknown what the fact would be.
    Unreadable,
}

impl Fact {
    /// Looks for the fact in a settled call.
    pub fn find(&self, view: &CallView<'_>) -> Found {
        let key = match self.key.as_ref().map(|path| path.nodes(view)) {
            None => None,
            Some(Err(_)) => return Found::Unreadable,
            Some(Ok(nodes)) => match nodes.first().map(|node| key_text(*node)) {
                None => return Found::Nothing,
                Some(None) => return Found::Unreadable,
                Some(key) => key,
            },
        };
        let Ok(nodes) = self.value.nodes(view) else { return Found::Unreadable };
        if !self.value.is_singular() {
            return Found::Value(key, nodes.iter().map(|node| node.to_json()).collect());
        }
        nodes.first().map_or(Found::Nothing, |node| Found::Value(key, node.to_json()))
    }

    /// Keeps what was found. What can't be read makes the fact unsettled: tests of it are undecided.
    pub fn keep(&self, found: Found, session: &mut SessionState) {
        match found {
            Found::Nothing => {}
            Found::Value(key, value) => session.keep_fact(&self.name, key.as_deref(), value),
            Found::Unreadable => self.unsettle(session),
        }
    }

    /// Notes that the fact could not be decided.
    pub fn unsettle(&self, session: &mut SessionState) {
        session.unsettle(&format!("facts.{}", self.name));
    }
}

/// A key's text: a string is its own, equal numbers have the same.
fn key_text(node: Node<'_>) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.to_owned()),
        Node::Json(Value::String(text)) => Some(text.clone()),
        Node::Json(Value::Number(number)) => match number.as_i64() {
            Some(whole) => Some(whole.to_string()),
            None => Some(number.canonical()),
        },
        Node::Json(Value::Bool(value)) => Some(value.to_string()),
        Node::Json(_) => None,
    }
}
