//! How often a tool is called: in one run of a session, and in an hour.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::support::{Evidence, UsualMaximum};

/// The most principals whose calls of the last hour are kept.
const MAX_PRINCIPALS: usize = 10_000;
/// The most calls of the last hour that are kept for a principal.
const MAX_CALLS: usize = 10_000;
const HOUR: SignedDuration = SignedDuration::from_hours(1);
const SECONDS_PER_DAY: i64 = 86_400;

/// The calls of one tool over time.
#[derive(Clone, Debug, Default)]
pub(super) struct CallRates {
    runs: BTreeMap<u32, RunCalls>,
    per_run: UsualMaximum<u64>,
    hours: BTreeMap<Option<String>, VecDeque<Timestamp>>,
    per_hour: UsualMaximum<u64>,
}

/// The calls of the current run of a session.
#[derive(Clone, Debug, Default)]
struct RunCalls {
    run: Option<String>,
    calls: u64,
}

impl CallRates {
    /// Adds a call of a session with a name. Calls without one are not known to belong together.
    pub(super) fn add_to_run(&mut self, run: Option<&str>, evidence: &Evidence<'_>) {
        let current = self.runs.entry(evidence.session).or_default();
        if run.is_some() && current.run.as_deref() != run {
            *current = RunCalls { run: run.map(str::to_owned), calls: 0 };
        }
        current.calls += 1;
        self.per_run.add(&current.calls, evidence.session, evidence);
    }

    /// Adds a call at a known time. A principal's calls count together.
    pub(super) fn add_at(&mut self, time: Timestamp, principal: Option<&str>, evidence: &Evidence<'_>) {
        let principal = principal.map(str::to_owned);
        if self.hours.len() >= MAX_PRINCIPALS && !self.hours.contains_key(&principal) {
            return;
        }
        let recent = self.hours.entry(principal).or_default();
        if recent.back().is_some_and(|last| *last > time) {
            // The clock was set back.
            recent.clear();
        }
        while recent.front().is_some_and(|first| time.duration_since(*first) >= HOUR) {
            recent.pop_front();
        }
        if recent.len() < MAX_CALLS {
            recent.push_back(time);
        }
        // A day counts once, however many calls it has.
        let day = u32::try_from(time.as_second().div_euclid(SECONDS_PER_DAY)).unwrap_or_default();
        self.per_hour.add(&(recent.len() as u64), day, evidence);
    }

    /// The most calls in one run that are usual.
    pub(super) fn per_run(&self) -> &UsualMaximum<u64> {
        &self.per_run
    }

    /// The most calls in an hour that are usual: as many days as are required have an hour with so many.
    pub(super) fn per_hour(&self) -> &UsualMaximum<u64> {
        &self.per_hour
    }
}
