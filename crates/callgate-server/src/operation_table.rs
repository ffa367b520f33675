//! The operations of a server: found by id, or by the calls that they run, and kept for a while after their end, so that a host whose
//! connection broke finds the result.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::operation::{Operation, OperationNames, RetryKey};
use crate::problem::Problem;
use crate::random_id;

/// How long an operation is kept after its end.
const RETENTION: Duration = Duration::from_secs(10 * 60);
/// The most operations in progress of one caller, so that one caller leaves room for others.
const MAX_PER_CALLER: usize = 1_000;
/// The most operations in progress.
const MAX_OPEN: usize = 10_000;
/// The most bytes that open operations of one caller hold: the calls that they were started with, and the results that were reported.
const MAX_BYTES_PER_CALLER: usize = 64 << 20;
/// The most bytes that all open operations hold.
const MAX_OPEN_BYTES: usize = 256 << 20;
/// A report up to this length is taken even then, so that every operation can be ended, with an error if need be.
const SMALL_REPORT: usize = 1 << 10;
/// The most operations that are kept after their end; the oldest are removed first.
const MAX_ENDED: usize = 10_000;
/// The most bytes of results of operations that have ended; the oldest are removed first.
const MAX_ENDED_BYTES: usize = 64 << 20;

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
    /// The operations of requests with an `Idempotency-Key`, by caller and key, as long as they are kept.
    by_retry_key: HashMap<(String, String), Arc<Operation>>,
    /// What the operations in progress of each caller hold.
    open: HashMap<String, Usage>,
    /// What all operations in progress hold.
    all_open: Usage,
    /// The operations that have ended, the oldest first, with the bytes of their results.
    ended: VecDeque<(Arc<Operation>, usize)>,
    ended_bytes: usize,
}

/// What operations in progress hold.
#[derive(Clone, Copy, Default)]
struct Usage {
    operations: usize,
    bytes: usize,
}

