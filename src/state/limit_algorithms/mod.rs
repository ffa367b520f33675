//! Rate limit algorithms: an amount and a time → admitted, or how long to wait. Integer arithmetic only, without clock or
//! lock.
//!
//! Times are in microseconds, amounts in millionths (slots in ones). A window excludes its end: what was acquired at 0 s of
//! 10 s is available again at 10 s.
//!
//! A reload may change a limit's numbers. What was acquired stays acquired, and is measured by the new numbers from then
//! on. When the clock steps back, everything counts as acquired at that moment: so nothing is admitted that would not have
//! been, and nobody waits longer than the limit's own period.

pub mod encoding;
mod limit_encoder;
mod resettable_count;
mod gcra;
mod sliding_window;

use std::time::Duration;

use jiff::Timestamp;

use self::gcra::Gcra;
use self::resettable_count::ResettableCount;
use self::sliding_window::SlidingLog;
use crate::host::{Allowance, Amount};

/// A time since the Unix epoch, or a duration, in microseconds. Both stay below 2^62, so that their sum fits.
pub type Micros = i64;

/// The answer of a limit to a requested amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitAnswer {
    /// Enough is left.
    Admitted,
    /// Enough is left after this duration and not before, if nobody else acquires any.
    After(Micros),
    /// There will never be enough, or the time is unknown.
    Never,
}

/// The real cost of an estimate that was acquired.
#[derive(Clone, Copy, Debug)]
pub struct Correction {
    /// When the estimate was acquired.
    pub acquired_at: Micros,
    /// The estimate.
    pub estimate: u64,
    /// The real cost. `None` for all that is left.
    pub cost: Option<u64>,
}

/// The used amount of one limit, by algorithm.
#[derive(Debug)]
pub enum LimitUsage {
    Gcra(Gcra),
    FixedWindow(ResettableCount),
    SlidingWindow(SlidingLog),
    Total(ResettableCount),
    Slots(u64),
}

impl LimitUsage {
    /// An unused limit.
    pub fn new(allowance: &Allowance, now: Micros) -> Self {
        match allowance {
            Allowance::Gcra { per, .. } => Self::Gcra(Gcra::new(now, micros(*per))),
            Allowance::FixedWindow { .. } => Self::FixedWindow(ResettableCount::new(now)),
            Allowance::SlidingWindow { .. } => Self::SlidingWindow(SlidingLog::default()),
            Allowance::Total { .. } => Self::Total(ResettableCount::new(now)),
            Allowance::Slots { .. } => Self::Slots(0),
        }
    }

    /// Checks whether this amount is available now, without acquiring it. If the algorithm has changed, the limit is reset.
    pub fn peek(&mut self, allowance: &Allowance, now: Micros, cost: u128) -> LimitAnswer {
        self.clamp_to(now);
        let answer = self.check(allowance, now, cost);
        answer.unwrap_or_else(|| {
            *self = Self::new(allowance, now);
            self.check(allowance, now, cost).unwrap_or(LimitAnswer::Never)
        })
    }

    /// Returns `None` if the allowance has another algorithm.
    fn check(&mut self, allowance: &Allowance, now: Micros, cost: u128) -> Option<LimitAnswer> {
        Some(match (self, allowance) {
            (Self::Gcra(gcra), Allowance::Gcra { limit, per, burst }) => {
                gcra.drain(now, *limit, micros(*per), *burst);
                gcra.check(*limit, *burst, cost)
            }
            (Self::FixedWindow(count), Allowance::FixedWindow { limit, per }) => {
                count.check_window(now, *limit, micros(*per), cost)
            }
            (Self::SlidingWindow(sliding), Allowance::SlidingWindow { limit, per }) => {
                sliding.remove_expired(now, micros(*per));
                sliding.check(now, *limit, micros(*per), cost)
            }
            (Self::Total(count), Allowance::Total { limit, keep }) => {
                count.check_total(now, *limit, micros(*keep), cost)
            }
            (Self::Slots(held), Allowance::Slots { max }) => {
                if u128::from(*held) + cost <= u128::from(*max) {
                    LimitAnswer::Admitted
                } else {
                    LimitAnswer::Never
                }
            }
            _ => return None,
        })
    }

