//! What the thread of a log reports of itself: losses, failures, and a write that hangs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The state of the thread of a log. All threads read it, without a lock while nothing fails.
#[derive(Debug)]
pub(crate) struct ThreadStatus {
    started: Instant,
    /// How long a write may take. One that takes longer counts as failed, and calls no longer wait for it.
    write_timeout: Duration,
    /// When the write in progress began, in milliseconds since the start, plus one; 0 if there is none.
    writing_since: AtomicU64,
    /// The number of lines that were sent.
    sent: AtomicU64,
    /// The number of those that are written or lost.
    handled: AtomicU64,
    lost: AtomicU64,
    /// When an event was last lost, as `writing_since`; 0 if none was.
    lost_at: AtomicU64,
    /// Whether there is a failure; spares calls the mutex.
    is_failing: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl ThreadStatus {
    pub(crate) fn new(write_timeout: Duration) -> Self {
        Self {
            started: Instant::now(),
            write_timeout,
            writing_since: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            lost_at: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn write_timeout(&self) -> Duration {
        self.write_timeout
    }

    /// Why the log can't be written at present: the last write failed, or the present one hangs.
    pub(crate) fn failure(&self) -> Option<String> {
        let failed = match self.is_failing.load(Ordering::Acquire) {
            true => self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            false => None,
        };
        failed.or_else(|| self.is_stalled().then(|| self.stall_message()))
    }

    pub(crate) fn set_failure(&self, failure: Option<String>) {
        let is_failing = failure.is_some();
        // Nearly every write succeeds after one that did.
        if is_failing || self.is_failing.load(Ordering::Relaxed) {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
            self.is_failing.store(is_failing, Ordering::Release);
        }
    }

    pub(crate) fn begin_write(&self) {
        self.writing_since.store(self.now(), Ordering::Relaxed);
    }

    pub(crate) fn end_write(&self) {
        self.writing_since.store(0, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn is_writing(&self) -> bool {
        self.writing_since.load(Ordering::Relaxed) > 0
    }

    /// Whether the write in progress takes longer than it may.
    pub(crate) fn is_stalled(&self) -> bool {
        self.elapsed_since(&self.writing_since).is_some_and(|elapsed| elapsed >= self.write_timeout)
    }

    /// Whether an event was lost within a fifth of the time that a write may take. The call that it belongs to may ask only now.
    pub(crate) fn has_recent_loss(&self) -> bool {
        self.elapsed_since(&self.lost_at).is_some_and(|elapsed| elapsed < self.write_timeout / 5)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn elapsed_since(&self, time: &AtomicU64) -> Option<Duration> {
        let since = time.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.started.elapsed().saturating_sub(Duration::from_millis(since)))
    }

    pub(crate) fn stall_message(&self) -> String {
        format!("the log has accepted nothing for {} ms", self.write_timeout.as_millis())
    }

    /// The number of lines that are lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn count_written(&self, lines: u64) {
        self.handled.fetch_add(lines, Ordering::Relaxed);
    }

    pub(crate) fn count_lost(&self, lines: u64) {
        if lines > 0 {
            self.lost_at.store(self.now(), Ordering::Release);
        }
        self.lost.fetch_add(lines, Ordering::Relaxed);
        self.handled.fetch_add(lines, Ordering::Relaxed);
    }

    /// Counts the lines as lost that nothing will write any more.
    pub(crate) fn count_rest_lost(&self) {
        let (sent, handled) = (self.sent.load(Ordering::Relaxed), self.handled.load(Ordering::Relaxed));
        self.count_lost(sent.saturating_sub(handled));
    }
}