/// The request for an operation.
pub(crate) struct StartRequest<'r> {
    /// The name of the caller.
    pub(crate) owner: &'r str,
    /// What identifies caller, session and calls; `None` for calls without ids, which nothing identifies.
    pub(crate) calls: Option<String>,
    /// What identifies the request if it is sent again.
    pub(crate) retry: Option<RetryKey>,
    /// The length of the request.
    pub(crate) bytes: usize,
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

    /// The operation in progress of these calls, or else a new one.
    ///
    /// # Errors
    /// Too many operations are in progress, or they hold too much memory.
    pub(crate) fn start(&self, request: StartRequest<'_>) -> Result<OperationStart, Problem> {
        let StartRequest { owner, calls, retry, bytes } = request;
        let id = random_id::new("op_")?;
        let mut entries = self.lock();
        if let Some(retry) = &retry
            && let Some(known) = entries.by_retry_key.get(&(owner.to_owned(), retry.key.clone()))
        {
            if known.retry.as_ref() == Some(retry) {
                return Ok(OperationStart::Known(Arc::clone(known)));
            }
            let detail = "this `Idempotency-Key` was sent with another request";
            return Err(Problem::new(422, "idempotency_key_reused", detail));
        }
        if let Some(known) = calls.as_ref().and_then(|calls| entries.by_calls.get(calls)) {
            return Ok(OperationStart::Known(Arc::clone(known)));
        }
        let own = entries.open.get(owner).copied().unwrap_or_default();
        if own.operations >= MAX_PER_CALLER || entries.all_open.operations >= MAX_OPEN {
            return Err(too_many("too many operations are in progress"));
        }
        entries.check_bytes(owner, bytes)?;
        let operation = Operation::new(
            id,
            owner.to_owned(),
            OperationNames { calls: calls.clone(), retry },
            self.report_timeout,
        );
        entries.by_id.insert(operation.id.clone(), Arc::clone(&operation));
        if let Some(retry) = &operation.retry {
            entries.by_retry_key.insert((owner.to_owned(), retry.key.clone()), Arc::clone(&operation));
        }
        if let Some(calls) = calls {
            entries.by_calls.insert(calls, Arc::clone(&operation));
        }
        entries.all_open.operations += 1;
        entries.open.entry(owner.to_owned()).or_default().operations += 1;
        entries.hold(&operation, bytes);
        Ok(OperationStart::New(operation))
    }

    /// Checks that an operation in progress may hold a result of this length.
    ///
    /// # Errors
    /// The operations of its caller hold too much memory.
    pub(crate) fn check_report(&self, operation: &Operation, bytes: usize) -> Result<(), Problem> {
        if bytes <= SMALL_REPORT { Ok(()) } else { self.lock().check_bytes(&operation.owner, bytes) }
    }

    /// Counts a result that was recorded. One that is sent again holds nothing more, or a caller could use up what others may hold.
    pub(crate) fn hold_report(&self, operation: &Operation, bytes: usize) {
        let mut entries = self.lock();
        if operation.ended_since().is_none() {
            entries.hold(operation, bytes);
        }
    }

    /// Notes that an operation has ended. An equal request starts a new one from then on.
    pub(crate) fn end(&self, operation: &Arc<Operation>) {
        {
            let mut entries = self.lock();
            if let Some(calls) = &operation.calls {
                entries.by_calls.remove(calls);
            }
            entries.release(operation);
            let bytes = operation.result_bytes();
            entries.ended_bytes += bytes;
            entries.ended.push_back((Arc::clone(operation), bytes));
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

fn too_many(why: &str) -> Problem {
    let detail =
        format!("{why}; report the results of calls that were executed, then send the request again");
    Problem::new(429, "too_many_operations", detail).with_header("retry-after", "5")
}

impl Entries {
    /// Whether operations of this caller may hold so many bytes more.
    fn check_bytes(&self, owner: &str, bytes: usize) -> Result<(), Problem> {
        let own = self.open.get(owner).copied().unwrap_or_default();
        if own.bytes.saturating_add(bytes) > MAX_BYTES_PER_CALLER
            || self.all_open.bytes.saturating_add(bytes) > MAX_OPEN_BYTES
        {
            return Err(too_many("the operations in progress hold too much memory"));
        }
        Ok(())
    }

    /// Counts bytes that an operation in progress holds.
    fn hold(&mut self, operation: &Operation, bytes: usize) {
        operation.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.all_open.bytes += bytes;
        if let Some(own) = self.open.get_mut(&operation.owner) {
            own.bytes += bytes;
        }
    }

    /// Releases what an operation held while it was in progress.
    fn release(&mut self, operation: &Operation) {
        let bytes = operation.held_bytes.swap(0, Ordering::Relaxed);
        let release = |usage: &mut Usage| {
            usage.operations = usage.operations.saturating_sub(1);
            usage.bytes = usage.bytes.saturating_sub(bytes);
        };
        release(&mut self.all_open);
        if let Some(own) = self.open.get_mut(&operation.owner) {
            release(own);
            if own.operations == 0 {
                self.open.remove(&operation.owner);
            }
        }
    }

    /// Removes operations that ended long ago, and the oldest of too many.
    fn remove_old(&mut self) {
        while let Some((oldest, _)) = self.ended.front() {
            let is_old = oldest.ended_since().is_none_or(|since| since >= RETENTION);
            if !is_old && self.ended.len() <= MAX_ENDED && self.ended_bytes <= MAX_ENDED_BYTES {
                return;
            }
            if let Some((oldest, bytes)) = self.ended.pop_front() {
                self.by_id.remove(&oldest.id);
                if let Some(retry) = &oldest.retry {
                    self.by_retry_key.remove(&(oldest.owner.clone(), retry.key.clone()));
                }
                self.ended_bytes = self.ended_bytes.saturating_sub(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::json;

    fn start(table: &OperationTable, owner: &str, calls: Option<&str>) -> Option<Arc<Operation>> {
        start_of(table, owner, calls, 0)
    }

    fn start_of(
        table: &OperationTable,
        owner: &str,
        calls: Option<&str>,
        bytes: usize,
    ) -> Option<Arc<Operation>> {
        match table.start(StartRequest { owner, calls: calls.map(str::to_owned), retry: None, bytes }) {
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
        table.end(&first);
        assert!(start(&table, "ana", Some("calls")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_belongs_to_its_caller_and_is_kept_for_a_while() {
        let table = OperationTable::new(Duration::from_secs(1));
        let operation = start(&table, "ana", None).unwrap();
        operation.complete(json!({}));
        table.end(&operation);
        assert!(table.find(&operation.id, "ana").is_ok());
        assert_eq!(table.find(&operation.id, "bob").err().map(|problem| problem.status), Some(404));
        tokio::time::advance(RETENTION).await;
        let other = start(&table, "ana", None).unwrap();
        other.complete(json!({}));
        table.end(&other);
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
        table.end(&ended);
        assert!(start(&table, "hostile", None).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn large_calls_and_results_of_one_caller_leave_memory_for_others() {
        const MIB: usize = 1 << 20;
        let table = OperationTable::new(Duration::from_secs(1));
        let mut open = Vec::new();
        while let Some(operation) = start_of(&table, "hostile", None, 16 * MIB) {
            open.push(operation);
        }
        assert_eq!(open.len(), 4);
        assert!(start_of(&table, "honest", None, 16 * MIB).is_some());
        let refused = table.check_report(&open[0], MIB).unwrap_err();
        assert_eq!((refused.status, refused.code), (429, "too_many_operations"));
        assert!(table.check_report(&open[0], 1_000).is_ok(), "an error can always be reported");
        for operation in &open {
            operation.complete(json!({}));
            table.end(operation);
        }
        assert!(start_of(&table, "hostile", None, 16 * MIB).is_some(), "what they held is released");
    }

    #[tokio::test(start_paused = true)]
    async fn long_results_are_kept_for_less_time() {
        let table = OperationTable::new(Duration::from_secs(1));
        let end = |length: usize| {
            let operation = start(&table, "ana", None).unwrap();
            operation.complete(json!("x".repeat(length)));
            table.end(&operation);
            operation
        };
        let first = end(MAX_ENDED_BYTES / 2);
        let second = end(1);
        assert!(table.find(&first.id, "ana").is_ok());
        end(MAX_ENDED_BYTES / 2);
        assert!(table.find(&first.id, "ana").is_err());
        assert!(table.find(&second.id, "ana").is_ok());
    }
}
