//! `cache`: stores tool results and returns them for equal calls.

use std::time::Duration;

use super::cache_scope::{self, CacheScope};
use super::key_values::KeyValues;
use super::{KindDefinition, PolicyKind};
use crate::call::CallView;
use crate::json::{self, Value, json};
use crate::matcher::{NamePattern, PatternList};
use crate::rules_schema::{CONSTANT, FieldShape, Polarity, PolicyReader, RecordShape, Shape};
use crate::script::Expression;
use crate::source::YamlNode;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "cache",
    doc: "Caches results of matching calls and returns them for equal calls. A cache hit skips only the tool: policies of the gate and \
          settle phases still apply. Only results that a tool returned are cached.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| Cache::read(node, reader).map(|cache| PolicyKind::Cache(Box::new(cache))),
};

static RECORD: RecordShape = RecordShape {
    name: "cache",
    doc: "How long and for whom results are cached.",
    fields: &[
        FieldShape::required(
            "ttl",
            Shape::Either(&[Shape::String("a duration such as `60s`, or `forever`"), CONSTANT]),
            "How long a result is valid after the tool returned it. With `forever`, until it is evicted or invalidated.",
        ),
        FieldShape::optional(
            "max_entries",
            Shape::Integer(1, 1_000_000),
            "Maximum number of cached results; the least recently used one is evicted first. Default: 100.",
        ),
        FieldShape::optional(
            "key",
            Shape::Either(&[
                Shape::Record(&COMPUTED),
                Shape::OneOrMany(&Shape::String("a JSONPath such as `$.input.query`, or an expression")),
            ]),
            "The cache key: calls of a tool are equal if these paths and expressions have the same values for them. Default: all arguments. The order of members and the notation of numbers make no difference.",
        ),
        cache_scope::SCOPE,
        FieldShape::optional(
            "invalidate_on",
            Shape::OneOrMany(&Shape::String(
                "a tool: a name, a glob such as `update*`, or a regex such as `/^set/`",
            )),
            "Tools that change the cached data: a call of one of them, whatever its result, invalidates the whole cache.",
        ),
    ],
};

static COMPUTED: RecordShape = RecordShape {
    name: "computed_key",
    doc: "A cache key that is computed.",
    fields: &[FieldShape::required(
        "expr",
        Shape::String("an expression such as `to_lower(input.query)`"),
        "The value that equal calls share. A call for which the expression fails bypasses the cache.",
    )],
};

/// The part of a call that makes it equal to others of the tool.
#[derive(Debug)]
enum CacheKey {
    Arguments,
    Values(KeyValues),
    Computed(Box<Expression>),
}

/// Settings of a `cache` policy.
#[derive(Debug)]
pub struct Cache {
    /// How long a result is valid. `None` for `forever`.
    pub ttl: Option<Duration>,
    /// The maximum number of cached results.
    pub max_entries: usize,
    /// The tools whose calls invalidate the cache.
    pub invalidate_on: Vec<NamePattern>,
    scope: CacheScope,
    key: CacheKey,
    /// Digest of the settings that entries depend on. A reload that changes it starts with an empty cache.
    identity: String,
}

impl Cache {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let reported = reader.problem_count();
        let ttl = node.get("ttl").and_then(|node| match node.as_str() {
            Some("forever") => Some(None),
            _ => reader.read_duration(node).map(Some),
        });
        let max_entries =
            node.get("max_entries").and_then(YamlNode::as_number).and_then(json::Number::as_u64);
        let key = node.get("key").map_or(Some(CacheKey::Arguments), |node| CacheKey::read(node, reader));
        let scope = CacheScope::read(node, reader);
        let invalidate_on = node
            .get("invalidate_on")
            .map(|node| PatternList::read(node, reader).patterns)
            .unwrap_or_default();
        let key_as_written = node.get("key").map(YamlNode::to_json);
        let mut identity = vec![json!(key_as_written), json!(scope.name())];
        // A key may name definitions of the bundle: a changed one makes other calls equal.
        let named = reader.names.digests_of(&reader.definitions);
        identity.extend(named.map(|(name, digest)| json!([name.section(), name.name(), digest.to_string()])));
        let identity = json::digest(&Value::Array(identity)).short_hex();
        let max_entries = max_entries.and_then(|entries| usize::try_from(entries).ok()).unwrap_or(100);
        (reader.problem_count() == reported).then_some(Self {
            ttl: ttl?,
            max_entries,
            invalidate_on,
            scope,
            key: key?,
            identity,
        })
    }

    /// Short digest of the settings that entries depend on.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the key of a call. Two calls have the same key exactly if one's result may be returned for the other. Returns `None` if
    /// the call can't be cached, because a value of the key can't be read or the scope is unknown.
    pub fn key(&self, view: &CallView<'_>, session: &str) -> Option<String> {
        let scope = self.scope.shared_key(view, session)?;
        let (how, same) = match &self.key {
            CacheKey::Arguments => (0, view.input.clone()),
            CacheKey::Values(values) => (1, Value::Array(values.values(view).ok()?)),
            CacheKey::Computed(expression) => (2, expression.value(view).ok()?),
        };
        let (server, tool) = (&view.call.server, &view.call.tool);
        Some(json::digest(&json!([server, tool, scope, how, same])).to_string())
    }
}

impl CacheKey {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let Some(computed) = node.get("expr") else {
            return Some(Self::Values(KeyValues::read(Some(node), reader)));
        };
        let example = "write an expression whose value equal calls share, as in `to_lower(input.query)`";
        let expression = reader.read_expression(computed, example)?;
        Some(Self::Computed(Box::new(expression)))
    }
}
