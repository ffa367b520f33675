//! `callgate run --state` and `--resume`: what is settled stays settled, however often and from wherever the calls come.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use callgate::json::Value;

use super::{Desk, Ended, settings};

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

pub fn desk() -> Desk {
    Desk::new(&[("rules.yaml", RULES), ("calls.jsonl", CALLS)])
}

impl Desk {
    /// Runs calls with the state, and says of each its id, its outcome, and whether it is only told again.
    pub fn with_state(&self, more: &[&str], calls: &str) -> (Ended, Vec<String>) {
        let arguments =
            [&["run", "--policies", "rules.yaml", "--format", "json", "--state", "file:s.db"], more, &["-"]];
        let ended = self.run_with_input(&arguments.concat(), calls);
        let told = told(&ended.stdout);
        (ended, told)
    }

    pub fn resume(&self, calls: &str) -> Vec<String> {
        let (ended, told) = self.with_state(&["--resume"], calls);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{told:?}");
        told
    }

    pub fn approvals(&self, arguments: &[&str]) -> Ended {
        self.run(&[&["approvals"], arguments, &["--state", "file:s.db"]].concat())
    }
}

fn told(stdout: &str) -> Vec<String> {
    let line = |line: &str| {
        let outcome: Value = callgate::json::from_str(line).unwrap();
        let text = |key: &str| outcome[key].as_str().unwrap().to_owned();
        let again = if outcome["replayed"] == true { " again" } else { "" };
        format!("{} {}{again}", text("id"), text("outcome"))
    };
    stdout.lines().map(line).collect()
}

