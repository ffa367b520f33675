//! What callers write down: each run of a tool, and each attempt of a call, as lines of files that all processes append to.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// A time that all processes of the machine agree on, in microseconds.
pub fn monotonic_micros() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// Appends a line, as a whole.
pub fn append(folder: &Path, file: &str, line: &str) {
    let mut log = OpenOptions::new().create(true).append(true).open(folder.join(file)).unwrap();
    log.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A call from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Interval {
    pub id: String,
    pub from: i64,
    pub to: i64,
    /// The outcome of an attempt; empty for a run of the tool.
    pub outcome: String,
    /// Whether an attempt has given the call its final outcome.
    pub is_final: bool,
    /// The reason of an outcome.
    pub reason: String,
}

/// The intervals of a file. A line whose writer was killed in the middle is left out.
pub fn read(folder: &Path, file: &str) -> Vec<Interval> {
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    let interval = |line: &str| {
        let mut words = line.splitn(6, ' ');
        let (id, from, to) =
            (words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let outcome = words.next().unwrap_or_default().to_owned();
        let is_final = words.next() == Some("final");
        let reason = words.next().unwrap_or_default().to_owned();
        Some(Interval { id, from, to, outcome, is_final, reason })
    };
    text.lines().filter_map(interval).collect()
}

/// The intervals by call.
pub fn by_id(intervals: &[Interval]) -> BTreeMap<&str, Vec<&Interval>> {
    let mut calls: BTreeMap<&str, Vec<&Interval>> = BTreeMap::new();
    intervals.iter().for_each(|one| calls.entry(&one.id).or_default().push(one));
    calls
}

/// The calls that several callers attempted at the same time.
pub fn races(attempts: &[Interval]) -> usize {
    let overlap = |one: &Interval, other: &Interval| one.from < other.to && other.from < one.to;
    let is_race = |attempts: &Vec<&Interval>| {
        attempts
            .iter()
            .enumerate()
            .any(|(index, one)| attempts[..index].iter().any(|other| overlap(one, other)))
    };
    by_id(attempts).values().filter(|attempts| is_race(attempts)).count()
}

/// The most runs that certainly were in one window: sent after its start, and run before its end.
pub fn most_in_a_window(runs: &[Interval], window: i64) -> usize {
    let within = |from: i64| runs.iter().filter(|run| run.from >= from && run.to < from + window).count();
    runs.iter().map(|run| within(run.from)).max().unwrap_or_default()
}
