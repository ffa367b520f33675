//! `callgate test --generate`: recorded calls become passing cases without secrets, for review.

use std::fs;

use super::{TestDir, settings};
use crate::recorded_calls::project;

const RULES: &str = r#"
policies:
  - { id: no-large-refunds, match: { tool: refund, where: { path: $.input.amount, gt: 100 } }, deny: { code: too_much } }
  - { id: whole-cents, match: refund, transform: { input: [ { path: $.input.currency, set: eur } ] } }
  - { id: reading-is-free, match: "get_*", allow: {} }
  - { id: hide-cards, match: "get_*", redact: { detect: [payment_card], with: mask } }
  - { id: no-cards-out, match: { tool: send, where: { path: $.input.text, matches: "[0-9]{13}" } }, deny: {} }
  - { id: ask-first, match: ship, approval: { message: "Ship?" } }
  - { id: no-one-else, match: { tool: "*", where: { path: $.context.tenant, ne: acme } }, deny: {} }
  - { id: by-chance, match: roll, around: { script: "if random() < 0.5 { next(input) } else { throw \"unlucky\" }" } }
"#;
const CALLS: &str = r##"
{"session":"ana","tool":"get_order","input":{"id":7},"context":{"tenant":"acme","principal":"ana"},"recorded":{"output":{"id":"#7","card":"4111111111111111","note":"yes"}}}
{"session":"ana","tool":"refund","input":{"amount":50},"context":{"tenant":"acme","principal":"ana"},"recorded":{"output":{"ok":true}}}
{"session":"ana","tool":"refund","input":{"amount":250},"context":{"tenant":"acme","principal":"ana"},"recorded":{"output":{"ok":true}}}
{"session":"bob","tool":"refund","input":{"amount":3},"context":{"tenant":"acme"}}
{"session":"ana","tool":"send","input":{"text":"it was paid with 4111111111111111"},"context":{"tenant":"acme","principal":"ana","roles":["lead"]},"recorded":{"output":null}}
{"session":"ana","tool":"ship","input":{"order":7},"context":{"tenant":"acme","principal":"ana"},"round":1,"recorded":{"output":1}}
{"session":"ana","tool":"get_order","server":"shop","input":{"id":9},"context":{"tenant":"acme","principal":"ana"},"round":1,"recorded":{"error":{"message":"no such order","kind":"not_found"}}}
{"session":"4111111111111111","tool":"get_order","input":null,"context":{"tenant":"acme"}}
"##;

fn test_dir() -> TestDir {
    TestDir::new(&[("rules.yaml", RULES), ("calls.jsonl", CALLS)])
}

#[test]
fn recorded_calls_become_cases_that_pass() {
    let dir = test_dir();
    let written = dir.run(&["test", "--generate", "calls.jsonl", "--output", "recorded.test.yaml"]);
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{}", written.transcript());
    let text = fs::read_to_string(dir.0.path().join("recorded.test.yaml")).unwrap();
    assert!(!text.contains("4111"), "{text}");
    settings().bind(|| {
        insta::assert_snapshot!("test_generated", text);
        insta::assert_snapshot!("test_generate", written.transcript());
    });
    let tested = dir.run(&["test"]);
    assert_eq!(tested.code, Some(0), "{}", tested.transcript());
    // The output is deterministic.
    assert_eq!(dir.run(&["test", "--generate", "calls.jsonl"]).stdout, text);
}

#[test]
fn existing_file_is_never_overwritten() {
    let dir = test_dir();
    let write = || dir.run(&["test", "--generate", "calls.jsonl", "--output", "recorded.test.yaml"]);
    fs::write(dir.0.path().join("recorded.test.yaml"), "# mine\n").unwrap();
    let ended = write();
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("already exists and may have been reviewed"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(dir.0.path().join("recorded.test.yaml")).unwrap(), "# mine\n");
}

