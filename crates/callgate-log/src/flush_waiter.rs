//! Calls that wait until their lines are written, and what ends their wait if the write hangs.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;
use std::time::Duration;

use tokio::sync::Notify;

use crate::thread_status::ThreadStatus;

/// How often the writes that calls wait for are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A call that waits until its lines are written.
#[derive(Debug, Default)]
pub(crate) struct FlushWaiter {
    /// Why they are not, once that is known; `None` in it if they are.
    result: OnceLock<Option<String>>,
    is_complete: Notify,
}

impl FlushWaiter {
    /// Ends the wait, unless it has ended.
    pub(crate) fn complete(&self, failure: Option<String>) {
        if self.result.set(failure).is_ok() {
            self.is_complete.notify_one();
        }
    }

    /// Waits. Returns why the lines are not written, if they are not.
    pub(crate) async fn failure(&self) -> Option<String> {
        loop {
            if let Some(result) = self.result.get() {
                return result.clone();
            }
            self.is_complete.notified().await;
        }
    }
}

/// A call's place in the queue of a log: everything before it is the call's, or another one's. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct FlushTicket(pub(crate) Arc<FlushWaiter>);

impl Drop for FlushTicket {
    fn drop(&mut self) {
        self.0.complete(Some("the log is closed".to_owned()));
    }
}

/// Ends the wait of calls whose write hangs, by a thread of its own, which runs while calls wait.
#[derive(Debug)]
pub(crate) struct FlushWatch {
    waiters: Sender<Arc<FlushWaiter>>,
}

impl FlushWatch {
    /// Starts the thread. It ends when this is dropped.
    ///
    /// # Errors
    /// The operating system starts no thread.
    pub(crate) fn start(status: Arc<ThreadStatus>) -> io::Result<Self> {
        let (waiters, added) = channel();
        Builder::new().name("callgate-log-watch".to_owned()).spawn(move || watch(&added, &status))?;
        Ok(Self { waiters })
    }

    /// Watches a call that waits.
    pub(crate) fn add(&self, waiter: Arc<FlushWaiter>) {
        // Without the thread, which does not panic, the call waits for the write.
        let _ = self.waiters.send(waiter);
    }
}

fn watch(added: &Receiver<Arc<FlushWaiter>>, status: &ThreadStatus) {
    let interval = CHECK_INTERVAL.min(status.write_timeout() / 10);
    let mut waiting = Vec::new();
    while let Ok(first) = added.recv() {
        waiting.push(first);
        while !waiting.is_empty() {
            std::thread::sleep(interval);
            waiting.extend(added.try_iter());
            waiting.retain(|waiter| waiter.result.get().is_none());
            if status.is_stalled() {
                waiting.drain(..).for_each(|waiter| waiter.complete(Some(status.stall_message())));
            }
        }
    }
}
