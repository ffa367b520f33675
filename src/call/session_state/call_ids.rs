//! Names of calls by their ids, which repeat: how often each id has occurred in a session.

use super::SessionState;
use super::changes::SessionChange;

impl SessionState {
    /// Counts a call by its id, and returns a name that is unique in the session: the id itself, or for a later occurrence the id
    /// with a number.
    #[doc(hidden)]
    pub fn unique_call_id(&mut self, id: &str) -> String {
        let Some(known) = self.occurrences.get(id) else {
            self.record_occurrences(id, 1);
            return id.to_owned();
        };
        // Another call's id may equal the name of this one, so names count as occurrences, too.
        let mut count = *known;
        let name = loop {
            count += 1;
            let name = format!("{id}_{count}");
            if !self.occurrences.contains_key(&name) {
                break name;
            }
        };
        self.record_occurrences(id, count);
        self.record_occurrences(&name, 1);
        name
    }

    /// Forgets a name that [`unique_call_id`](Self::unique_call_id) returned for this id, because nothing refers to it: a later call may have
    /// it. Of several calls, the last one is released first.
    #[doc(hidden)]
    pub fn release_call_id(&mut self, id: &str, name: &str) {
        let Some(count) = self.occurrences.get_mut(id) else { return };
        if id == name {
            // Later occurrences are counted on, so that their names stay theirs.
            if *count == 1 {
                self.occurrences.remove(id);
            }
            return;
        }
        let number = name.strip_prefix(id).and_then(|rest| rest.strip_prefix('_')?.parse::<u64>().ok());
        if number == Some(*count) {
            *count -= 1;
        }
        self.occurrences.remove(name);
    }

    /// Records that a call with this id has occurred at least this often, as in a history.
    #[doc(hidden)]
    pub fn record_occurrences(&mut self, id: &str, count: u64) {
        self.log_change(|| SessionChange::OccurrencesRecorded(id.to_owned(), count));
        let known = self.occurrences.entry(id.to_owned()).or_default();
        *known = count.max(*known);
    }

    /// The same state without the counts of call ids: state from an earlier process must not rename the same calls when they are
    /// evaluated again.
    #[must_use]
    #[doc(hidden)]
    pub fn without_occurrences(mut self) -> Self {
        self.occurrences.clear();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_call_ids_leave_nothing_behind() {
        let mut state = SessionState::default();
        let names: Vec<String> = (0..3).map(|_| state.unique_call_id("c")).collect();
        assert_eq!(names, ["c", "c_2", "c_3"]);
        names.iter().rev().for_each(|name| state.release_call_id("c", name));
        assert_eq!(state, SessionState::default());
    }

    #[test]
    fn call_ids_that_are_in_use_stay_unique() {
        let mut state = SessionState::default();
        let names: Vec<String> = (0..4).map(|_| state.unique_call_id("c")).collect();
        for name in ["c_4", "c_2", "c"] {
            state.release_call_id("c", name);
        }
        let mut later: Vec<String> = (0..3).map(|_| state.unique_call_id("c")).collect();
        later.push(state.unique_call_id("c_2"));
        assert_eq!(later, ["c_4", "c_5", "c_6", "c_2"]);
        assert!(!later.contains(&names[2]));
    }
}