/// As on a terminal, with what differs from run to run masked.
pub fn masked(text: &str) -> String {
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\dT[\d:.]+Z").unwrap();
    let minute = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC").unwrap();
    // The key is another one in each state.
    let digest = regex::Regex::new(r#"((?i:digest)(?:": "|",\s+"value": "|: | ))[0-9a-f]{16}"#).unwrap();
    let text = time.replace_all(text, "[time]");
    let text = digest.replace_all(&text, "${1}[digest]");
    minute.replace_all(&text, "[minute]").into_owned()
}

#[test]
fn a_run_is_taken_further_until_nothing_is_left_to_do() {
    let desk = desk();
    let run = |more: &[&str]| {
        let arguments =
            [&["run", "--policies", "rules.yaml", "--state", "file:s.db"], more, &["calls.jsonl"]];
        masked(&desk.run(&arguments.concat()).shown())
    };
    settings().bind(|| {
        insta::assert_snapshot!("state_first", run(&[]));
        insta::assert_snapshot!("state_waiting", run(&["--resume"]));
        assert_eq!(desk.approvals(&["approve", "approval_c2", "--as", "ana"]).code, Some(0));
        insta::assert_snapshot!("state_approved", run(&["--resume"]));
        insta::assert_snapshot!("state_settled", run(&["--resume"]));
    });
    assert_eq!(desk.resume(CALLS), ["c1 executed again", "c2 executed again", "c3 failed again"]);
}

#[test]
fn a_session_that_the_state_knows_is_only_taken_further_where_that_is_said() {
    let desk = desk();
    assert_eq!(desk.with_state(&[], CALLS).0.code, Some(0));
    let fresh = r#"{"id":"d1","tool":"look","input":{},"session":"other"}"#;
    let (ended, told) = desk.with_state(&[], &format!("{fresh}\n{CALLS}"));
    assert_eq!((ended.code, told), (Some(2), vec!["d1 executed".to_owned()]));
    for said in ["`s`", "`--resume`", "another state", "none of its calls was run"] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    // Calls without a session are one, too.
    let unnamed = r#"{"tool":"look","input":{}}"#;
    assert_eq!(desk.with_state(&[], unnamed).1, ["line_1 executed"]);
    let (ended, told) = desk.with_state(&[], unnamed);
    assert_eq!((ended.code, told.len()), (Some(2), 0));
    assert_eq!(desk.resume(unnamed), ["line_1 executed again"]);
}

#[test]
fn resuming_needs_a_state() {
    let ended = desk().run(&["run", "--policies", "rules.yaml", "--resume", "calls.jsonl"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--state"), "{}", ended.stderr);
}

#[test]
fn a_session_remembers_what_it_has_seen_from_run_to_run() {
    let desk = desk();
    let take = |id: &str| format!("{{\"id\":\"{id}\",\"tool\":\"take\",\"input\":{{}}}}\n");
    let read = "{\"id\":\"r\",\"tool\":\"read\",\"input\":{}}\n";
    let mail = |id: &str| format!("{{\"id\":\"{id}\",\"tool\":\"mail\",\"input\":{{}}}}\n");
    assert_eq!(desk.resume(&format!("{}{}", take("t1"), mail("m1"))), ["t1 executed", "m1 executed"]);
    assert_eq!(desk.resume(&format!("{}{read}", take("t2"))), ["t2 executed", "r executed"]);
    let third = format!("{}{}{}{}", take("t3"), take("t4"), mail("m1"), mail("m2"));
    assert_eq!(desk.resume(&third), ["t3 executed", "t4 denied", "m1 executed again", "m2 denied"]);
}

#[test]
fn a_halted_session_stays_halted() {
    let desk = desk();
    let stop = "{\"id\":\"h\",\"tool\":\"stop\",\"input\":{}}\n";
    let pay = "{\"id\":\"p\",\"tool\":\"pay\",\"input\":{\"amount\":1}}\n";
    let look = "{\"id\":\"l\",\"tool\":\"look\",\"input\":{}}\n";
    assert_eq!(desk.resume(&format!("{pay}{stop}")), ["p suspended", "h halted"]);
    assert_eq!(desk.approvals(&["approve", "approval_p", "--as", "ana"]).code, Some(0));
    let told = desk.resume(&format!("{pay}{stop}{look}"));
    assert_eq!(told[1..], ["h halted again", "l halted"]);
    assert!(["p halted", "p aborted"].contains(&&*told[0]), "{told:?}");
}

#[test]
fn a_call_with_other_arguments_is_asked_about_anew() {
    let desk = desk();
    desk.resume(CALLS);
    assert_eq!(desk.approvals(&["approve", "approval_c2", "--as", "ana"]).code, Some(0));
    let changed = CALLS.replace("\"amount\":5", "\"amount\":5000");
    assert_eq!(desk.resume(&changed), ["c1 executed again", "c2 suspended", "c3 failed again"]);
    // The yes is for the call that it was given to, which is still there.
    assert_eq!(desk.resume(CALLS), ["c1 executed again", "c2 executed", "c3 failed again"]);
    assert_eq!(desk.resume(&changed), ["c1 executed again", "c2 suspended again", "c3 failed again"]);
}

#[test]
fn calls_that_repeat_an_id_are_told_apart_from_run_to_run() {
    let desk = desk();
    let call = "{\"id\":\"x\",\"tool\":\"look\",\"input\":{},\"recorded\":{\"output\":1}}\n";
    assert_eq!(desk.resume(&call.repeat(2)), ["x executed", "x executed"]);
    assert_eq!(desk.resume(&call.repeat(3)), ["x executed again", "x executed again", "x executed"]);
}

/// However often processes are killed while they work, and how many work at once, each call is executed once at most.
#[test]
fn each_call_runs_once_at_most_whoever_is_killed() {
    let desk = desk();
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
        let mut command = desk.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for line in calls.lines().take(10 * round + 7) {
            writeln!(stdin, "{line}").unwrap();
        }
        // Somewhere in the midst of it; where exactly does not matter.
        std::thread::sleep(std::time::Duration::from_millis(20 + 30 * round as u64));
        child.kill().unwrap();
        count(&String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout));
    }
    let both: Vec<_> = std::thread::scope(|scope| {
        let run = || desk.run_with_input(&arguments, &calls);
        let runs = [scope.spawn(run), scope.spawn(run)];
        runs.map(|run| run.join().unwrap()).into_iter().collect()
    });
    for ended in &both {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        count(&ended.stdout);
    }
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    let last = desk.run_with_input(&arguments, &calls).stdout;
    let last: Vec<Value> = last.lines().map(|line| callgate::json::from_str(line).unwrap()).collect();
    assert_eq!(last.len(), COUNT);
    for outcome in last {
        let ended = outcome["outcome"].as_str().unwrap();
        // Of a call that a killed process had begun nobody knows more.
        assert!(ended == "executed" && outcome["replayed"] == true || ended == "indeterminate", "{outcome}");
    }
}

#[test]
fn of_two_runs_that_begin_a_session_at_once_one_is_refused() {
    let desk = desk();
    let ended: Vec<Ended> = std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| desk.with_state(&[], CALLS).0));
        runs.map(|run| run.join().unwrap()).into_iter().collect()
    });
    let mut codes: Vec<_> = ended.iter().map(|ended| ended.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)], "{ended:#?}");
}

