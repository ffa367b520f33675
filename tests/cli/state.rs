//! `callgate run --state` and `--resume`: idempotent resume, also across processes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use callgate::json::Value;

use super::{CommandResult, TestDir, settings};

pub const RULES: &str = r#"
policies:
  - id: ask
    match: pay
    approval: { message: "Pay {{ input.amount }}?", expires: 24h, edits: [$.input.note] }
  - { id: stop, match: stop, halt: { message: Enough } }
  - { id: mark, match: read, label: { add: [seen] } }
  - id: marked
    match: { tool: mail, where: [ { path: "$.session.labels[*]", eq: seen } ] }
    deny: { message: It has read }
  - { id: thrice, match: take, rate_limit: { limit: 3, per: run } }
"#;

pub const CALLS: &str = r#"{"id":"c1","tool":"look","input":{},"session":"s","recorded":{"output":1}}
{"id":"c2","tool":"pay","input":{"amount":5,"note":"a"},"session":"s","context":{"principal":"bot"},"recorded":{"output":"paid"}}
{"id":"c3","tool":"look","input":{},"session":"s","recorded":{"error":"boom"}}
"#;

pub fn test_dir() -> TestDir {
    TestDir::new(&[("rules.yaml", RULES), ("calls.jsonl", CALLS)])
}

impl TestDir {
    /// Runs calls with the state. Also returns each call's id and outcome, with `again` if the outcome is replayed.
    pub fn with_state(&self, more: &[&str], calls: &str) -> (CommandResult, Vec<String>) {
        let arguments =
            [&["run", "--policies", "rules.yaml", "--format", "json", "--state", "file:s.db"], more, &["-"]];
        let ended = self.run_with_input(&arguments.concat(), calls);
        let told = summarize(&ended.stdout);
        (ended, told)
    }

    pub fn resume(&self, calls: &str) -> Vec<String> {
        let (ended, told) = self.with_state(&["--resume"], calls);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{told:?}");
        told
    }

    pub fn approvals(&self, arguments: &[&str]) -> CommandResult {
        self.run(&[&["approvals"], arguments, &["--state", "file:s.db"]].concat())
    }
}

fn summarize(stdout: &str) -> Vec<String> {
    let line = |line: &str| {
        let outcome: Value = callgate::json::from_str(line).unwrap();
        let text = |key: &str| outcome[key].as_str().unwrap().to_owned();
        let again = if outcome["replayed"] == true { " again" } else { "" };
        format!("{} {}{again}", text("id"), text("outcome"))
    };
    stdout.lines().map(line).collect()
}

