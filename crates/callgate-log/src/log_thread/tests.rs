use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::task::{Context, Waker};

use super::*;
use crate::event_name::EventSeverity;

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

    fn lost_report(&self, count: u64) -> String {
        format!("lost {count}")
    }

    fn close(&mut self) -> io::Result<()> {
        self.written.lock().unwrap().push("closed".to_owned());
        Ok(())
    }
}

fn line(text: &str) -> LogRow {
    LogRow::event(text.to_owned(), EventSeverity::Info)
}

/// A log whose writes hang until something is sent.
struct GatedLog {
    log: LogThread,
    gate: Sender<()>,
    written: Arc<Mutex<Vec<String>>>,
}

fn gated(options: ThreadOptions) -> GatedLog {
    let (gate, open) = channel();
    let written = Arc::default();
    let sink = GatedSink { gate: open, written: Arc::clone(&written) };
    GatedLog { log: LogThread::start(sink, None, options).unwrap(), gate, written }
}

impl GatedLog {
    /// Lets all writes succeed, and closes the log. Returns its lines.
    fn finish(self) -> (Vec<String>, u64) {
        drop(self.gate);
        self.log.close();
        let written = self.written.lock().unwrap().clone();
        (written, self.log.lost())
    }

    /// Waits until a write hangs.
    fn await_write(&self) {
        while !self.log.status.is_writing() {
            std::thread::sleep(WAIT);
        }
    }

    /// What a call that depends on the log awaits.
    fn flush(&self) -> Result<(), ObserverError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        self.log.flush().map_or(Ok(()), |flushed| runtime.block_on(flushed))
    }
}

fn queued(on_failure: OnFailure) -> ThreadOptions {
    ThreadOptions::queued(LogOptions { on_full: OnFull::Block, on_failure })
}

fn with_timeout(milliseconds: u64, options: ThreadOptions) -> ThreadOptions {
    ThreadOptions { write_timeout: Duration::from_millis(milliseconds), ..options }
}

fn events(written: &[String]) -> u64 {
    written.iter().filter(|text| text.parse::<u64>().is_ok()).count() as u64
}

#[test]
fn a_write_that_hangs_makes_no_call_wait_longer_than_its_timeout_and_every_loss_is_counted() {
    for options in [queued(OnFailure::Deny), ThreadOptions::awaited(OnFailure::Deny)] {
        let log = gated(with_timeout(50, options));
        let mut sent: u64 = 0;
        // What the thread has collected, and what fits into the queue.
        while log.log.lost() == 0 {
            log.log.send(line(&sent.to_string()));
            sent += 1;
        }
        assert!(log.flush().is_err(), "calls are denied while the log hangs");
        // With room again, the log says how many are missing where they are missing.
        log.gate.send(()).unwrap();
        while !log.written.lock().unwrap().iter().any(|text| text == "0") {
            std::thread::sleep(WAIT);
        }
        while log.log.queue.try_send(Message::Line { row: line("later"), lost_before: 1 }).is_err() {
            let _ = log.gate.send(());
        }
        let (written, lost) = log.finish();
        assert_eq!(events(&written) + lost, sent);
        let is_report = |text: &String| text.starts_with("lost ");
        let report = written.iter().position(is_report).expect("the log reports what it lost");
        assert_eq!(written[report - 1], (sent - 2).to_string());
    }
}

#[test]
fn a_call_that_awaits_its_lines_goes_on_when_a_hanging_write_reaches_its_timeout() {
    for (on_failure, goes_on) in [(OnFailure::Deny, false), (OnFailure::Continue, true)] {
        let log = gated(with_timeout(50, ThreadOptions::awaited(on_failure)));
        log.log.send(line("1"));
        // The first call finds out, later ones do not wait.
        for _ in 0..2 {
            assert_eq!(log.flush().is_ok(), goes_on);
        }
        assert!(log.log.failure().is_some_and(|why| why.contains("accepted nothing")));
        // What hung is written when it goes on.
        let (written, lost) = log.finish();
        assert_eq!((written, lost), (vec!["1".to_owned(), "closed".to_owned()], 0));
    }
}

#[test]
fn many_calls_await_one_write_and_none_returns_before_it() {
    let log = gated(with_timeout(3_600_000, ThreadOptions::awaited(OnFailure::Deny)));
    log.log.send(line("0"));
    log.await_write();
    let flushes: Vec<_> = (1..=100)
        .map(|number: u64| {
            log.log.send(line(&number.to_string()));
            log.log.flush().unwrap()
        })
        .collect();
    let mut all = pin!(async {
        for flushed in flushes {
            flushed.await.unwrap();
        }
    });
    let mut context = Context::from_waker(Waker::noop());
    assert!(all.as_mut().poll(&mut context).is_pending());
    // The first write, and one for all that came meanwhile.
    log.gate.send(()).unwrap();
    log.gate.send(()).unwrap();
    while all.as_mut().poll(&mut context).is_pending() {
        std::thread::sleep(WAIT);
    }
    assert_eq!(events(&log.written.lock().unwrap()), 101);
}

#[test]
fn closing_a_log_that_hangs_ends_and_counts_what_is_not_written() {
    for options in [queued(OnFailure::Continue), ThreadOptions::awaited(OnFailure::Continue)] {
        let log = gated(with_timeout(50, options));
        for number in 0..100 {
            log.log.send(line(&number.to_string()));
        }
        log.log.close();
        assert_eq!((log.log.lost(), log.written.lock().unwrap().len()), (100, 0));
        assert!(log.log.failure().is_some_and(|why| why.contains("accepted nothing")));
    }
}

#[test]
fn a_call_waits_for_a_slow_log_and_loses_nothing() {
    let log = gated(with_timeout(3_600_000, queued(OnFailure::Continue)));
    log.log.send(line("first"));
    log.await_write();
    let mut sent = 1;
    while log.log.queue.try_send(Message::Line { row: line("queued"), lost_before: 0 }).is_ok() {
        sent += 1;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| log.log.send(line("last")));
        // It has begun to wait.
        while log.log.status.sent() < 2 {
            std::thread::sleep(WAIT);
        }
        for _ in 0..sent {
            log.gate.send(()).unwrap();
        }
    });
    let (written, lost) = log.finish();
    assert_eq!((lost, written.len()), (0, sent + 2));
}

#[test]
fn a_closed_log_denies_if_calls_depend_on_it() {
    for options in [queued(OnFailure::Deny), ThreadOptions::awaited(OnFailure::Deny)] {
        let log = gated(options);
        log.log.close();
        log.log.send(line("late"));
        assert!(log.flush().is_err());
        assert_eq!(log.log.lost(), 1);
    }
}

/// Fails while this is set.
struct FailingSink(Arc<AtomicBool>);

impl LineSink for FailingSink {
    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        lines.clear();
        Ok(())
    }

    fn lost_report(&self, count: u64) -> String {
        format!("lost {count}")
    }
}

#[test]
fn a_call_whose_event_was_lost_is_denied_although_the_log_works_again() {
    let fails = Arc::new(AtomicBool::new(true));
    let options = with_timeout(3_600_000, ThreadOptions::awaited(OnFailure::Deny));
    let log = LogThread::start(FailingSink(Arc::clone(&fails)), None, options).unwrap();
    while log.lost() == 0 {
        log.send(line(&"x".repeat(10_000)));
    }
    fails.store(false, Ordering::SeqCst);
    log.send(line("of another call"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let flushed = runtime.block_on(log.flush().unwrap());
    assert!(flushed.is_err_and(|why| why.to_string().contains("just lost events")));
}
