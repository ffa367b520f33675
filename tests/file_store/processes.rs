//! Several processes with one file, and recovery after a process was killed.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::slots::wait_for_slot;
use super::*;

/// The environment variable with the store's path. Set only in child processes.
const STORE: &str = "CALLGATE_TEST_STORE";

/// How often each process increments the counter.
const ROUNDS: u64 = 100;

/// Starts a child process that runs one of the ignored tests. Returns it with the numbers that it prints.
fn spawn(child: &str, temp: &TempStore) -> (Child, Numbers) {
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("file_store::processes::{child}"), "--ignored", "--nocapture"])
        .env(STORE, temp.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    (process, Numbers(lines))
}

/// The numbers that a child prints.
struct Numbers(Lines<BufReader<ChildStdout>>);

impl Iterator for Numbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix('@')?.parse().ok())
    }
}

fn report(number: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n@{number}").unwrap();
    out.flush().unwrap();
}

fn as_child(work: impl FnOnce(&SqliteStore)) {
    if let Some(path) = env::var_os(STORE) {
        work(&SqliteStore::open(Path::new(&path)).unwrap());
    }
}

fn padded(number: u64) -> Value {
    json!({ "number": number, "filled": "x".repeat(3000) })
}

#[test]
#[ignore = "the process that another test kills"]
fn child_that_writes() {
    as_child(|store| {
        let start = record(store, "next").map_or(0, |record| record.value.as_u64().unwrap());
        for number in start.. {
            // Overwrite what a killed child wrote without reporting it.
            let over = record(store, &number.to_string()).map(|record| record.version);
            assert!(write(store, &number.to_string(), &padded(number), over));
            let over = record(store, "next").map(|record| record.version);
            assert!(write(store, "next", &json!(number + 1), over));
            assert!(try_acquire(store, 0, whole("k", total(1_000_000), 1)));
            report(number);
        }
    });
}

#[test]
fn reported_writes_of_a_killed_process_are_durable() {
    let temp = TempStore::new();
    let (mut last, mut told) = (0, 0);
    for round in 0..6 {
        let (mut child, numbers) = spawn("child_that_writes", &temp);
        // Kill it at a different moment each time.
        for number in numbers.take(3 + round * 7) {
            (last, told) = (number, told + 1);
        }
        child.kill().unwrap();
        child.wait().unwrap();

        let store = temp.open();
        for number in 0..=last {
            assert_eq!(record(&store, &number.to_string()).map(|record| record.value), Some(padded(number)));
        }
        let next = record(&store, "next").unwrap().value.as_u64().unwrap();
        assert!(next > last, "{next} after {last}");
        assert!(record(&store, &(next + 1).to_string()).is_none(), "records were written in order");
        assert!(
            !try_acquire(&store, 0, whole("k", total(told), 1)),
            "at least the reported amount was acquired"
        );
    }
    assert!(temp.files().len() == 1, "leftovers of killed processes were not removed: {:?}", temp.files());
}

#[test]
fn process_killed_during_creation_blocks_nobody() {
    for _ in 0..10 {
        let temp = TempStore::new();
        let (mut child, _numbers) = spawn("child_that_writes", &temp);
        while !temp.path().exists() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(write(&temp.open(), "k", &json!(1), None));
    }
}

#[test]
#[ignore = "one of several processes of another test"]
fn child_that_counts() {
    as_child(|store| {
        for _ in 0..ROUNDS {
            loop {
                let current = record(store, "count");
                let count = current.as_ref().map_or(0, |record| record.value.as_u64().unwrap());
                if write(store, "count", &json!(count + 1), current.map(|record| record.version)) {
                    break;
                }
            }
        }
        let mut taken = 0;
        while try_acquire(store, 0, whole("k", total(ROUNDS), 1)) {
            taken += 1;
        }
        report(taken);
    });
}

#[test]
fn concurrent_processes_count_and_acquire_exactly() {
    let temp = TempStore::new();
    let children: Vec<_> = (0..3).map(|_| spawn("child_that_counts", &temp)).collect();
    let taken: u64 = children
        .into_iter()
        .map(|(mut child, numbers)| {
            let taken: u64 = numbers.sum();
            assert!(child.wait().unwrap().success());
            taken
        })
        .sum();
    assert_eq!(taken, ROUNDS);
    assert_eq!(record(&temp.open(), "count").unwrap().value, json!(3 * ROUNDS));
}

#[test]
#[ignore = "the process that another test kills"]
fn child_that_holds_a_slot() {
    as_child(|store| {
        assert!(try_slot(store, "k"));
        report(1);
        // Until it is killed, or its parent has ended.
        std::io::stdin().read_line(&mut String::new()).unwrap();
    });
}

#[test]
fn slots_of_a_killed_process_are_released() {
    let temp = TempStore::new();
    let store = temp.open();
    for waits in [false, true] {
        let (mut child, mut numbers) = spawn("child_that_holds_a_slot", &temp);
        assert_eq!(numbers.next(), Some(1));
        assert!(!try_slot(&store, "k"), "the process is alive");
        std::thread::scope(|scope| {
            let waiting = waits.then(|| scope.spawn(|| wait_for_slot(&store, "k")));
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(waiting.is_some() || try_slot(&store, "k"));
        });
        store.release("k");
    }
    assert_eq!(temp.files().iter().filter(|name| name.contains("-owner-")).count(), 1);
}
