//! Persistence of session state: JSON form, and merging with states from elsewhere.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::unstored_facts::UnstoredFacts;
use super::value_set::ValueSets;
use super::{NameMap, SessionState};
use crate::call::{Amount, Masks};
use crate::json::{self, Map, Value, json};

impl SessionState {
    /// The state as JSON, to be stored. The host's information about the run is not included.
    pub fn to_json(&self) -> Value {
        let part = |name: &str| self.document.get(name).cloned().unwrap_or_default();
        let acquired: BTreeMap<&String, u64> =
            self.acquired.iter().map(|(limit, amount)| (limit, amount.millionths())).collect();
        let sorted = |counts: &NameMap<u64>| -> Value {
            counts
                .iter()
                .collect::<BTreeMap<_, _>>()
                .into_iter()
                .map(|(k, v)| (k.clone(), json!(v)))
                .collect()
        };
        let worked: BTreeMap<_, _> = self.successful_inputs.iter().collect();
        let mut state = json!({
            "version": VERSION,
            "labels": part("labels"),
            "facts": part("facts"),
            "calls": part("calls"),
            "unsettled": self.unknown_parts,
            "halted": self.halt_message,
            "taken": acquired,
            "worked": worked,
            "invitations": self.recoveries,
            "occurrences": sorted(&self.occurrences),
            "questions": sorted(&self.questions),
            "suspended": self.suspended,
            "run": self.run,
            "masks": self.masks.to_json(),
        });
        if let Some(members) = state.as_object_mut().filter(|_| !self.unstored_facts.is_empty()) {
            members.insert("unstoredFacts", json::serialized(&self.unstored_facts));
        }
        state
    }

    /// Reads a stored state. Returns `None` if it has another form.
    pub fn from_json(stored: Value) -> Option<Self> {
        let StoredState {
            version,
            labels,
            facts,
            calls,
            unsettled,
            halted,
            taken,
            worked,
            invitations,
            occurrences,
            questions,
            suspended,
            run,
            masks,
            unstored_facts,
        } = json::from_value(stored).ok()?;
        let acquired = taken.into_iter().map(|(limit, amount)| (limit, Amount::from_millionths(amount)));
        (version == VERSION).then(|| Self {
            document: json!({ "labels": labels, "facts": facts, "calls": calls }),
            unknown_parts: unsettled,
            unstored_facts,
            sets: ValueSets::default(),
            halt_message: halted,
            acquired: acquired.collect(),
            successful_inputs: worked,
            recoveries: invitations,
            occurrences,
            questions,
            suspended,
            run,
            is_run_known: false,
            changes: None,
            masks: Masks::from_map(masks),
        })
    }

    /// Merges the run's state. Of two different runs the later one counts; states of the same run are merged.
    fn merge_run(&mut self, other: &Self) {
        if other.run > self.run {
            self.run = other.run;
            self.suspended = other.suspended;
            self.halt_message.clone_from(&other.halt_message);
            self.acquired.clone_from(&other.acquired);
            self.recoveries.clone_from(&other.recoveries);
        }
        if other.run != self.run {
            return;
        }
        self.suspended |= other.suspended;
        self.halt_message = self.halt_message.take().or_else(|| other.halt_message.clone());
        for (limit, amount) in &other.acquired {
            let known = self.acquired.entry(limit.clone()).or_default();
            *known = (*known).max(*amount);
        }
        for (invitation, count) in &other.recoveries {
            match self.recoveries.iter_mut().find(|(known, _)| known == invitation) {
                Some((_, known)) => *known = (*known).max(*count),
                None => self.recoveries.push((invitation.clone(), *count)),
            }
        }
    }

    /// Continues from an earlier state of the session. What this one has recorded in the meantime belongs to the same run, and
    /// stays.
    #[doc(hidden)]
    pub fn restore(&mut self, seen: &Self) {
        self.run = self.run.max(seen.run);
        self.merge_stored(seen);
    }

    /// Merges the stored state of the same session. Its facts replace those that have not changed here since they were stored.
    #[doc(hidden)]
    pub fn merge_stored(&mut self, stored: &Self) {
        self.rebase_facts(stored);
        self.merge_growing(stored);
    }

    /// Merges the stored state of the same session into this one, which a history holds. The stored facts count.
    #[doc(hidden)]
    pub fn merge_into_sealed(&mut self, stored: &Self) {
        self.adopt_stored_facts(stored);
        self.merge_growing(stored);
    }

    /// Merges what only ever grows: labels are only added and counts only increase, so nothing becomes more permissive.
    fn merge_growing(&mut self, other: &Self) {
        let text = |name: &str| other.document.get(name);
        for label in text("labels").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            self.add_label(label);
        }
        if let (Some(Value::Object(known)), Some(Value::Object(calls))) =
            (self.document.get_mut("calls"), text("calls"))
        {
            for (tool, count) in calls {
                let most = known.get(tool).and_then(Value::as_u64).max(count.as_u64());
                known.insert(tool.clone(), most.into());
            }
        }
        self.merge_run(other);
        self.masks.merge(&other.masks);
        for (tool, inputs) in &other.successful_inputs {
            inputs.iter().for_each(|input| self.add_successful_input(tool, input.clone()));
        }
        for (counts, others) in
            [(&mut self.occurrences, &other.occurrences), (&mut self.questions, &other.questions)]
        {
            for (key, count) in others {
                let known = counts.entry(key.clone()).or_default();
                *known = (*known).max(*count);
            }
        }
    }
}

const VERSION: u64 = 2;

/// The stored form of a session's state.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredState {
    version: u64,
    labels: Vec<String>,
    facts: Map,
    calls: BTreeMap<String, u64>,
    unsettled: Vec<String>,
    halted: Option<String>,
    taken: BTreeMap<String, u64>,
    worked: NameMap<Vec<Value>>,
    invitations: Vec<((String, String), u64)>,
    occurrences: NameMap<u64>,
    questions: NameMap<u64>,
    suspended: bool,
    run: u64,
    masks: BTreeMap<String, String>,
    #[serde(default, rename = "unstoredFacts")]
    unstored_facts: UnstoredFacts,
}
