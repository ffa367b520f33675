//! Facts of a session: values by name, entries by name and keys, and sets of values. They can be forgotten.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::SessionState;
use super::changes::SessionChange;
use super::value_set::{OnFull, add_missing, is_shortened};
use crate::json::{Map, Value};

/// How the facts of a session are merged with those of another state of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FactRecords {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    shapes: BTreeMap<String, FactShape>,
    /// The facts, and entries of facts, that were removed and not set again: a name, then keys. Without them, another state that still
    /// has the fact would bring it back.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    forgotten: BTreeSet<Vec<String>>,
}

/// The shape of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FactShape {
    /// One value, which may be an object.
    Value,
    /// Entries with this number of keys.
    Keys(usize),
    /// A set with at most this number of values.
    Set(usize, OnFull),
}

impl FactRecords {
    pub(super) fn is_empty(&self) -> bool {
        self.shapes.is_empty() && self.forgotten.is_empty()
    }
}

impl SessionState {
    /// Stores a value under a name, or under a name and a key; a later value replaces an earlier one.
    pub fn set_fact(&mut self, name: &str, key: Option<&str>, value: Value) {
        let keys: Vec<String> = key.map(str::to_owned).into_iter().collect();
        self.set_fact_entry(name, &keys, value);
    }

    /// Stores a value under a name and any number of keys.
    #[doc(hidden)]
    pub fn set_fact_entry(&mut self, name: &str, keys: &[String], value: Value) {
        self.log_change(|| SessionChange::FactSet {
            name: name.to_owned(),
            keys: keys.to_vec(),
            value: value.clone(),
        });
        let forgotten = &mut self.fact_records.forgotten;
        if !forgotten.is_empty() {
            forgotten.remove(&path_of(name, keys));
        }
        let shape = if keys.is_empty() { FactShape::Value } else { FactShape::Keys(keys.len()) };
        self.fact_records.shapes.insert(name.to_owned(), shape);
        if keys.is_empty() {
            self.resolve_unknown_fact(name);
        }
        let Some(facts) = self.document.get_mut("facts") else { return };
        let mut entry = facts;
        for key in std::iter::once(name).chain(keys.iter().map(String::as_str)) {
            if !entry.is_object() {
                *entry = Value::Object(Map::new());
            }
            let Some(members) = entry.as_object_mut() else { return };
            entry = members.entry(key).or_insert(Value::Null);
        }
        *entry = value;
    }

    /// Removes a fact, or the entry of it with these keys.
    #[doc(hidden)]
    pub fn forget_fact(&mut self, name: &str, keys: &[String]) {
        self.log_change(|| SessionChange::FactForgotten { name: name.to_owned(), keys: keys.to_vec() });
        if keys.is_empty() {
            self.resolve_unknown_fact(name);
        }
        let path = path_of(name, keys);
        self.remove_fact(&path);
        self.fact_records.forgotten.insert(path);
    }

    /// Adds values to the set of this name, each once. The set has at most `max` values.
    #[doc(hidden)]
    pub fn collect_fact(&mut self, name: &str, values: &[Value], max: usize, on_full: OnFull) {
        self.log_change(|| SessionChange::FactCollected {
            name: name.to_owned(),
            values: values.to_vec(),
            max,
            on_full,
        });
        self.fact_records.forgotten.remove(&path_of(name, &[]));
        self.fact_records.shapes.insert(name.to_owned(), FactShape::Set(max, on_full));
        let Some(Value::Object(facts)) = self.document.get_mut("facts") else { return };
        let set = facts.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if !set.is_array() {
            *set = Value::Array(Vec::new());
        }
        let Value::Array(known) = set else { return };
        add_missing(known, values);
        if is_shortened(known, max, on_full) {
            self.mark_unknown(&format!("facts.{name}"));
        }
    }

    /// Merges the facts of another state of the session. Where both have a fact, the other's value counts.
    pub(super) fn merge_facts(&mut self, other: &Self) {
        let others = other.document.get("facts").and_then(Value::as_object);
        for path in &other.fact_records.forgotten {
            self.remove_fact(path);
            self.fact_records.forgotten.insert(path.clone());
        }
        let shapes = other.fact_records.shapes.iter().map(|(name, shape)| (name.clone(), *shape));
        self.fact_records.shapes.extend(shapes);
        let mut full = Vec::new();
        let Some(Value::Object(known)) = self.document.get_mut("facts") else { return };
        for (name, fact) in others.into_iter().flatten() {
            let shape = self.fact_records.shapes.get(name).copied();
            match (known.get_mut(name), fact, shape) {
                (Some(Value::Array(known)), Value::Array(values), Some(FactShape::Set(max, on_full))) => {
                    add_missing(known, values);
                    if is_shortened(known, max, on_full) {
                        full.push(format!("facts.{name}"));
                    }
                }
                (Some(known @ Value::Object(_)), Value::Object(_), Some(FactShape::Keys(depth))) => {
                    merge_entries(known, fact, depth);
                }
                _ => drop(known.insert(name.clone(), fact.clone())),
            }
        }
        full.iter().for_each(|part| self.mark_unknown(part));
        // The other state has set these since they were forgotten here.
        let document = &self.document;
        self.fact_records.forgotten.retain(|path| fact_at(document, path).is_none());
    }

    fn remove_fact(&mut self, path: &[String]) {
        let Some((last, parents)) = path.split_last() else { return };
        let Some(facts) = self.document.get_mut("facts") else { return };
        let parent = parents.iter().try_fold(facts, |parent, key| parent.get_mut(key.as_str()));
        if let Some(Value::Object(members)) = parent {
            members.remove(last.as_str());
        }
    }

