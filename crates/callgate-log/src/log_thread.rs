//! The thread of a log: lines → a bounded queue → a [`LineSink`], which writes them. Calls wait for it only if the queue is full, and
//! only if they are to.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use callgate::{BoxFuture, ObserverError};

use crate::event_line::EventSeverity;

/// The number of events that wait for the thread.
const QUEUE_LENGTH: usize = 8_192;
/// The number of bytes that are written at once.
const BATCH_BYTES: usize = 256 << 10;
/// After how long a failed write is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long a write may take. One that takes longer counts as failed, and calls no longer wait for it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a call that waits looks for room in the queue.
const WAIT: Duration = Duration::from_millis(1);
/// How long lines are collected before they are written: waking the thread costs a call more than writing its line.
const COLLECT: Duration = Duration::from_millis(2);

/// What happens to an event while the queue is full, because the disk is slower than the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// The call waits, unless the log has accepted nothing for five seconds: then the log counts as failed.
    #[default]
    Block,
    /// The event is dropped; the log says how many were.
    Drop,
}

/// What happens to calls while a log can't be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// They run, and their events are lost; the log says how many were.
    #[default]
    Continue,
    /// They are denied, with the code `log_unavailable`.
    Deny,
}

/// What happens while a log is slow, or can't be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadOptions {
    pub(crate) on_full: OnFull,
    pub(crate) on_failure: OnFailure,
    pub(crate) write_timeout: Duration,
}

impl ThreadOptions {
    pub(crate) fn new(on_full: OnFull, on_failure: OnFailure) -> Self {
        Self { on_full, on_failure, write_timeout: WRITE_TIMEOUT }
    }
}

/// A line of a log, without a line break.
#[derive(Debug)]
pub(crate) struct LogRow {
    pub(crate) text: String,
    #[cfg_attr(not(feature = "syslog"), expect(dead_code, reason = "only syslog has severities"))]
    pub(crate) severity: EventSeverity,
}

/// Where the lines of a log are written.
pub(crate) trait LineSink: Send + 'static {
    /// Writes lines in order, and removes from the front those that are written.
    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()>;

    /// The line that reports lost events.
    fn lost_report(&self, count: u64) -> LogRow;
}

/// The thread, its queue, and what it reports of itself.
#[derive(Debug)]
pub(crate) struct LogThread {
    queue: SyncSender<Message>,
    options: ThreadOptions,
    status: Arc<ThreadStatus>,
    /// Disconnected when the thread has ended. Taken when the log is closed.
    end: Mutex<Option<Receiver<()>>>,
}

#[derive(Debug)]
enum Message {
    Line(LogRow),
    Close,
}

#[derive(Debug)]
struct ThreadStatus {
    started: Instant,
    /// When the write in progress began, in milliseconds since the start, plus one; 0 if there is none.
    writing_since: AtomicU64,
    /// The number of lines that entered the queue.
    accepted: AtomicU64,
    /// The number of those that are written or lost.
    handled: AtomicU64,
    lost: AtomicU64,
    /// Whether there is a failure; spares calls the mutex.
    is_failing: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl ThreadStatus {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            writing_since: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    fn set_failure(&self, failure: Option<String>) {
        let is_failing = failure.is_some();
        // Nearly every write succeeds after one that did.
        if is_failing || self.is_failing.load(Ordering::Relaxed) {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
            self.is_failing.store(is_failing, Ordering::Release);
        }
    }

    fn failure(&self) -> Option<String> {
        match self.is_failing.load(Ordering::Acquire) {
            true => self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            false => None,
        }
    }

    fn begin_write(&self) {
        let since = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        self.writing_since.store(since, Ordering::Relaxed);
    }

    fn end_write(&self) {
        self.writing_since.store(0, Ordering::Relaxed);
    }

    /// Whether a write takes longer than it may.
    fn is_stalled(&self, timeout: Duration) -> bool {
        match self.writing_since.load(Ordering::Relaxed) {
            0 => false,
            since => self.started.elapsed() >= Duration::from_millis(since - 1) + timeout,
        }
    }

    /// Counts lines that entered the queue and will not be written.
    fn count_lost(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
        self.handled.fetch_add(lines, Ordering::Relaxed);
    }
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
        let status = Arc::new(ThreadStatus::new());
        let lines: VecDeque<LogRow> = opening.into_iter().collect();
        status.accepted.store(lines.len() as u64, Ordering::Relaxed);
        let writer = LogWriter { sink, status: Arc::clone(&status), lines, bytes: 0, reported: 0 };
        Builder::new().name("callgate-log".to_owned()).spawn(move || {
            writer.run(&messages);
            drop(ending);
        })?;
        Ok(Self { queue, options, status, end: Mutex::new(Some(end)) })
    }

