//! Counts of repeated approval requests.

use super::SessionState;
use super::changes::Change;

/// The most different requests that are open or were not approved. Beyond that, no new one is counted.
const OPEN: usize = 512;
/// The most requests that are remembered.
const REMEMBERED: usize = 4096;

impl SessionState {
    /// Counts an approval request. Returns how often it was made before, since it was last approved, or `u64::MAX` if there are too
    /// many open requests.
    pub fn note_question(&mut self, question: &str) -> u64 {
        self.changed(|| Change::Asked(question.to_owned()));
        let is_new = !self.questions.contains_key(question);
        if is_new && self.questions.keys().filter(|known| self.since_yes(known) > 0).count() >= OPEN {
            return u64::MAX;
        }
        if is_new && self.questions.len() >= REMEMBERED {
            self.forget_answered();
        }
        *self.questions.entry(question.to_owned()).or_default() += 1;
        self.since_yes(question).saturating_sub(1)
    }

    /// Resets the count of an approved request: an action that is approved again and again may be requested again and again.
    pub fn note_yes(&mut self, question: &str) {
        self.changed(|| Change::Approved(question.to_owned()));
        if let Some(asked) = self.questions.get(question).copied() {
            self.questions.insert(yes_to(question), asked);
        }
    }

    /// How often a request was made since it was last approved; 0 for a key that is not a request.
    fn since_yes(&self, question: &str) -> u64 {
        let count = |key: &str| self.questions.get(key).copied().unwrap_or_default();
        match question.starts_with(YES) {
            true => 0,
            false => count(question).saturating_sub(count(&yes_to(question))),
        }
    }

    /// Forgets requests that were approved after they were last made: they count as never made.
    fn forget_answered(&mut self) {
        let open: Vec<String> =
            self.questions.keys().filter(|known| self.since_yes(known) > 0).cloned().collect();
        self.questions
            .retain(|known, _| open.iter().any(|open| known.strip_prefix(YES).unwrap_or(known) == open));
    }
}

/// Prefix of the key that holds a request's count at its last approval.
const YES: &str = "yes ";

fn yes_to(question: &str) -> String {
    format!("{YES}{question}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_resets_the_count_of_a_request() {
        let mut state = SessionState::default();
        assert_eq!([state.note_question("a"), state.note_question("a"), state.note_question("b")], [0, 1, 0]);
        state.note_yes("a");
        assert_eq!([state.note_question("a"), state.note_question("a"), state.note_question("b")], [0, 1, 1]);
        state.note_yes("never asked");
        assert_eq!(state.note_question("never asked"), 0);
    }

    #[test]
    fn bounds_open_requests_but_not_approved_ones() {
        let mut state = SessionState::default();
        for number in 0..2 * REMEMBERED {
            let question = format!("q{number}");
            assert_eq!(state.note_question(&question), 0);
            state.note_yes(&question);
        }
        assert!(state.questions.len() <= REMEMBERED + 2);
        for number in 0..OPEN {
            assert_eq!(state.note_question(&format!("open{number}")), 0);
        }
        assert_eq!(state.note_question("one more"), u64::MAX);
        assert_eq!(state.note_question("open0"), 1);
    }

    /// Merging an earlier state does not undo an approval.
    #[test]
    fn keeps_approvals_when_states_are_merged() {
        let mut state = SessionState::default();
        state.note_question("a");
        let before = state.clone();
        state.note_yes("a");
        state.unite(&before);
        assert_eq!(state.note_question("a"), 0);
    }
}
