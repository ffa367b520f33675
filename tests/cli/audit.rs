//! `callgate audit` and audit logs of `callgate run`, also of killed processes and full disks.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use callgate::json::Value;

use super::{CommandResult, TestDir};

const RULES: &str = "policies: [{ id: no-rm, match: rm, deny: { message: never } }]";
const RUN: [&str; 7] = ["run", "--policies", "rules.yaml", "--format", "json", "--log", "audit:audit.jsonl"];

fn test_dir() -> TestDir {
    TestDir::new(&[("rules.yaml", RULES)])
}

fn calls(count: usize) -> String {
    let call = |n| {
        format!(
            "{{\"id\":\"k{n}\",\"tool\":\"look\",\"input\":{{\"n\":{n}}},\"recorded\":{{\"output\":{n}}}}}\n"
        )
    };
    (0..count).map(call).collect()
}

impl TestDir {
    fn run_calls(&self, calls: &str) -> CommandResult {
        self.run_with_input(&[&RUN[..], &["-"]].concat(), calls)
    }

    fn verify(&self) -> Value {
        let result = self.run(&["audit", "verify", "--format", "json", "audit.jsonl"]);
        callgate::json::from_str(&result.stdout).unwrap_or_else(|_| panic!("{}", result.transcript()))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.0.path().join("audit.jsonl")).unwrap()
    }

    fn write_log(&self, text: &str) {
        fs::write(self.0.path().join("audit.jsonl"), text).unwrap();
    }

    /// The ids of the calls whose outcomes the log has.
    fn completed(&self) -> BTreeSet<String> {
        let query = ["audit", "query", "--format", "json", "--event", "call_completed", "audit.jsonl"];
        let lines = self.run(&query).stdout;
        let id =
            |line: &str| callgate::json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        lines.lines().map(id).collect()
    }
}

#[test]
fn an_untouched_log_is_intact_and_an_altered_one_is_not() {
    let dir = test_dir();
    assert_eq!(dir.run_calls(&calls(3)).code, Some(0));
    let key = dir.run(&["audit", "key", "audit.jsonl.key"]).stdout.trim().to_owned();
    let verified = dir.run(&["audit", "verify", "--key", &key, "audit.jsonl"]);
    assert_eq!(verified.code, Some(0), "{}", verified.transcript());
    assert!(verified.stdout.contains(&format!("signed by {key}\nproven up to line ")));
    let last = verified.stdout.rsplit_once("last line ").unwrap().1.trim().to_owned();

    let log = dir.log();
    let key_file = dir.0.path().join("audit.pub");
    fs::write(key_file, format!("{key} the gateway\n")).unwrap();
    let verify = ["audit", "verify", "--key", "audit.pub", "--expect", &last, "audit.jsonl"];
    assert_eq!(dir.run(&verify).code, Some(0));
    dir.write_log(&log.replace("\"k1\"", "\"k7\""));
    let altered = dir.run(&verify);
    assert_eq!(altered.code, Some(1));
    assert!(altered.stdout.contains("was changed"), "{}", altered.stdout);
    let cut: String = log.split_inclusive('\n').take(6).collect();
    dir.write_log(&cut);
    let altered = dir.run(&verify);
    assert!(altered.code == Some(1) && altered.stdout.contains("lines were removed"), "{}", altered.stdout);
    let uncertain = dir.run(&["audit", "verify", "--key", "audit.pub", "audit.jsonl"]);
    assert!(uncertain.code == Some(0) && uncertain.stdout.contains("not closed"), "{}", uncertain.stdout);

    dir.write_log(&log);
    let other = format!("ed25519:{}", "0".repeat(64));
    assert_eq!(dir.run(&["audit", "verify", "--key", &other, "audit.jsonl"]).code, Some(1));
    for unusable in [&["audit", "verify", "missing.jsonl"][..], &["audit", "verify", "."]] {
        let result = dir.run(unusable);
        assert!(result.code == Some(2) && result.stderr.contains("can't be read"), "{}", result.transcript());
    }
    let foreign = dir.run(&["run", "--policies", "rules.yaml", "--log", "audit:rules.yaml", "-"]);
    assert!(foreign.stderr.contains("does not end with a line of an audit log"), "{}", foreign.stderr);
    let useless = dir.run(&["run", "--policies", "rules.yaml", "--log", "x.jsonl", "--audit-key", "k", "-"]);
    assert!(useless.stderr.contains("needs an audit log"), "{}", useless.stderr);
}

#[test]
fn a_killed_process_loses_no_outcome_that_it_reported() {
    let dir = test_dir();
    let mut reported = BTreeSet::new();
    for round in 0..5 {
        let mut child = dir
            .command(&[&RUN[..], &["-"]].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            let call = |n| format!("{{\"id\":\"r{round}-{n}\",\"tool\":\"look\",\"input\":{{}}}}\n");
            (0..).map(call).all(|line| stdin.write_all(line.as_bytes()).is_ok())
        });
        let mut outcomes = BufReader::new(child.stdout.take().unwrap()).lines();
        let first: Vec<String> = outcomes.by_ref().take(1 + round * 97).map(Result::unwrap).collect();
        child.kill().unwrap();
        let rest = outcomes.map_while(Result::ok).filter(|line| line.ends_with('}'));
        let id = |line: String| {
            callgate::json::from_str::<Value>(&line).unwrap()["id"].as_str().unwrap().to_owned()
        };
        reported.extend(first.into_iter().chain(rest).map(id));
        child.wait().unwrap();
        writer.join().unwrap();

        let report = dir.verify();
        assert_eq!(report["problems"], Value::Array(Vec::new()), "round {round}");
        assert_eq!(report["closed"], false);
        let completed = dir.completed();
        assert!(reported.is_subset(&completed), "{:?}", reported.difference(&completed));
    }
    assert_eq!(dir.run_calls(&calls(1)).code, Some(0));
    let report = dir.verify();
    assert_eq!((&report["intact"], &report["closed"]), (&Value::Bool(true), &Value::Bool(true)));
    let notes = report["notes"].to_string();
    assert_eq!(notes.matches("did not close the log").count(), 5, "{notes}");
}

