//! `callgate diff`: exit statuses, formats, recorded calls, and rules with errors.

use std::fs;

use callgate::json::{self, Value, json};

use super::{TestDir, settings};

fn test_dir() -> TestDir {
    let rules = |limit: u32| {
        format!(
            "policies:\n  - {{ id: large, match: {{ tool: pay, where: {{ path: $.input.amount, gt: {limit} }} }}, deny: {{}} }}\n"
        )
    };
    TestDir::new(&[
        ("old.yaml", &rules(100)),
        ("higher.yaml", &rules(200)),
        ("lower.yaml", &rules(50)),
        ("same.yaml", &rules(100).replace("id: large", "id: \"large\"")),
        ("reworded.yaml", &rules(100).replace("deny: {}", "deny: { message: No. }")),
        ("broken.yaml", "policies: [{ id: a, denny: {} }]"),
        ("calls.jsonl", "{\"tool\": \"pay\", \"input\": {\"amount\": 150, \"account\": \"4711\"}}\n"),
        ("torn.jsonl", "{\"tool\": \"pay\"}\n{\"tool\":\n"),
        (
            "tools.json",
            "[{\"name\": \"pay\", \"input_schema\": {\"type\": \"object\", \"required\": [\"to\"]}}]",
        ),
    ])
}

#[test]
fn exit_status_says_whether_a_denied_change_was_found() {
    let dir = test_dir();
    for (arguments, code) in [
        (&["old.yaml", "higher.yaml"][..], 1),
        (&["old.yaml", "lower.yaml"], 0),
        (&["old.yaml", "same.yaml"], 0),
        (&["old.yaml", "higher.yaml", "--deny", "none"], 0),
        (&["old.yaml", "lower.yaml", "--deny", "any"], 1),
        (&["old.yaml", "reworded.yaml", "--deny", "any"], 0),
        (&["old.yaml", "higher.yaml", "--calls-per-policy", "0"], 1),
        (&["old.yaml", "higher.yaml", "--format", "json"], 1),
        (&["old.yaml", "broken.yaml"], 1),
        (&["broken.yaml", "old.yaml"], 1),
        (&["old.yaml", "nowhere.yaml"], 2),
        (&["nowhere", "old.yaml"], 2),
        (&["old.yaml"], 2),
        (&["old.yaml", "higher.yaml", "--tools", "nowhere.json"], 2),
        (&["old.yaml", "higher.yaml", "--calls", "torn.jsonl"], 2),
        (&["old.yaml", "higher.yaml", "--calls", "nowhere.jsonl"], 2),
    ] {
        let ended = dir.run(&[&["diff"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}\n{}", ended.transcript());
    }
}

#[test]
fn report_is_printed_to_stdout() {
    let dir = test_dir();
    settings().bind(|| {
        let ended = dir.run(&["diff", "old.yaml", "higher.yaml", "--tools", "tools.json"]);
        insta::assert_snapshot!("diff", ended.transcript());
        insta::assert_snapshot!("diff_same", dir.run(&["diff", "old.yaml", "same.yaml"]).transcript());
        insta::assert_snapshot!(
            "diff_torn_calls",
            dir.run(&["diff", "old.yaml", "higher.yaml", "--calls", "torn.jsonl"]).transcript()
        );
    });
    let ended = dir.run(&["diff", "old.yaml", "higher.yaml", "--format", "json"]);
    let report: Value = json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["summary"]["looser"], 1);
    assert!(
        dir.run(&["diff", "old.yaml", "lower.yaml", "--format", "github"])
            .stdout
            .starts_with("<!-- callgate diff -->\n")
    );
}

#[test]
fn recorded_call_is_named_by_its_line_only() {
    let dir = test_dir();
    let arguments = ["diff", "old.yaml", "higher.yaml", "--calls", "calls.jsonl", "--calls-per-policy", "0"];
    let ended = dir.run(&arguments);
    assert!(
        ended.stdout.contains("from calls.jsonl:1") && !ended.stdout.contains("4711"),
        "{}",
        ended.stdout
    );
}

#[test]
fn example_calls_start_from_policy_tests() {
    let dir = TestDir::new(&[]);
    for (version, limit) in [("old", 100), ("new", 200)] {
        let folder = dir.0.path().join(version);
        fs::create_dir(&folder).unwrap();
        let rules = format!(
            "policies:\n  - {{ id: valid, match: pay, deny: {{ script: 'sub_string(input.account, 2, 4) != \"4711\"' }} }}\n  \
             - {{ id: large, match: {{ tool: pay, where: {{ path: $.input.amount, gt: {limit} }} }}, deny: {{}} }}\n"
        );
        fs::write(folder.join("rules.yaml"), rules).unwrap();
        let tests = "cases: [ { name: a, call: { tool: pay, input: { account: DE4711, amount: 1 } }, expect: executed } ]";
        fs::write(folder.join("rules.test.yaml"), tests).unwrap();
    }
    let ended = dir.run(&["diff", "old", "new", "--format", "json"]);
    let report: Value = json::from_str(&ended.stdout).unwrap();
    let witness = &report["changes"][0]["witnesses"][0];
    assert_eq!(
        witness["call"]["input"],
        json!({ "account": "DE4711", "amount": 200 }),
        "{}",
        ended.transcript()
    );
    assert_eq!((&witness["before"]["effect"], &witness["after"]["effect"]), (&json!("deny"), &json!("run")));
}
