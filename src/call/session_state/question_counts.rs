//! Counts of repeated approval requests.

use super::SessionState;
use super::changes::SessionChange;

/// The most different requests that are open or were not approved. Beyond that, no new one is counted.
const MAX_OPEN: usize = 512;
/// The most requests that are remembered.
const MAX_REMEMBERED: usize = 4096;

impl SessionState {
    /// Counts an approval request. Returns how often it was made before, since it was last approved, or `u64::MAX` if there are too
    /// many open requests.
    #[doc(hidden)]
    pub fn count_question(&mut self, question: &str) -> u64 {
        self.log_change(|| SessionChange::QuestionCounted(question.to_owned()));
        let is_new = !self.questions.contains_key(question);
        if is_new
            && self.questions.keys().filter(|known| self.count_since_approval(known) > 0).count() >= MAX_OPEN
        {
            return u64::MAX;
        }
        if is_new && self.questions.len() >= MAX_REMEMBERED {
            self.forget_approved();
        }
        *self.questions.entry(question.to_owned()).or_default() += 1;
        self.count_since_approval(question).saturating_sub(1)
    }

    /// Resets the count of an approved request: an action that is approved again and again may be requested again and again.
    #[doc(hidden)]
    pub fn reset_question(&mut self, question: &str) {
        self.log_change(|| SessionChange::QuestionReset(question.to_owned()));
        if let Some(count) = self.questions.get(question).copied() {
            self.questions.insert(approval_key(question), count);
        }
    }

    /// How often a request was made since it was last approved; 0 for a key that is not a request.
    fn count_since_approval(&self, question: &str) -> u64 {
        let count = |key: &str| self.questions.get(key).copied().unwrap_or_default();
        match question.starts_with(APPROVAL_PREFIX) {
            true => 0,
            false => count(question).saturating_sub(count(&approval_key(question))),
        }
    }

    /// Forgets requests that were approved after they were last made: they count as never made.
    fn forget_approved(&mut self) {
        let open: Vec<String> =
            self.questions.keys().filter(|known| self.count_since_approval(known) > 0).cloned().collect();
        self.questions.retain(|known, _| {
            open.iter().any(|open| known.strip_prefix(APPROVAL_PREFIX).unwrap_or(known) == open)
        });
    }
}

/// Prefix of the key that holds a request's count at its last approval.
const APPROVAL_PREFIX: &str = "yes ";

fn approval_key(question: &str) -> String {
    format!("{APPROVAL_PREFIX}{question}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_resets_the_count_of_a_request() {
        let mut state = SessionState::default();
        assert_eq!(
            [state.count_question("a"), state.count_question("a"), state.count_question("b")],
            [0, 1, 0]
        );
        state.reset_question("a");
        assert_eq!(
            [state.count_question("a"), state.count_question("a"), state.count_question("b")],
            [0, 1, 1]
        );
        state.reset_question("never asked");
        assert_eq!(state.count_question("never asked"), 0);
    }

    #[test]
    fn bounds_open_requests_but_not_approved_ones() {
        let mut state = SessionState::default();
        for number in 0..2 * MAX_REMEMBERED {
            let question = format!("q{number}");
            assert_eq!(state.count_question(&question), 0);
            state.reset_question(&question);
        }
        assert!(state.questions.len() <= MAX_REMEMBERED + 2);
        for number in 0..MAX_OPEN {
            assert_eq!(state.count_question(&format!("open{number}")), 0);
        }
        assert_eq!(state.count_question("one more"), u64::MAX);
        assert_eq!(state.count_question("open0"), 1);
    }

    /// Merging an earlier state does not undo an approval.
    #[test]
    fn keeps_approvals_when_states_are_merged() {
        let mut state = SessionState::default();
        state.count_question("a");
        let before = state.clone();
        state.reset_question("a");
        state.merge_stored(&before);
        assert_eq!(state.count_question("a"), 0);
    }
}
