//! Several processes over one file, and what is left of one that was killed.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::slots::wait_for_slot;
use super::*;

/// Where a child finds the store. Only who is a child has it.
const STORE: &str = "CALLGATE_TEST_STORE";

/// How often each of several counts up.
const ROUNDS: u64 = 100;

/// What a child process is to do.
fn spawn(child: &str, place: &Place) -> (Child, Told) {
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("file_store::processes::{child}"), "--ignored", "--nocapture"])
        .env(STORE, place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    (process, Told(lines))
}

/// What a child says, one number after the other.
struct Told(Lines<BufReader<ChildStdout>>);

impl Iterator for Told {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix('@')?.parse().ok())
    }
}

fn tell(number: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n@{number}").unwrap();
    out.flush().unwrap();
}

fn as_child(work: impl FnOnce(&FileStore)) {
    if let Some(path) = env::var_os(STORE) {
        work(&FileStore::open(Path::new(&path)).unwrap());
    }
}

fn filled(number: u64) -> Value {
    json!({ "number": number, "filled": "x".repeat(3000) })
}

#[test]
#[ignore = "the process that another test kills"]
fn child_that_writes() {
    as_child(|store| {
        let start = record(store, "next").map_or(0, |record| record.value.as_u64().unwrap());
        for number in start.. {
            // Over what was left of one that was killed before it could say so.
            let over = record(store, &number.to_string()).map(|record| record.version);
            assert!(write(store, &number.to_string(), &filled(number), over));
            let over = record(store, "next").map(|record| record.version);
            assert!(write(store, "next", &json!(number + 1), over));
            assert!(takes(store, 0, whole("k", total(1_000_000), 1)));
            tell(number);
        }
    });
}

#[test]
fn what_a_killed_process_has_told_is_there() {
    let place = Place::new();
    let (mut last, mut told) = (0, 0);
    for round in 0..6 {
        let (mut child, numbers) = spawn("child_that_writes", &place);
        // At another moment of its work each time.
        for number in numbers.take(3 + round * 7) {
            (last, told) = (number, told + 1);
        }
        child.kill().unwrap();
        child.wait().unwrap();

        let store = place.open();
        for number in 0..=last {
            assert_eq!(record(&store, &number.to_string()).map(|record| record.value), Some(filled(number)));
        }
        let next = record(&store, "next").unwrap().value.as_u64().unwrap();
        assert!(next > last, "{next} after {last}");
        assert!(record(&store, &(next + 1).to_string()).is_none(), "they were written one after the other");
        assert!(!takes(&store, 0, whole("k", total(told), 1)), "as much was taken as was told");
    }
    assert!(place.files().len() == 1, "what the killed ones left was removed: {:?}", place.files());
}

#[test]
fn a_process_that_was_killed_while_it_made_the_file_is_in_nobodys_way() {
    for _ in 0..10 {
        let place = Place::new();
        let (mut child, _numbers) = spawn("child_that_writes", &place);
        while !place.path().exists() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(write(&place.open(), "k", &json!(1), None));
    }
}

#[test]
#[ignore = "one of several processes of another test"]
fn child_that_counts() {
    as_child(|store| {
        for _ in 0..ROUNDS {
            loop {
                let stands = record(store, "count");
                let count = stands.as_ref().map_or(0, |record| record.value.as_u64().unwrap());
                if write(store, "count", &json!(count + 1), stands.map(|record| record.version)) {
                    break;
                }
            }
        }
        let mut taken = 0;
        while takes(store, 0, whole("k", total(ROUNDS), 1)) {
            taken += 1;
        }
        tell(taken);
    });
}

#[test]
fn processes_that_count_and_take_together_are_exact() {
    let place = Place::new();
    let children: Vec<_> = (0..3).map(|_| spawn("child_that_counts", &place)).collect();
    let taken: u64 = children
        .into_iter()
        .map(|(mut child, numbers)| {
            let taken: u64 = numbers.sum();
            assert!(child.wait().unwrap().success());
            taken
        })
        .sum();
    assert_eq!(taken, ROUNDS);
    assert_eq!(record(&place.open(), "count").unwrap().value, json!(3 * ROUNDS));
}

#[test]
#[ignore = "the process that another test kills"]
fn child_that_holds_a_slot() {
    as_child(|store| {
        assert!(slot(store, "k"));
        tell(1);
        // Until it is killed, or who started it is gone.
        std::io::stdin().read_line(&mut String::new()).unwrap();
    });
}

#[test]
fn slots_of_a_killed_process_come_free() {
    let place = Place::new();
    let store = place.open();
    for waits in [false, true] {
        let (mut child, mut numbers) = spawn("child_that_holds_a_slot", &place);
        assert_eq!(numbers.next(), Some(1));
        assert!(!slot(&store, "k"), "it lives");
        std::thread::scope(|scope| {
            let waiting = waits.then(|| scope.spawn(|| wait_for_slot(&store, "k")));
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(waiting.is_some() || slot(&store, "k"));
        });
        store.give_back("k");
    }
    assert_eq!(place.files().iter().filter(|name| name.contains("-owner-")).count(), 1);
}
