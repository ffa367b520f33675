//! Which facts have changed since the session was last stored. The store's state of a session is authoritative but for these, so that no
//! process brings back what another one has replaced or removed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::SessionState;
use super::value_set::{SetBound, ValueSets};
use crate::json::{self, Map, Value};

/// The most removed entries that are remembered one by one. Beyond that, the whole fact counts as replaced.
const MAX_REMOVALS: usize = 10_000;

/// The changes of facts since the session was last stored, by path: a name, then keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(Vec<String>, FactChange)>", into = "Vec<(Vec<String>, FactChange)>")]
pub(super) struct UnstoredFacts {
    changes: BTreeMap<Vec<String>, FactChange>,
    removals: usize,
}

/// How a fact, or an entry of it, differs from the stored one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FactChange {
    /// It was set.
    Set,
    /// It was removed, whether it was known here or not: another process may have stored it.
    Removed,
    /// Values with these digests were added to the set, which has this bound, even if it had them.
    Added(BTreeSet<json::Digest>, SetBound),
}

impl From<Vec<(Vec<String>, FactChange)>> for UnstoredFacts {
    fn from(changes: Vec<(Vec<String>, FactChange)>) -> Self {
        Self::new(changes.into_iter().collect())
    }
}

impl From<UnstoredFacts> for Vec<(Vec<String>, FactChange)> {
    fn from(unstored: UnstoredFacts) -> Self {
        unstored.changes.into_iter().collect()
    }
}

impl UnstoredFacts {
    fn new(changes: BTreeMap<Vec<String>, FactChange>) -> Self {
        let removals = changes.values().filter(|change| **change == FactChange::Removed).count();
        Self { changes, removals }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn set(&mut self, path: Vec<String>) {
        self.replace(path, FactChange::Set);
    }

    pub(super) fn remove(&mut self, path: Vec<String>) {
        let name = path.first().cloned();
        self.replace(path, FactChange::Removed);
        if let Some(name) = name.filter(|_| self.removals > MAX_REMOVALS) {
            self.replace(vec![name], FactChange::Set);
        }
    }

    /// Values were added to a set.
    pub(super) fn add(&mut self, name: &str, values: Vec<json::Digest>, bound: SetBound, sets: &ValueSets) {
        let path = vec![name.to_owned()];
        match self.changes.entry(path.clone()).or_insert(FactChange::Added(BTreeSet::new(), bound)) {
            FactChange::Added(added, known) => {
                added.extend(values);
                *known = bound;
                if added.len() / 2 > bound.max {
                    added.retain(|digest| sets.contains(name, digest));
                }
            }
            FactChange::Set => {}
            FactChange::Removed => self.replace(path, FactChange::Set),
        }
    }

    /// Whether this whole fact was set or removed.
    fn replaces(&self, name: &str) -> bool {
        let change = self.changes.get([name.to_owned()].as_slice());
        matches!(change, Some(FactChange::Set | FactChange::Removed))
    }

    /// A change of a fact includes those of its entries.
    fn replace(&mut self, path: Vec<String>, change: FactChange) {
        let known = self.changes.range(path.clone()..).take_while(|(known, _)| known.starts_with(&path));
        let below: Vec<Vec<String>> = known.map(|(known, _)| known.clone()).collect();
        for known in below {
            self.removals -= usize::from(self.changes.remove(&known) == Some(FactChange::Removed));
        }
        self.removals += usize::from(change == FactChange::Removed);
        self.changes.insert(path, change);
    }
}

impl SessionState {
    /// Replaces the facts by those of the stored state, to which the changes that are not stored yet are applied.
    pub(super) fn rebase_facts(&mut self, stored: &Self) {
        let mut facts = stored.facts().cloned().unwrap_or_default();
        let mut sets = ValueSets::default();
        let mut full = Vec::new();
        for (path, change) in &self.unstored_facts.changes {
            let value = self.fact(path);
            match (change, value) {
                (FactChange::Added(digests, bound), Some(Value::Array(known))) => {
                    let [name] = path.as_slice() else { continue };
                    let added = self.sets.find(name, known, digests);
                    if sets.extend(name, &mut facts, &added, *bound).is_full {
                        full.push(format!("facts.{name}"));
                    }
                }
                (_, Some(value)) => put_value(&mut facts, path, value.clone()),
                (_, None) => remove_value(&mut facts, path),
            }
        }
        // A fact that was set here is known, whatever an undecided policy would have stored before.
        let is_set_here = |part: &&String| {
            part.strip_prefix("facts.").is_some_and(|name| self.unstored_facts.replaces(name))
        };
        let unknown: Vec<String> =
            stored.unknown_parts.iter().filter(|part| !is_set_here(part)).cloned().collect();
        if let Some(document) = self.document.as_object_mut() {
            document.insert("facts", Value::Object(facts));
        }
        self.sets = sets;
        unknown.iter().chain(&full).for_each(|part| self.mark_unknown(part));
    }

    /// The state to store, where the store has this state of the session, or none.
    pub(crate) fn to_stored(&self, stored: Option<&Self>) -> Self {
        let mut state = self.clone();
        if let Some(stored) = stored {
            state.merge_stored(stored);
            state.suspended = self.suspended;
        }
        state.unstored_facts = UnstoredFacts::default();
        state
    }

    /// The store has the facts of this state, or nobody else ever will.
    pub(crate) fn mark_all_stored(&mut self) {
        self.unstored_facts = UnstoredFacts::default();
    }

