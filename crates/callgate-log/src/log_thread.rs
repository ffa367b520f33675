//! The thread of a log, as calls see it: lines → a bounded queue. Calls wait if the queue is full, or until their lines are written, as far
//! as they are to, and never longer than the timeout of a write.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Thread};
use std::time::{Duration, Instant};

use callgate::{BoxFuture, ObserverError};

use crate::flush_waiter::{FlushTicket, FlushWaiter, FlushWatch};
use crate::line_sink::{LineSink, LogRow};
use crate::log_writer::{LogWriter, Message};
use crate::thread_status::ThreadStatus;

/// The number of events that wait for the thread.
const QUEUE_LENGTH: usize = 8_192;
/// How long a write may take. One that takes longer counts as failed, and calls no longer wait for it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a call that waits looks for room in the queue.
const WAIT: Duration = Duration::from_millis(1);

/// What happens to an event while the queue is full, because the disk is slower than the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// The call waits, unless the log has accepted nothing for five seconds: then the log counts as failed.
    #[default]
    Block,
    /// The event is dropped; the log says how many were.
    Drop,
}

/// What happens to calls while a log can't be written, or a write has taken five seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// They run, and their events are lost; the log says how many were.
    #[default]
    Continue,
    /// They are denied, with the code `log_unavailable`.
    Deny,
}

/// What happens while a log is slow, or can't be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOptions {
    /// What happens while the queue is full.
    pub on_full: OnFull,
    /// What happens while the log can't be written.
    pub on_failure: OnFailure,
}

/// How a log runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadOptions {
    pub(crate) log: LogOptions,
    /// Whether calls wait until their lines are written, and not only for room in the queue.
    pub(crate) calls_wait_for_lines: bool,
    pub(crate) write_timeout: Duration,
}

impl ThreadOptions {
    /// A log whose lines are written within milliseconds.
    pub(crate) fn queued(log: LogOptions) -> Self {
        Self { log, calls_wait_for_lines: false, write_timeout: WRITE_TIMEOUT }
    }

    /// A log whose lines are written before their call goes on.
    pub(crate) fn awaited(on_failure: OnFailure) -> Self {
        let log = LogOptions { on_full: OnFull::Block, on_failure };
        Self { log, calls_wait_for_lines: true, write_timeout: WRITE_TIMEOUT }
    }
}

/// The thread, its queue, and what it reports of itself. Dropping it closes the log.
#[derive(Debug)]
pub(crate) struct LogThread {
    queue: SyncSender<Message>,
    options: LogOptions,
    status: Arc<ThreadStatus>,
    thread: Thread,
    /// Present if calls wait for their lines.
    watch: Option<FlushWatch>,
    /// Disconnected when the thread has ended. Taken when the log is closed.
    end: Mutex<Option<Receiver<()>>>,
}

impl LogThread {
    /// Starts the thread. `opening` is the first line.
    ///
    /// # Errors
    /// The operating system starts no thread.
    pub(crate) fn start<S: LineSink>(
        sink: S,
        opening: Option<LogRow>,
        options: ThreadOptions,
    ) -> io::Result<Self> {
        let (queue, messages) = sync_channel(QUEUE_LENGTH);
        let (ending, end) = channel::<()>();
        let status = Arc::new(ThreadStatus::new(options.write_timeout));
        let watch = match options.calls_wait_for_lines {
            true => Some(FlushWatch::start(Arc::clone(&status))?),
            false => None,
        };
        let writer = LogWriter::new(sink, opening, Arc::clone(&status));
        let thread = Builder::new().name("callgate-log".to_owned()).spawn(move || {
            writer.run(&messages);
            // What is sent from now on is lost, and counted as such.
            drop(messages);
            drop(ending);
        })?;
        let (thread, end) = (thread.thread().clone(), Mutex::new(Some(end)));
        Ok(Self { queue, options: options.log, status, thread, watch, end })
    }

    /// Queues a line, or counts it as lost.
    pub(crate) fn send(&self, row: LogRow) {
        self.status.count_sent();
        if !self.enqueue(Message::Line { row, lost_before: self.status.lost() }) {
            self.status.count_lost(1);
        }
    }

    /// Waits for room in the queue as far as calls wait for it. Returns `false` if the message is not queued.
    fn enqueue(&self, mut message: Message) -> bool {
        loop {
            match self.queue.try_send(message) {
                Ok(()) => return true,
                Err(TrySendError::Full(waiting)) if self.waits_for_room() => {
                    message = waiting;
                    std::thread::sleep(WAIT);
                }
                Err(TrySendError::Full(_)) => return false,
                Err(TrySendError::Disconnected(_)) => {
                    self.status.set_failure(Some("the log is closed".to_owned()));
                    return false;
                }
            }
        }
    }

    fn waits_for_room(&self) -> bool {
        self.options.on_full == OnFull::Block && !self.status.is_stalled()
    }

    /// What an observer returns for its log: an error if calls are to be denied, once their lines are written if calls wait for them.
    pub(crate) fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        let is_required = self.options.on_failure == OnFailure::Deny;
        if let Some(watch) = &self.watch {
            return Some(Box::pin(async move {
                match self.lines_failure(watch).await {
                    Some(failure) if is_required => Err(ObserverError(failure)),
                    _ => Ok(()),
                }
            }));
        }
        let failure = self.failure().filter(|_| is_required)?;
        Some(Box::pin(async { Err(ObserverError(failure)) }))
    }

    /// Waits until every line so far is written. Returns why one is not, if one is not.
    async fn lines_failure(&self, watch: &FlushWatch) -> Option<String> {
        // Nothing is gained by waiting for a write that hangs.
        if self.status.is_stalled() {
            return Some(self.status.stall_message());
        }
        let lost = || self.status.has_recent_loss().then(|| "the log has just lost events".to_owned());
        if let Some(failure) = lost() {
            return Some(failure);
        }
        let waiter = Arc::new(FlushWaiter::default());
        if !self.enqueue(Message::Flush(FlushTicket(Arc::clone(&waiter)))) {
            return Some(self.failure().unwrap_or_else(|| self.status.stall_message()));
        }
        self.thread.unpark();
        watch.add(Arc::clone(&waiter));
        waiter.failure().await.or_else(lost)
    }

    /// Writes every line so far, and ends the thread. Lines that can't be written in time, and later ones, are lost.
    pub(crate) fn close(&self) {
        let Some(end) = self.end.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let deadline = Instant::now() + self.status.write_timeout();
        while let Err(TrySendError::Full(_)) = self.queue.try_send(Message::Close) {
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(WAIT);
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if let Err(RecvTimeoutError::Timeout) = end.recv_timeout(remaining) {
            self.status.set_failure(Some(self.status.stall_message()));
        }
        self.status.count_rest_lost();
    }

    /// The number of lines that are lost.
    pub(crate) fn lost(&self) -> u64 {
        self.status.lost()
    }

    /// Why the log can't be written at present.
    pub(crate) fn failure(&self) -> Option<String> {
        self.status.failure()
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
