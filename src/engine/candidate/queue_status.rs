//! What both ends of a candidate's queue know: its messages, its size, and the sessions of calls that were skipped.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use crate::execution::CompletedCall;

/// The most sessions of skipped calls that are remembered.
const MAX_GAPS: usize = 10_000;

/// What both ends of the queue know.
#[derive(Default)]
pub(super) struct QueueStatus {
    bytes: AtomicUsize,
    gaps: Mutex<SkippedSessions>,
}

/// The sessions of calls that were skipped.
#[derive(Default)]
struct SkippedSessions {
    names: HashSet<String>,
    /// There were too many: any session may have a gap.
    is_overflown: bool,
}

/// A message to the thread of a candidate.
pub(super) enum Message {
    /// A call, and the size of its values in bytes.
    Call(Box<CompletedCall>, usize),
    /// Evaluate what waits, and answer.
    Finish(SyncSender<()>),
}

impl QueueStatus {
    /// The size of the values of all calls that wait, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Reserves room for a call.
    pub(super) fn reserve(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Releases the room of a call that no longer waits.
    pub(super) fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether calls of a session were skipped since the last question.
    pub(super) fn take_gap(&self, conversation: &str) -> bool {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.names.remove(conversation) || gaps.is_overflown
    }

    /// Remembers the session of a call that was skipped.
    pub(super) fn add_gap(&self, conversation: String) {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        if gaps.names.len() < MAX_GAPS {
            gaps.names.insert(conversation);
        } else {
            gaps.is_overflown = true;
        }
    }
}
