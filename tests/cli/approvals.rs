//! `callgate approvals`: the approval requests in a state store, and answers to them.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use callgate::json::Value;

use super::state::{CALLS, RULES, mask, test_dir};
use super::{CommandResult, TestDir, settings};

const BOARD: &str = r#"
policies:
  - id: board
    match: pay
    approval: { message: "Pay {{ input.amount }}?", approvers: [role:lead], quorum: 2, edits: [$.input.note, $.input.tags], remember: { scope: arguments, for: 8h } }
"#;

const BOARD_CALLS: &str = r#"{"id":"c2","tool":"pay","input":{"amount":5,"note":"a","tags":["x"]},"session":"s","context":{"principal":"bot"},"recorded":{"output":"paid"}}
"#;

/// A state in which `approval_c2` requires two leads.
fn pending_for_board() -> TestDir {
    let dir = TestDir::new(&[("rules.yaml", BOARD)]);
    assert_eq!(dir.resume(BOARD_CALLS), ["c2 suspended"]);
    dir
}

/// A state in which `approval_c2` requires any approver.
fn pending_for_anyone() -> TestDir {
    let dir = test_dir();
    dir.resume(CALLS);
    dir
}

impl TestDir {
    fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.approvals(&[arguments, &["--format", "json"]].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let value: Value = callgate::json::from_str(&ended.stdout).unwrap();
        assert_eq!(value["version"].to_string(), "1");
        value
    }

    fn outcome(&self, calls: &str, id: &str) -> Value {
        let (ended, _) = self.with_state(&["--resume"], calls);
        let outcomes: Vec<Value> =
            ended.stdout.lines().map(|line| callgate::json::from_str(line).unwrap()).collect();
        outcomes.into_iter().find(|outcome| outcome["id"] == id).unwrap()
    }
}

