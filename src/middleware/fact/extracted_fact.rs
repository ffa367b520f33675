//! What a `fact` policy reads from a call, and how it is stored in the session.

use super::{Fact, FactAction};
use crate::call::{CallView, ElementMemo, ElementScope, NodeRef, SessionState, fact_key};
use crate::json::{Value, approximate_size};
use crate::matcher::{MAX_ELEMENTS, Truth};
use crate::work_limit::{self, WorkLimitError};

/// How many bytes of a value are copied and digested for one unit of work.
const BYTES_PER_UNIT: u64 = 4;

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

/// What a `fact` policy did to the session for one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactChange {
    /// How many values were stored.
    pub stored: usize,
    /// How many values were found for the set.
    pub collected: usize,
    /// How many entries were removed.
    pub removed: usize,
    /// How many entries are not stored, because a key or the value is absent.
    pub absent: usize,
    /// How many entries have a key or a value that cannot be read, so that the fact is unknown.
    pub unreadable: usize,
    /// Whether the set had no room for all values.
    pub lacks_room: bool,
}

impl Fact {
    /// Reads the entries of the fact from a call.
    pub fn extract(&self, view: &CallView<'_>) -> Vec<ExtractedFact> {
        let Some(source) = &self.for_each else { return vec![self.extract_entry(view)] };
        source.with_elements(view, |elements| match elements {
            Ok(elements) if elements.len() <= MAX_ELEMENTS => {
                let memo = ElementMemo::default();
                let entry = |element: &NodeRef<'_>| {
                    let scope =
                        ElementScope { element: *element, memo: &memo, word: None, outer: view.elements };
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
    pub fn store(&self, found: Vec<ExtractedFact>, session: &mut SessionState) -> FactChange {
        let mut change = FactChange::default();
        for entry in found {
            self.store_entry(entry, session, &mut change);
        }
        change
    }

    fn store_entry(&self, found: ExtractedFact, session: &mut SessionState, change: &mut FactChange) {
        match found {
            ExtractedFact::Absent => change.absent += 1,
            ExtractedFact::Value(keys, value) => {
                session.set_fact_entry(&self.name, &keys, value);
                change.stored += 1;
            }
            ExtractedFact::Collected(values) => {
                let FactAction::Collect { bound, .. } = self.action else { return };
                let unread = session.unread_set(&self.name).map_or(0, approximate_size);
                if work_limit::spend_for(unread, BYTES_PER_UNIT).is_err() {
                    self.mark_unknown(session);
                    change.unreadable += 1;
                    return;
                }
                change.collected += values.len();
                change.lacks_room |= session.collect_fact(&self.name, &values, bound);
            }
            ExtractedFact::Forgotten(keys) => {
                session.forget_fact(&self.name, &keys);
                change.removed += 1;
            }
            ExtractedFact::Unknown => {
                self.mark_unknown(session);
                change.unreadable += 1;
            }
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