/// The text with everything masked that differs from run to run.
pub fn mask(text: &str) -> String {
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\dT[\d:.]+Z").unwrap();
    let minute = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC").unwrap();
    // Each state has its own key.
    let digest = regex::Regex::new(r#"((?i:digest)(?:": "|",\s+"value": "|: | ))[0-9a-f]{16}"#).unwrap();
    let text = time.replace_all(text, "[time]");
    let text = digest.replace_all(&text, "${1}[digest]");
    minute.replace_all(&text, "[minute]").into_owned()
}

#[test]
fn run_resumes_until_every_call_is_completed() {
    let dir = test_dir();
    let run = |more: &[&str]| {
        let arguments =
            [&["run", "--policies", "rules.yaml", "--state", "file:s.db"], more, &["calls.jsonl"]];
        mask(&dir.run(&arguments.concat()).transcript())
    };
    settings().bind(|| {
        insta::assert_snapshot!("state_first", run(&[]));
        insta::assert_snapshot!("state_waiting", run(&["--resume"]));
        assert_eq!(dir.approvals(&["approve", "approval_c2", "--as", "ana"]).code, Some(0));
        insta::assert_snapshot!("state_approved", run(&["--resume"]));
        insta::assert_snapshot!("state_settled", run(&["--resume"]));
    });
    assert_eq!(dir.resume(CALLS), ["c1 executed again", "c2 executed again", "c3 failed again"]);
}

#[test]
fn known_session_is_continued_only_with_resume() {
    let dir = test_dir();
    assert_eq!(dir.with_state(&[], CALLS).0.code, Some(0));
    let fresh = r#"{"id":"d1","tool":"look","input":{},"session":"other"}"#;
    let (ended, told) = dir.with_state(&[], &format!("{fresh}\n{CALLS}"));
    assert_eq!((ended.code, told), (Some(2), vec!["d1 executed".to_owned()]));
    for said in ["`s`", "`--resume`", "another state", "none of its calls was run"] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    // Calls without a session form one session.
    let unnamed = r#"{"tool":"look","input":{}}"#;
    assert_eq!(dir.with_state(&[], unnamed).1, ["line_1 executed"]);
    let (ended, told) = dir.with_state(&[], unnamed);
    assert_eq!((ended.code, told.len()), (Some(2), 0));
    assert_eq!(dir.resume(unnamed), ["line_1 executed again"]);
}

#[test]
fn resume_needs_a_state() {
    let ended = test_dir().run(&["run", "--policies", "rules.yaml", "--resume", "calls.jsonl"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--state"), "{}", ended.stderr);
}

#[test]
fn labels_and_limits_persist_between_runs() {
    let dir = test_dir();
    let take = |id: &str| format!("{{\"id\":\"{id}\",\"tool\":\"take\",\"input\":{{}}}}\n");
    let read = "{\"id\":\"r\",\"tool\":\"read\",\"input\":{}}\n";
    let mail = |id: &str| format!("{{\"id\":\"{id}\",\"tool\":\"mail\",\"input\":{{}}}}\n");
    assert_eq!(dir.resume(&format!("{}{}", take("t1"), mail("m1"))), ["t1 executed", "m1 executed"]);
    assert_eq!(dir.resume(&format!("{}{read}", take("t2"))), ["t2 executed", "r executed"]);
    let third = format!("{}{}{}{}", take("t3"), take("t4"), mail("m1"), mail("m2"));
    assert_eq!(dir.resume(&third), ["t3 executed", "t4 denied", "m1 executed again", "m2 denied"]);
}

#[test]
fn a_halted_session_stays_halted() {
    let dir = test_dir();
    let stop = "{\"id\":\"h\",\"tool\":\"stop\",\"input\":{}}\n";
    let pay = "{\"id\":\"p\",\"tool\":\"pay\",\"input\":{\"amount\":1}}\n";
    let look = "{\"id\":\"l\",\"tool\":\"look\",\"input\":{}}\n";
    assert_eq!(dir.resume(&format!("{pay}{stop}")), ["p suspended", "h halted"]);
    assert_eq!(dir.approvals(&["approve", "approval_p", "--as", "ana"]).code, Some(0));
    let told = dir.resume(&format!("{pay}{stop}{look}"));
    assert_eq!(told[1..], ["h halted again", "l halted"]);
    assert!(["p halted", "p aborted"].contains(&&*told[0]), "{told:?}");
}

#[test]
fn changed_arguments_require_a_new_approval() {
    let dir = test_dir();
    dir.resume(CALLS);
    assert_eq!(dir.approvals(&["approve", "approval_c2", "--as", "ana"]).code, Some(0));
    let changed = CALLS.replace("\"amount\":5", "\"amount\":5000");
    assert_eq!(dir.resume(&changed), ["c1 executed again", "c2 suspended", "c3 failed again"]);
    // The approval is for the original call, which is still pending.
    assert_eq!(dir.resume(CALLS), ["c1 executed again", "c2 executed", "c3 failed again"]);
    assert_eq!(dir.resume(&changed), ["c1 executed again", "c2 suspended again", "c3 failed again"]);
}

#[test]
fn calls_with_the_same_id_are_distinguished_across_runs() {
    let dir = test_dir();
    let call = "{\"id\":\"x\",\"tool\":\"look\",\"input\":{},\"recorded\":{\"output\":1}}\n";
    assert_eq!(dir.resume(&call.repeat(2)), ["x executed", "x executed"]);
    assert_eq!(dir.resume(&call.repeat(3)), ["x executed again", "x executed again", "x executed"]);
}

/// Each call runs at most once, also with killed and concurrent processes.
#[test]
fn each_call_runs_at_most_once_despite_killed_processes() {
    let dir = test_dir();
    const COUNT: usize = 60;
    let calls: String = (0..COUNT)
        .map(|n| format!("{{\"id\":\"k{n}\",\"tool\":\"look\",\"input\":{{\"n\":{n}}},\"session\":\"s{}\",\"recorded\":{{\"output\":{n}}}}}\n", n % 2))
        .collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let arguments =
        ["run", "--policies", "rules.yaml", "--format", "json", "--state", "file:s.db", "--resume", "-"];
    let mut count = |stdout: &str| {
        for line in stdout.lines().filter(|line| line.ends_with('}')) {
            let outcome: Value = callgate::json::from_str(line).unwrap();
            if outcome["outcome"] == "executed" && outcome["replayed"] != true {
                *seen.entry(outcome["id"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
    };
    for round in 0..4 {
        let mut command = dir.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for line in calls.lines().take(10 * round + 7) {
            writeln!(stdin, "{line}").unwrap();
        }
        // Somewhere in the middle of the run.
        std::thread::sleep(std::time::Duration::from_millis(20 + 30 * round as u64));
        child.kill().unwrap();
        count(&String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout));
    }
    let both: Vec<_> = std::thread::scope(|scope| {
        let run = || dir.run_with_input(&arguments, &calls);
        let runs = [scope.spawn(run), scope.spawn(run)];
        runs.map(|run| run.join().unwrap()).into_iter().collect()
    });
    for ended in &both {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        count(&ended.stdout);
    }
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    let last = dir.run_with_input(&arguments, &calls).stdout;
    let last: Vec<Value> = last.lines().map(|line| callgate::json::from_str(line).unwrap()).collect();
    assert_eq!(last.len(), COUNT);
    for outcome in last {
        let ended = outcome["outcome"].as_str().unwrap();
        // The outcome of a call that a killed process had started is unknown.
        assert!(ended == "executed" && outcome["replayed"] == true || ended == "indeterminate", "{outcome}");
    }
}

#[test]
fn one_of_two_concurrent_new_runs_of_a_session_is_rejected() {
    let dir = test_dir();
    let ended: Vec<CommandResult> = std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| dir.with_state(&[], CALLS).0));
        runs.map(|run| run.join().unwrap()).into_iter().collect()
    });
    let mut codes: Vec<_> = ended.iter().map(|ended| ended.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)], "{ended:#?}");
}

