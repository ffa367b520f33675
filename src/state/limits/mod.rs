//! How much of a limit is taken, and when there is enough again: integers only, without clock or lock.
//!
//! Time counts in microseconds, amounts in millionths (slots in ones). A window is a span of time without its end: what is
//! taken at 0 s of 10 s is free again at 10 s.
//!
//! A reload may change a limit's numbers. What was taken stays taken, and is measured by the new numbers from then on. A
//! clock that steps back leaves taken what was taken, as if it had been taken just now: so nothing is admitted that would
//! not have been, and nobody waits longer than the limit's own period.

#[cfg(feature = "file-store")]
pub mod bytes;
mod count;
mod gcra;
mod sliding;

use std::time::Duration;

use jiff::Timestamp;

use self::count::Count;
use self::gcra::Gcra;
use self::sliding::Sliding;
use crate::host::{Allowance, Amount};

/// A time since the Unix epoch, or a span of it, in microseconds. Both stay below 2^62, so that their sum fits.
pub type Micros = i64;

/// What a limit says to a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is enough.
    Admitted,
    /// There is enough after this time and not before, if nobody else takes.
    After(Micros),
    /// There will never be enough, or it can't be known when.
    Never,
}

/// What is taken of one limit.
#[derive(Debug)]
pub enum Spent {
    Gcra(Gcra),
    Window(Count),
    Sliding(Sliding),
    Total(Count),
    Slots(u64),
}

impl Spent {
    /// Nothing is taken yet.
    pub fn new(allowance: &Allowance, now: Micros) -> Self {
        match allowance {
            Allowance::Gcra { per, .. } => Self::Gcra(Gcra::new(now, micros(*per))),
            Allowance::FixedWindow { .. } => Self::Window(Count::new(now)),
            Allowance::SlidingWindow { .. } => Self::Sliding(Sliding::default()),
            Allowance::Total { .. } => Self::Total(Count::new(now)),
            Allowance::Slots { .. } => Self::Slots(0),
        }
    }

    /// Whether so much could be taken now; nothing is. What was taken of a limit of another algorithm is forgotten.
    pub fn peek(&mut self, allowance: &Allowance, now: Micros, cost: u128) -> Answer {
        self.not_after(now);
        let answer = self.answer(allowance, now, cost);
        answer.unwrap_or_else(|| {
            *self = Self::new(allowance, now);
            self.answer(allowance, now, cost).unwrap_or(Answer::Never)
        })
    }

    /// Nothing if the allowance is of another algorithm.
    fn answer(&mut self, allowance: &Allowance, now: Micros, cost: u128) -> Option<Answer> {
        Some(match (self, allowance) {
            (Self::Gcra(gcra), Allowance::Gcra { limit, per, burst }) => {
                gcra.settle(now, *limit, micros(*per), *burst);
                gcra.answer(*limit, *burst, cost)
            }
            (Self::Window(count), Allowance::FixedWindow { limit, per }) => {
                count.in_window(now, *limit, micros(*per), cost)
            }
            (Self::Sliding(sliding), Allowance::SlidingWindow { limit, per }) => {
                sliding.settle(now, micros(*per));
                sliding.answer(now, *limit, micros(*per), cost)
            }
            (Self::Total(count), Allowance::Total { limit, keep }) => {
                count.altogether(now, *limit, micros(*keep), cost)
            }
            (Self::Slots(held), Allowance::Slots { max }) => {
                if u128::from(*held) + cost <= u128::from(*max) {
                    Answer::Admitted
                } else {
                    Answer::Never
                }
            }
            _ => return None,
        })
    }

    /// Takes what [`peek`](Self::peek) has just admitted.
    pub fn take(&mut self, now: Micros, cost: u64) {
        match self {
            Self::Gcra(gcra) => gcra.take(cost),
            Self::Window(count) | Self::Total(count) => count.take(now, cost),
            Self::Sliding(sliding) => sliding.take(now, cost),
            Self::Slots(held) => *held = held.saturating_add(cost),
        }
    }

    /// The clock shows this time: nothing was taken later.
    pub fn not_after(&mut self, now: Micros) {
        match self {
            Self::Gcra(gcra) => gcra.not_after(now),
            Self::Window(count) | Self::Total(count) => count.not_after(now),
            Self::Sliding(sliding) => sliding.not_after(now),
            Self::Slots(_) => {}
        }
    }

    /// From when on this is as good as new. Nothing if time alone does not bring that about.
    pub fn fresh_at(&self, allowance: &Allowance) -> Option<Micros> {
        match (self, allowance) {
            (Self::Gcra(gcra), Allowance::Gcra { limit, .. }) => gcra.fresh_at(*limit),
            (Self::Window(count), Allowance::FixedWindow { per, .. }) => Some(count.last() + micros(*per)),
            (Self::Total(count), Allowance::Total { keep, .. }) => Some(count.last() + micros(*keep)),
            (Self::Sliding(sliding), Allowance::SlidingWindow { per, .. }) => {
                Some(sliding.last() + micros(*per))
            }
            (Self::Slots(0), Allowance::Slots { .. }) => Some(Micros::MIN),
            _ => None,
        }
    }

    /// How much memory this takes, beside a limit that is a single number, which is 1.
    pub fn size(&self) -> usize {
        match self {
            Self::Sliding(sliding) => sliding.len().max(1),
            _ => 1,
        }
    }
}

/// What a take costs in the unit of its limit: a slot is one.
pub fn cost(allowance: &Allowance, cost: Amount) -> u64 {
    match allowance {
        Allowance::Slots { .. } => 1,
        _ => cost.millionths(),
    }
}

/// Whole microseconds since the epoch, rounded down also before it, so that adding some to a time adds as many here.
pub fn since_epoch(time: Timestamp) -> Micros {
    // No timestamp is further from the epoch than 2^59 microseconds.
    Micros::try_from(time.as_nanosecond().div_euclid(1000)).unwrap_or(Micros::MAX)
}

/// A span of time, rounded up because a longer one is stricter, and at least 1. What is longer than any time there is
/// counts as that.
fn micros(span: Duration) -> Micros {
    const LONGEST: Micros = 1 << 61;
    let micros = span.as_nanos().div_ceil(1000);
    Micros::try_from(micros).map_or(LONGEST, |micros| micros.clamp(1, LONGEST))
}

#[cfg(test)]
mod tests;
