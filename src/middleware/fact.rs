//! `fact`: stores values from a completed call in the session, for the conditions of later calls.

use std::sync::Arc;

use super::{KindDefinition, PolicyKind};
use crate::call::{CallView, ElementMemo, ElementScope, NodeRef, OnFull, SessionState, SetBound, fact_key};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, INVALID_PATH, OUT_OF_RANGE};
use crate::json::{Value, approximate_size};
use crate::matcher::{ITEM, MAX_ELEMENTS, Truth, ValueSource};
use crate::path::Path;
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, Shape};
use crate::source::YamlNode;
use crate::work_limit::{self, WorkLimitError};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "fact",
    doc: "Stores values from a call that ran in the session, under a name and optional keys. Later calls can test them: \
          `session.facts.NAME`, or `session.facts.NAME[KEY]`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    reads_result: |_| true,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| Fact::read(node, reader).map(PolicyKind::Fact),
};

/// The greatest number of values that a set may have, and the number without `max`.
const MOST_VALUES: i64 = 100_000;
const DEFAULT_VALUES: usize = 1_000;
/// The greatest number of keys.
const MOST_KEYS: usize = 8;
/// How many bytes of a value are copied and digested for one unit of work.
const BYTES_PER_UNIT: u64 = 4;

const KEY: Shape = Shape::String("a JSONPath such as `$.input.order_id`, or an expression");

static RECORD: RecordShape = RecordShape {
    name: "fact",
    doc: "The value, and the name it is stored under. `collect` adds to a set instead, `forget` removes.",
    fields: &[
        FieldShape::required("name", Shape::String("a name"), "The fact's name."),
        FieldShape::optional(
            "key",
            Shape::Either(&[KEY, Shape::NonEmptyList(&KEY)]),
            "Stores one value for each value of this key, or of these keys: `[input.article, input.country]` is read as \
             `session.facts.NAME[ARTICLE][COUNTRY]`. Default: only the latest value is stored.",
        ),
        FieldShape::optional(
            "for_each",
            Shape::String(
                "a JSONPath such as `$.result.orders[*]`, or an expression that results in an array",
            ),
            "Stores an entry for each of these elements: `key` and `value` read it as `item`.",
        ),
        FieldShape::optional(
            "value",
            Shape::String("a JSONPath such as `$.result`, or an expression"),
            "The value to store. Default: `$.output`.",
        ),
        FieldShape::optional(
            "collect",
            Shape::String("a JSONPath such as `$.result.links`, or an expression"),
            "Adds this value, or each element of an array, to a set. Conditions read the set as an array.",
        ),
        FieldShape::optional(
            "max",
            Shape::Integer(1, MOST_VALUES),
            "The greatest number of values of the set, which has at most 4 MiB. Default: 1,000.",
        ),
        FieldShape::optional(
            "on_full",
            Shape::Word(&[
                ("undecided", "the fact becomes unknown: conditions that read it are undecided"),
                ("drop_oldest", "the oldest values are removed"),
            ]),
            "What happens to a set that has more values. Default: `undecided`.",
        ),
        FieldShape::optional("forget", Shape::True, "Removes the fact, or its entry with this key."),
    ],
};

/// Settings of a `fact` policy.
#[derive(Debug)]
pub struct Fact {
    /// The fact's name.
    pub name: String,
    /// The elements, each with an entry.
    pub for_each: Option<ValueSource>,
    /// The keys.
    pub keys: Vec<ValueSource>,
    /// What the policy does.
    pub action: FactAction,
}

/// What a `fact` policy does.
#[derive(Debug)]
pub enum FactAction {
    /// Stores a value.
    Set(ValueSource),
    /// Adds values to a set.
    Collect {
        /// The value, or an array of values.
        values: ValueSource,
        /// How many it may have, and what it does when it is full.
        bound: SetBound,
    },
    /// Removes the fact or an entry of it.
    Forget,
}

/// What a `fact` policy stores for a call.
#[derive(Debug)]
pub enum ExtractedFact {
    /// Nothing: the key or the value is absent.
    Absent,
    /// The value for these keys.
    Value(Vec<String>, Value),
    /// The values to add to the set.
    Collected(Vec<Value>),
    /// The entry with these keys is removed.
    Forgotten(Vec<String>),
    /// A value on the path has the wrong type, so the fact is unknown.
    Unknown,
}