#[test]
fn state_opens_only_with_its_own_key() {
    let dir = test_dir();
    let (ended, _) = dir.with_state(&[], CALLS);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let key = dir.0.path().join("s.db.key");
    let made = fs::read_to_string(&key).unwrap();
    let refused = |said: &[&str]| {
        for ended in [dir.with_state(&["--resume"], CALLS).0, dir.approvals(&["list"])] {
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
            assert!(said.iter().all(|said| ended.stderr.contains(said)), "{}", ended.stderr);
        }
    };
    fs::remove_file(&key).unwrap();
    refused(&["missing", "s.db.key", "CALLGATE_KEYS"]);
    assert!(!key.exists(), "no new key is created");
    fs::write(&key, "ab".repeat(32)).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        refused(&["accessible to other users", "chmod 600"]);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    }
    refused(&["another key", "s.db.key"]);
    fs::write(&key, "no key").unwrap();
    refused(&["key 1 is invalid"]);
    // The environment overrides the file, and lists a new key before the old one.
    let arguments = ["approvals", "list", "--state", "file:s.db"];
    let with = |keys: &str| {
        CommandResult::from(dir.command(&arguments).env("CALLGATE_KEYS", keys).output().unwrap())
    };
    let old = made.lines().last().unwrap();
    assert!(with(old).stdout.contains("approval_c2"));
    assert!(with(&format!("{},{old}", "cd".repeat(32))).stdout.contains("approval_c2"));
    // Once opened with both, the state opens with the new key alone.
    assert_eq!(with(&"cd".repeat(32)).code, Some(0));
    let wrong = with(&"ef".repeat(32));
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("another key than the one of CALLGATE_KEYS"), "{}", wrong.stderr);
    assert_eq!(with("zz").code, Some(2));
}