    /// Queues a line, or counts it as lost.
    pub(crate) fn send(&self, line: LogRow) {
        self.status.accepted.fetch_add(1, Ordering::Relaxed);
        let mut message = Message::Line(line);
        loop {
            match self.queue.try_send(message) {
                Ok(()) => return,
                Err(TrySendError::Full(waiting)) if self.waits_for_room() => {
                    message = waiting;
                    std::thread::sleep(WAIT);
                }
                Err(TrySendError::Full(_)) => break,
                Err(TrySendError::Disconnected(_)) => {
                    self.status.set_failure(Some("the log is closed".to_owned()));
                    break;
                }
            }
        }
        self.status.count_lost(1);
    }

    fn waits_for_room(&self) -> bool {
        self.options.on_full == OnFull::Block && !self.status.is_stalled(self.options.write_timeout)
    }

    /// Writes every line so far, and ends the thread. Lines that can't be written in time, and later ones, are lost.
    pub(crate) fn close(&self) {
        let Some(end) = self.end.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let deadline = Instant::now() + self.options.write_timeout;
        while let Err(TrySendError::Full(_)) = self.queue.try_send(Message::Close) {
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(WAIT);
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if let Err(RecvTimeoutError::Timeout) = end.recv_timeout(remaining) {
            self.status.set_failure(Some(self.stall_message()));
        }
        let (accepted, handled) = (&self.status.accepted, &self.status.handled);
        let rest = accepted.load(Ordering::Relaxed).saturating_sub(handled.load(Ordering::Relaxed));
        self.status.count_lost(rest);
    }

    /// The number of lines that are lost.
    pub(crate) fn lost(&self) -> u64 {
        self.status.lost.load(Ordering::Relaxed)
    }

    /// Why the log can't be written at present.
    pub(crate) fn failure(&self) -> Option<String> {
        self.status
            .failure()
            .or_else(|| self.status.is_stalled(self.options.write_timeout).then(|| self.stall_message()))
    }

    fn stall_message(&self) -> String {
        format!("the log has accepted nothing for {} ms", self.options.write_timeout.as_millis())
    }

    /// What an observer returns for its log: an error while calls are to be denied.
    pub(crate) fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        if self.options.on_failure == OnFailure::Continue {
            return None;
        }
        let failure = self.failure()?;
        Some(Box::pin(async { Err(ObserverError(failure)) }))
    }
}

/// What the thread does.
struct LogWriter<S> {
    sink: S,
    status: Arc<ThreadStatus>,
    /// Lines that are not written yet.
    lines: VecDeque<LogRow>,
    /// Their length.
    bytes: usize,
    /// The number of lost events that the log reports.
    reported: u64,
}

impl<S: LineSink> LogWriter<S> {
    fn run(mut self, messages: &Receiver<Message>) {
        self.write();
        loop {
            // While the log can't be written, the lines are tried again now and then, also without new events.
            let next = match self.lines.is_empty() {
                true => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => messages.recv_timeout(RETRY),
            };
            let mut is_closing = false;
            match next {
                Ok(Message::Line(line)) => self.add(line),
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => is_closing = true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !is_closing {
                std::thread::sleep(COLLECT);
            }
            while !is_closing && self.bytes < BATCH_BYTES {
                match messages.try_recv() {
                    Ok(Message::Line(line)) => self.add(line),
                    Ok(Message::Close) => is_closing = true,
                    Err(_) => break,
                }
            }
            self.write();
            if is_closing {
                return;
            }
        }
    }

    fn add(&mut self, line: LogRow) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
    }

