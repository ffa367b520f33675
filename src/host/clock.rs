//! Clocks: the [`Clock`] trait, the system clock, and a manual clock for tests.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use jiff::Timestamp;

/// A boxed future, so that implementations can be chosen at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Puts a future on the heap, without its type: the futures that contain it stay small, also for the compiler.
pub(crate) fn boxed<'a, T>(future: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(future)
}

/// A source of the current time and of timers. Tests can replace it with a [`ManualClock`].
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// Waits for this duration. The default is tokio's timer, which needs a tokio runtime with time enabled.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that advances only when it is moved. Clones share the same time.
///
/// ```
/// use std::time::Duration;
/// use callgate::{Clock, ManualClock};
///
/// let clock = ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap());
/// clock.block_on(clock.sleep(Duration::from_secs(90)));
/// assert_eq!(clock.now().to_string(), "2026-01-01T12:01:30Z");
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    time: Arc<Mutex<ManualTime>>,
}

#[derive(Debug)]
struct ManualTime {
    now: Timestamp,
    sleepers: Vec<(Timestamp, Waker)>,
}

impl ManualTime {
    /// Moves the time forward and wakes the sleepers whose time has come.
    fn advance_to(&mut self, time: Timestamp) {
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
        Self { time: Arc::new(Mutex::new(ManualTime { now, sleepers: Vec::new() })) }
    }

    /// Moves the time forward.
    pub fn advance(&self, duration: Duration) {
        let mut time = self.lock();
        let reached = time.now.checked_add(duration).unwrap_or(Timestamp::MAX);
        time.advance_to(reached);
    }

    /// Sets the time, also backwards. A step back wakes no sleeper.
    pub fn set(&self, now: Timestamp) {
        let mut time = self.lock();
        time.now = now;
        time.advance_to(now);
    }

    /// Runs a future to completion on this thread. Whenever it is pending and nothing has woken it, the time jumps to the
    /// deadline of the first sleeper, so that hours pass at once. If the future is pending on another thread, this blocks
    /// until that thread wakes it.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let alarm = Arc::new(ThreadWaker { woken: AtomicBool::new(false), thread: thread::current() });
        let waker = Waker::from(Arc::clone(&alarm));
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return value;
            }
            while !alarm.woken.swap(false, Ordering::AcqRel) {
                if !self.advance_to_next() {
                    thread::park();
                }
            }
        }
    }

    /// Advances to the earliest deadline. Returns `false` if nothing sleeps.
    fn advance_to_next(&self) -> bool {
        let mut time = self.lock();
        let next = time.sleepers.iter().map(|(until, _)| *until).min();
        next.is_some_and(|next| {
            time.advance_to(next);
            true
        })
    }

    fn lock(&self) -> MutexGuard<'_, ManualTime> {
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
            // A dropped sleeper is woken for nothing, which is harmless; one that is polled again is stored once.
            time.sleepers.retain(|(other, waker)| *other != until || !waker.will_wake(context.waker()));
            time.sleepers.push((until, context.waker().clone()));
            Poll::Pending
        }))
    }
}

/// Wakes the thread that runs [`ManualClock::block_on`].
struct ThreadWaker {
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
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
        clock.block_on(async { tokio::join!(sleeper(5), sleeper(2), sleeper(9)) });
        assert_eq!(*woken.lock().unwrap(), [(2, 2), (5, 5), (9, 9)]);
    }

    #[test]
    fn a_step_back_does_not_wake_sleepers_early() {
        let clock = ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap());
        clock.set("2026-01-01T11:00:00Z".parse().unwrap());
        clock.block_on(clock.sleep(Duration::from_secs(60)));
        assert_eq!(clock.now().to_string(), "2026-01-01T11:01:00Z");
    }
}
