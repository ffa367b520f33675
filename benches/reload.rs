//! Cost of hot reload: the duration of a reload of 1,000 and 10,000 policies, and its effect on the latency of concurrent
//! decisions. Latencies are compared with those of the same loop without reloads in the same run, because only their ratio is
//! meaningful. A third measurement runs a thread that only keeps a processor busy, which alone can explain most of the effect
//! on machines with few processors.
//!
//! `cargo bench --bench reload`

#![expect(
    clippy::expect_used,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use callgate::json::{Value, json};
use callgate::reload::{ReloadResult, Reloader};
use callgate::{Engine, SessionState, ToolCall};

const SIZES: [usize; 2] = [1_000, 10_000];
/// Duration of each loop.
const SPAN: Duration = Duration::from_secs(5);
/// Pause between two reloads in the more realistic mode.
const PAUSE: Duration = Duration::from_millis(500);

/// `size` policies for a thousand tools; `version` is the difference between two bundles.
fn rules(size: usize, version: usize) -> String {
    let policy = |number: usize| {
        let tool = match number % 10 {
            0..7 => format!("family{}.tool{}", number % 100, number % 1_000),
            7 | 8 => format!("family{}.*", number % 100),
            _ => format!("/^family{}\\.tool\\d*5$/", number % 100),
        };
        let condition = json!([{ "path": "$.input.amount", "gt": 1_000 + number + version }]);
        json!({ "id": format!("p{number}"), "match": { "tool": tool, "where": condition }, "deny": {} })
    };
    json!({ "policies": (0..size).map(policy).collect::<Vec<Value>>() }).to_string()
}

fn calls() -> Vec<ToolCall> {
    let call = |number: usize| {
        let tool = format!("family{}.tool{}", number * 7 % 100, number * 7 % 1_000);
        ToolCall::new("c1", tool, json!({ "amount": number, "region": "eu" }))
    };
    (0..64).map(call).collect()
}

/// Durations of decisions in nanoseconds, sorted.
struct Latencies(Vec<u64>);

impl Latencies {
    /// Evaluates calls in a loop for `SPAN`.
    fn measure(engine: &Engine, calls: &[ToolCall]) -> Self {
        let session = SessionState::default();
        let mut all = Vec::with_capacity(20_000_000);
        let end = Instant::now() + SPAN;
        let mut before = Instant::now();
        for call in calls.iter().cycle() {
            black_box(engine.decide(black_box(call), &session).effect());
            let now = Instant::now();
            all.push(u64::try_from((now - before).as_nanos()).unwrap_or(u64::MAX));
            before = now;
            if now >= end {
                break;
            }
        }
        all.sort_unstable();
        Self(all)
    }

    fn at(&self, share: f64) -> u64 {
        let place = (self.0.len() as f64 * share) as usize;
        self.0.get(place.min(self.0.len() - 1)).copied().expect("some decisions")
    }

    fn show(&self, name: &str, without: &Self) {
        let ratio = |share| self.at(share) as f64 / without.at(share) as f64;
        println!(
            "  {name:<28} p50 {:>5} ns ({:.2}x)   p99 {:>6} ns ({:.2}x)   p99.9 {:>7} ns ({:.2}x)   longest {:>5} µs   {:>9} decisions",
            self.at(0.5),
            ratio(0.5),
            self.at(0.99),
            ratio(0.99),
            self.at(0.999),
            ratio(0.999),
            self.at(1.0) / 1_000,
            self.0.len()
        );
    }
}

/// Measures while another thread runs `other`, which must stop once the flag is set.
fn beside<T: Send>(
    engine: &Engine,
    calls: &[ToolCall],
    other: impl FnOnce(&AtomicBool) -> T + Send,
) -> (Latencies, T) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| other(&over));
        let latencies = Latencies::measure(engine, calls);
        over.store(true, Ordering::Release);
        (latencies, other.join().expect("the other thread"))
    })
}

fn main() {
    for size in SIZES {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rules.yaml");
        let versions = [rules(size, 0), rules(size, 1)];
        fs::write(&path, &versions[0]).expect("rules are written");
        let engine = Engine::from_paths(std::slice::from_ref(&path)).expect("valid rules");
        let calls = calls();
        // Loads, compares and applies the other version repeatedly.
        let reloading = |pause: Duration| {
            let (engine, path, versions) = (engine.clone(), path.clone(), &versions);
            move |over: &AtomicBool| {
                let mut reloader = Reloader::new(engine, [path.clone()]);
                let mut times = Vec::new();
                for text in versions.iter().rev().cycle() {
                    if over.load(Ordering::Acquire) {
                        break;
                    }
                    fs::write(&path, text).expect("rules are written");
                    let begun = Instant::now();
                    let looked = reloader.reload();
                    times.push(begun.elapsed());
                    assert!(matches!(looked, ReloadResult::Applied | ReloadResult::Unchanged));
                    thread::sleep(pause);
                }
                times.sort_unstable();
                times
            }
        };
        println!("{size} policies");
        Latencies::measure(&engine, &calls);
        let without = Latencies::measure(&engine, &calls);
        without.show("no reload", &without);
        let (busy, ()) = beside(&engine, &calls, |over| {
            while !over.load(Ordering::Acquire) {
                black_box(0);
            }
        });
        busy.show("another thread is busy", &without);
        for (name, pause) in [("reload every half second", PAUSE), ("reload without a pause", Duration::ZERO)]
        {
            let (latencies, times) = beside(&engine, &calls, reloading(pause));
            latencies.show(name, &without);
            let middle = times.get(times.len() / 2).copied().unwrap_or_default();
            println!("    {} reloads, {:.1} ms each (median)", times.len(), middle.as_secs_f64() * 1e3);
        }
    }
}
