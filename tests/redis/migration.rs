//! `callgate state`: a state that moves from a file to the engines that hosts share, and back.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use callgate::json::{self, Value};

use super::server::RedisServer;
use crate::postgres::server::PostgresServer;

const RULES: &str = "policies: [ { id: ask, match: pay, approval: { message: 'Pay?', expires: 24h } } ]";
const CALLS: &str = r#"{"id":"c1","tool":"pay","input":{"n":1},"session":"s","recorded":{"output":"paid"}}
{"id":"c2","tool":"look","input":{},"session":"s","recorded":{"output":1}}
"#;

/// A folder with rules and calls, in which `callgate` runs.
struct Folder(tempfile::TempDir);

struct Printed {
    succeeded: bool,
    output: String,
    errors: String,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("rules.yaml"), RULES).unwrap();
        fs::write(folder.path().join("calls.jsonl"), CALLS).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn callgate_with(&self, keys: Option<&str>, arguments: &[&str]) -> Printed {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null()).env_remove("CALLGATE_KEYS");
        command.envs(keys.map(|keys| ("CALLGATE_KEYS", keys.repeat(32))));
        let ended = command.output().unwrap();
        let [output, errors] = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        Printed { succeeded: ended.status.success(), output, errors }
    }

    fn callgate(&self, arguments: &[&str]) -> String {
        let Printed { succeeded, output, errors } = self.callgate_with(Some("5a"), arguments);
        assert!(succeeded, "{arguments:?}: {output}{errors}");
        output
    }

    fn run_calls(&self, state: &str) -> Vec<String> {
        let arguments = [
            "run",
            "--policies",
            "rules.yaml",
            "--format",
            "json",
            "--resume",
            "--state",
            state,
            "calls.jsonl",
        ];
        let Printed { output, errors, .. } = self.callgate_with(Some("5a"), &arguments);
        assert_eq!(errors, "");
        let outcome = |line: &str| {
            let outcome: Value = json::from_str(line).unwrap();
            let again = if outcome["replayed"] == true { " again" } else { "" };
            format!("{} {}{again}", outcome["id"].as_str().unwrap(), outcome["outcome"].as_str().unwrap())
        };
        output.lines().map(outcome).collect()
    }
}

#[test]
fn a_pending_approval_survives_the_way_from_a_file_to_other_engines() {
    let (redis, postgres) = (RedisServer::start(), PostgresServer::start());
    let combined = format!("records={} limits={}", postgres.url("moved"), redis.url("limits"));
    let folder = Folder::new();
    assert_eq!(folder.run_calls("file:a.db"), ["c1 suspended", "c2 executed"]);
    let mut from = "file:a.db".to_owned();
    for to in [redis.url("moved"), combined, "file:b.db".to_owned()] {
        let printed = folder.callgate(&["state", "migrate", "--from", &from, "--to", &to]);
        assert!(printed.contains("Limits start from zero") && !printed.starts_with("0 "), "{printed}");
        let again = folder.callgate(&["state", "migrate", "--from", &from, "--to", &to]);
        assert!(again.starts_with("0 records copied"), "{again}");
        let stats: Value =
            json::from_str(&folder.callgate(&["state", "stats", "--state", &to, "--format", "json"]))
                .unwrap();
        assert_eq!(
            (&stats["calls"]["pending"], &stats["calls"]["completed"]),
            (&json::json!(1), &json::json!(1))
        );
        assert!(folder.callgate(&["state", "stats", "--state", &to]).contains("1 pending"));
        from = to;
    }
    folder.callgate(&["approvals", "approve", "approval_c1", "--state", &from, "--as", "ann"]);
    assert_eq!(folder.run_calls(&from), ["c1 executed", "c2 executed again"]);
    // The answered approval is used once, wherever the state goes next.
    folder.callgate(&["state", "export", "--state", &from, "backup.db"]);
    let target = redis.url("restored");
    folder.callgate(&["state", "import", "--state", &target, "backup.db"]);
    assert_eq!(folder.run_calls(&target), ["c1 executed again", "c2 executed again"]);
}

#[test]
fn a_copy_replaces_nothing_and_needs_the_same_keys() {
    let redis = RedisServer::start();
    let folder = Folder::new();
    folder.run_calls("file:a.db");
    folder.run_calls("file:other.db");
    let (a, other, empty) = ("file:a.db", "file:other.db", redis.url("empty"));
    for (keys, from, to, expected) in [
        (None, a, empty.as_str(), "same keys"),
        (Some("6b"), a, empty.as_str(), "another key"),
        (Some("5a"), a, other, "another record"),
        (Some("5a"), "file:missing.db", empty.as_str(), "does not exist"),
        (Some("5a"), "memory:", empty.as_str(), "memory:"),
    ] {
        let Printed { succeeded, errors, .. } =
            folder.callgate_with(keys, &["state", "migrate", "--from", from, "--to", to]);
        assert!(!succeeded && errors.contains(expected), "{from} to {to}: {errors}");
    }
    assert_eq!(redis.cli(&["exists", "{empty:records}:i:calls"]), "0", "something was written");
    let overwritten = folder.callgate_with(Some("5a"), &["state", "export", "--state", a, "other.db"]);
    assert!(overwritten.errors.contains("exists"), "{}", overwritten.errors);
    // Both are as they were.
    for state in [a, other] {
        assert_eq!(folder.run_calls(state), ["c1 suspended again", "c2 executed again"]);
    }
}

#[test]
fn a_damaged_source_is_not_copied_at_all() {
    let redis = RedisServer::start();
    let folder = Folder::new();
    let (source, target) = (redis.url("source"), redis.url("target"));
    folder.run_calls(&source);
    let name = r#"{source:records}:k:5:calls:["s","c2"]"#;
    redis.cli(&["hset", name, "v", r#"{"sealed":"nothing"}"#]);
    let Printed { succeeded, errors, .. } =
        folder.callgate_with(Some("5a"), &["state", "migrate", "--from", &source, "--to", &target]);
    assert!(!succeeded && errors.contains("the source"), "{errors}");
    assert_eq!(redis.cli(&["exists", "{target:records}:i:calls"]), "0", "something was written");
}

#[test]
fn what_has_expired_is_removed_on_request() {
    let (redis, postgres) = (RedisServer::start(), PostgresServer::start());
    let folder = Folder::new();
    for state in [redis.url("gc"), postgres.url("gc"), "file:gc.db".to_owned()] {
        folder.run_calls(&state);
        let printed = folder.callgate(&["state", "gc", "--state", &state]);
        assert!(printed.contains("0 expired records removed"), "{printed}");
    }
    postgres.sql("UPDATE gc.records SET forget_at = 1 WHERE space = 'sessions'");
    let printed = folder.callgate(&["state", "gc", "--state", &postgres.url("gc")]);
    assert!(!printed.contains(": 0 expired"), "{printed}");
}
