//! How often people were asked the same.

use super::SessionState;
use super::changes::Change;

/// Different questions that may be open, or were not answered by a yes. Beyond it none is new.
const OPEN: usize = 512;
/// Questions that are remembered in all.
const REMEMBERED: usize = 4096;

impl SessionState {
    /// Counts a question to people. Says how often it was put before, since they last said yes to it; more than can be counted where
    /// there are too many.
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

    /// People said yes to a question: what they want done again and again is asked about again and again.
    pub fn note_yes(&mut self, question: &str) {
        self.changed(|| Change::Approved(question.to_owned()));
        if let Some(asked) = self.questions.get(question).copied() {
            self.questions.insert(yes_to(question), asked);
        }
    }

    /// How often a question was put since people last said yes to it; not at all for what is no question.
    fn since_yes(&self, question: &str) -> u64 {
        let count = |key: &str| self.questions.get(key).copied().unwrap_or_default();
        match question.starts_with(YES) {
            true => 0,
            false => count(question).saturating_sub(count(&yes_to(question))),
        }
    }

    /// What people said yes to since it was asked last counts as what was never asked.
    fn forget_answered(&mut self) {
        let open: Vec<String> =
            self.questions.keys().filter(|known| self.since_yes(known) > 0).cloned().collect();
        self.questions
            .retain(|known, _| open.iter().any(|open| known.strip_prefix(YES).unwrap_or(known) == open));
    }
}

/// Stands before a question where it is counted how often it had been put at the last yes.
const YES: &str = "yes ";

fn yes_to(question: &str) -> String {
    format!("{YES}{question}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_say_yes_to_is_asked_anew() {
        let mut state = SessionState::default();
        assert_eq!([state.note_question("a"), state.note_question("a"), state.note_question("b")], [0, 1, 0]);
        state.note_yes("a");
        assert_eq!([state.note_question("a"), state.note_question("a"), state.note_question("b")], [0, 1, 1]);
        state.note_yes("never asked");
        assert_eq!(state.note_question("never asked"), 0);
    }

    #[test]
    fn a_long_session_goes_on_asking_what_is_answered_by_a_yes() {
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

    /// What an earlier state knew takes no yes back.
    #[test]
    fn a_yes_stays_when_states_are_united() {
        let mut state = SessionState::default();
        state.note_question("a");
        let before = state.clone();
        state.note_yes("a");
        state.unite(&before);
        assert_eq!(state.note_question("a"), 0);
    }
}
