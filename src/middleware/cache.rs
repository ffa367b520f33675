//! `cache`: answers with what the tool gave for the same call a short while ago.

use std::time::Duration;

use super::key::KeyPaths;
use super::scope::{self, Scope};
use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, ScriptProblem, Shape};
use crate::call::CallView;
use crate::diagnostic::INVALID_SCRIPT;
use crate::json::{self, Value, json};
use crate::matcher::NamePattern;
use crate::script::Expression;
use crate::source::Node;

pub(super) static KIND: KindEntry = KindEntry {
    name: "cache",
    doc: "Keeps results of matching calls and gives them out again. It skips the tool, and nothing of gate and settle; only what \
          a tool really gave is kept.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: false,
    read: |node, reader| Cache::read(node, reader).map(Kind::Cache),
};

static RECORD: Record = Record {
    name: "cache",
    doc: "How long, how many, for whom.",
    fields: &[
        Field::required(
            "ttl",
            Shape::Text("a span of time such as `60s`, or `forever`"),
            "How long a result is given out, counted from when the tool gave it; `forever`: until it gives way or is forgotten.",
        ),
        Field::optional(
            "max_entries",
            Shape::Integer(1, 1_000_000),
            "How many results are kept; the one used longest ago gives way. Without it: 100.",
        ),
        Field::optional(
            "key",
            Shape::Either(&[
                Shape::Record(&COMPUTED),
                Shape::OneOrMany(&Shape::Text("a JSONPath such as `$.input.query`")),
            ]),
            "Calls of a tool are the same if they have the same values in these places, or if an expression gives the same for \
             them. Without it: the same arguments. The order of keys and the spelling of numbers make no difference.",
        ),
        scope::SCOPE,
        Field::optional(
            "invalidate_on",
            Shape::OneOrMany(&Shape::Text(
                "a tool: a name, a glob such as `update*`, or a regex such as `/^set/`",
            )),
            "Tools that change what is kept: once one of them was called, whatever came of it, everything is forgotten.",
        ),
    ],
};

static COMPUTED: Record = Record {
    name: "computed_key",
    doc: "A key that is computed.",
    fields: &[Field::required(
        "expr",
        Shape::Text("an expression such as `to_lower(input.query)`"),
        "What calls must have in common. A call for which it fails goes past the cache.",
    )],
};

/// What makes two calls of a tool the same.
#[derive(Debug)]
enum Key {
    Arguments,
    Places(KeyPaths),
    Computed(Box<Expression>),
}

/// A `cache` policy's own part.
#[derive(Debug)]
pub struct Cache {
    /// How long a result is given out, where that ends.
    pub ttl: Option<Duration>,
    /// How many are kept.
    pub max_entries: usize,
    /// The tools that make it forget.
    pub invalidate_on: Vec<NamePattern>,
    scope: Scope,
    key: Key,
    /// Digest of what entries depend on. A reload that changes it starts anew.
    identity: String,
}

impl Cache {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let reported = reader.reported();
        let ttl = node.get("ttl").and_then(|node| match node.as_str() {
            Some("forever") => Some(None),
            _ => reader.duration(node).map(Some),
        });
        let max_entries = node.get("max_entries").and_then(Node::as_number).and_then(json::Number::as_u64);
        let key = node.get("key").map_or(Some(Key::Arguments), |node| Key::read(node, reader));
        let scope = Scope::read(node, reader);
        let invalidate_on =
            node.get("invalidate_on").map(|node| NamePattern::read_many(node, reader)).unwrap_or_default();
        let key_as_written = node.get("key").map(Node::to_json);
        let identity = json::digest(&json!([key_as_written, scope.name()])).short();
        let max_entries = max_entries.and_then(|entries| usize::try_from(entries).ok()).unwrap_or(100);
        (reader.reported() == reported).then_some(Self {
            ttl: ttl?,
            max_entries,
            invalidate_on,
            scope,
            key: key?,
            identity,
        })
    }

    /// What its entries depend on, in short.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The key of a call, the same for two calls exactly if one's result may be given out for the other. Nothing where the
    /// call can't be cached: a place of the key can't be read, or the scope is not known.
    pub fn key(&self, view: &CallView<'_>, session: &str) -> Option<String> {
        let scope = self.scope.of(view, session)?;
        let (how, same) = match &self.key {
            Key::Arguments => (0, view.input.clone()),
            Key::Places(places) => (1, Value::Array(places.values(view).ok()?)),
            Key::Computed(expression) => (2, expression.value(view).ok()?),
        };
        let (server, tool) = (&view.call.server, &view.call.tool);
        Some(json::digest(&json!([server, tool, scope, how, same])).to_string())
    }
}

impl Key {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(computed) = node.get("expr") else {
            return Some(Self::Places(KeyPaths::read(Some(node), reader)));
        };
        let text = computed.as_str()?;
        match Expression::compile(text) {
            Ok(expression) => {
                reader.arguments.merge(&expression.argument_names());
                let (roots, context) = (expression.roots_read(), expression.context_reads());
                reader.check_reads(computed, roots, context).then(|| Self::Computed(Box::new(expression)))
            }
            Err(error) => {
                let example = "write something that calls have in common, as in `to_lower(input.query)`";
                let ScriptProblem { range, message, help } =
                    ScriptProblem::of(text, error, "expression", example);
                reader.report_in(&INVALID_SCRIPT, computed, range, message, Some(help));
                None
            }
        }
    }
}
