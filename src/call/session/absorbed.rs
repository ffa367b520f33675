//! What calls that ran side by side have changed, put together.

use super::SessionState;
use crate::json::{Map, Value};

impl SessionState {
    /// Takes in what one call has changed: it began with `before` and left `after`, while other calls may have changed this state.
    /// Counts are added, labels and facts are kept as after it; nothing that others left is lost.
    pub fn absorb(&mut self, before: &Self, after: &Self) {
        for label in texts(&after.document, "labels") {
            self.add_label(label);
        }
        self.absorb_facts(before, after);
        self.absorb_calls(before, after);
        for part in after.unsettled.iter().filter(|part| !before.unsettled.contains(part)) {
            self.unsettle(part);
        }
        // A fact that was undecided and is kept anew by this call is settled by it.
        self.unsettled.retain(|part| after.unsettled.contains(part) || !before.unsettled.contains(part));
        if let Some(halted) = &after.halted {
            self.halt(halted);
        }
        for (limit, amount) in &after.taken {
            let had = before.taken(limit);
            let now = self.taken.entry(limit.clone()).or_default();
            *now = now.plus(amount.minus(had)).minus(had.minus(*amount));
        }
        for (tool, inputs) in &after.worked {
            let known = before.worked(tool);
            let new = inputs.iter().filter(|input| !known.contains(input));
            new.for_each(|input| self.note_worked(tool, input.clone()));
        }
        for ((policy, tool), count) in &after.invitations {
            (before.invitations(policy, tool)..*count).for_each(|_| self.invite(policy, tool));
        }
        for (question, count) in &after.questions {
            let had = before.questions.get(question).copied().unwrap_or_default();
            *self.questions.entry(question.clone()).or_default() += count.saturating_sub(had);
        }
        for (id, count) in &after.occurrences {
            self.note_occurrences(id, *count);
        }
        self.suspended |= after.suspended;
        self.masks.unite(&after.masks);
    }

    fn absorb_facts(&mut self, before: &Self, after: &Self) {
        let Some(Value::Object(known)) = self.document.get_mut("facts") else { return };
        for (name, fact) in members(&after.document, "facts") {
            let had = members(&before.document, "facts").find(|(known, _)| *known == name);
            match (had.map(|(_, fact)| fact), fact) {
                (Some(had), fact) if had == fact => {}
                (had, Value::Object(keyed)) if known.get(name).is_some_and(Value::is_object) => {
                    let had = had.and_then(Value::as_object);
                    let new =
                        keyed.iter().filter(|(key, fact)| had.and_then(|had| had.get(*key)) != Some(fact));
                    let new: Map = new.map(|(key, fact)| (key.clone(), fact.clone())).collect();
                    if let Some(Value::Object(keyed)) = known.get_mut(name) {
                        keyed.extend(new);
                    }
                }
                _ => drop(known.insert(name.clone(), fact.clone())),
            }
        }
    }

    fn absorb_calls(&mut self, before: &Self, after: &Self) {
        let Some(Value::Object(known)) = self.document.get_mut("calls") else { return };
        let count = |calls: &Map, tool: &str| calls.get(tool).and_then(Value::as_u64).unwrap_or(0);
        let had = before.document.get("calls").and_then(Value::as_object);
        for (tool, calls) in members(&after.document, "calls") {
            let had = had.map_or(0, |had| count(had, tool));
            let new = calls.as_u64().unwrap_or(0).saturating_sub(had);
            if new > 0 {
                known.insert(tool.clone(), (count(known, tool) + new).into());
            }
        }
    }
}

fn members<'v>(document: &'v Value, part: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    document.get(part).and_then(Value::as_object).into_iter().flatten()
}

fn texts<'v>(document: &'v Value, part: &str) -> impl Iterator<Item = &'v str> {
    document.get(part).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;
    use crate::call::Amount;

    #[test]
    fn what_two_calls_changed_at_once_is_all_there() {
        let mut shared = SessionState::default();
        shared.count_call("pay");
        shared.keep_fact("order", Some("o1"), json!("open"));
        shared.take("limit", Amount::whole(2));
        let before = shared.clone();
        let (mut one, mut two) = (before.clone(), before.clone());
        one.count_call("pay");
        one.add_label("read-mail");
        one.keep_fact("order", Some("o1"), json!("paid"));
        one.take("limit", Amount::whole(1));
        two.count_call("pay");
        two.keep_fact("order", Some("o2"), json!("open"));
        two.give_back("limit", Amount::whole(1));
        two.halt("enough");
        shared.absorb(&before, &one);
        shared.absorb(&before, &two);
        assert_eq!(
            shared.document(),
            &json!({ "labels": ["read-mail"], "facts": { "order": { "o1": "paid", "o2": "open" } }, "calls": { "pay": 3 } })
        );
        assert_eq!((shared.taken("limit"), shared.halted()), (Amount::whole(2), Some("enough")));
    }

    #[test]
    fn a_call_that_changed_nothing_undoes_nothing() {
        let before = SessionState::default();
        let mut shared = before.clone();
        shared.keep_fact("order", None, json!("paid"));
        shared.unsettle("labels");
        let known = shared.clone();
        shared.absorb(&before, &before);
        assert_eq!(shared, known);
    }
}