impl Fact {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let is_consistent = check_combination(node, reader);
        let name = node.get("name")?.as_str()?.to_owned();
        let for_each = node.get("for_each").map(|node| ValueSource::read(node, reader));
        let outer = Arc::clone(&reader.names);
        if let Some(Some(source)) = &for_each {
            let element = source.element_name(ITEM.to_owned(), reader.names.elements());
            Arc::make_mut(&mut reader.names).add_element(element);
        }
        let entry = Self::read_entry(node, reader);
        reader.names = outer;
        let (keys, action) = entry?;
        let for_each = match for_each {
            Some(source) => Some(source?),
            None => None,
        };
        is_consistent.then_some(Self { name, for_each, keys, action })
    }

    fn read_entry(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<(Vec<ValueSource>, FactAction)> {
        let keys = node.get("key").map(|node| read_keys(node, reader));
        let action = if let Some(collect) = node.get("collect") {
            let max = node.get("max").and_then(YamlNode::as_number).and_then(|max| max.as_u64());
            let max = max.and_then(|max| usize::try_from(max).ok()).unwrap_or(DEFAULT_VALUES);
            let drops = node.get("on_full").and_then(YamlNode::as_str) == Some("drop_oldest");
            let on_full = if drops { OnFull::DropOldest } else { OnFull::Undecided };
            FactAction::Collect {
                values: ValueSource::read(collect, reader)?,
                bound: SetBound { max, on_full },
            }
        } else if node.get("forget").is_some() {
            FactAction::Forget
        } else {
            FactAction::Set(match node.get("value") {
                Some(node) => ValueSource::read(node, reader)?,
                None => ValueSource::Path(Path::parse("$.output").ok()?),
            })
        };
        let keys = match keys {
            Some(keys) => keys?,
            None => Vec::new(),
        };
        Some((keys, action))
    }

    /// Reads the entries of the fact from a completed call.
    pub fn extract(&self, view: &CallView<'_>) -> Vec<ExtractedFact> {
        let Some(source) = &self.for_each else { return vec![self.extract_entry(view)] };
        source.with_elements(view, |elements| match elements {
            Ok(elements) if elements.len() <= MAX_ELEMENTS => {
                let memo = ElementMemo::default();
                let entry = |element: &NodeRef<'_>| {
                    let scope = ElementScope { element: *element, memo: &memo, outer: view.elements };
                    self.extract_entry(&CallView { elements: Some(&scope), ..*view })
                };
                gather_collected(elements.iter().map(entry).collect())
            }
            _ => vec![ExtractedFact::Unknown],
        })
    }

    fn extract_entry(&self, view: &CallView<'_>) -> ExtractedFact {
        let mut keys = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            match key.with_values(view, read_key) {
                Ok(key) => keys.push(key),
                Err(missing) => return missing,
            }
        }
        match &self.action {
            FactAction::Forget => ExtractedFact::Forgotten(keys),
            FactAction::Set(value) => value.with_values(view, |values| match values {
                Err(_) => ExtractedFact::Unknown,
                Ok(values) if !value.is_singular() => match copy_all(values) {
                    Ok(values) => ExtractedFact::Value(keys, values.into()),
                    Err(WorkLimitError) => ExtractedFact::Unknown,
                },
                Ok([]) => ExtractedFact::Absent,
                Ok([value, ..]) => match copy(*value) {
                    Ok(value) => ExtractedFact::Value(keys, value),
                    Err(WorkLimitError) => ExtractedFact::Unknown,
                },
            }),
            FactAction::Collect { values: source, .. } => source.with_values(view, |values| match values {
                Err(_) => ExtractedFact::Unknown,
                Ok([]) => ExtractedFact::Absent,
                Ok([NodeRef::Json(Value::Array(items))]) if source.is_singular() => {
                    let items: Vec<NodeRef<'_>> = items.iter().map(NodeRef::Json).collect();
                    copy_all(&items).map_or(ExtractedFact::Unknown, ExtractedFact::Collected)
                }
                Ok(values) => copy_all(values).map_or(ExtractedFact::Unknown, ExtractedFact::Collected),
            }),
        }
    }

    /// Stores what was read in the session. A value that can't be read makes the fact unknown: tests of it are undecided.
    pub fn store(&self, found: ExtractedFact, session: &mut SessionState) {
        match found {
            ExtractedFact::Absent => {}
            ExtractedFact::Value(keys, value) => session.set_fact_entry(&self.name, &keys, value),
            ExtractedFact::Collected(values) => {
                let FactAction::Collect { bound, .. } = self.action else { return };
                let unread = session.unread_set(&self.name).map_or(0, approximate_size);
                match work_limit::spend_for(unread, BYTES_PER_UNIT) {
                    Ok(()) => session.collect_fact(&self.name, &values, bound),
                    Err(WorkLimitError) => self.mark_unknown(session),
                }
            }
            ExtractedFact::Forgotten(keys) => session.forget_fact(&self.name, &keys),
            ExtractedFact::Unknown => self.mark_unknown(session),
        }
    }

    /// Marks the fact as unknown.
    pub fn mark_unknown(&self, session: &mut SessionState) {
        session.mark_unknown(&format!("facts.{}", self.name));
    }
}

