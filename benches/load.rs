//! Cost of loading: the time and the memory of a bundle, and the time of reading the same YAML into values. Both times are measured in one run,
//! because only their ratio is meaningful. The text has indented blocks, as people write rules.
//!
//! `cargo bench --bench load`

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

#[expect(dead_code, reason = "only the rules are used here, and not the calls and the index")]
mod workload;

use std::hint::black_box;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use callgate::Engine;
use callgate::json::Value;
use workload::{rules, rules_text};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
const ROUNDS: usize = 7;

/// The fastest of several rounds of each: other load only adds time. The two alternate, because the speed of a machine changes.
fn fastest<A, B>(first: impl Fn() -> A, second: impl Fn() -> B) -> [Duration; 2] {
    fn time<T>(work: impl Fn() -> T) -> Duration {
        let began = Instant::now();
        let made = black_box(work());
        let time = began.elapsed();
        drop(made);
        time
    }
    (0..ROUNDS)
        .map(|_| [time(&first), time(&second)])
        .reduce(|least, round| [least[0].min(round[0]), least[1].min(round[1])])
        .unwrap_or_default()
}

fn main() {
    println!("{:>8} {:>11} {:>11} {:>6} {:>13}", "policies", "read", "load", "ratio", "bytes/policy");
    for size in SIZES {
        let value: Value = callgate::json::parse(&rules_text(&rules(size))).expect("JSON");
        let text = serde_yaml::to_string(&value).expect("rules are YAML");
        let [read, load] = fastest(
            || serde_yaml::from_str::<serde_yaml::Value>(black_box(&text)).expect("YAML"),
            || Engine::from_text(black_box(&text)).expect("valid rules"),
        );
        let mut engine = None;
        let allocated = measure(|| engine = Some(Engine::from_text(&text).expect("valid rules")));
        let ratio = load.as_secs_f64() / read.as_secs_f64();
        let bytes = allocated.bytes_current / size as i64;
        println!("{size:>8} {read:>11.2?} {load:>11.2?} {ratio:>6.2} {bytes:>13}");
    }
}
