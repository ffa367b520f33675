//! Counts the comparisons of a candidate.

use std::sync::atomic::{AtomicU64, Ordering};

use super::CandidateSummary;
use crate::host::CandidateDifference;

/// The comparisons so far.
#[derive(Debug, Default)]
pub(super) struct CandidateCounters {
    by_difference: [AtomicU64; CandidateDifference::ALL.len()],
    not_compared: AtomicU64,
    skipped: AtomicU64,
}

impl CandidateCounters {
    pub(super) fn add(&self, difference: CandidateDifference) {
        let places = std::iter::zip(CandidateDifference::ALL, &self.by_difference);
        for (_, count) in places.filter(|(known, _)| *known == difference) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn add_not_compared(&self) {
        self.not_compared.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    pub(super) fn summary(&self) -> CandidateSummary {
        let [none, looser, different, stricter, arguments, result] =
            self.by_difference.each_ref().map(|count| count.load(Ordering::Relaxed));
        CandidateSummary {
            compared: none + looser + different + stricter + arguments + result,
            looser,
            different,
            stricter,
            arguments,
            result,
            not_compared: self.not_compared.load(Ordering::Relaxed),
            skipped: self.skipped(),
        }
    }
}
