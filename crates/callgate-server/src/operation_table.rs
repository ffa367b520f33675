//! The operations of a server: found by id, or by the calls that they run, and kept for a while after their end, so that a host whose
//! connection broke finds the result.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::operation::Operation;
use crate::problem::Problem;
use crate::random_id;

/// How long an operation is kept after its end.
const RETENTION: Duration = Duration::from_secs(10 * 60);
/// The most operations in progress of one caller, so that one caller leaves room for others.
const MAX_PER_CALLER: usize = 1_000;
/// The most operations in progress.
const MAX_OPEN: usize = 10_000;
/// The most operations that are kept after their end; the oldest are removed first.
const MAX_ENDED: usize = 10_000;

/// The operations of a server.
pub(crate) struct OperationTable {
    report_timeout: Duration,
    entries: Mutex<Entries>,
    /// Notified when an operation ends.
    ended: Notify,
}

#[derive(Default)]
struct Entries {
    by_id: HashMap<String, Arc<Operation>>,
    /// The operations in progress that run certain calls, by what identifies these.
    by_calls: HashMap<String, Arc<Operation>>,
    /// The number of operations in progress of each caller.
    open: HashMap<String, usize>,
    /// The operations that have ended, the oldest first.
    ended: VecDeque<Arc<Operation>>,
}

/// Whether a request starts an operation.
pub(crate) enum OperationStart {
    /// It does: the operation is to be run.
    New(Arc<Operation>),
    /// An equal request did.
    Known(Arc<Operation>),
}

impl OperationTable {
    /// Hosts may take `report_timeout` to report a result.
    pub(crate) fn new(report_timeout: Duration) -> Self {
        Self { report_timeout, entries: Mutex::default(), ended: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operation in progress of these calls, or else a new one. `calls` identifies caller, session and calls; `None` for calls without
    /// ids, which nothing identifies.
    ///
    /// # Errors
    /// Too many operations are in progress.
    pub(crate) fn start(&self, owner: &str, calls: Option<&str>) -> Result<OperationStart, Problem> {
        let id = random_id::new("op_")?;
        let mut entries = self.lock();
        if let Some(known) = calls.and_then(|calls| entries.by_calls.get(calls)) {
            return Ok(OperationStart::Known(Arc::clone(known)));
        }
        let own = entries.open.get(owner).copied().unwrap_or_default();
        if own >= MAX_PER_CALLER || entries.open.values().sum::<usize>() >= MAX_OPEN {
            let detail =
                "too many operations are in progress; report the results of calls that were executed";
            return Err(Problem { retry_after: Some(5), ..Problem::new(429, "too_many_operations", detail) });
        }
        let operation = Operation::new(id, owner.to_owned(), self.report_timeout);
        entries.by_id.insert(operation.id.clone(), Arc::clone(&operation));
        entries.open.insert(owner.to_owned(), own + 1);
        if let Some(calls) = calls {
            entries.by_calls.insert(calls.to_owned(), Arc::clone(&operation));
        }
        Ok(OperationStart::New(operation))
    }

    /// Notes that an operation has ended. An equal request starts a new one from then on.
    pub(crate) fn end(&self, operation: &Arc<Operation>, calls: Option<&str>) {
        {
            let mut entries = self.lock();
            if let Some(calls) = calls {
                entries.by_calls.remove(calls);
            }
            if let Some(open) = entries.open.get_mut(&operation.owner) {
                *open = open.saturating_sub(1);
                if *open == 0 {
                    entries.open.remove(&operation.owner);
                }
            }
            entries.ended.push_back(Arc::clone(operation));
            entries.remove_old();
        }
        self.ended.notify_waiters();
    }

    /// An operation of this caller.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn find(&self, id: &str, owner: &str) -> Result<Arc<Operation>, Problem> {
        let found = self.lock().by_id.get(id).filter(|operation| operation.owner == owner).cloned();
        found.ok_or_else(|| {
            Problem::not_found(
                "this operation is unknown: it ended a while ago, or the server was restarted. Send the call again with the same id: it \
                 does not run twice",
            )
        })
    }

    /// Waits until no operation is in progress.
    pub(crate) async fn drained(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before the check, so that no end in between is missed.
            ended.as_mut().enable();
            if self.lock().open.is_empty() {
                return;
            }
            ended.await;
        }
    }
}

impl Entries {
    /// Removes operations that ended long ago, and the oldest of too many.
    fn remove_old(&mut self) {
        while let Some(oldest) = self.ended.front() {
            let is_old = oldest.ended_since().is_none_or(|since| since >= RETENTION);
            if !is_old && self.ended.len() <= MAX_ENDED {
                return;
            }
            if let Some(oldest) = self.ended.pop_front() {
                self.by_id.remove(&oldest.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::json;

    fn start(table: &OperationTable, owner: &str, calls: Option<&str>) -> Option<Arc<Operation>> {
        match table.start(owner, calls) {
            Ok(OperationStart::New(operation)) => Some(operation),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn equal_calls_share_an_operation_until_it_ends() {
        let table = OperationTable::new(Duration::from_secs(1));
        let first = start(&table, "ana", Some("calls")).unwrap();
        assert!(start(&table, "ana", Some("calls")).is_none());
        assert!(start(&table, "ana", None).is_some(), "nothing identifies calls without ids");
        first.complete(json!({}));
        table.end(&first, Some("calls"));
        assert!(start(&table, "ana", Some("calls")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_belongs_to_its_caller_and_is_kept_for_a_while() {
        let table = OperationTable::new(Duration::from_secs(1));
        let operation = start(&table, "ana", None).unwrap();
        operation.complete(json!({}));
        table.end(&operation, None);
        assert!(table.find(&operation.id, "ana").is_ok());
        assert_eq!(table.find(&operation.id, "bob").err().map(|problem| problem.status), Some(404));
        tokio::time::advance(RETENTION).await;
        let other = start(&table, "ana", None).unwrap();
        other.complete(json!({}));
        table.end(&other, None);
        assert!(table.find(&operation.id, "ana").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_leaves_room_for_others() {
        let table = OperationTable::new(Duration::from_secs(1));
        let mut open = Vec::new();
        while let Some(operation) = start(&table, "hostile", None) {
            open.push(operation);
        }
        assert_eq!(open.len(), MAX_PER_CALLER);
        assert!(start(&table, "honest", None).is_some());
        let ended = open.pop().unwrap();
        ended.complete(json!({}));
        table.end(&ended, None);
        assert!(start(&table, "hostile", None).is_some());
    }
}