#[test]
fn a_state_is_only_opened_with_the_key_that_it_was_made_with() {
    let desk = desk();
    let (ended, _) = desk.with_state(&[], CALLS);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let key = desk.0.path().join("s.db.key");
    let made = fs::read_to_string(&key).unwrap();
    let refused = |said: &[&str]| {
        for ended in [desk.with_state(&["--resume"], CALLS).0, desk.approvals(&["list"])] {
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
            assert!(said.iter().all(|said| ended.stderr.contains(said)), "{}", ended.stderr);
        }
    };
    fs::remove_file(&key).unwrap();
    refused(&["missing", "s.db.key", "CALLGATE_KEYS"]);
    assert!(!key.exists(), "a key that nothing was sealed with helps nobody");
    fs::write(&key, "ab".repeat(32)).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        refused(&["can be read by others", "chmod 600"]);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    }
    refused(&["another key", "s.db.key"]);
    fs::write(&key, "no key").unwrap();
    refused(&["key 1 is not usable"]);
    // The environment stands before the file, and a new key may stand before the old one.
    let arguments = ["approvals", "list", "--state", "file:s.db"];
    let with =
        |keys: &str| Ended::from(desk.command(&arguments).env("CALLGATE_KEYS", keys).output().unwrap());
    let old = made.lines().last().unwrap();
    assert!(with(old).stdout.contains("approval_c2"));
    assert!(with(&format!("{},{old}", "cd".repeat(32))).stdout.contains("approval_c2"));
    // Opened once with both, the state is the new key's, too.
    assert_eq!(with(&"cd".repeat(32)).code, Some(0));
    let wrong = with(&"ef".repeat(32));
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("another key than the one of CALLGATE_KEYS"), "{}", wrong.stderr);
    assert_eq!(with("zz").code, Some(2));
}

