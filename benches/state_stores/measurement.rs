//! What was measured of an operation: how many a second, how long each took, and the processor time of the server.

use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use super::futures_of;

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

/// The processor time that a process and its children have used, also those that have ended.
pub fn processor_time(process: u32) -> Duration {
    let Ok(all) = fs::read_dir("/proc") else { return Duration::ZERO };
    let ticks = all.flatten().filter_map(|found| {
        let id: u32 = found.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(found.path().join("stat")).ok()?;
        // After the name, which may have spaces: the state, the parent, and from the 12th on the times.
        let fields: Vec<u64> =
            stat.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let (own, children) = (fields.get(11)? + fields.get(12)?, fields.get(13)? + fields.get(14)?);
        match id == process {
            true => Some(own + children),
            false => (*fields.get(1)? == u64::from(process)).then_some(own),
        }
    });
    // A tick is 10 ms.
    Duration::from_millis(10 * ticks.sum::<u64>())
}
