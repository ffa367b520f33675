//! Cost of loading: the time and the memory of a bundle, and the time of reading the same YAML into values. Both times are measured in one run,
//! because only their ratio is meaningful. The text has indented blocks, as people write rules. Then the cost of a reload after one policy
//! of a bundle in files of 100 policies has changed.
//!
//! `cargo bench --bench load`

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

#[expect(dead_code, reason = "the index is not used here")]
mod workload;

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use callgate::json::{Value, json};
use callgate::reload::{ReloadResult, Reloader};
use callgate::{Engine, SessionState};
use workload::{calls, rules, rules_text};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
const ROUNDS: usize = 7;
const POLICIES_PER_FILE: usize = 100;

/// The fastest of several rounds of each: other load only adds time. The two alternate, because the speed of a machine changes.
fn fastest<A, B>(mut first: impl FnMut() -> A, mut second: impl FnMut() -> B) -> [Duration; 2] {
    fn time<T>(work: &mut impl FnMut() -> T) -> Duration {
        let began = Instant::now();
        let made = black_box(work());
        let time = began.elapsed();
        drop(made);
        time
    }
    (0..ROUNDS)
        .map(|_| [time(&mut first), time(&mut second)])
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
    println!("\n{:>8} {:>11} {:>11} {:>6}", "policies", "load", "reload", "ratio");
    SIZES.into_iter().filter(|size| *size > POLICIES_PER_FILE).for_each(measure_reload);
}

/// Prints the time that loading all files takes, and the time from the change of one policy until it decides calls, under rules that have decided
/// calls before.
fn measure_reload(size: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let value: Value = callgate::json::parse(&rules_text(&rules(size))).expect("JSON");
    let mut files: Vec<Vec<Value>> = Vec::new();
    for (number, policy) in value["policies"].as_array().expect("policies").iter().enumerate() {
        if number % POLICIES_PER_FILE == 0 {
            files.push(Vec::new());
        }
        files.last_mut().expect("a file").push(policy.clone());
    }
    let text_of =
        |policies: &[Value]| serde_yaml::to_string(&json!({ "policies": policies })).expect("rules are YAML");
    let write = |number: usize, text: &str| {
        fs::write(directory.path().join(format!("{number:03}.yaml")), text).expect("a file");
    };
    files.iter().enumerate().for_each(|(number, policies)| write(number, &text_of(policies)));
    let paths = [directory.path().to_owned()];
    let engine = Engine::from_paths(&paths).expect("valid rules");
    let calls = calls(size, 245);
    let mut reloader = Reloader::new(engine.clone(), paths.clone());
    let (middle, session) = (files.len() / 2, SessionState::default());
    let decide = || {
        calls.iter().for_each(|call| {
            black_box(engine.decide(call, &session).effect());
        })
    };
    decide();
    let mut versions = [1, 2].map(|priority| {
        files[middle][0]["priority"] = priority.into();
        text_of(&files[middle])
    });
    let [load, reload] = fastest(
        || Engine::from_paths(&paths).expect("valid rules"),
        || {
            write(middle, &versions[0]);
            assert_eq!(reloader.reload(), ReloadResult::Applied);
            versions.reverse();
        },
    );
    println!("{size:>8} {load:>11.2?} {reload:>11.2?} {:>6.3}", reload.as_secs_f64() / load.as_secs_f64());
}
