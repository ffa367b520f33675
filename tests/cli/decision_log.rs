//! The decision log: what each line contains, what no line contains, and what happens while it can't be written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use callgate::json::json;
use callgate::{Engine, Keys, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse, load_text};
use callgate_log::{
    Content, DecisionLog, EventFormat, LogEntry, LogOptions, OnFailure, Rotation, event_schema,
};

use super::TestDir;

struct Echo;

impl ToolExecutor for Echo {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(call.input.clone().into())
    }
}

const RULES: &str = r#"
policies:
  - { id: no-rm, match: rm, deny: { message: "never {{ input.path }}" } }
  - { id: hide-email, match: "*", redact: { in: [input, output], detect: [email] } }
  - { id: watch-pay, match: pay, mode: shadow, deny: {} }
  - { id: ask-above, match: { tool: pay, where: [ { path: $.input.amount, gt: 100 } ] }, approval: { expires: 1h } }
  - { id: one-mail, match: mail, rate_limit: { limit: 1, per: 1h } }
  - { id: keep, match: read, cache: { ttl: 1h } }
  - { id: note, match: mail, audit: { fields: [$.input.to] } }
"#;

const CALLS: &str = r#"{"tool":"rm","input":{"path":"/secret/place"},"context":{"principal":"ann","tenant":"red"}}
{"tool":"pay","input":{"amount":10},"recorded":{"output":{"ok":true}}}
{"tool":"pay","input":{"amount":1000},"session":"s","task":"Pay the rent."}
{"tool":"mail","input":{"to":"bob@example.org"},"session":"s","server":"post","recorded":{"output":"sent to bob@example.org"}}
{"tool":"mail","input":{"to":"bob@example.org"},"session":"s","server":"post"}
{"tool":"read","input":{"path":"a"},"recorded":{"output":"text"}}
{"tool":"read","input":{"path":"a"},"recorded":{"output":"text"}}
{"tool":"break","input":{},"recorded":{"error":"no such file /secret/place"}}
"#;

fn dir() -> TestDir {
    TestDir::new(&[("rules.yaml", RULES), ("calls.jsonl", CALLS)])
}

fn entries(path: &Path) -> Vec<LogEntry> {
    let text = fs::read_to_string(path).unwrap();
    let validator =
        jsonschema::draft202012::new(&serde_json::from_str(&event_schema().to_string()).unwrap()).unwrap();
    text.lines()
        .map(|line| {
            let document = serde_json::from_str(line).unwrap();
            assert!(validator.is_valid(&document), "{line}");
            LogEntry::parse(line).unwrap()
        })
        .collect()
}