    /// The store has the facts of this earlier state of the session: what has not changed since is stored.
    pub(crate) fn mark_stored(&mut self, earlier: &Self) {
        let mut changes = std::mem::take(&mut self.unstored_facts).changes;
        changes.retain(|path, _| self.fact(path) != earlier.fact(path));
        self.unstored_facts = UnstoredFacts::new(changes);
    }

    /// Takes over the facts of the stored state. A fact that has changed since it was last stored and differs is unknown: nobody knows
    /// which of both states is the later one.
    pub(super) fn adopt_stored_facts(&mut self, stored: &Self) {
        let changes = std::mem::take(&mut self.unstored_facts).changes;
        let differing: Vec<String> = changes
            .keys()
            .filter(|path| self.fact(path) != stored.fact(path))
            .filter_map(|path| path.first().map(|name| format!("facts.{name}")))
            .collect();
        self.rebase_facts(stored);
        differing.iter().for_each(|part| self.mark_unknown(part));
    }

    fn facts(&self) -> Option<&Map> {
        self.document.get("facts")?.as_object()
    }

    fn fact(&self, path: &[String]) -> Option<&Value> {
        let (name, keys) = path.split_first()?;
        keys.iter().try_fold(self.facts()?.get(name)?, |value, key| value.as_object()?.get(key))
    }
}

/// Puts a value at a path. What has another form on the way is replaced.
pub(super) fn put_value(facts: &mut Map, path: &[String], value: Value) {
    let Some((name, keys)) = path.split_first() else { return };
    let mut entry = facts.entry(name.clone()).or_insert(Value::Null);
    for key in keys {
        if !entry.is_object() {
            *entry = Value::Object(Map::new());
        }
        let Some(members) = entry.as_object_mut() else { return };
        entry = members.entry(key.clone()).or_insert(Value::Null);
    }
    *entry = value;
}

pub(super) fn remove_value(facts: &mut Map, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let Some((name, keys)) = parents.split_first() else { return drop(facts.remove(last)) };
    let Some(fact) = facts.get_mut(name) else { return };
    let parent = keys.iter().try_fold(fact, |parent, key| parent.as_object_mut()?.get_mut(key));
    if let Some(Value::Object(members)) = parent {
        members.remove(last);
    }
}

#[cfg(test)]
mod tests {
    use super::super::value_set::OnFull;
    use super::*;
    use crate::json::json;

    const BOUND: SetBound = SetBound { max: 100, on_full: OnFull::Undecided };

    /// What a call does to facts; `by` tells apart who does it.
    fn change(state: &mut SessionState, kind: usize, by: &str) {
        let entry = ["k".to_owned()];
        match kind {
            0 => state.set_fact("order", None, json!({ by: 1 })),
            1 => state.set_fact_entry("order", &entry, json!(by)),
            2 => state.forget_fact("order", &entry),
            3 => state.forget_fact("order", &[]),
            4 => {
                state.collect_fact("seen", &[json!(by), json!("both")], BOUND);
            }
            _ => state.forget_fact("seen", &[]),
        }
    }
    const KINDS: usize = 6;

    /// The facts, with the values of sets in a fixed order: which process added a value first does not matter.
    fn facts(state: &SessionState) -> Map {
        let mut facts = state.facts().unwrap().clone();
        if let Some(Value::Array(set)) = facts.get_mut("seen") {
            set.sort_by_key(json::canonical_text);
        }
        facts
    }

    /// A process that shares the session, and what a naive recount knows of it: its changes since it last stored the session.
    #[derive(Default)]
    struct Process {
        live: SessionState,
        log: Vec<(usize, String)>,
    }

    /// Two processes, each with two calls that load, change and store the session, in every interleaving.
    #[test]
    fn a_store_has_the_changes_of_all_processes_in_the_order_in_which_they_were_stored() {
        let interleavings = (0u32..256).filter(|bits| bits.count_ones() == 4);
        for (bits, kinds) in interleavings.flat_map(|bits| (0..KINDS.pow(4)).map(move |kinds| (bits, kinds)))
        {
            let mut processes = [Process::default(), Process::default()];
            let (mut stored, mut expected) = (SessionState::default(), SessionState::default());
            let mut steps = [0, 0];
            for step in 0..8 {
                let which = (bits >> step & 1) as usize;
                let Process { live, log } = &mut processes[which];
                let call = steps[which] / 2;
                if steps[which] % 2 == 0 {
                    live.merge_stored(&stored);
                    let kind = kinds / KINDS.pow((2 * which + call) as u32) % KINDS;
                    let by = format!("{which}{call}");
                    change(live, kind, &by);
                    log.push((kind, by));
                } else {
                    stored = live.to_stored(Some(&stored));
                    live.mark_all_stored();
                    log.drain(..).for_each(|(kind, by)| change(&mut expected, kind, &by));
                }
                steps[which] += 1;
                assert_eq!(facts(&stored), facts(&expected), "{bits:b} {kinds}");
            }
            for Process { mut live, .. } in processes {
                live.merge_stored(&stored);
                assert_eq!(facts(&live), facts(&stored), "{bits:b} {kinds}");
            }
        }
    }

    /// A call changes the session while an earlier state of it is being stored.
    #[test]
    fn what_changes_while_a_state_is_stored_is_stored_later() {
        for (first, second) in (0..KINDS).flat_map(|first| (0..KINDS).map(move |second| (first, second))) {
            let mut live = SessionState::default();
            change(&mut live, first, "a");
            let earlier = live.clone();
            change(&mut live, second, "b");
            let stored = earlier.to_stored(None);
            live.mark_stored(&earlier);
            assert_eq!(facts(&live.to_stored(Some(&stored))), facts(&live), "{first} {second}");
        }
    }
}