#[test]
fn rejects_files_that_are_not_states_and_leaves_them_unchanged() {
    let dir = test_dir();
    fs::write(dir.0.path().join("broken.db"), "no state at all, but a text that is long enough").unwrap();
    for (url, said) in [
        ("file:broken.db", "is not a state store"),
        ("file:", "has no path"),
        ("file:nowhere/s.db", "directory does not exist"),
        ("file://host/s.db", "another machine"),
        ("mysql://localhost", "`mysql:` is not a store type"),
        ("redis://localhost", "set CALLGATE_KEYS"),
        ("s.db", "has no store type"),
    ] {
        let ended = dir.run(&["run", "--policies", "rules.yaml", "--state", url, "calls.jsonl"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{url}");
        assert!(ended.stderr.contains(said), "{url}: {}", ended.stderr);
        assert_eq!(dir.run(&["approvals", "list", "--state", url]).code, Some(2), "{url}");
    }
    let text = fs::read_to_string(dir.0.path().join("broken.db")).unwrap();
    assert!(text.starts_with("no state at all"));
    assert!(!dir.0.path().join("broken.db.key").exists());
}

#[test]
fn memory_state_ends_with_its_run() {
    let dir = test_dir();
    for _ in 0..2 {
        let ended = dir.run(&["run", "--policies", "rules.yaml", "--state", "memory:", "calls.jsonl"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stdout.contains("callgate approvals"), "{}", ended.stdout);
    }
    let ended = dir.run(&["approvals", "list", "--state", "memory:"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("ends with its process"), "{}", ended.stderr);
}

/// Copies the files of a state.
fn copy_files(dir: &TestDir, from: &str, to: &str, names: &[&str]) {
    for name in names {
        let (from, to) = (dir.0.path().join(from).join(name), dir.0.path().join(to).join(name));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

#[test]
fn lost_or_older_state_is_rejected_until_accepted() {
    let dir = test_dir();
    assert_eq!(dir.with_state(&[], CALLS).0.code, Some(0));
    copy_files(&dir, "", "old", &["s.db"]);
    assert_eq!(dir.approvals(&["approve", "approval_c2", "--as", "ana"]).code, Some(0));
    assert_eq!(dir.resume(CALLS), ["c1 executed again", "c2 executed", "c3 failed again"]);
    let refused = |said: &str| {
        for ended in [dir.with_state(&["--resume"], CALLS).0, dir.approvals(&["list"])] {
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
            assert!(ended.stderr.contains(said), "{}", ended.stderr);
            assert!(ended.stderr.contains("callgate state accept --state file:s.db"), "{}", ended.stderr);
        }
    };
    copy_files(&dir, "", "latest", &["s.db", "s.db.anchor"]);
    // Removed, empty, or without its anchor.
    fs::remove_file(dir.0.path().join("s.db")).unwrap();
    refused("empty or missing");
    assert!(!dir.0.path().join("s.db").exists(), "no new store is created");
    fs::write(dir.0.path().join("s.db"), "").unwrap();
    refused("empty or missing");
    copy_files(&dir, "latest", "", &["s.db"]);
    fs::remove_file(dir.0.path().join("s.db.anchor")).unwrap();
    refused("the anchor was lost");
    fs::remove_file(dir.0.path().join("s.db.anchor")).unwrap();
    copy_files(&dir, "latest", "", &["s.db", "s.db.anchor"]);
    assert_eq!(dir.resume(CALLS), ["c1 executed again", "c2 executed again", "c3 failed again"]);
    // An older copy opens, but its record of the call that has run since is not trusted.
    copy_files(&dir, "old", "", &["s.db"]);
    let ended = dir.with_state(&["--resume"], CALLS).0;
    assert!(!ended.stdout.contains("\"executed\"") || ended.code != Some(0), "{}", ended.stdout);
    let listed = dir.approvals(&["list"]);
    assert_eq!(listed.code, Some(2));
    assert!(listed.stderr.contains("the store was altered"), "{}", listed.stderr);
    let accepted = dir.run(&["state", "accept", "--state", "file:s.db"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    assert!(accepted.stdout.contains("3 calls, 0 remembered approvals"), "{}", accepted.stdout);
    assert_eq!(dir.resume(CALLS), ["c1 executed again", "c2 suspended again", "c3 failed again"]);
}

#[test]
fn state_accept_needs_the_keys_and_a_file() {
    let dir = test_dir();
    assert_eq!(dir.with_state(&[], CALLS).0.code, Some(0));
    let accept = |url: &str| dir.run(&["state", "accept", "--state", url]);
    assert_eq!(accept("memory:").code, Some(2));
    fs::write(dir.0.path().join("s.db.key"), "ab".repeat(32)).unwrap();
    let ended = accept("file:s.db");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("another key"), "{}", ended.stderr);
}

#[test]
fn stats_say_how_much_a_store_holds_and_how_old_its_calls_are() {
    let dir = test_dir();
    dir.with_state(&[], CALLS);
    let stats = |format: &str| dir.run(&["state", "stats", "--state", "file:s.db", "--format", format]);
    let text = stats("text");
    assert_eq!(text.code, Some(0), "{}", text.transcript());
    assert!(text.stdout.contains("calls: 1 pending (the oldest for "), "{}", text.transcript());
    let document: Value = callgate::json::from_str(&stats("json").stdout).unwrap();
    assert_eq!(document["calls"]["pending"], 1, "{document}");
    assert!(document["oldest_seconds"]["pending"].as_u64().is_some(), "{document}");
    let metrics = stats("prometheus").stdout;
    for line in [
        "# TYPE callgate_state_calls gauge",
        "callgate_state_calls{stage=\"pending\"} 1",
        "callgate_state_calls{stage=\"started\"} 0",
        "callgate_state_oldest_call_age_seconds{stage=\"started\"} 0",
    ] {
        assert!(metrics.lines().any(|printed| printed == line), "{line}: {metrics}");
    }
    let records =
        metrics.lines().find_map(|line| line.strip_prefix("callgate_state_records{space=\"calls\"} "));
    assert!(records.is_some_and(|count| count.parse::<u64>().unwrap() > 0), "{metrics}");
}
