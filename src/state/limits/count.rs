//! A sum that is forgotten as a whole: with its window, or when nothing was taken for long.

#[cfg(feature = "file-store")]
use super::bytes::{Reader, Writer};
use super::{Answer, Micros};
use crate::host::Amount;

/// What was taken, and when last.
#[derive(Debug)]
pub struct Count {
    taken: u64,
    last: Micros,
}

impl Count {
    pub fn new(now: Micros) -> Self {
        Self { taken: 0, last: now }
    }

    /// Windows of `per` follow one another from the epoch on. With another `per` than before all that is counted counts if
    /// the last of it was taken in the window of now.
    pub fn in_window(&mut self, now: Micros, limit: Amount, per: Micros, cost: u128) -> Answer {
        let passed = now.rem_euclid(per);
        if self.last < now - passed {
            self.taken = 0;
        }
        self.answer(limit, cost, per - passed)
    }

    /// Everything counts until nothing was taken for `keep`.
    pub fn altogether(&mut self, now: Micros, limit: Amount, keep: Micros, cost: u128) -> Answer {
        let forgotten = self.last + keep;
        if forgotten <= now {
            self.taken = 0;
        }
        self.answer(limit, cost, forgotten - now)
    }

    fn answer(&self, limit: Amount, cost: u128, forgotten_after: Micros) -> Answer {
        let limit = u128::from(limit.millionths());
        if u128::from(self.taken) + cost <= limit {
            Answer::Admitted
        } else if cost <= limit {
            Answer::After(forgotten_after)
        } else {
            Answer::Never
        }
    }

    pub fn take(&mut self, now: Micros, cost: u64) {
        self.taken = self.taken.saturating_add(cost);
        self.last = now;
    }

    pub fn not_after(&mut self, now: Micros) {
        self.last = self.last.min(now);
    }

    pub fn last(&self) -> Micros {
        self.last
    }
}

#[cfg(feature = "file-store")]
impl Count {
    pub fn write(&self, writer: &mut Writer) {
        writer.number(self.taken);
        writer.micros(self.last);
    }

    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { taken: reader.number()?, last: reader.micros()? })
    }
}
