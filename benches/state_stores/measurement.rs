//! What was measured of an operation: how many a second, how long each took, and the processor time of the server.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, Instant};

use super::futures_of;
use super::processor_time::processor_time;

#[derive(Default)]
pub struct Measurement {
    latencies: Vec<Duration>,
    elapsed: Duration,
    server: Duration,
}

impl Measurement {
    pub fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.elapsed += other.elapsed;
        self.server += other.server;
    }

    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let at =
            |share: usize| sorted.get(sorted.len() * share / 100).copied().unwrap_or_default().as_micros();
        let server = self.server.as_secs_f64() * 1e6 / sorted.len() as f64;
        write!(f, "{:>8.0} {:>5} µs {:>5} µs {server:>4.0} µs", self.per_second(), at(50), at(99))
    }
}

/// Runs operations for a while, so many at once.
pub fn measure<F: Future<Output = ()>>(
    time: Duration,
    at_once: usize,
    server: u32,
    operation: impl Fn() -> F,
) -> Measurement {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (latencies, before, begun) = (RefCell::default(), processor_time(server), Instant::now());
    runtime.block_on(futures_of(at_once, || async {
        while begun.elapsed() < time {
            let sent = Instant::now();
            operation().await;
            let latencies: &RefCell<Vec<Duration>> = &latencies;
            latencies.borrow_mut().push(sent.elapsed());
        }
    }));
    Measurement {
        latencies: latencies.into_inner(),
        elapsed: begun.elapsed(),
        server: processor_time(server) - before,
    }
}