#[test]
fn a_full_disk_denies_calls_or_loses_events_as_stated_and_breaks_nothing() {
    for (policy, last) in [("", "denied"), ("--log-on-failure continue", "executed")] {
        let dir = test_dir();
        // Files may have 16 or 32 KiB. Without the signal that kills the process, writes fail as on a full disk.
        let script = format!(
            "trap '' XFSZ; ulimit -f 32; exec {} {} {policy} -",
            env!("CARGO_BIN_EXE_callgate"),
            RUN.join(" ")
        );
        let mut command = std::process::Command::new("sh");
        command.current_dir(dir.0.path()).args(["-c", &script]).env_remove("CALLGATE_KEYS");
        fs::write(dir.0.path().join("calls.jsonl"), calls(200)).unwrap();
        command.stdin(fs::File::open(dir.0.path().join("calls.jsonl")).unwrap());
        let result: CommandResult = command.output().unwrap().into();
        let outcomes: Vec<Value> =
            result.stdout.lines().map(|line| callgate::json::from_str(line).unwrap()).collect();
        assert_eq!(outcomes.len(), 200, "{}", result.stderr);
        assert_eq!((&outcomes[0]["outcome"], &outcomes[199]["outcome"]), (&"executed".into(), &last.into()));
        if last == "denied" {
            assert_eq!(outcomes[199]["reason"]["code"], "log_unavailable");
        }
        assert!(result.stderr.contains("events are missing in a log"), "{}", result.stderr);
        let executed = outcomes.iter().filter(|outcome| outcome["outcome"] == "executed");
        let executed: BTreeSet<String> =
            executed.map(|outcome| outcome["id"].as_str().unwrap().to_owned()).collect();
        let report = dir.verify();
        assert_eq!((&report["intact"], &report["closed"]), (&Value::Bool(true), &Value::Bool(false)));
        if last == "denied" {
            // The outcome of the one call that ran while the disk became full may be missing.
            assert!(executed.difference(&dir.completed()).count() <= 1);
        }
        assert_eq!(dir.run_calls(&calls(1)).code, Some(0));
        assert_eq!(
            (&dir.verify()["intact"], &dir.verify()["closed"]),
            (&Value::Bool(true), &Value::Bool(true))
        );
    }
}

#[test]
fn a_second_process_does_not_write_the_same_file() {
    let dir = test_dir();
    let mut command = dir.command(&[&RUN[..], &["-"]].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(calls(1).as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let second = dir.run_calls(&calls(1));
    assert!(
        second.code == Some(2) && second.stderr.contains("another process writes"),
        "{}",
        second.transcript()
    );
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(dir.verify()["intact"], true);
}

#[test]
fn queries_and_exports_select_events_and_show_hostile_names_as_text() {
    let dir = test_dir();
    let calls = "{\"id\":\"a\",\"tool\":\"rm\",\"input\":{},\"context\":{\"principal\":\"ann\"}}\n\
        {\"id\":\"b\",\"tool\":\"=cmd()\\u001b[2J\\n\",\"input\":{},\"context\":{\"principal\":\"@bob\"}}\n";
    dir.run_calls(calls);
    let query = |arguments: &[&str]| {
        let result = dir.run(&[&["audit"], arguments, &["audit.jsonl"]].concat());
        assert_eq!(result.code, Some(0), "{}", result.transcript());
        result.stdout
    };
    let table = query(&["query", "--outcome", "denied"]);
    assert!(table.contains("✗ denied") && table.contains("no-rm") && table.ends_with("1 event\n"), "{table}");
    assert_eq!(
        query(&["query", "--format", "json", "--policy", "no-rm", "--event", "call_completed"])
            .lines()
            .count(),
        1
    );
    let all = query(&["query"]);
    assert!(all.contains("\\u{1b}[2J") && !all.contains('\u{1b}'), "{all}");
    assert!(all.contains("log_closed") && !all.contains("audit_checkpoint"), "{all}");
    assert!(query(&["query", "--until", "2026-01-01"]).ends_with("0 events\n"));
    let table = query(&["export", "--format", "csv", "--event", "call_completed"]);
    let row = table.lines().nth(2).unwrap();
    assert!(row.contains(",'=cmd()\\u{1b}[2J ,'@bob,"), "{row}");
    assert_eq!(query(&["export", "--format", "jsonl"]), dir.log());

    // Lines of later versions and incomplete ones are reported; the others are shown.
    let later = "{\"version\":2,\"event\":\"x\",\"time\":\"2026-11-22T10:00:00Z\"}\n{\"version\":1,";
    fs::write(dir.0.path().join("audit.jsonl"), dir.log() + later).unwrap();
    let result = dir.run(&["audit", "query", "--event", "log_closed", "audit.jsonl"]);
    assert!(result.stdout.ends_with("1 event\n"), "{}", result.stdout);
    assert!(
        result.stderr.contains("use a newer Callgate") && result.stderr.contains("not a complete line"),
        "{}",
        result.stderr
    );
}
