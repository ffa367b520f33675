//! `callgate run --watch`: rules change while calls are read from a pipe that stays open.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use callgate::json::Value;

use super::Desk;

/// Nothing takes so long; whoever waits for it in vain has found a mistake.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run that waits for calls.
struct Running {
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

impl Running {
    fn new(desk: &Desk) -> Self {
        let mut command = desk.command(&["run", "--watch", "--policies", "rules", "--format", "json", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let calls = child.stdin.take().unwrap();
        let (outcomes, said) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, calls, outcomes, said }
    }

    /// The outcome of a call, and the revision that it was decided under.
    fn call(&mut self, tool: &str) -> (String, String) {
        writeln!(self.calls, "{{\"tool\":\"{tool}\",\"input\":{{}}}}").unwrap();
        let line = self.outcomes.recv_timeout(PATIENCE).expect("no outcome");
        let outcome: Value = callgate::json::from_str(&line).unwrap();
        let member = |name: &str| outcome[name].as_str().unwrap().to_owned();
        (member("outcome"), member("revision"))
    }

    /// Everything that is said until a line begins like this, that line included.
    fn hears(&self, beginning: &str) -> String {
        let mut heard = String::new();
        loop {
            let line = self.said.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("waited in vain for `{beginning}` after\n{heard}"));
            heard.push_str(&line);
            heard.push('\n');
            if line.starts_with(beginning) {
                return heard;
            }
        }
    }
}

/// Writes beside it and renames, so that no half of it is seen.
fn write(desk: &Desk, text: &str) {
    let path = desk.0.path().join("rules/rules.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let beside = path.with_extension("tmp");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

/// As much of a revision as is shown.
fn short(revision: &str) -> &str {
    revision.split_at(12).0
}

const CONFIRMED: &str = "reload: { widening: confirm }\npolicies:\n  - { id: no, match: pay, deny: {} }\n  - { id: more, match: look, deny: {} }\n";

#[test]
fn changed_rules_are_taken_in_refused_or_held_and_outcomes_say_what_decided_them() {
    let desk = Desk::new(&[]);
    write(&desk, "policies: [{ id: no, match: look, deny: {} }]");
    let mut run = Running::new(&desk);
    let (outcome, first) = run.call("pay");
    assert_eq!(outcome, "executed");

    write(&desk, CONFIRMED);
    let said = run.hears("note: changed rules are taken in");
    let (outcome, second) = run.call("pay");
    assert_eq!(outcome, "denied");
    assert!(said.contains(&format!("revision {} → {}", short(&first), short(&second))), "{said}");

    write(&desk, "policies:\n  - id: no\n    match: pay\n    dney: {}\n");
    let said = run.hears("warning: the changed rules are refused");
    assert!(said.contains("rules.yaml:4:5") && said.contains("did you mean `deny`?"), "{said}");
    assert!(said.contains(&format!("revision {} stays", short(&second))), "{said}");
    assert_eq!(run.call("pay"), ("denied".to_owned(), second.clone()));

    write(&desk, CONFIRMED);
    run.hears(&format!("note: the rules are again those of revision {}", short(&second)));

    write(&desk, "policies:\n  - { id: more, match: look, deny: {} }\n");
    let said = run.hears("warning: the changed rules (revision");
    assert!(said.contains("warning: `no` (deny) is gone"), "{said}");
    assert!(said.contains("warning: `reload.widening` was `confirm` and is `accept`"), "{said}");
    assert!(said.contains("start the run anew to take them in"), "{said}");
    assert_eq!(run.call("pay"), ("denied".to_owned(), second));

    drop(run.calls);
    assert!(run.child.wait().unwrap().success());
    assert!(run.outcomes.recv_timeout(PATIENCE).is_err(), "only outcomes are written to stdout");
}

#[test]
fn where_tests_are_required_the_cases_that_fail_are_shown_and_tests_that_are_mended_let_rules_in() {
    let requiring = |tool: &str| {
        format!("reload: {{ tests: require }}\npolicies: [ {{ id: no, match: {tool}, deny: {{}} }} ]")
    };
    let expecting =
        |tool: &str| format!("cases: [ {{ name: my case, call: {{ tool: {tool} }}, expect: denied }} ]");
    let desk = Desk::new(&[]);
    write(&desk, &requiring("pay"));
    let tests = desk.0.path().join("rules/rules.test.yaml");
    std::fs::write(&tests, expecting("pay")).unwrap();
    let mut run = Running::new(&desk);
    assert_eq!(run.call("pay").0, "denied");

    write(&desk, &requiring("look"));
    let said = run.hears("warning: the changed rules are refused");
    for shown in [
        "rules.test.yaml:1:",
        "my case",
        "expected: denied",
        "came:     executed",
        "their own policy tests fail",
    ] {
        assert!(said.contains(shown), "{said}");
    }
    assert_eq!(run.call("look").0, "executed");

    std::fs::write(&tests, expecting("look")).unwrap();
    run.hears("note: changed rules are taken in");
    assert_eq!(run.call("look").0, "denied");
    drop(run.calls);
    assert!(run.child.wait().unwrap().success());
}

#[test]
fn where_tests_are_required_rules_whose_tests_fail_decide_nothing_from_the_start() {
    let rules = "reload: { tests: require }\npolicies: [ { id: no, match: pay, deny: {} } ]";
    let expecting =
        |came: &str| format!("cases: [ {{ name: my case, call: {{ tool: pay }}, expect: {came} }} ]");
    let desk = Desk::new(&[("calls.jsonl", "{\"tool\":\"look\",\"input\":{}}\n")]);
    write(&desk, rules);
    let run = || desk.run(&["run", "--policies", "rules", "calls.jsonl"]);
    let ended = run();
    assert!(ended.code == Some(1) && ended.stderr.contains("they have none"), "{}", ended.shown());
    let tests = desk.0.path().join("rules/rules.test.yaml");
    std::fs::write(&tests, expecting("executed")).unwrap();
    let ended = run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.shown());
    assert!(ended.stderr.contains("my case") && ended.stderr.contains("their own policy tests fail"));
    std::fs::write(&tests, expecting("denied")).unwrap();
    assert_eq!(run().code, Some(0));
}
