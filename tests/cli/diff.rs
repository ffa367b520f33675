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

fn git(dir: &TestDir, arguments: &[&str]) {
    let ended = std::process::Command::new("git")
        .current_dir(dir.0.path())
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(ended.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// A repository whose first revision has another limit, with constants in a file beside the rules.
fn repository() -> TestDir {
    let rules = "data: { limits: { file: limits.json } }\npolicies:\n  - { id: large, match: { tool: pay, where: { expr: input.amount > data.limits.most } }, deny: {} }\n";
    let dir = TestDir::new(&[]);
    let folder = dir.0.path().join("policies");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("rules.yaml"), rules).unwrap();
    fs::write(folder.join("limits.json"), "{\"most\": 100}").unwrap();
    git(&dir, &["init", "-q", "-b", "main"]);
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-q", "-m", "old"]);
    fs::write(folder.join("limits.json"), "{\"most\": 200}").unwrap();
    dir
}

#[test]
fn rules_of_git_revisions_are_compared() {
    let dir = repository();
    let ended = dir.run(&["diff", "git:main:policies", "policies"]);
    assert_eq!(ended.code, Some(1), "{}", ended.transcript());
    assert!(ended.stdout.contains("changed: data limits"), "{}", ended.stdout);
    // Also from a folder of the repository, and for a single file.
    let below = |arguments: &[&str]| {
        let mut command = dir.command(arguments);
        command.current_dir(dir.0.path().join("policies"));
        super::CommandResult::from(command.output().unwrap())
    };
    assert_eq!(below(&["diff", "git:HEAD:.", "."]).code, Some(1));
    assert_eq!(dir.run(&["diff", "git:main:policies", "git:HEAD:./policies"]).code, Some(0));
    // Reports name the revision, and not the temporary files.
    fs::write(dir.0.path().join("policies/rules.yaml"), "policies: []").unwrap();
    let removed = dir.run(&["diff", "git:main:policies", "policies"]);
    assert!(removed.stdout.contains("git:main:policies/rules.yaml:3:"), "{}", removed.stdout);
    git(&dir, &["commit", "-q", "-a", "-m", "empty"]);
    fs::write(dir.0.path().join("policies/rules.yaml"), "policies: [{ id: a, denny: {} }]").unwrap();
    git(&dir, &["commit", "-q", "-a", "-m", "broken"]);
    let broken = dir.run(&["diff", "git:main~1:policies", "git:main:policies"]);
    assert_eq!(broken.code, Some(1), "{}", broken.transcript());
    assert!(broken.stderr.contains("git:main:policies/rules.yaml:1:"), "{}", broken.stderr);
}

/// A revision or path that looks like an option is none, and nothing outside is read or written.
#[test]
fn names_of_revisions_and_paths_are_no_options() {
    let dir = repository();
    for (location, message) in [
        ("git:--output=owned:policies", "is not a revision"),
        ("git:--all:policies", "is not a revision"),
        ("git:-h:policies", "is not a revision"),
        ("git:nowhere:policies", "is not a revision"),
        ("git:main:--output=owned", "has no files"),
        ("git:main::(top)policies", "has no files"),
        ("git:main:*", "has no files"),
        ("git:main:../policies", "without `..`"),
        ("git:main:/etc", "without `..`"),
        ("git:main", "names no path in a revision"),
        ("git::policies", "names no path in a revision"),
    ] {
        let ended = dir.run(&["diff", location, "policies"]);
        assert_eq!(ended.code, Some(2), "{location}: {}", ended.transcript());
        assert!(ended.stderr.contains(message), "{location}: {}", ended.stderr);
    }
    assert!(!dir.0.path().join("owned").exists());
    let outside = TestDir::new(&[("rules.yaml", "policies: []")]);
    let ended = outside.run(&["diff", "git:main:policies", "rules.yaml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("git repository"), "{}", ended.transcript());
}

/// A link of the revision is not followed: whoever wrote the revision chose its target.
#[cfg(unix)]
#[test]
fn links_of_a_revision_are_left_out() {
    let dir = repository();
    let link = dir.0.path().join("policies/more.yaml");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-q", "-m", "link"]);
    fs::remove_file(link).unwrap();
    let ended = dir.run(&["diff", "git:main:policies", "policies"]);
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
}

/// Of two calls that show a change, that of a policy test is shown.
#[test]
fn calls_of_policy_tests_are_preferred_as_examples() {
    let dir = test_dir();
    for (version, rules) in [("old", "old.yaml"), ("new", "higher.yaml")] {
        let folder = dir.0.path().join(version);
        fs::create_dir(&folder).unwrap();
        fs::copy(dir.0.path().join(rules), folder.join("rules.yaml")).unwrap();
    }
    let tests =
        "cases: [ { name: a, call: { tool: pay, input: { amount: 170, to: ana } }, expect: executed } ]";
    fs::write(dir.0.path().join("new/rules.test.yaml"), tests).unwrap();
    let ended = dir.run(&["diff", "old", "new"]);
    assert!(
        ended.stdout.contains(r#""to":"ana""#) && ended.stdout.contains("from new/rules.test.yaml:1"),
        "{}",
        ended.stdout
    );
}