    /// A decided value replaces whatever an undecided policy would have stored.
    fn resolve_unknown_fact(&mut self, name: &str) {
        self.unknown_parts.retain(|known| known.strip_prefix("facts.") != Some(name));
    }
}

/// The text under which an entry with this key is stored: equal numbers are one key. Returns `None` if the value cannot be a key.
#[doc(hidden)]
pub fn fact_key(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Some(whole.to_string()),
            None => Some(number.canonical_text()),
        },
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn path_of(name: &str, keys: &[String]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(keys.iter().cloned()).collect()
}

fn fact_at<'d>(document: &'d Value, path: &[String]) -> Option<&'d Value> {
    path.iter().try_fold(document.get("facts")?, |value, key| value.get(key.as_str()))
}

/// Merges entries with this number of keys.
fn merge_entries(known: &mut Value, other: &Value, depth: usize) {
    match (known, other) {
        (Value::Object(known), Value::Object(other)) if depth > 0 => {
            for (key, value) in other {
                match known.get_mut(key) {
                    Some(entry) => merge_entries(entry, value, depth - 1),
                    None => drop(known.insert(key.clone(), value.clone())),
                }
            }
        }
        (known, other) => *known = other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    fn facts(state: &SessionState) -> &Value {
        &state.document()["facts"]
    }

    #[test]
    fn entries_have_any_number_of_keys() {
        let mut state = SessionState::default();
        state.set_fact_entry("price", &keys(&["A-1", "PL"]), json!(3));
        let mut other = SessionState::from_json(state.to_json()).unwrap();
        state.set_fact_entry("price", &keys(&["A-1", "DE"]), json!({"net": 2}));
        other.set_fact_entry("price", &keys(&["A-1", "FR"]), json!(4));
        other.set_fact_entry("price", &keys(&["A-1", "DE"]), json!({"gross": 3}));
        state.merge(&SessionState::from_json(other.to_json()).unwrap());
        assert_eq!(facts(&state), &json!({"price": {"A-1": {"PL": 3, "DE": {"gross": 3}, "FR": 4}}}));
    }

    #[test]
    fn forgotten_facts_stay_forgotten_when_states_are_merged() {
        let mut earlier = SessionState::default();
        earlier.set_fact("order", Some("W1"), json!("open"));
        earlier.set_fact("order", Some("W2"), json!("open"));
        earlier.set_fact("user", None, json!("ana"));
        let mut state = SessionState::from_json(earlier.to_json()).unwrap();
        state.forget_fact("order", &keys(&["W1"]));
        state.forget_fact("user", &[]);
        let remaining = json!({"order": {"W2": "open"}});
        assert_eq!(facts(&state), &remaining);
        let mut stored = earlier.clone();
        stored.merge(&SessionState::from_json(state.to_json()).unwrap());
        assert_eq!(facts(&stored), &remaining);
        state.merge_stored(&earlier);
        assert_eq!(facts(&state), &remaining);
        // Set again, it is there again.
        state.set_fact("order", Some("W1"), json!("paid"));
        stored.merge(&state);
        assert_eq!(facts(&stored), &json!({"order": {"W2": "open", "W1": "paid"}}));
    }

    #[test]
    fn sets_have_each_value_once_and_a_bound() {
        let mut state = SessionState::default();
        let values = [json!("a"), json!(1), json!("a"), json!(1.0)];
        state.collect_fact("seen", &values, 3, OnFull::Undecided);
        assert_eq!(facts(&state), &json!({"seen": ["a", 1]}));
        let mut other = state.clone();
        other.collect_fact("seen", &[json!("b")], 3, OnFull::Undecided);
        state.merge(&other);
        assert_eq!((facts(&state), state.unknown_parts().len()), (&json!({"seen": ["a", 1, "b"]}), 0));
        let mut full = state.clone();
        full.collect_fact("seen", &[json!("c")], 3, OnFull::Undecided);
        assert_eq!(full.unknown_parts(), ["facts.seen"]);
        state.collect_fact("seen", &[json!("c")], 3, OnFull::DropOldest);
        assert_eq!((facts(&state), state.unknown_parts().len()), (&json!({"seen": [1, "b", "c"]}), 0));
    }

    #[test]
    fn a_value_replaces_the_whole_value_of_another_state() {
        let mut stored = SessionState::default();
        stored.set_fact("identity", None, json!({"verified": true}));
        let mut state = SessionState::from_json(stored.to_json()).unwrap();
        state.set_fact("identity", None, json!({"expired": true}));
        state.merge_stored(&stored);
        assert_eq!(facts(&state), &json!({"identity": {"expired": true}}));
    }

    #[test]
    fn merged_sets_keep_their_bound() {
        let mut state = SessionState::default();
        state.collect_fact("seen", &[json!(1), json!(2)], 3, OnFull::DropOldest);
        let mut other = SessionState::default();
        other.collect_fact("seen", &[json!(3), json!(4)], 3, OnFull::DropOldest);
        state.merge(&other);
        assert_eq!(facts(&state), &json!({"seen": [2, 3, 4]}));
    }

    #[test]
    fn changes_of_concurrent_calls_are_applied_in_order() {
        let mut shared = SessionState::default();
        shared.set_fact("order", Some("W1"), json!("open"));
        let mut one = shared.clone();
        one.record_changes();
        one.forget_fact("order", &keys(&["W1"]));
        one.collect_fact("seen", &[json!("a")], 10, OnFull::Undecided);
        one.set_fact_entry("price", &keys(&["A", "PL"]), json!(1));
        let changes = one.take_changes();
        shared.collect_fact("seen", &[json!("b")], 10, OnFull::Undecided);
        shared.apply_changes(&changes);
        let expected = json!({"order": {}, "seen": ["b", "a"], "price": {"A": {"PL": 1}}});
        assert_eq!(facts(&shared), &expected);
    }
}
