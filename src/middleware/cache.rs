//! `cache`: answers with what the tool gave for the same call a short while ago.

use std::time::Duration;

use serde_json::{Value, json};

use super::scope::{self, Scope};
use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, Shape};
use crate::call::CallView;
use crate::json;
use crate::matcher::NamePattern;
use crate::path::Path;
use crate::source::Node;

pub(super) static KIND: KindEntry = KindEntry {
    name: "cache",
    doc: "Keeps results of matching calls and gives them out again. It skips the tool, and nothing of gate and settle; only what \
          a tool really gave is kept.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    after_tool: |_| false,
    needs_matcher: false,
    read: |node, reader| Cache::read(node, reader).map(Kind::Cache),
};

static RECORD: Record = Record {
    name: "cache",
    doc: "How long, how many, for whom.",
    fields: &[
        Field::required(
            "ttl",
            Shape::Text("a span of time such as `60s`"),
            "How long a result is given out, counted from when the tool gave it.",
        ),
        Field::optional(
            "max_entries",
            Shape::Integer(1, 1_000_000),
            "How many results are kept; the one used longest ago gives way. Without it: 100.",
        ),
        Field::optional(
            "key",
            Shape::OneOrMany(&Shape::Text("a JSONPath such as `$.input.query`")),
            "Calls of a tool are the same if they have the same values in these places. Without it: the same arguments. The order \
             of keys and the spelling of numbers make no difference.",
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

/// A `cache` policy's own part.
#[derive(Debug)]
pub struct Cache {
    /// How long a result is given out.
    pub ttl: Duration,
    /// How many are kept.
    pub max_entries: usize,
    /// The tools that make it forget.
    pub invalidate_on: Vec<NamePattern>,
    scope: Scope,
    key: Vec<Path>,
    /// Digest of what entries depend on. A reload that changes it starts anew.
    identity: String,
}

impl Cache {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let reported = reader.reported();
        let ttl = node.get("ttl").and_then(|node| reader.duration(node));
        let max_entries =
            node.get("max_entries").and_then(Node::as_number).and_then(serde_json::Number::as_u64);
        let key = node.get("key").map(|node| reader.paths(node)).unwrap_or_default();
        let scope = Scope::read(node);
        let invalidate_on =
            node.get("invalidate_on").map(|node| NamePattern::read_many(node, reader)).unwrap_or_default();
        let places: Vec<&str> = key.iter().map(Path::text).collect();
        let identity = json::digest(&json!([places, scope.name()])).short();
        let max_entries = max_entries.and_then(|entries| usize::try_from(entries).ok()).unwrap_or(100);
        (reader.reported() == reported).then_some(Self {
            ttl: ttl?,
            max_entries,
            invalidate_on,
            scope,
            key,
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
        let arguments = if self.key.is_empty() {
            view.input.clone()
        } else {
            let values = self.key.iter().map(|path| {
                let nodes = path.nodes(view).ok()?;
                Some(nodes.iter().map(|node| node.to_json()).collect::<Value>())
            });
            values.collect::<Option<Value>>()?
        };
        let (server, tool) = (&view.call.server, &view.call.tool);
        Some(json::digest(&json!([server, tool, scope, self.key.is_empty(), arguments])).to_string())
    }
}
