//! The queue of calls between an engine and its candidate, bounded in calls and in bytes.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use super::OnFullQueue;
use super::counters::CandidateCounters;
use super::queue_status::{Message, QueueStatus};
use super::worker::CandidateWorker;
use crate::execution::{CompletedCall, CompletedCalls, ToolResult};
use crate::json::Value;
use crate::state::cache::remaining_room;

/// The number of calls that wait.
const MAX_CALLS: usize = 1_024;
/// The size of the values of all calls that wait, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// How often a full queue is tried again at the end.
const FINISH_INTERVAL: Duration = Duration::from_millis(5);
/// The deepest nesting of a value that is measured.
const MAX_DEPTH: usize = 128;

/// Sends calls to the thread of a candidate.
pub(super) struct CandidateQueue {
    sender: SyncSender<Message>,
    on_full: OnFullQueue,
    status: Arc<QueueStatus>,
    counters: Arc<CandidateCounters>,
}

impl CandidateQueue {
    /// Starts the thread that evaluates the calls. Returns `None` if it can't be started.
    pub(super) fn start(worker: CandidateWorker, on_full: OnFullQueue) -> Option<Arc<Self>> {
        let (sender, receiver) = sync_channel(MAX_CALLS);
        let status = Arc::new(QueueStatus::default());
        let (counters, known) = (worker.counters(), Arc::clone(&status));
        let run = move || worker.run(&receiver, &known);
        Builder::new().name("callgate-candidate".to_owned()).spawn(run).ok()?;
        Some(Arc::new(Self { sender, on_full, status, counters }))
    }

    /// Waits until every call so far is evaluated, for at most this time. Returns whether it is.
    pub(super) fn finish(&self, timeout: Duration) -> bool {
        let started = Instant::now();
        let (done, is_done) = sync_channel(1);
        let mut message = Message::Finish(done);
        loop {
            message = match self.sender.try_send(message) {
                Ok(()) => break,
                Err(TrySendError::Full(message)) => message,
                Err(TrySendError::Disconnected(_)) => return false,
            };
            if started.elapsed() >= timeout {
                return false;
            }
            thread::sleep(FINISH_INTERVAL);
        }
        is_done.recv_timeout(timeout.saturating_sub(started.elapsed())).is_ok()
    }

    fn skip(&self, conversation: String) {
        self.counters.add_skipped();
        self.status.add_gap(conversation);
    }
}

impl CompletedCalls for CandidateQueue {
    fn submit(&self, call: CompletedCall) {
        let room = MAX_BYTES.saturating_sub(self.status.bytes());
        let size = match self.on_full {
            OnFullQueue::Skip => size_of_values(&call, room),
            OnFullQueue::Wait => Some(0),
        };
        let Some(size) = size else { return self.skip(call.conversation) };
        self.status.reserve(size);
        let message = Message::Call(Box::new(call), size);
        let sent = match self.on_full {
            OnFullQueue::Wait => self.sender.send(message).map_err(|error| error.0),
            OnFullQueue::Skip => self.sender.try_send(message).map_err(|error| match error {
                TrySendError::Full(message) | TrySendError::Disconnected(message) => message,
            }),
        };
        if let Err(Message::Call(call, size)) = sent {
            self.status.release(size);
            self.skip(call.conversation);
        }
    }
}

/// The size of the arguments and results of a call. Returns `None` if it exceeds the room.
fn size_of_values(call: &CompletedCall, room: usize) -> Option<usize> {
    let outputs = call.results.iter().filter_map(|result: &ToolResult| result.as_ref().ok());
    let outputs = outputs.map(|response| &response.output);
    let own = [&call.call.input, &call.call.context, &call.outcome.input];
    let mut values = own.into_iter().chain(&call.outcome.output).chain(outputs);
    let rest = values.try_fold(room, |room, value: &Value| remaining_room(value, room, MAX_DEPTH))?;
    Some(room - rest)
}
