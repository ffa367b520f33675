//! Time as the host tells it: the machine's, or one that tests set.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use jiff::Timestamp;

/// A future of the host's, boxed so that what gives it can be chosen at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Tells the time and waits, so that tests can set it.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Waits so long. Without a clock's own way this is tokio's timer, which needs a tokio runtime with its time enabled.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands still until it is moved. Clones are the same clock.
///
/// ```
/// use std::time::Duration;
/// use callgate::host::{Clock, ManualClock};
///
/// let clock = ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap());
/// clock.drive(clock.sleep(Duration::from_secs(90)));
/// assert_eq!(clock.now().to_string(), "2026-01-01T12:01:30Z");
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    time: Arc<Mutex<Time>>,
}

#[derive(Debug)]
struct Time {
    now: Timestamp,
    sleepers: Vec<(Timestamp, Waker)>,
}

impl Time {
    /// Moves the time forward and wakes whoever has slept long enough.
    fn reach(&mut self, time: Timestamp) {
        self.now = self.now.max(time);
        let now = self.now;
        for (_, waker) in self.sleepers.extract_if(.., |(until, _)| *until <= now) {
            waker.wake();
        }
    }
}

impl ManualClock {
    /// A clock that shows this time.
    pub fn new(now: Timestamp) -> Self {
        Self { time: Arc::new(Mutex::new(Time { now, sleepers: Vec::new() })) }
    }

    /// Moves the time forward.
    pub fn advance(&self, duration: Duration) {
        let mut time = self.lock();
        let reached = time.now.checked_add(duration).unwrap_or(Timestamp::MAX);
        time.reach(reached);
    }

    /// Sets the time, also back. Nobody who sleeps is woken by a step back.
    pub fn set(&self, now: Timestamp) {
        let mut time = self.lock();
        time.now = now;
        time.reach(now);
    }

    /// Runs a future to its end on this thread. Whenever it waits and nothing has woken it, the time jumps to where the
    /// first sleeper wakes, so that hours pass at once. A future that waits for another thread is waited for.
    pub fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let alarm = Arc::new(Alarm { rung: AtomicBool::new(false), thread: thread::current() });
        let waker = Waker::from(Arc::clone(&alarm));
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return value;
            }
            while !alarm.rung.swap(false, Ordering::AcqRel) {
                if !self.reach_next() {
                    thread::park();
                }
            }
        }
    }

    /// Whether there was a sleeper to wake.
    fn reach_next(&self) -> bool {
        let mut time = self.lock();
        let next = time.sleepers.iter().map(|(until, _)| *until).min();
        next.is_some_and(|next| {
            time.reach(next);
            true
        })
    }

    fn lock(&self) -> MutexGuard<'_, Time> {
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        let until = self.now().checked_add(duration).unwrap_or(Timestamp::MAX);
        Box::pin(poll_fn(move |context| {
            let mut time = self.lock();
            if time.now >= until {
                return Poll::Ready(());
            }
            // A sleeper that was given up is woken for nothing, which harms nobody; one polled again is kept once.
            time.sleepers.retain(|(other, waker)| *other != until || !waker.will_wake(context.waker()));
            time.sleepers.push((until, context.waker().clone()));
            Poll::Pending
        }))
    }
}

/// Wakes the thread that drives.
struct Alarm {
    rung: AtomicBool,
    thread: Thread,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_jumps_to_the_first_sleeper() {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let woken = Mutex::new(Vec::new());
        let sleeper = |seconds: u64| {
            let (clock, woken) = (&clock, &woken);
            async move {
                clock.sleep(Duration::from_secs(seconds)).await;
                woken.lock().unwrap().push((seconds, clock.now().as_second()));
            }
        };
        clock.drive(async { tokio::join!(sleeper(5), sleeper(2), sleeper(9)) });
        assert_eq!(*woken.lock().unwrap(), [(2, 2), (5, 5), (9, 9)]);
    }

    #[test]
    fn a_step_back_wakes_nobody_early() {
        let clock = ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap());
        clock.set("2026-01-01T11:00:00Z".parse().unwrap());
        clock.drive(clock.sleep(Duration::from_secs(60)));
        assert_eq!(clock.now().to_string(), "2026-01-01T11:01:00Z");
    }
}