/// A copy of a value, for which units are spent: also for the digest that a set needs of it.
fn copy(node: NodeRef<'_>) -> Result<Value, WorkLimitError> {
    let bytes = node.as_json().map_or_else(|| node.as_str().map_or(0, str::len), approximate_size);
    work_limit::spend_for(bytes, BYTES_PER_UNIT)?;
    Ok(node.to_json())
}

fn copy_all(nodes: &[NodeRef<'_>]) -> Result<Vec<Value>, WorkLimitError> {
    nodes.iter().map(|node| copy(*node)).collect()
}

/// Joins all values for a set, which are added at once.
fn gather_collected(found: Vec<ExtractedFact>) -> Vec<ExtractedFact> {
    let (mut gathered, mut values) = (Vec::new(), Vec::new());
    for entry in found {
        match entry {
            ExtractedFact::Collected(more) => values.extend(more),
            other => gathered.push(other),
        }
    }
    if !values.is_empty() {
        gathered.push(ExtractedFact::Collected(values));
    }
    gathered
}

impl ExtractedFact {
    /// Everything that is stored, as JSON.
    pub fn stored_values(&self) -> Option<Value> {
        match self {
            Self::Value(keys, value) => Some(crate::json::json!([keys, value])),
            Self::Collected(values) => Some(values.iter().cloned().collect()),
            Self::Absent | Self::Forgotten(_) | Self::Unknown => None,
        }
    }
}

/// Reports keys that exclude each other.
fn check_combination(node: &YamlNode, reader: &mut PolicyReader<'_>) -> bool {
    const EXCLUSIVE: [(&str, &[&str]); 2] =
        [("collect", &["key", "value", "forget"]), ("forget", &["value"])];
    let entries = node.entries().unwrap_or_default();
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let mut pairs = EXCLUSIVE.iter().flat_map(|(key, others)| others.iter().map(move |other| (*key, *other)));
    let conflict = pairs.find_map(|(key, other)| Some((find(key)?, find(other)?)));
    let stray = ["max", "on_full"].iter().find_map(|key| find(key)).filter(|_| find("collect").is_none());
    let (message, span, label) = match (conflict, stray) {
        (Some((first, second)), _) => {
            let message = format!("`{}` and `{}` exclude each other", first.key, second.key);
            (message, second.key_span, Some(first.key_span))
        }
        (None, Some(stray)) => {
            (format!("`{}` belongs to a set, which needs `collect`", stray.key), stray.key_span, None)
        }
        (None, None) => match find("for_each") {
            Some(elements) if find("key").is_none() && find("collect").is_none() => (
                "`for_each` needs `key`: every element has its own entry".to_owned(),
                elements.key_span,
                None,
            ),
            _ => return true,
        },
    };
    let mut diagnostic = Diagnostic::new(&CONFLICTING_KEYS, span, message)
        .with_help("a fact has `value`, `collect` or `forget: true`; `key` belongs to `value` and `forget`; write for example `{ name: price, for_each: result.items, key: item.id, value: item.price }`");
    if let Some(label) = label {
        diagnostic = diagnostic.with_label(label, "the other key");
    }
    reader.report(diagnostic);
    false
}

/// Reads one key, or a list of keys.
fn read_keys(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Vec<ValueSource>> {
    let nodes = node.items().unwrap_or(std::slice::from_ref(node));
    if nodes.len() > MOST_KEYS {
        let message = format!("a fact has at most {MOST_KEYS} keys");
        reader.report(
            Diagnostic::new(&OUT_OF_RANGE, node.span, message).with_help("join some of them to one key"),
        );
        return None;
    }
    let keys: Vec<Option<ValueSource>> = nodes.iter().map(|node| ValueSource::read(node, reader)).collect();
    for (node, key) in nodes.iter().zip(&keys) {
        if key.as_ref().is_some_and(|key| !key.is_singular()) {
            reader.report(
                Diagnostic::new(
                    &INVALID_PATH,
                    node.span,
                    "`key` needs a path to a single value; this path may return several",
                )
                .with_help("write a path without `*`, `..`, slices and filters"),
            );
            return None;
        }
    }
    keys.into_iter().collect()
}

/// Returns the key, or what is known of the fact without one.
fn read_key(values: Result<&[NodeRef<'_>], Truth>) -> Result<String, ExtractedFact> {
    match values {
        Ok([]) => Err(ExtractedFact::Absent),
        Ok([NodeRef::Text(key), ..]) => Ok((*key).to_owned()),
        Ok([NodeRef::Time(_), ..]) => Err(ExtractedFact::Unknown),
        Ok([NodeRef::Json(key), ..]) => fact_key(key).ok_or(ExtractedFact::Unknown),
        Err(_) => Err(ExtractedFact::Unknown),
    }
}
