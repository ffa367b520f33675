//! Acquisitions that wait for a connection. Those that wait at the same time share a transaction, so that a limit that many callers use
//! costs one commit for all of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use super::limits::is_slot;
use callgate::host::{LimitAcquisition, LimitRefusal, StoreError};
use callgate::state::limit_algorithms::Micros;

/// The most transactions of acquisitions at once. The other connections are for the other operations.
const MAX_TRANSACTIONS: usize = 4;
/// The most acquisitions of a transaction.
const MAX_GROUP: usize = 64;
/// The most that the times of the acquisitions of a transaction differ, so that none of them is a step of the clock for another.
const MAX_TIME_DIFFERENCE: Micros = 500_000;

/// What a caller gets.
pub(crate) type AcquisitionAnswer = Result<Vec<LimitRefusal>, StoreError>;

/// An acquisition that waits, all or nothing.
pub(crate) struct WaitingAcquisition {
    /// The time of the caller.
    pub(crate) now: Micros,
    pub(crate) takes: Vec<LimitAcquisition>,
    pub(crate) reply: oneshot::Sender<AcquisitionAnswer>,
}

/// Acquisitions in the order in which they arrived.
pub(crate) struct LimitQueue {
    waiting: Mutex<Vec<WaitingAcquisition>>,
    transactions: Semaphore,
}

impl LimitQueue {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), transactions: Semaphore::new(MAX_TRANSACTIONS) }
    }

    pub(crate) fn push(&self, acquisition: WaitingAcquisition) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(acquisition);
    }

    /// Waits until another transaction may begin.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.transactions.acquire().await.ok()
    }

    /// The next acquisitions that can share a transaction.
    pub(crate) fn take_group(&self) -> Vec<WaitingAcquisition> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = group_length(&waiting);
        waiting.drain(..count).collect()
    }
}

fn group_length(waiting: &[WaitingAcquisition]) -> usize {
    let Some(first) = waiting.first() else { return 0 };
    let mut kinds: HashMap<&str, bool> = HashMap::new();
    for (index, next) in waiting.iter().take(MAX_GROUP).enumerate() {
        let is_near = (next.now - first.now).abs() <= MAX_TIME_DIFFERENCE;
        // A limit that becomes slots, or slots that become a limit, must be stored in between.
        let is_same_kind =
            next.takes.iter().all(|take| *kinds.entry(&take.key).or_insert(is_slot(take)) == is_slot(take));
        if !(is_near && is_same_kind) {
            return index.max(1);
        }
    }
    waiting.len().min(MAX_GROUP)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use callgate::host::{Account, Allowance, Amount};

    use super::*;

    fn waiting(now: Micros, key: &str, allowance: Allowance) -> WaitingAcquisition {
        let cost = Amount::from_whole(1);
        let take = LimitAcquisition { key: key.to_owned(), account: Account::NOBODY, allowance, cost };
        WaitingAcquisition { now, takes: vec![take], reply: oneshot::channel().0 }
    }

    #[test]
    fn acquisitions_share_a_transaction_if_none_needs_what_another_stores() {
        let slots = || Allowance::Slots { max: 1 };
        let total = || Allowance::Total { limit: Amount::from_whole(1), keep: Duration::from_secs(1) };
        assert_eq!(group_length(&[]), 0);
        let same = [waiting(0, "a", slots()), waiting(9, "b", total()), waiting(0, "a", slots())];
        assert_eq!(group_length(&same), 3);
        let other_kind = [waiting(0, "a", slots()), waiting(0, "a", total()), waiting(0, "b", total())];
        assert_eq!(group_length(&other_kind), 1);
        let later = [waiting(2_000_000, "a", total()), waiting(0, "a", total())];
        assert_eq!(group_length(&later), 1);
        let many: Vec<_> = (0..200).map(|_| waiting(0, "a", total())).collect();
        assert_eq!(group_length(&many), MAX_GROUP);
    }
}