#[test]
fn every_line_fits_the_schema_and_names_its_policies() {
    let dir = dir();
    for content in ["digests", "redacted"] {
        let file = format!("{content}.jsonl");
        let run = dir.run(&[
            "run",
            "--policies",
            "rules.yaml",
            "--log",
            &file,
            "--log-content",
            content,
            "calls.jsonl",
        ]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let entries = entries(&dir.0.path().join(&file));
        let names: BTreeSet<&str> = entries.iter().map(|entry| entry.event.as_str()).collect();
        let expected = [
            "approval_requested",
            "cache_hit",
            "call_completed",
            "call_decided",
            "call_started",
            "limit_refused",
            "log_opened",
            "rules_loaded",
        ];
        assert_eq!(names, BTreeSet::from(expected));
        let completed: Vec<_> = entries.iter().filter(|entry| entry.event == "call_completed").collect();
        assert_eq!(completed.len(), 8);
        assert_eq!(completed[0].text("principal"), Some("ann"));
        assert_eq!(completed[0].reason("policy"), Some("no-rm"));
        let shadow =
            json!({ "id": "watch-pay", "kind": "deny", "phase": "gate", "verdict": "deny", "shadow": true });
        assert_eq!(completed[1].members["policies"][0], shadow);
        assert_eq!(completed[3].text("server"), Some("post"));
    }
}

#[test]
fn a_log_without_content_has_no_argument_result_or_message() {
    let dir = dir();
    dir.run(&["run", "--policies", "rules.yaml", "--log", "log.jsonl", "calls.jsonl"]);
    let text = fs::read_to_string(dir.0.path().join("log.jsonl")).unwrap();
    for secret in ["/secret/place", "bob@example.org", "sent to", "rent", "never"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let digests: Vec<String> = entries(&dir.0.path().join("log.jsonl"))
        .iter()
        .filter(|entry| entry.event == "call_completed" && entry.text("tool") == Some("mail"))
        .map(|entry| entry.text("input_digest").unwrap().to_owned())
        .collect();
    assert_eq!(digests[0], digests[1], "equal arguments have equal digests");
}

#[test]
fn a_log_with_content_is_a_recording_and_redacted() {
    let dir = dir();
    let outcomes = |calls: &str, log: &str| {
        let run = dir.run(&[
            "run",
            "--policies",
            "rules.yaml",
            "--format",
            "json",
            "--log",
            log,
            "--log-content",
            "redacted",
            calls,
        ]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let outcome = |line: &str| {
            let outcome: serde_json::Value = serde_json::from_str(line).unwrap();
            (outcome["tool"].clone(), outcome["outcome"].clone(), outcome["output"].clone())
        };
        run.stdout.lines().map(outcome).collect::<Vec<_>>()
    };
    let first = outcomes("calls.jsonl", "first.jsonl");
    assert_eq!(first, outcomes("first.jsonl", "second.jsonl"));
    let text = fs::read_to_string(dir.0.path().join("first.jsonl")).unwrap();
    assert!(!text.contains("bob@example.org") && text.contains("/secret/place"), "{text}");
    let run = dir.run(&["run", "--policies", "rules.yaml", "--log", "digests.jsonl", "calls.jsonl"]);
    assert_eq!(run.code, Some(0));
    let refused = dir.run(&["run", "--policies", "rules.yaml", "digests.jsonl"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--log-content redacted"), "{}", refused.stderr);
}

#[test]
fn the_log_for_people_escapes_what_others_write() {
    let dir = dir();
    fs::write(dir.0.path().join("odd.jsonl"), r#"{"tool":"rm","input":{"path":"a\u001b[31m\nb\u202e"}}"#)
        .unwrap();
    let run = dir.run(&["run", "--policies", "rules.yaml", "--log", "stderr", "odd.jsonl"]);
    assert!(
        run.stderr.ends_with("rm denied by `no-rm`: never a\\u{1b}[31m\\nb\\u{202e}\n"),
        "{:?}",
        run.stderr
    );
}

#[test]
fn what_is_no_file_for_a_log_is_refused_with_the_reason() {
    let dir = dir();
    std::os::unix::fs::symlink("target", dir.0.path().join("link")).unwrap();
    fs::create_dir(dir.0.path().join("folder")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.0.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for (name, problem) in [
        ("link", "symbolic link"),
        ("folder", "not a regular file"),
        ("pipe", "not a regular file"),
        ("no/x", "can't be opened"),
    ] {
        let run = dir.run(&["run", "--policies", "rules.yaml", "--log", name, "calls.jsonl"]);
        assert_eq!(run.code, Some(2), "{name}");
        assert!(run.stderr.contains(problem), "{name}: {}", run.stderr);
    }
}

fn engine(log: &DecisionLog) -> Engine {
    Engine::builder(load_text("policies: []").unwrap()).observer(log.clone()).build()
}

fn format() -> EventFormat {
    EventFormat::new(Content::Redacted, Keys::random().unwrap())
}

/// A directory that is gone stands for a disk that can't be written.
#[tokio::test]
async fn calls_are_denied_while_a_log_they_depend_on_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("logs");
    fs::create_dir(&inner).unwrap();
    let path = inner.join("log.jsonl");
    let options = LogOptions { on_failure: OnFailure::Deny, ..LogOptions::default() };
    let log = DecisionLog::open_file(&path, format(), Rotation::default(), options).unwrap();
    let mut session = engine(&log).session();
    let mut call = async || session.execute(ToolCall::new("c", "read", json!({})), &Echo).await;
    assert_eq!(call().await.outcome, OutcomeKind::Executed);
    fs::remove_dir_all(&inner).unwrap();
    // The thread writes a moment later.
    while log.failure().is_none() {
        call().await;
    }
    let denied = call().await;
    assert_eq!((denied.outcome, &*denied.reason.code), (OutcomeKind::Denied, "log_unavailable"));
    fs::create_dir(&inner).unwrap();
    while call().await.outcome == OutcomeKind::Denied {}
    log.close();
    let entries = entries(&path);
    assert!(
        entries.iter().any(|entry| entry.reason("code") == Some("log_unavailable")),
        "what was denied is recorded"
    );
}

#[tokio::test]
async fn files_are_rotated_and_no_event_is_lost_or_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let rotation = Rotation { max_bytes: 4_000, keep: None };
    let log = DecisionLog::open_file(&path, format(), rotation, LogOptions::default()).unwrap();
    let mut session = engine(&log).session();
    for number in 0..200 {
        session.execute(ToolCall::new("", "read", json!({ "number": number })), &Echo).await;
    }
    log.close();
    let rotated =
        (1..).map(|number| callgate_log::rotated_path(&path, number)).take_while(|path| path.exists());
    let mut files: Vec<_> = rotated.collect();
    assert!(files.len() > 10);
    files.reverse();
    files.push(path);
    let numbers: Vec<u64> = files
        .iter()
        .flat_map(|file| entries(file))
        .filter(|entry| entry.event == "call_completed")
        .map(|entry| entry.members["input"]["number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
}

#[test]
fn an_incomplete_line_is_ended_and_reported_and_two_processes_do_not_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    fs::write(&path, "{\"version\":1,\"event\":\"cal").unwrap();
    let open = || DecisionLog::open_file(&path, format(), Rotation::default(), LogOptions::default());
    let log = open().unwrap();
    let second = open().unwrap_err();
    assert!(second.to_string().contains("another process"), "{second}");
    log.close();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(LogEntry::parse(lines[0]).is_err());
    let opened = LogEntry::parse(lines[1]).unwrap();
    assert_eq!(opened.members["incomplete_line_before"], json!(true));
    let newer = LogEntry::parse(r#"{"version":2,"event":"x","time":"2026-01-01T00:00:00Z"}"#).unwrap_err();
    assert!(newer.to_string().contains("newer Callgate"), "{newer}");
}