#[test]
fn failed_generation_reports_the_error_and_writes_nothing() {
    let dir = test_dir();
    fs::write(dir.0.path().join("empty.jsonl"), "\n").unwrap();
    fs::write(dir.0.path().join("broken.jsonl"), "\n{\"tool\": 7}\n").unwrap();
    fs::create_dir(dir.0.path().join("bad")).unwrap();
    fs::write(dir.0.path().join("bad/rules.yaml"), "polices: []").unwrap();
    for (arguments, code, told) in [
        (&["calls.jsonl", "--output", "cases.yaml"][..], 2, "does not have a test file's name"),
        (&["gone.jsonl"], 2, "`gone.jsonl` can't be read"),
        (&["empty.jsonl"], 2, "`empty.jsonl` contains no calls"),
        (&["broken.jsonl"], 2, "broken.jsonl:2: `tool` must be a string"),
        (&["calls.jsonl", "--filter", "carl"], 2, "no session has `carl` in its name"),
        (
            &["calls.jsonl", "--output", "no/where.test.yaml", "rules.yaml"],
            2,
            "`no/where.test.yaml` can't be written",
        ),
        (&["calls.jsonl", "--output", "new.test.yaml", "bad"], 1, "did you mean `policies`?"),
        (&["calls.jsonl", "--format", "json"], 2, "cannot be used with"),
    ] {
        let rules = if arguments.len() < 4 { &["rules.yaml"][..] } else { &[] };
        let ended = dir.run(&[&["test", "--generate"], arguments, rules].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?} {}", ended.transcript());
        assert!(ended.stderr.contains(told), "{arguments:?} {}", ended.stderr);
    }
    assert!(!dir.0.path().join("new.test.yaml").exists());
}

#[test]
fn filter_selects_the_sessions() {
    let ended = test_dir().run(&["test", "rules.yaml", "--generate", "calls.jsonl", "--filter", "BOB"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stdout.matches("- name: ").count(), 1);
}

/// Random numbers are the same in each run of a case, so its outcome can be expected.
#[test]
fn random_numbers_in_scripts_are_deterministic() {
    let dir = test_dir();
    let calls: String =
        (0..40).map(|_| "{\"tool\":\"roll\",\"input\":{},\"context\":{\"tenant\":\"acme\"}}\n").collect();
    fs::write(dir.0.path().join("dice.jsonl"), calls).unwrap();
    let generate = || dir.run(&["test", "rules.yaml", "--generate", "dice.jsonl"]);
    let ended = generate();
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    assert!(ended.stdout.contains("expect: executed"), "{}", ended.stdout);
    assert!(ended.stdout.contains("code: thrown"), "{}", ended.stdout);
    assert_eq!(generate().stdout, ended.stdout);
}

/// The shipped recordings become tests that pass with their bundles.
#[test]
fn shipped_recordings_become_tests_of_their_bundles() {
    let dir = TestDir::new(&[]);
    for (bundle, calls, tools) in [
        ("policies/retail", "policies/retail/sessions/demo.jsonl", Some("policies/retail/tools.json")),
        ("policies/retail", "policies/retail/sessions/rules.jsonl", None),
        ("policies/pii", "policies/pii/calls.jsonl", None),
        ("policies/starter", "policies/starter/calls.jsonl", None),
    ] {
        let [bundle, calls] = [bundle, calls].map(|path| project(path).display().to_string());
        let name = format!("{}.test.yaml", calls.replace(['/', '\\', ':'], "-").trim_start_matches('-'));
        let tools = tools.map(|path| project(path).display().to_string());
        let mut arguments = vec!["test", &bundle, "--generate", &calls, "--output", &name];
        arguments.extend(tools.iter().flat_map(|tools| ["--tools", tools]));
        let written = dir.run(&arguments);
        assert_eq!(written.code, Some(0), "{}", written.transcript());
        let tested = dir.run(&["test", &bundle, &name]);
        assert_eq!(tested.code, Some(0), "{}", tested.transcript());
        let text = fs::read_to_string(dir.0.path().join(&name)).unwrap();
        for secret in ["4111111111111111", "4111 1111 1111 1111", "BEGIN PRIVATE KEY", "AKIA"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
