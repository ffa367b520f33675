//! A sum that is reset as a whole: at the end of its window, or when nothing was acquired for a while.

use super::limit_encoder::{LimitDecoder, LimitEncoder};
use super::{LimitAnswer, Micros};
use crate::host::Amount;

/// The acquired amount, and the time of the latest acquisition.
#[derive(Debug)]
pub struct ResettableCount {
    taken: u64,
    last: Micros,
}

impl ResettableCount {
    pub fn new(now: Micros) -> Self {
        Self { taken: 0, last: now }
    }

    /// Checks a fixed window. Windows of length `per` are aligned to the epoch. If `per` has changed, the whole sum counts
    /// if its latest part was acquired in the current window.
    pub fn check_window(&mut self, now: Micros, limit: Amount, per: Micros, cost: u128) -> LimitAnswer {
        let passed = now.rem_euclid(per);
        if self.last < now - passed {
            self.taken = 0;
        }
        self.check(limit, cost, per - passed)
    }

    /// Checks a total, which is reset when nothing was acquired for `keep`.
    pub fn check_total(&mut self, now: Micros, limit: Amount, keep: Micros, cost: u128) -> LimitAnswer {
        let forgotten = self.last + keep;
        if forgotten <= now {
            self.taken = 0;
        }
        self.check(limit, cost, forgotten - now)
    }

    fn check(&self, limit: Amount, cost: u128, forgotten_after: Micros) -> LimitAnswer {
        let limit = u128::from(limit.millionths());
        if u128::from(self.taken) + cost <= limit {
            LimitAnswer::Admitted
        } else if cost <= limit {
            LimitAnswer::After(forgotten_after)
        } else {
            LimitAnswer::Never
        }
    }

    pub fn acquire(&mut self, now: Micros, cost: u64) {
        self.taken = self.taken.saturating_add(cost);
        self.last = now;
    }

    /// Acquires this amount whatever is left, or all that is left.
    pub fn overdraw(&mut self, now: Micros, limit: Amount, cost: Option<u64>) {
        let left = limit.millionths().saturating_sub(self.taken);
        self.acquire(now, cost.unwrap_or(left));
    }

    pub fn give_back(&mut self, cost: u64) {
        self.taken = self.taken.saturating_sub(cost);
    }

    pub fn clamp_to(&mut self, now: Micros) {
        self.last = self.last.min(now);
    }

    pub fn last(&self) -> Micros {
        self.last
    }
}

impl ResettableCount {
    pub fn write(&self, writer: &mut LimitEncoder) {
        writer.number(self.taken);
        writer.micros(self.last);
    }

    pub fn read(reader: &mut LimitDecoder<'_>) -> Option<Self> {
        Some(Self { taken: reader.number()?, last: reader.micros()? })
    }
}
