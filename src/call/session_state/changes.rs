//! Changes that one call makes to a session, in order. So the changes of concurrent calls are merged in the order of the calls, not
//! in the order in which they complete.

use super::{SessionState, SetBound};
use crate::call::{Amount, Masks};
use crate::json::Value;

/// The changes of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionChanges(Vec<SessionChange>);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum SessionChange {
    LabelAdded(String),
    FactSet { name: String, keys: Vec<String>, value: Value },
    FactForgotten { name: String, keys: Vec<String> },
    FactCollected { name: String, values: Vec<Value>, bound: SetBound },
    MasksAdded(Masks),
    CallCounted(String),
    MarkedUnknown(String),
    Halted(String),
    LimitAcquired(String, Amount),
    LimitReleased(String, Amount),
    InputSucceeded(String, Value),
    RecoveryCounted(String, String),
    OccurrencesRecorded(String, u64),
    QuestionCounted(String),
    QuestionReset(String),
    Suspended,
}

impl SessionChanges {
    /// Whether nothing has changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl SessionState {
    /// Records every change from now on.
    pub(crate) fn record_changes(&mut self) {
        self.changes = Some(SessionChanges::default());
    }

    /// What has changed since [`record_changes`](Self::record_changes).
    pub(crate) fn take_changes(&mut self) -> SessionChanges {
        self.changes.take().unwrap_or_default()
    }

    /// Applies the changes of a call. Counts are added; a fact gets the value that the call set, whatever its value was when the
    /// call began.
    pub(crate) fn apply_changes(&mut self, changes: &SessionChanges) {
        for change in &changes.0 {
            match change {
                SessionChange::LabelAdded(label) => self.add_label(label),
                SessionChange::FactSet { name, keys, value } => {
                    self.set_fact_entry(name, keys, value.clone())
                }
                SessionChange::FactForgotten { name, keys } => self.forget_fact(name, keys),
                SessionChange::FactCollected { name, values, bound } => {
                    self.collect_fact(name, values, *bound);
                }
                SessionChange::MasksAdded(masks) => self.add_masks(masks),
                SessionChange::CallCounted(tool) => self.count_call(tool),
                SessionChange::MarkedUnknown(part) => self.mark_unknown(part),
                SessionChange::Halted(message) => self.halt(message),
                SessionChange::LimitAcquired(limit, cost) => self.acquire(limit, *cost),
                SessionChange::LimitReleased(limit, cost) => self.release(limit, *cost),
                SessionChange::InputSucceeded(tool, input) => self.add_successful_input(tool, input.clone()),
                SessionChange::RecoveryCounted(policy, tool) => self.count_recovery(policy, tool),
                SessionChange::OccurrencesRecorded(id, count) => self.record_occurrences(id, *count),
                SessionChange::QuestionCounted(question) => drop(self.count_question(question)),
                SessionChange::QuestionReset(question) => self.reset_question(question),
                SessionChange::Suspended => self.suspended = true,
            }
        }
    }

    pub(super) fn log_change(&mut self, change: impl FnOnce() -> SessionChange) {
        if let Some(SessionChanges(changes)) = &mut self.changes {
            changes.push(change());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    fn changes(before: &SessionState, change: impl FnOnce(&mut SessionState)) -> SessionChanges {
        let mut state = before.clone();
        state.record_changes();
        change(&mut state);
        state.take_changes()
    }

    #[test]
    fn applies_the_changes_of_concurrent_calls() {
        let mut shared = SessionState::default();
        shared.count_call("pay");
        shared.set_fact("order", Some("o1"), json!("open"));
        shared.acquire("limit", Amount::from_whole(2));
        let one = changes(&shared, |one| {
            one.count_call("pay");
            one.add_label("read-mail");
            one.set_fact("order", Some("o1"), json!("paid"));
            one.acquire("limit", Amount::from_whole(1));
        });
        let two = changes(&shared, |two| {
            two.count_call("pay");
            two.set_fact("order", Some("o2"), json!("open"));
            two.release("limit", Amount::from_whole(1));
            two.halt("enough");
        });
        shared.apply_changes(&one);
        shared.apply_changes(&two);
        assert_eq!(
            shared.document(),
            &json!({ "labels": ["read-mail"], "facts": { "order": { "o1": "paid", "o2": "open" } }, "calls": { "pay": 3 } })
        );
        assert_eq!(
            (shared.acquired("limit"), shared.halt_message()),
            (Amount::from_whole(2), Some("enough"))
        );
    }

    #[test]
    fn redacts_facts_of_applied_changes() {
        let mut shared = SessionState::default();
        let mut masks = Masks::new();
        masks.add_changes(&json!("hunter22"), &json!("[password]"));
        let one = changes(&shared, |one| {
            one.set_fact("login", None, json!("hunter22"));
            one.add_masks(&masks);
        });
        shared.apply_changes(&one);
        assert_eq!(shared.redacted().document()["facts"]["login"], "[password]");
    }

    #[test]
    fn applies_facts_that_a_call_set_to_the_same_value() {
        let mut shared = SessionState::default();
        shared.set_fact("status", None, json!("bad"));
        let [good, bad] = ["good", "bad"]
            .map(|status| changes(&shared, |state| state.set_fact("status", None, json!(status))));
        shared.apply_changes(&good);
        shared.apply_changes(&bad);
        assert_eq!(shared.document()["facts"]["status"], "bad");
    }

    #[test]
    fn only_a_later_call_resolves_an_unknown_fact() {
        let before = SessionState::default();
        let undecided = changes(&before, |state| state.mark_unknown("facts.status"));
        let set = changes(&before, |state| state.set_fact("status", None, json!("good")));
        for (order, unsettled) in [([&undecided, &set], 0), ([&set, &undecided], 1)] {
            let mut state = before.clone();
            order.into_iter().for_each(|changes| state.apply_changes(changes));
            assert_eq!(state.unknown_parts().len(), unsettled);
        }
    }
}