fn assert_rejected(ended: &CommandResult, said: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn approval_requests_are_listed_shown_and_answered() {
    let dir = pending_for_board();
    let lead = |who: &'static str| ["approve", "approval_c2", "--as", who, "--role", "lead"];
    let shown = |arguments: &[&str]| mask(&dir.approvals(arguments).transcript());
    settings().bind(|| {
        insta::assert_snapshot!("approvals_list", shown(&["list"]));
        insta::assert_snapshot!("approvals_show", shown(&["show", "approval_c2"]));
        insta::assert_snapshot!("approvals_first", shown(&lead("ana")));
        insta::assert_snapshot!("approvals_second", shown(&lead("lea")));
        insta::assert_snapshot!("approvals_answered", shown(&["show", "approval_c2"]));
        insta::assert_snapshot!("approvals_nothing_waits", shown(&["list"]));
    });
    assert_eq!(dir.resume(BOARD_CALLS), ["c2 executed"]);
    settings().bind(|| {
        insta::assert_snapshot!("approvals_over", shown(&["show", "approval_c2"]));
        insta::assert_snapshot!("approvals_all", shown(&["list", "--all"]));
    });
}

#[test]
fn json_output_has_the_same_content() {
    let dir = pending_for_board();
    let token = regex::Regex::new(r#"[0-9a-f]{64}"#).unwrap();
    let text = |value: &Value| {
        let text = mask(&callgate::json::to_string_pretty(value).unwrap());
        token.replace_all(&text, "[digest]").into_owned()
    };
    settings().bind(|| {
        insta::assert_snapshot!("approvals_list_json", text(&dir.json(&["list"])));
    });
    let answered = dir.json(&["deny", "approval_c2", "--as", "ana", "--role", "lead", "--reason", "no"]);
    assert_eq!((&answered["stage"], &answered["decision"]), (&"answered".into(), &"denied".into()));
    assert_eq!(answered["answers"][0]["by"], "ana");
    let outcome = dir.outcome(BOARD_CALLS, "c2");
    assert_eq!(outcome["outcome"], "denied");
    assert!(outcome["reason"]["message"].as_str().unwrap().contains("ana denied this call: no"));
    let shown = dir.json(&["show", "s/approval_c2"]);
    assert_eq!((&shown["stage"], &shown["outcome"]["outcome"]), (&"settled".into(), &"denied".into()));
    assert_eq!(shown["card"]["status"], "denied");
}

#[test]
fn invalid_answers_are_rejected_and_not_recorded() {
    let dir = pending_for_board();
    let approve = |more: &[&str]| dir.approvals(&[&["approve", "approval_c2"], more].concat());
    assert_rejected(&approve(&[]), "add `--as NAME`");
    assert_rejected(&approve(&["--as", "bob"]), "`bob` is not one of the approvers: role:lead");
    assert_rejected(&approve(&["--as", "bob", "--role", "leader"]), "not one of the approvers");
    assert_rejected(
        &approve(&["--as", "bot", "--role", "lead"]),
        "`bot` can't answer their own request [self_approval]",
    );
    assert_rejected(
        &approve(&["--as", "Bot\u{a0}", "--role", "lead"]),
        "can't answer their own request [self_approval]",
    );
    assert_rejected(&approve(&["--as", "lead"]), "not one of the approvers: role:lead [not_an_approver]");
    assert_eq!(dir.json(&["show", "approval_c2"])["answers"].as_array().unwrap().len(), 0);
    assert_eq!(approve(&["--as", "ana", "--role", "lead"]).code, Some(0));
    assert_rejected(&approve(&["--as", "ana", "--role", "lead"]), "`ana` has answered already");
    assert_rejected(&approve(&["--as", "Ana", "--role", "lead"]), "`Ana` has answered already");
    assert_eq!(approve(&["--as", "lea", "--role", "lead"]).code, Some(0));
    assert_rejected(&approve(&["--as", "zoe", "--role", "lead"]), "already answered: approved by ana, lea");
    // A denial still stops a call that has not started.
    assert_eq!(dir.approvals(&["deny", "approval_c2", "--as", "zoe", "--role", "lead"]).code, Some(0));
    assert_rejected(&approve(&["--as", "kim", "--role", "lead"]), "already answered: denied by zoe");
    assert_eq!(dir.resume(BOARD_CALLS), ["c2 denied"]);
    assert_rejected(&approve(&["--as", "kim", "--role", "lead"]), "the call has already completed: denied");
}

/// The approver might be the requester.
#[test]
fn i3_nobody_approves_if_the_requester_is_unknown() {
    for context in ["{}", r#"{"principal":42}"#, r#"{"principal":["ana"]}"#, r#"{"principal":" "}"#] {
        let dir = TestDir::new(&[("rules.yaml", BOARD)]);
        let calls = BOARD_CALLS.replace(r#"{"principal":"bot"}"#, context);
        dir.resume(&calls);
        let ended = dir.approvals(&["approve", "approval_c2", "--as", "ana", "--role", "lead"]);
        assert_rejected(&ended, "[unknown_requester]");
        assert!(ended.stderr.contains("`context.principal`"), "{}", ended.stderr);
        assert_eq!(dir.json(&["show", "approval_c2"])["requester"], Value::Null);
    }
}

#[test]
fn anonymous_answers_need_a_policy_that_allows_them() {
    let dir = pending_for_anyone();
    for word in ["approve", "deny", "cancel"] {
        assert_rejected(&dir.approvals(&[word, "approval_c2"]), "add `--as NAME`");
    }
    assert_eq!(dir.json(&["show", "approval_c2"])["answers"].as_array().unwrap().len(), 0);
    let allowed = RULES.replace("expires: 24h", "expires: 24h, anonymous: allow");
    let dir = TestDir::new(&[("rules.yaml", &allowed)]);
    dir.resume(CALLS);
    assert_eq!(dir.approvals(&["approve", "approval_c2"]).code, Some(0));
    assert_eq!(dir.resume(CALLS)[1], "c2 executed");
}

#[test]
fn expired_approval_requests_cannot_be_answered() {
    let dir = TestDir::new(&[("rules.yaml", &RULES.replace("24h", "1ms"))]);
    dir.resume(CALLS);
    assert_rejected(
        &dir.approvals(&["approve", "approval_c2", "--as", "ana"]),
        "the approval request expired",
    );
    assert!(dir.approvals(&["list"]).stdout.contains("no pending approvals"));
    assert_eq!(dir.json(&["list", "--all"])["questions"][0]["approvals"][0]["stage"], "lapsed");
    assert_eq!(dir.resume(CALLS)[1], "c2 denied");
}

#[test]
fn edit_changes_only_arguments_that_the_policy_allows() {
    let dir = pending_for_anyone();
    let edit = |more: &[&str]| dir.approvals(&[&["edit", "approval_c2", "--as", "ana"], more].concat());
    assert_rejected(&edit(&["--set", "$.input.amount=1"]), "`$.input.amount` may not be changed");
    for (more, said) in [
        (&["--set", "note=late"][..], "is not valid JSON"),
        (&["--set", "note"], "has no path"),
        (&["--set", "$.tool=\"x\""], "has no path"),
        (&["--input", "nowhere.json"], "can't be read"),
        (&[], "--set"),
        (&["--set", "note=1", "--input", "-"], "cannot be used with"),
    ] {
        let ended = edit(more);
        assert_eq!(ended.code, Some(2), "{more:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{more:?}: {}", ended.stderr);
    }
    let ended = edit(&["--set", "note=1", "--set", "note=\"late=r\""]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("approved with changes by ana"), "{}", ended.stdout);
    let outcome = dir.outcome(CALLS, "c2");
    assert_eq!((&outcome["outcome"], &outcome["input"]["note"]), (&"executed".into(), &"late=r".into()));
    assert_eq!(outcome["approved"]["edited"], true);
}

#[test]
fn edit_reads_all_arguments_from_a_file_or_stdin() {
    let whole = r#"{"amount":5,"note":"from stdin"}"#;
    let dir = pending_for_anyone();
    let arguments =
        ["approvals", "edit", "approval_c2", "--as", "ana", "--state", "file:s.db", "--input", "-"];
    assert_eq!(dir.run_with_input(&arguments, r#"{"amount":5}"#).code, Some(0), "the note may be omitted");
    let dir = pending_for_anyone();
    assert_rejected(&dir.run_with_input(&arguments, "[]"), "not an object");
    assert_rejected(
        &dir.run_with_input(&arguments, r#"{"note":"a"}"#),
        "`$.input.amount` may not be changed",
    );
    assert_eq!(dir.run_with_input(&arguments, r#"{"amount":5,"#).code, Some(2));
    assert_eq!(dir.run_with_input(&arguments, whole).code, Some(0));
    assert_eq!(dir.outcome(CALLS, "c2")["input"]["note"], "from stdin");
}

#[test]
fn approver_can_supply_the_output_or_cancel_the_run() {
    let dir = pending_for_anyone();
    let answer = |text: &str| dir.approvals(&["answer", "approval_c2", "--as", "ana", "--output", text]);
    let wrong = answer("done");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("strings need quotes"), "{}", wrong.stderr);
    assert_eq!(answer("{\"paid\":0}").code, Some(0));
    let outcome = dir.outcome(CALLS, "c2");
    assert_eq!(
        (&outcome["outcome"], &outcome["output"]["paid"].to_string()),
        (&"answered".into(), &"0".to_owned())
    );

    let dir = pending_for_anyone();
    assert_eq!(dir.approvals(&["cancel", "approval_c2", "--as", "ana", "--reason", "stop it"]).code, Some(0));
    assert_eq!(dir.resume(CALLS), ["c1 executed again", "c2 aborted", "c3 failed again"]);
    let later = "{\"id\":\"c4\",\"tool\":\"look\",\"input\":{},\"session\":\"s\"}\n";
    assert_eq!(dir.resume(&format!("{CALLS}{later}"))[3], "c4 halted");
}

/// Sends messages through a gateway and waits for so many responses. Returns them and the gateway's stderr.
fn through_gateway(dir: &TestDir, options: &[&str], said: &str, answers: usize) -> (Vec<Value>, String) {
    let recorder = crate::gateway::script("recorder.py").display().to_string();
    let arguments = [&["proxy"], options, &["--", "python3", "-S", "-E", &recorder, "log"]].concat();
    let mut command = dir.command(&arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(said.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heard: Vec<Value> =
        lines.take(answers).map(|line| callgate::json::parse(&line.unwrap()).unwrap()).collect();
    drop(stdin);
    let ended = CommandResult::from(child.wait_with_output().unwrap());
    assert_eq!((ended.code, heard.len()), (Some(0), answers), "{}", ended.stderr);
    (heard, ended.stderr)
}

/// Calls tools through a gateway whose client supports no elicitation. Returns the ids of the approval requests.
fn request_through_gateway(dir: &TestDir, tools: &[&str]) -> Vec<String> {
    let calls = tools.iter().enumerate().map(|(id, tool)| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#) + "\n"
    });
    let options = ["--policies", "gateway.yaml", "--state", "file:s.db", "--session", "s"];
    let (_, told) = through_gateway(dir, &options, &calls.collect::<String>(), tools.len());
    let id = regex::Regex::new(r"(approval_\S+) is pending").unwrap();
    let ids: Vec<String> = id.captures_iter(&told).map(|found| found[1].to_owned()).collect();
    assert_eq!(ids.len(), tools.len(), "{told}");
    ids
}

#[test]
fn output_says_how_calls_of_runs_and_gateways_resume() {
    let rules = "policies: [{ id: ask, match: '*', approval: { message: 'May it {{ tool }}?' } }]";
    let dir = TestDir::new(&[("rules.yaml", RULES), ("gateway.yaml", rules)]);
    let ids = request_through_gateway(&dir, &["safe", "write"]);
    let decide = |word: &str, id: &str| mask(&dir.approvals(&[word, id, "--as", "ana"]).stdout);
    let (first, second) = (&*ids[0], &*ids[1]);
    let again = "the call resumes when the client repeats it with the same arguments";
    assert_eq!(decide("approve", first), format!("approved by ana (digest [digest])\n{again}\n"));
    let list = || dir.approvals(&["list"]).stdout;
    let of_one = "1 answered call resumes when the client repeats it\n";
    assert!(list().ends_with(of_one), "{}", list());
    let told = "the client receives the answer when it repeats the same call";
    assert_eq!(
        decide("deny", second),
        format!("denied by ana (digest [digest]); the call does not run\n{told}\n")
    );
    dir.resume(&CALLS.replace("\"s\"", "\"t\""));
    let further = "resume the session `t`: callgate run --resume --state file:s.db --policies … CALLS";
    assert_eq!(decide("approve", "approval_c2"), format!("approved by ana (digest [digest])\n{further}\n"));
    let both = "1 answered call resumes with callgate run --resume --state file:s.db …
2 answered calls resume when the clients repeat them\n";
    assert!(list().ends_with(both), "{}", list());
}

/// Without `--session`, each gateway is its own session.
#[test]
fn approval_outlives_the_gateway_and_is_used_once() {
    let rules = "policies: [{ id: ask, match: '*', approval: { message: 'May it?' } }]";
    let dir = TestDir::new(&[("gateway.yaml", rules)]);
    let call = || {
        let call =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"n":1}}}"#;
        let options = ["--policies", "gateway.yaml", "--state", "file:s.db"];
        let (answers, told) = through_gateway(&dir, &options, &format!("{call}\n"), 1);
        let text = answers[0]["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let id = regex::Regex::new(r"(approval_\S+) is pending").unwrap();
        (text, id.captures(&told).map(|found| found[1].to_owned()))
    };
    let (text, id) = call();
    assert!(text.starts_with("Not run: pending approval. May it?"), "{text}");
    let id = id.unwrap();
    let (text, again) = call();
    assert!(text.starts_with("Not run: pending approval."), "{text}");
    assert_eq!(again, None, "the operator was already notified");
    assert_eq!(dir.approvals(&["approve", &id, "--as", "lea"]).code, Some(0));
    assert_eq!(call().0, "safe did it");
    let (text, renewed) = call();
    assert!(text.starts_with("Not run: pending approval."), "{text}");
    let renewed = renewed.unwrap();
    assert_ne!(renewed, id);
    assert_eq!(dir.approvals(&["deny", &renewed, "--as", "lea", "--reason", "enough"]).code, Some(0));
    assert!(call().0.contains("lea denied this call: enough"));
}

#[test]
fn unknown_ids_get_suggestions_and_ambiguous_ids_are_rejected() {
    let two = format!("{CALLS}{}", CALLS.replace("\"s\"", "\"o/ther \\u001b[2J\""));
    let dir = test_dir();
    dir.resume(&two);
    assert_rejected(&dir.approvals(&["show", "approval_c3"]), "did you mean `approval_c2`?");
    assert_rejected(&dir.approvals(&["approve", "c2"]), "did you mean `approval_c2`?");
    assert_rejected(
        &dir.approvals(&["approve", "nothing like it"]),
        "approval request `nothing like it` not found",
    );
    let ambiguous = dir.approvals(&["approve", "approval_c2"]);
    assert_rejected(&ambiguous, "`o/ther \\u{1b}[2J/approval_c2`, `s/approval_c2`");
    assert!(!ambiguous.stderr.contains('\u{1b}'));
    assert_eq!(dir.approvals(&["approve", "o/ther \u{1b}[2J/approval_c2", "--as", "ana"]).code, Some(0));
    assert_eq!(dir.json(&["show", "s/approval_c2"])["stage"], "waiting");
    // Equal requests are grouped.
    let listed = dir.json(&["list", "--all"]);
    assert_eq!(listed["questions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["questions"][0]["count"].to_string(), "2");
    assert!(!dir.approvals(&["list", "--all"]).stdout.contains('\u{1b}'));
}

#[test]
fn printed_command_is_shell_safe_for_every_id() {
    for id in
        ["a b", "it's", "$(touch owned)", "-x", "`x`", "a\"b\\c", "a\u{1b}[2Jb", "*", "ü\u{202e}x", "a/b"]
    {
        let dir = TestDir::new(&[("rules.yaml", RULES)]);
        let line =
            callgate::json::json!({ "id": id, "tool": "pay", "input": { "amount": 1 }, "session": "s" });
        let arguments = ["run", "--policies", "rules.yaml", "--state", "file:s.db", "-"];
        let printed = dir.run_with_input(&arguments, line.to_string()).stdout;
        assert!(!printed.contains(['\u{1b}', '\u{202e}']), "{printed:?}");
        let command = printed.lines().find_map(|line| line.strip_prefix("Answer:  callgate ")).unwrap();
        let command = format!("'{}' {command}", env!("CARGO_BIN_EXE_callgate"));
        let mut shell = std::process::Command::new("bash");
        let ended =
            CommandResult::from(shell.current_dir(dir.0.path()).args(["-c", &command]).output().unwrap());
        assert_eq!(ended.code, Some(0), "{id:?}: {command}: {}", ended.stderr);
        assert!(!dir.0.path().join("owned").exists());
    }
}

#[test]
fn remembered_approval_is_listed_and_revoked() {
    let dir = pending_for_board();
    for who in ["ana", "lea"] {
        assert_eq!(dir.approvals(&["approve", "approval_c2", "--as", who, "--role", "lead"]).code, Some(0));
    }
    assert_eq!(dir.resume(BOARD_CALLS), ["c2 executed"]);
    let again = BOARD_CALLS.replace("\"c2\"", "\"c3\"");
    assert_eq!(dir.resume(&again), ["c3 executed"]);
    let grants = dir.json(&["grants"]);
    let id = grants["grants"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        (&grants["grants"][0]["tool"], &grants["grants"][0]["state"]),
        (&"pay".into(), &"stands".into())
    );
    let digest = regex::Regex::new("[0-9a-f]{12}").unwrap();
    settings().bind(|| {
        let text = mask(&dir.approvals(&["grants"]).transcript());
        insta::assert_snapshot!("approvals_grants", digest.replace_all(&text, "[id]"));
    });
    assert_rejected(&dir.approvals(&["revoke", "nothing"]), "remembered approval `nothing` not found");
    assert_rejected(&dir.approvals(&["revoke", ""]), "remembered approval `` not found");
    assert_eq!(dir.approvals(&["revoke", id.get(..12).unwrap()]).code, Some(0));
    assert_eq!(dir.json(&["grants"])["grants"].as_array().unwrap().len(), 0);
    assert_eq!(dir.json(&["grants", "--all"])["grants"][0]["state"], "revoked");
    assert_eq!(dir.resume(&BOARD_CALLS.replace("\"c2\"", "\"c4\"")), ["c4 suspended"]);
}

#[test]
fn concurrent_answers_are_both_recorded() {
    let dir = pending_for_board();
    let codes = std::thread::scope(|scope| {
        let answer = |who: &'static str| {
            let dir = &dir;
            scope
                .spawn(move || dir.approvals(&["approve", "approval_c2", "--as", who, "--role", "lead"]).code)
        };
        [answer("ana"), answer("lea")].map(|run| run.join().unwrap())
    });
    assert_eq!(codes, [Some(0), Some(0)]);
    assert_eq!(dir.resume(BOARD_CALLS), ["c2 executed"]);
}

#[test]
fn approvals_rejects_missing_states_and_invalid_arguments() {
    let dir = test_dir();
    let ended = dir.approvals(&["list"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("the state store `s.db` does not exist"), "{}", ended.stderr);
    assert!(!dir.0.path().join("s.db").exists());
    for arguments in [
        &["approvals"][..],
        &["approvals", "list"],
        &["approvals", "approve", "--state", "file:s.db"],
        &["approvals", "approve", "x", "--role", "lead", "--state", "file:s.db"],
        &["approvals", "approve", "x", "--as", "", "--state", "file:s.db"],
        &["approvals", "approve", "x", "--as", " \u{a0}\u{200b}", "--state", "file:s.db"],
        &["approvals", "approve", "x", "--as", "an\u{7}a", "--state", "file:s.db"],
    ] {
        assert_eq!(dir.run(arguments).code, Some(2), "{arguments:?}");
    }
}
