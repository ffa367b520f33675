//! Facts of a session: values by name, entries by name and keys, and sets of values. They can be forgotten.

use super::SessionState;
use super::changes::SessionChange;
use super::unstored_facts::{put_value, remove_value};
use super::value_set::SetBound;
use crate::json::Value;

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
        if keys.is_empty() {
            self.resolve_unknown_fact(name);
        }
        let path = path_of(name, keys);
        if let Some(Value::Object(facts)) = self.document.get_mut("facts") {
            put_value(facts, &path, value);
        }
        self.sets.discard(name);
        self.unstored_facts.set(path);
    }

    /// Removes a fact, or the entry of it with these keys.
    #[doc(hidden)]
    pub fn forget_fact(&mut self, name: &str, keys: &[String]) {
        self.log_change(|| SessionChange::FactForgotten { name: name.to_owned(), keys: keys.to_vec() });
        if keys.is_empty() {
            self.resolve_unknown_fact(name);
        }
        let path = path_of(name, keys);
        if let Some(Value::Object(facts)) = self.document.get_mut("facts") {
            remove_value(facts, &path);
        }
        self.sets.discard(name);
        self.unstored_facts.remove(path);
    }

    /// Adds values to the set of this name, each once. A set that has no room for them is unknown, or loses its oldest values. Returns
    /// whether there was too little room.
    #[doc(hidden)]
    pub fn collect_fact(&mut self, name: &str, values: &[Value], bound: SetBound) -> bool {
        self.log_change(|| SessionChange::FactCollected {
            name: name.to_owned(),
            values: values.to_vec(),
            bound,
        });
        let Some(Value::Object(facts)) = self.document.get_mut("facts") else { return false };
        if facts.get(name).is_some_and(|fact| !fact.is_array()) {
            self.unstored_facts.set(path_of(name, &[]));
        }
        let growth = self.sets.extend(name, facts, values, bound);
        self.unstored_facts.add(name, growth.values, bound, &self.sets);
        if growth.is_full {
            self.mark_unknown(&format!("facts.{name}"));
        }
        growth.is_at_bound
    }

    /// The set of this name, if adding to it requires to read all its values first.
    #[doc(hidden)]
    pub fn unread_set(&self, name: &str) -> Option<&Value> {
        let set = self.document.get("facts")?.get(name)?;
        (set.is_array() && !self.sets.has_index(name)).then_some(set)
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

#[cfg(test)]
mod tests {
    use super::super::value_set::{MAX_SET_BYTES, OnFull};
    use super::*;
    use crate::json::json;

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    fn bound(max: usize, on_full: OnFull) -> SetBound {
        SetBound { max, on_full }
    }

    /// The state as another process loads it.
    fn reloaded(state: &SessionState) -> SessionState {
        SessionState::from_json(state.to_json()).unwrap()
    }

    fn facts(state: &SessionState) -> &Value {
        &state.document()["facts"]
    }

    #[test]
    fn entries_have_any_number_of_keys() {
        let mut stored = SessionState::default();
        stored.set_fact_entry("price", &keys(&["A-1", "PL"]), json!(3));
        let mut state = reloaded(&stored);
        stored.set_fact_entry("price", &keys(&["A-1", "DE"]), json!({"net": 2}));
        state.set_fact_entry("price", &keys(&["A-1", "FR"]), json!(4));
        state.set_fact_entry("price", &keys(&["A-1", "DE"]), json!({"gross": 3}));
        let stored = state.to_stored(Some(&stored));
        assert_eq!(facts(&stored), &json!({"price": {"A-1": {"PL": 3, "DE": {"gross": 3}, "FR": 4}}}));
    }

    #[test]
    fn forgotten_facts_stay_forgotten_when_states_are_merged() {
        let mut earlier = SessionState::default();
        earlier.set_fact("order", Some("W1"), json!("open"));
        earlier.set_fact("order", Some("W2"), json!("open"));
        earlier.set_fact("user", None, json!("ana"));
        let mut state = reloaded(&earlier);
        state.forget_fact("order", &keys(&["W1"]));
        state.forget_fact("user", &[]);
        let remaining = json!({"order": {"W2": "open"}});
        assert_eq!(facts(&state), &remaining);
        assert_eq!(facts(&state.to_stored(Some(&earlier))), &remaining);
        state.merge_stored(&earlier);
        assert_eq!(facts(&state), &remaining);
        // Set again, it is there again.
        state.set_fact("order", Some("W1"), json!("paid"));
        assert_eq!(facts(&state.to_stored(Some(&earlier))), &json!({"order": {"W2": "open", "W1": "paid"}}));
    }

    #[test]
    fn a_removal_does_not_outlive_its_being_stored() {
        let (mut one, mut two) = (SessionState::default(), SessionState::default());
        one.set_fact("order", Some("W1"), json!("open"));
        one.forget_fact("order", &keys(&["W1"]));
        let stored = one.to_stored(None);
        one.mark_stored(&stored);
        two.merge_stored(&stored);
        two.set_fact("order", Some("W1"), json!("paid"));
        let stored = two.to_stored(Some(&stored));
        one.set_fact("user", None, json!("ana"));
        let stored = one.to_stored(Some(&stored));
        one.merge_stored(&stored);
        assert_eq!(facts(&one), &json!({"order": {"W1": "paid"}, "user": "ana"}));
        assert_eq!(facts(&stored), facts(&one));
    }

    #[test]
    fn a_value_that_another_process_replaced_does_not_come_back() {
        let mut one = SessionState::default();
        one.set_fact("user", None, json!("ana"));
        one.collect_fact("seen", &[json!("a")], bound(10, OnFull::Undecided));
        let stored = one.to_stored(None);
        one.mark_stored(&stored);
        let mut two = reloaded(&stored);
        two.set_fact("user", None, json!("bob"));
        two.forget_fact("seen", &[]);
        two.collect_fact("seen", &[json!("b")], bound(10, OnFull::Undecided));
        let stored = two.to_stored(Some(&stored));
        one.collect_fact("seen", &[json!("c")], bound(10, OnFull::Undecided));
        let stored = one.to_stored(Some(&stored));
        assert_eq!(facts(&stored), &json!({"user": "bob", "seen": ["b", "c"]}));
    }

    #[test]
    fn many_removals_count_as_a_replaced_fact() {
        let mut state = SessionState::default();
        state.set_fact("order", Some("kept"), json!(1));
        for number in 0..30_000 {
            state.forget_fact("order", &[number.to_string()]);
        }
        let stored = state.to_json().to_string();
        assert!(stored.len() < 400_000, "{}", stored.len());
        let mut earlier = SessionState::default();
        earlier.set_fact("order", Some("7"), json!(1));
        assert_eq!(facts(&state.to_stored(Some(&earlier))), &json!({"order": {"kept": 1}}));
    }

    #[test]
    fn a_fact_that_was_set_again_is_known_in_the_store_too() {
        let mut state = SessionState::default();
        state.mark_unknown("facts.user");
        state.mark_unknown("facts.order");
        let stored = state.to_stored(None);
        state.mark_stored(&stored);
        state.set_fact("user", None, json!("ana"));
        assert_eq!(state.to_stored(Some(&stored)).unknown_parts(), ["facts.order"]);
    }

    /// A sealed state whose store did not answer: which of the two values is later is not known.
    #[test]
    fn an_unstored_fact_that_differs_from_the_stored_one_is_unknown() {
        let mut sealed = SessionState::default();
        sealed.set_fact("user", None, json!("ana"));
        sealed.set_fact("order", Some("W1"), json!("open"));
        let mut stored = SessionState::default();
        stored.set_fact("user", None, json!("ana"));
        stored.set_fact("order", Some("W1"), json!("paid"));
        let mut sealed = reloaded(&sealed);
        sealed.merge_into_sealed(&stored);
        assert_eq!(facts(&sealed), facts(&stored));
        assert_eq!(sealed.unknown_parts(), ["facts.order"]);
    }

    #[test]
    fn sets_have_each_value_once_and_a_bound() {
        let mut state = SessionState::default();
        let values = [json!("a"), json!(1), json!("a"), json!(1.0)];
        state.collect_fact("seen", &values, bound(3, OnFull::Undecided));
        assert_eq!(facts(&state), &json!({"seen": ["a", 1]}));
        let mut other = state.to_stored(None);
        other.collect_fact("seen", &[json!("b")], bound(3, OnFull::Undecided));
        state.merge_stored(&other);
        assert_eq!((facts(&state), state.unknown_parts().len()), (&json!({"seen": ["a", 1, "b"]}), 0));
        let mut full = state.clone();
        full.collect_fact("seen", &[json!("c")], bound(3, OnFull::Undecided));
        assert_eq!(full.unknown_parts(), ["facts.seen"]);
        state.collect_fact("seen", &[json!("c")], bound(3, OnFull::DropOldest));
        assert_eq!((facts(&state), state.unknown_parts().len()), (&json!({"seen": [1, "b", "c"]}), 0));
    }

    #[test]
    fn sets_have_a_bound_on_their_size() {
        let large = |letter: &str| json!(letter.repeat(MAX_SET_BYTES / 2));
        let mut state = SessionState::default();
        state.collect_fact("seen", &[large("a")], bound(10, OnFull::DropOldest));
        state.collect_fact("seen", &[json!("x"), large("b")], bound(10, OnFull::DropOldest));
        assert_eq!((facts(&state), state.unknown_parts().len()), (&json!({"seen": ["x", large("b")]}), 0));
        let mut undecided = state.clone();
        undecided.collect_fact("seen", &[large("c"), json!("y")], bound(10, OnFull::Undecided));
        assert_eq!(facts(&undecided), &json!({"seen": ["x", large("b"), "y"]}));
        assert_eq!(undecided.unknown_parts(), ["facts.seen"]);
        // A value that is larger than a set does not push out the others.
        state.collect_fact("seen", &[json!("z".repeat(MAX_SET_BYTES))], bound(10, OnFull::DropOldest));
        assert_eq!(facts(&state), &json!({"seen": ["x", large("b")]}));
        assert_eq!(state.unknown_parts(), ["facts.seen"]);
    }

    #[test]
    fn a_replaced_set_has_only_its_own_values() {
        let mut state = SessionState::default();
        state.collect_fact("seen", &[json!("a")], bound(10, OnFull::Undecided));
        state.set_fact("seen", None, json!(["b"]));
        state.collect_fact("seen", &[json!("a"), json!("b")], bound(10, OnFull::Undecided));
        assert_eq!(facts(&state), &json!({"seen": ["b", "a"]}));
        state.forget_fact("seen", &[]);
        state.collect_fact("seen", &[json!("b")], bound(10, OnFull::Undecided));
        assert_eq!(facts(&state), &json!({"seen": ["b"]}));
    }

    #[test]
    fn a_value_replaces_the_whole_value_of_another_state() {
        let mut stored = SessionState::default();
        stored.set_fact("identity", None, json!({"verified": true}));
        let mut state = reloaded(&stored);
        state.set_fact("identity", None, json!({"expired": true}));
        state.merge_stored(&stored);
        assert_eq!(facts(&state), &json!({"identity": {"expired": true}}));
    }

    #[test]
    fn merged_sets_keep_their_bound() {
        let mut state = SessionState::default();
        state.collect_fact("seen", &[json!(3), json!(4)], bound(3, OnFull::DropOldest));
        let mut stored = SessionState::default();
        stored.collect_fact("seen", &[json!(1), json!(2)], bound(3, OnFull::DropOldest));
        state.merge_stored(&stored);
        assert_eq!(facts(&state), &json!({"seen": [2, 3, 4]}));
    }

    #[test]
    fn changes_of_concurrent_calls_are_applied_in_order() {
        let mut shared = SessionState::default();
        shared.set_fact("order", Some("W1"), json!("open"));
        let mut one = shared.clone();
        one.record_changes();
        one.forget_fact("order", &keys(&["W1"]));
        one.collect_fact("seen", &[json!("a")], bound(10, OnFull::Undecided));
        one.set_fact_entry("price", &keys(&["A", "PL"]), json!(1));
        let changes = one.take_changes();
        shared.collect_fact("seen", &[json!("b")], bound(10, OnFull::Undecided));
        shared.apply_changes(&changes);
        let expected = json!({"order": {}, "seen": ["b", "a"], "price": {"A": {"PL": 1}}});
        assert_eq!(facts(&shared), &expected);
    }
}