    /// Acquires the amount that [`peek`](Self::peek) has just admitted.
    pub fn acquire(&mut self, now: Micros, cost: u64) {
        match self {
            Self::Gcra(gcra) => gcra.acquire(cost),
            Self::FixedWindow(count) | Self::Total(count) => count.acquire(now, cost),
            Self::SlidingWindow(sliding) => sliding.acquire(now, cost),
            Self::Slots(held) => *held = held.saturating_add(cost),
        }
    }

    /// Corrects an estimate that was acquired. [`peek`](Self::peek) was called for `now`.
    pub fn correct(&mut self, allowance: &Allowance, now: Micros, correction: Correction) {
        let Correction { acquired_at, estimate, cost } = correction;
        let more = cost.map(|cost| cost.saturating_sub(estimate));
        let less = cost.map_or(0, |cost| estimate.saturating_sub(cost));
        match (self, allowance) {
            (Self::Gcra(gcra), Allowance::Gcra { limit, burst, .. }) => match more {
                Some(0) => gcra.give_back(now - acquired_at, *limit, estimate, less),
                more => gcra.overdraw(*burst, more),
            },
            (Self::FixedWindow(count), Allowance::FixedWindow { limit, per }) => match more {
                Some(0) if acquired_at >= now - now.rem_euclid(micros(*per)) => count.give_back(less),
                Some(0) => {}
                more => count.overdraw(now, *limit, more),
            },
            (Self::Total(count), Allowance::Total { limit, keep }) => match more {
                Some(0) if now - acquired_at < micros(*keep) => count.give_back(less),
                Some(0) => {}
                more => count.overdraw(now, *limit, more),
            },
            (Self::SlidingWindow(sliding), Allowance::SlidingWindow { limit, per }) => match more {
                Some(0) if now - acquired_at < micros(*per) => sliding.give_back(acquired_at, less),
                Some(0) => {}
                more => sliding.overdraw(now, *limit, more),
            },
            // A slot has no cost.
            _ => {}
        }
    }

    /// Moves later times back to `now`, after the clock stepped back.
    pub fn clamp_to(&mut self, now: Micros) {
        match self {
            Self::Gcra(gcra) => gcra.clamp_to(now),
            Self::FixedWindow(count) | Self::Total(count) => count.clamp_to(now),
            Self::SlidingWindow(sliding) => sliding.clamp_to(now),
            Self::Slots(_) => {}
        }
    }

    /// When the limit is back at its initial state. Returns `None` if time alone does not reset it.
    pub fn reset_at(&self, allowance: &Allowance) -> Option<Micros> {
        match (self, allowance) {
            (Self::Gcra(gcra), Allowance::Gcra { limit, .. }) => gcra.reset_at(*limit),
            (Self::FixedWindow(count), Allowance::FixedWindow { per, .. }) => {
                Some(count.last() + micros(*per))
            }
            (Self::Total(count), Allowance::Total { keep, .. }) => Some(count.last() + micros(*keep)),
            (Self::SlidingWindow(sliding), Allowance::SlidingWindow { per, .. }) => {
                Some(sliding.last() + micros(*per))
            }
            (Self::Slots(0), Allowance::Slots { .. }) => Some(Micros::MIN),
            _ => None,
        }
    }

    /// The memory that this takes, in units of a limit that is a single number.
    pub fn size(&self) -> usize {
        match self {
            Self::SlidingWindow(sliding) => sliding.len().max(1),
            _ => 1,
        }
    }
}

/// The cost of an acquisition in the unit of its limit; a slot costs one.
pub fn cost(allowance: &Allowance, cost: Amount) -> u64 {
    match allowance {
        Allowance::Slots { .. } => 1,
        _ => cost.millionths(),
    }
}

/// Whole microseconds since the epoch. Rounded down also before the epoch, so that adding a duration to a time adds the
/// same number here.
pub fn since_epoch(time: Timestamp) -> Micros {
    // No timestamp is further from the epoch than 2^59 microseconds.
    Micros::try_from(time.as_nanosecond().div_euclid(1000)).unwrap_or(Micros::MAX)
}

/// A duration in microseconds: rounded up, because a longer one is stricter; at least 1, at most `LONGEST`.
fn micros(span: Duration) -> Micros {
    const LONGEST: Micros = 1 << 61;
    let micros = span.as_nanos().div_ceil(1000);
    Micros::try_from(micros).map_or(LONGEST, |micros| micros.clamp(1, LONGEST))
}

#[cfg(test)]
mod tests;
