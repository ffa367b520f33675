//! `callgate run --watch`: hot reload while calls are read from an open pipe.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use callgate::json::Value;

use super::TestDir;

/// Longer than anything that works takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A run that reads calls.
struct RunningProcess {
    child: Child,
    calls: ChildStdin,
    outcomes: Receiver<String>,
    said: Receiver<String>,
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            if tell.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    lines
}

impl RunningProcess {
    fn new(dir: &TestDir) -> Self {
        let mut command = dir.command(&["run", "--watch", "--policies", "rules", "--format", "json", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let calls = child.stdin.take().unwrap();
        let (outcomes, said) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, calls, outcomes, said }
    }

    /// Runs a call. Returns its outcome and the revision that decided it.
    fn call(&mut self, tool: &str) -> (String, String) {
        writeln!(self.calls, "{{\"tool\":\"{tool}\",\"input\":{{}}}}").unwrap();
        let line = self.outcomes.recv_timeout(TIMEOUT).expect("no outcome");
        let outcome: Value = callgate::json::from_str(&line).unwrap();
        let member = |name: &str| outcome[name].as_str().unwrap().to_owned();
        (member("outcome"), member("revision"))
    }

    /// Reads stderr up to and including a line with this beginning.
    fn wait_for_line(&self, beginning: &str) -> String {
        let mut heard = String::new();
        loop {
            let line = self.said.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|_| panic!("timed out waiting for `{beginning}` after\n{heard}"));
            heard.push_str(&line);
            heard.push('\n');
            if line.starts_with(beginning) {
                return heard;
            }
        }
    }
}

/// Replaces the rules file atomically.
fn write(dir: &TestDir, text: &str) {
    let path = dir.0.path().join("rules/rules.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let beside = path.with_extension("tmp");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

/// The displayed part of a revision.
fn short(revision: &str) -> &str {
    revision.split_at(12).0
}

const CONFIRMED: &str = "reload: { widening: confirm }\npolicies:\n  - { id: no, match: pay, deny: {} }\n  - { id: more, match: look, deny: {} }\n";

#[test]
fn changed_rules_are_reloaded_rejected_or_held_for_confirmation() {
    let dir = TestDir::new(&[]);
    write(&dir, "policies: [{ id: no, match: look, deny: {} }]");
    let mut run = RunningProcess::new(&dir);
    let (outcome, first) = run.call("pay");
    assert_eq!(outcome, "executed");

    write(&dir, CONFIRMED);
    let said = run.wait_for_line("note: rules reloaded");
    let (outcome, second) = run.call("pay");
    assert_eq!(outcome, "denied");
    assert!(said.contains(&format!("revision {} → {}", short(&first), short(&second))), "{said}");

    write(&dir, "policies:\n  - id: no\n    match: pay\n    dney: {}\n");
    let said = run.wait_for_line("warning: the reload is rejected");
    assert!(said.contains("rules.yaml:4:5") && said.contains("did you mean `deny`?"), "{said}");
    assert!(said.contains(&format!("revision {} stays active", short(&second))), "{said}");
    assert_eq!(run.call("pay"), ("denied".to_owned(), second.clone()));

    write(&dir, CONFIRMED);
    run.wait_for_line(&format!("note: the rules match the active revision {}", short(&second)));

    write(&dir, "policies:\n  - { id: more, match: look, deny: {} }\n");
    let said = run.wait_for_line("warning: the changed rules (revision");
    assert!(said.contains("warning: `no` (deny) was removed"), "{said}");
    assert!(said.contains("warning: `reload.widening` was `confirm` and is `accept`"), "{said}");
    assert!(said.contains("restart to apply them"), "{said}");
    assert_eq!(run.call("pay"), ("denied".to_owned(), second));

    drop(run.calls);
    assert!(run.child.wait().unwrap().success());
    assert!(run.outcomes.recv_timeout(TIMEOUT).is_err(), "only outcomes are written to stdout");
}

#[test]
fn required_tests_that_fail_reject_the_reload_until_fixed() {
    let requiring = |tool: &str| {
        format!("reload: {{ tests: require }}\npolicies: [ {{ id: no, match: {tool}, deny: {{}} }} ]")
    };
    let expecting =
        |tool: &str| format!("cases: [ {{ name: my case, call: {{ tool: {tool} }}, expect: denied }} ]");
    let dir = TestDir::new(&[]);
    write(&dir, &requiring("pay"));
    let tests = dir.0.path().join("rules/rules.test.yaml");
    std::fs::write(&tests, expecting("pay")).unwrap();
    let mut run = RunningProcess::new(&dir);
    assert_eq!(run.call("pay").0, "denied");

    write(&dir, &requiring("look"));
    let said = run.wait_for_line("warning: the reload is rejected");
    for shown in [
        "rules.test.yaml:1:",
        "my case",
        "expected: denied",
        "actual:   executed",
        "the policy tests of the rules fail",
    ] {
        assert!(said.contains(shown), "{said}");
    }
    assert_eq!(run.call("look").0, "executed");

    std::fs::write(&tests, expecting("look")).unwrap();
    run.wait_for_line("note: rules reloaded");
    assert_eq!(run.call("look").0, "denied");
    drop(run.calls);
    assert!(run.child.wait().unwrap().success());
}

#[test]
fn required_tests_that_fail_prevent_the_start() {
    let rules = "reload: { tests: require }\npolicies: [ { id: no, match: pay, deny: {} } ]";
    let expecting =
        |came: &str| format!("cases: [ {{ name: my case, call: {{ tool: pay }}, expect: {came} }} ]");
    let dir = TestDir::new(&[("calls.jsonl", "{\"tool\":\"look\",\"input\":{}}\n")]);
    write(&dir, rules);
    let run = || dir.run(&["run", "--policies", "rules", "calls.jsonl"]);
    let ended = run();
    assert!(ended.code == Some(1) && ended.stderr.contains("but have none"), "{}", ended.transcript());
    let tests = dir.0.path().join("rules/rules.test.yaml");
    std::fs::write(&tests, expecting("executed")).unwrap();
    let ended = run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.transcript());
    assert!(ended.stderr.contains("my case") && ended.stderr.contains("the policy tests of the rules fail"));
    std::fs::write(&tests, expecting("denied")).unwrap();
    assert_eq!(run().code, Some(0));
}