    fn write(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let lost = self.status.lost.load(Ordering::Relaxed);
        let has_report = lost > self.reported;
        if has_report {
            self.lines.push_front(self.sink.lost_report(lost - self.reported));
        }
        let before = self.lines.len();
        self.status.begin_write();
        let written = self.sink.write(&mut self.lines);
        self.status.end_write();
        let mut removed = before - self.lines.len();
        if has_report && removed > 0 {
            self.reported = lost;
            removed -= 1;
        } else if has_report {
            self.lines.pop_front();
        }
        self.status.handled.fetch_add(removed as u64, Ordering::Relaxed);
        self.bytes = self.lines.iter().map(|line| line.text.len()).sum();
        self.status.set_failure(written.err().map(|error| format!("the log can't be written: {error}")));
        // What waits must not grow without end.
        if self.bytes >= BATCH_BYTES {
            self.status.count_lost(self.lines.len() as u64);
            self.lines.clear();
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts lines only while its gate is open, and else waits.
    struct GatedSink {
        gate: Receiver<()>,
        written: Arc<Mutex<Vec<String>>>,
    }

    impl LineSink for GatedSink {
        fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
            // Disconnected: open for good.
            let _ = self.gate.recv();
            self.written.lock().unwrap().extend(lines.drain(..).map(|line| line.text));
            Ok(())
        }

        fn lost_report(&self, count: u64) -> LogRow {
            line(&format!("lost {count}"))
        }
    }

    fn line(text: &str) -> LogRow {
        LogRow { text: text.to_owned(), severity: EventSeverity::Info }
    }

    fn gated(
        on_full: OnFull,
        on_failure: OnFailure,
        write_timeout: Duration,
    ) -> (LogThread, std::sync::mpsc::Sender<()>, Arc<Mutex<Vec<String>>>) {
        let (open, gate) = channel();
        let written = Arc::default();
        let sink = GatedSink { gate, written: Arc::clone(&written) };
        let options = ThreadOptions { on_full, on_failure, write_timeout };
        (LogThread::start(sink, None, options).unwrap(), open, written)
    }

    #[test]
    fn a_write_that_hangs_makes_no_call_wait_longer_than_its_timeout_and_every_loss_is_counted() {
        let (log, open, written) = gated(OnFull::Block, OnFailure::Deny, Duration::from_millis(50));
        let mut sent = 0;
        // What the thread has collected, and what fits into the queue.
        while log.lost() == 0 {
            log.send(line(&sent.to_string()));
            sent += 1;
        }
        assert!(log.flush().is_some(), "calls are denied while the log hangs");
        drop(open);
        log.close();
        let written = written.lock().unwrap();
        let events = written.iter().filter(|text| !text.starts_with("lost ")).count() as u64;
        assert_eq!(events + log.lost(), sent);
        assert!(written.iter().any(|text| text.starts_with("lost ")), "the log reports what it lost");
    }

    #[test]
    fn closing_a_log_that_hangs_ends_and_counts_what_is_not_written() {
        let (log, _open, written) = gated(OnFull::Block, OnFailure::Continue, Duration::from_millis(50));
        for number in 0..100 {
            log.send(line(&number.to_string()));
        }
        log.close();
        assert_eq!((log.lost(), written.lock().unwrap().len()), (100, 0));
        assert!(log.failure().is_some_and(|why| why.contains("accepted nothing")));
    }

    #[test]
    fn a_call_waits_for_a_slow_log_and_loses_nothing() {
        let (log, open, written) = gated(OnFull::Block, OnFailure::Continue, Duration::from_secs(3_600));
        log.send(line("first"));
        while log.status.writing_since.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(WAIT);
        }
        let mut queued = 0;
        while log.queue.try_send(Message::Line(line("queued"))).is_ok() {
            queued += 1;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| log.send(line("last")));
            // It has begun to wait.
            while log.status.accepted.load(Ordering::Relaxed) < 2 {
                std::thread::sleep(WAIT);
            }
            drop(open);
        });
        log.close();
        assert_eq!((log.lost(), written.lock().unwrap().len()), (0, queued + 2));
    }

    #[test]
    fn a_closed_log_denies_if_calls_depend_on_it() {
        let (log, open, _) = gated(OnFull::Block, OnFailure::Deny, WRITE_TIMEOUT);
        drop(open);
        log.close();
        log.send(line("late"));
        assert!(log.flush().is_some());
        assert_eq!(log.lost(), 1);
    }
}
