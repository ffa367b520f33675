//! `callgate test --generate`: recorded calls become cases that pass, hold no secret, and are there to be reviewed.

use std::fs;

use super::{Desk, settings};
use crate::playback::project;

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

fn desk() -> Desk {
    Desk::new(&[("rules.yaml", RULES), ("calls.jsonl", CALLS)])
}

#[test]
fn recorded_calls_become_cases_that_pass() {
    let desk = desk();
    let written = desk.run(&["test", "--generate", "calls.jsonl", "--output", "recorded.test.yaml"]);
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{}", written.shown());
    let text = fs::read_to_string(desk.0.path().join("recorded.test.yaml")).unwrap();
    assert!(!text.contains("4111"), "{text}");
    settings().bind(|| {
        insta::assert_snapshot!("test_generated", text);
        insta::assert_snapshot!("test_generate", written.shown());
    });
    let tested = desk.run(&["test"]);
    assert_eq!(tested.code, Some(0), "{}", tested.shown());
    // The same calls make the same file.
    assert_eq!(desk.run(&["test", "--generate", "calls.jsonl"]).stdout, text);
}

#[test]
fn a_file_that_is_there_is_never_overwritten() {
    let desk = desk();
    let write = || desk.run(&["test", "--generate", "calls.jsonl", "--output", "recorded.test.yaml"]);
    fs::write(desk.0.path().join("recorded.test.yaml"), "# mine\n").unwrap();
    let ended = write();
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("is there already and may have been reviewed"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(desk.0.path().join("recorded.test.yaml")).unwrap(), "# mine\n");
}

#[test]
fn what_can_not_be_generated_is_said_and_leaves_nothing_behind() {
    let desk = desk();
    fs::write(desk.0.path().join("empty.jsonl"), "\n").unwrap();
    fs::write(desk.0.path().join("broken.jsonl"), "\n{\"tool\": 7}\n").unwrap();
    fs::create_dir(desk.0.path().join("bad")).unwrap();
    fs::write(desk.0.path().join("bad/rules.yaml"), "polices: []").unwrap();
    for (arguments, code, told) in [
        (&["calls.jsonl", "--output", "cases.yaml"][..], 2, "would not be found as a test"),
        (&["gone.jsonl"], 2, "`gone.jsonl` can't be read"),
        (&["empty.jsonl"], 2, "there are no calls in `empty.jsonl`"),
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
        let ended = desk.run(&[&["test", "--generate"], arguments, rules].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?} {}", ended.shown());
        assert!(ended.stderr.contains(told), "{arguments:?} {}", ended.stderr);
    }
    assert!(!desk.0.path().join("new.test.yaml").exists());
}

#[test]
fn only_the_sessions_that_are_asked_for_are_generated() {
    let ended = desk().run(&["test", "rules.yaml", "--generate", "calls.jsonl", "--filter", "BOB"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stdout.matches("- name: ").count(), 1);
}

/// Chance is the same in each case, so what is left to it can be expected.
#[test]
fn what_a_script_leaves_to_chance_comes_to_the_same_each_time() {
    let desk = desk();
    let calls: String =
        (0..40).map(|_| "{\"tool\":\"roll\",\"input\":{},\"context\":{\"tenant\":\"acme\"}}\n").collect();
    fs::write(desk.0.path().join("dice.jsonl"), calls).unwrap();
    let generate = || desk.run(&["test", "rules.yaml", "--generate", "dice.jsonl"]);
    let ended = generate();
    assert_eq!(ended.code, Some(0), "{}", ended.shown());
    assert!(ended.stdout.contains("expect: executed"), "{}", ended.stdout);
    assert!(ended.stdout.contains("code: thrown"), "{}", ended.stdout);
    assert_eq!(generate().stdout, ended.stdout);
}

/// The recordings that are shipped become tests that pass beside their bundles.
#[test]
fn shipped_recordings_become_tests_of_their_bundles() {
    let desk = Desk::new(&[]);
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
        let written = desk.run(&arguments);
        assert_eq!(written.code, Some(0), "{}", written.shown());
        let tested = desk.run(&["test", &bundle, &name]);
        assert_eq!(tested.code, Some(0), "{}", tested.shown());
        let text = fs::read_to_string(desk.0.path().join(&name)).unwrap();
        for secret in ["4111111111111111", "4111 1111 1111 1111", "BEGIN PRIVATE KEY", "AKIA"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