#[test]
fn what_is_no_state_is_said_and_left_alone() {
    let desk = desk();
    fs::write(desk.0.path().join("broken.db"), "no state at all, but a text that is long enough").unwrap();
    for (url, said) in [
        ("file:broken.db", "file of another kind"),
        ("file:", "names no file"),
        ("file:nowhere/s.db", "directory does not exist"),
        ("file://host/s.db", "another machine"),
        ("redis://localhost", "`redis:` is no kind of store"),
        ("s.db", "names no kind of store"),
    ] {
        let ended = desk.run(&["run", "--policies", "rules.yaml", "--state", url, "calls.jsonl"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{url}");
        assert!(ended.stderr.contains(said), "{url}: {}", ended.stderr);
        assert_eq!(desk.run(&["approvals", "list", "--state", url]).code, Some(2), "{url}");
    }
    let text = fs::read_to_string(desk.0.path().join("broken.db")).unwrap();
    assert!(text.starts_with("no state at all"));
    assert!(!desk.0.path().join("broken.db.key").exists());
}

#[test]
fn a_state_in_memory_ends_with_its_run() {
    let desk = desk();
    for _ in 0..2 {
        let ended = desk.run(&["run", "--policies", "rules.yaml", "--state", "memory:", "calls.jsonl"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stdout.contains("callgate approvals"), "{}", ended.stdout);
    }
    let ended = desk.run(&["approvals", "list", "--state", "memory:"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("ends with its process"), "{}", ended.stderr);
}

/// The files of a state, copied away and back.
fn copied(desk: &Desk, from: &str, to: &str, names: &[&str]) {
    for name in names {
        let (from, to) = (desk.0.path().join(from).join(name), desk.0.path().join(to).join(name));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

#[test]
fn a_state_that_was_lost_or_is_older_is_refused_until_it_is_accepted() {
    let desk = desk();
    assert_eq!(desk.with_state(&[], CALLS).0.code, Some(0));
    copied(&desk, "", "old", &["s.db"]);
    assert_eq!(desk.approvals(&["approve", "approval_c2", "--as", "ana"]).code, Some(0));
    assert_eq!(desk.resume(CALLS), ["c1 executed again", "c2 executed", "c3 failed again"]);
    let refused = |said: &str| {
        for ended in [desk.with_state(&["--resume"], CALLS).0, desk.approvals(&["list"])] {
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
            assert!(ended.stderr.contains(said), "{}", ended.stderr);
            assert!(ended.stderr.contains("callgate state accept --state file:s.db"), "{}", ended.stderr);
        }
    };
    copied(&desk, "", "latest", &["s.db", "s.db.anchor"]);
    // Removed, emptied, or without its anchor.
    fs::remove_file(desk.0.path().join("s.db")).unwrap();
    refused("empty or missing");
    assert!(!desk.0.path().join("s.db").exists(), "nothing is made in its place");
    fs::write(desk.0.path().join("s.db"), "").unwrap();
    refused("empty or missing");
    copied(&desk, "latest", "", &["s.db"]);
    fs::remove_file(desk.0.path().join("s.db.anchor")).unwrap();
    refused("the anchor was lost");
    fs::remove_file(desk.0.path().join("s.db.anchor")).unwrap();
    copied(&desk, "latest", "", &["s.db", "s.db.anchor"]);
    assert_eq!(desk.resume(CALLS), ["c1 executed again", "c2 executed again", "c3 failed again"]);
    // An older copy opens, and what it says of the call that ran since is not believed.
    copied(&desk, "old", "", &["s.db"]);
    let ended = desk.with_state(&["--resume"], CALLS).0;
    assert!(!ended.stdout.contains("\"executed\"") || ended.code != Some(0), "{}", ended.stdout);
    let listed = desk.approvals(&["list"]);
    assert_eq!(listed.code, Some(2));
    assert!(listed.stderr.contains("can't be believed"), "{}", listed.stderr);
    let accepted = desk.run(&["state", "accept", "--state", "file:s.db"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    assert!(accepted.stdout.contains("3 calls, 0 remembered approvals"), "{}", accepted.stdout);
    assert_eq!(desk.resume(CALLS), ["c1 executed again", "c2 suspended again", "c3 failed again"]);
}

#[test]
fn accepting_needs_the_keys_and_a_file() {
    let desk = desk();
    assert_eq!(desk.with_state(&[], CALLS).0.code, Some(0));
    let accept = |url: &str| desk.run(&["state", "accept", "--state", url]);
    assert_eq!(accept("memory:").code, Some(2));
    fs::write(desk.0.path().join("s.db.key"), "ab".repeat(32)).unwrap();
    let ended = accept("file:s.db");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("another key"), "{}", ended.stderr);
}
