//! `fact`: stores values from a call in the session, for the conditions of later calls.

mod extracted_fact;

pub use extracted_fact::{ExtractedFact, FactChange};

use std::sync::Arc;

use super::{KindDefinition, PolicyKind};
use crate::call::{OnFull, SetBound};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, INVALID_PATH, MISSING_KEY, OUT_OF_RANGE};
use crate::matcher::{ITEM, ValueSource};
use crate::path::Path;
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, Shape};
use crate::source::YamlNode;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "fact",
    doc: "Stores values from a call in the session, under a name and optional keys, when the call has succeeded or when it starts. Later \
          calls can test them: `session.facts.NAME`, or `session.facts.NAME[KEY]`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    reads_result: |node| !is_attempted(node),
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| Fact::read(node, reader).map(|fact| PolicyKind::Fact(Box::new(fact))),
};

/// The greatest number of values that a set may have, and the number without `max`.
const MOST_VALUES: i64 = 100_000;
const DEFAULT_VALUES: usize = 1_000;
/// The greatest number of keys.
const MOST_KEYS: usize = 8;

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
        FieldShape::optional(
            "when",
            Shape::Word(&[
                ("success", "when the tool has succeeded and its result is not withheld"),
                (
                    "attempted",
                    "when the tool is about to run; the fact stays if the call then fails or times out, or if its result is withheld",
                ),
            ]),
            "When the fact is stored or removed. Default: `success`.",
        ),
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
    /// When it does so.
    pub when: FactTime,
}

/// When a fact is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactTime {
    /// When the tool has succeeded, and its result is not withheld.
    Success,
    /// When the tool is about to run, however the call ends.
    Attempted,
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

impl Fact {
    /// The bound of the set that it collects values in. Returns `None` for any other fact.
    pub fn set_bound(&self) -> Option<SetBound> {
        match &self.action {
            FactAction::Collect { bound, .. } => Some(*bound),
            _ => None,
        }
    }

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
        let when = if is_attempted(node) { FactTime::Attempted } else { FactTime::Success };
        is_consistent.then_some(Self { name, for_each, keys, action, when })
    }

    fn read_entry(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<(Vec<ValueSource>, FactAction)> {
        let keys = node.get("key").map(|node| read_keys(node, reader));
        let action =
            if let Some(collect) = node.get("collect") {
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
                    None if is_attempted(node) => {
                        let message = "`when: attempted` needs `value`: there is no output yet";
                        reader.report(Diagnostic::new(&MISSING_KEY, node.span, message).with_help(
                            "add for example `value: input`, or `forget: true` to remove the fact",
                        ));
                        return None;
                    }
                    None => ValueSource::Path(Path::parse("$.output").ok()?),
                })
            };
        let keys = match keys {
            Some(keys) => keys?,
            None => Vec::new(),
        };
        Some((keys, action))
    }
}

fn is_attempted(node: &YamlNode) -> bool {
    node.get("when").and_then(YamlNode::as_str) == Some("attempted")
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
