//! Numbers the sessions of recordings in the order in which they begin, the same in each pass over the same recordings.

use std::collections::HashMap;

use crate::recording::RecordedCall;

/// Gives each session its number. A call without a session is one of its own.
#[derive(Debug, Default)]
pub struct SessionNumbers {
    numbers: HashMap<String, u32>,
    next: u32,
}

/// Which sessions a draft is learned from: the earlier ones. The others are held out, to test it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingSplit {
    /// The number of sessions that the draft is learned from.
    pub learned: u32,
    /// The number of all sessions.
    pub all: u32,
}

impl SessionNumbers {
    /// The number of a call's session, from 0.
    pub fn number(&mut self, call: &RecordedCall) -> u32 {
        let Some(session) = &call.record.session else { return self.take_next() };
        if let Some(number) = self.numbers.get(session) {
            return *number;
        }
        let number = self.take_next();
        self.numbers.insert(session.clone(), number);
        number
    }

    /// Splits the sessions. `held_out` is the part that is held out, from 0 to below 1; at least one session is learned from.
    pub fn split(&self, held_out: f64) -> TrainingSplit {
        let count = (f64::from(self.next) * held_out).floor().max(0.0) as u32;
        TrainingSplit { learned: self.next.saturating_sub(count), all: self.next }
    }

    fn take_next(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }
}

impl TrainingSplit {
    /// Whether a session is learned from.
    pub fn is_learned(&self, session: u32) -> bool {
        session < self.learned
    }
}
