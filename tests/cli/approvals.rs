//! `callgate approvals`: questions of a state, and answers to them that count.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use callgate::json::Value;

use super::state::{CALLS, RULES, desk, masked};
use super::{Desk, Ended, settings};

const BOARD: &str = r#"
policies:
  - id: board
    match: pay
    approval: { message: "Pay {{ input.amount }}?", approvers: [role:lead], quorum: 2, edits: [$.input.note, $.input.tags], remember: { scope: arguments, for: 8h } }
"#;

const BOARD_CALLS: &str = r#"{"id":"c2","tool":"pay","input":{"amount":5,"note":"a","tags":["x"]},"session":"s","context":{"principal":"bot"},"recorded":{"output":"paid"}}
"#;

/// A state in which `approval_c2` waits for two leads.
fn board() -> Desk {
    let desk = Desk::new(&[("rules.yaml", BOARD)]);
    assert_eq!(desk.resume(BOARD_CALLS), ["c2 suspended"]);
    desk
}

/// A state in which `approval_c2` waits for anyone.
fn waiting() -> Desk {
    let desk = desk();
    desk.resume(CALLS);
    desk
}

impl Desk {
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

fn refused(ended: &Ended, said: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn what_waits_is_listed_shown_and_answered() {
    let desk = board();
    let lead = |who: &'static str| ["approve", "approval_c2", "--as", who, "--role", "lead"];
    let shown = |arguments: &[&str]| masked(&desk.approvals(arguments).shown());
    settings().bind(|| {
        insta::assert_snapshot!("approvals_list", shown(&["list"]));
        insta::assert_snapshot!("approvals_show", shown(&["show", "approval_c2"]));
        insta::assert_snapshot!("approvals_first", shown(&lead("ana")));
        insta::assert_snapshot!("approvals_second", shown(&lead("lea")));
        insta::assert_snapshot!("approvals_answered", shown(&["show", "approval_c2"]));
        insta::assert_snapshot!("approvals_nothing_waits", shown(&["list"]));
    });
    assert_eq!(desk.resume(BOARD_CALLS), ["c2 executed"]);
    settings().bind(|| {
        insta::assert_snapshot!("approvals_over", shown(&["show", "approval_c2"]));
        insta::assert_snapshot!("approvals_all", shown(&["list", "--all"]));
    });
}

#[test]
fn programs_get_the_same_in_json() {
    let desk = board();
    let token = regex::Regex::new(r#"[0-9a-f]{64}"#).unwrap();
    let text = |value: &Value| {
        let text = masked(&callgate::json::to_string_pretty(value).unwrap());
        token.replace_all(&text, "[digest]").into_owned()
    };
    settings().bind(|| {
        insta::assert_snapshot!("approvals_list_json", text(&desk.json(&["list"])));
    });
    let answered = desk.json(&["deny", "approval_c2", "--as", "ana", "--role", "lead", "--reason", "no"]);
    assert_eq!((&answered["stage"], &answered["decision"]), (&"answered".into(), &"denied".into()));
    assert_eq!(answered["answers"][0]["by"], "ana");
    let outcome = desk.outcome(BOARD_CALLS, "c2");
    assert_eq!(outcome["outcome"], "denied");
    assert!(outcome["reason"]["message"].as_str().unwrap().contains("ana denied this call: no"));
    let shown = desk.json(&["show", "s/approval_c2"]);
    assert_eq!((&shown["stage"], &shown["outcome"]["outcome"]), (&"settled".into(), &"denied".into()));
    assert_eq!(shown["card"]["status"], "denied");
}

#[test]
fn an_answer_that_would_not_count_is_refused_and_not_recorded() {
    let desk = board();
    let approve = |more: &[&str]| desk.approvals(&[&["approve", "approval_c2"], more].concat());
    refused(&approve(&[]), "add `--as NAME`");
    refused(&approve(&["--as", "bob"]), "`bob` is none of those who may answer: role:lead");
    refused(&approve(&["--as", "bob", "--role", "leader"]), "none of those who may answer");
    refused(
        &approve(&["--as", "bot", "--role", "lead"]),
        "`bot` can't answer for themselves [self_approval]",
    );
    refused(
        &approve(&["--as", "Bot\u{a0}", "--role", "lead"]),
        "can't answer for themselves [self_approval]",
    );
    refused(&approve(&["--as", "lead"]), "none of those who may answer: role:lead [not_an_approver]");
    assert_eq!(desk.json(&["show", "approval_c2"])["answers"].as_array().unwrap().len(), 0);
    assert_eq!(approve(&["--as", "ana", "--role", "lead"]).code, Some(0));
    refused(&approve(&["--as", "ana", "--role", "lead"]), "`ana` has answered already");
    refused(&approve(&["--as", "Ana", "--role", "lead"]), "`Ana` has answered already");
    assert_eq!(approve(&["--as", "lea", "--role", "lead"]).code, Some(0));
    refused(&approve(&["--as", "zoe", "--role", "lead"]), "answered already: approved by ana, lea");
    // A no still stops what did not begin.
    assert_eq!(desk.approvals(&["deny", "approval_c2", "--as", "zoe", "--role", "lead"]).code, Some(0));
    refused(&approve(&["--as", "kim", "--role", "lead"]), "answered already: denied by zoe");
    assert_eq!(desk.resume(BOARD_CALLS), ["c2 denied"]);
    refused(&approve(&["--as", "kim", "--role", "lead"]), "the call is over already: denied");
}

/// Whoever answers may be the one for whom the agent acts.
#[test]
fn i3_nobody_approves_where_the_requester_is_unknown() {
    for context in ["{}", r#"{"principal":42}"#, r#"{"principal":["ana"]}"#, r#"{"principal":" "}"#] {
        let desk = Desk::new(&[("rules.yaml", BOARD)]);
        let calls = BOARD_CALLS.replace(r#"{"principal":"bot"}"#, context);
        desk.resume(&calls);
        let ended = desk.approvals(&["approve", "approval_c2", "--as", "ana", "--role", "lead"]);
        refused(&ended, "[unknown_requester]");
        assert!(ended.stderr.contains("`context.principal`"), "{}", ended.stderr);
        assert_eq!(desk.json(&["show", "approval_c2"])["requester"], Value::Null);
    }
}

#[test]
fn an_answer_without_a_name_needs_a_policy_that_allows_it() {
    let desk = waiting();
    for word in ["approve", "deny", "cancel"] {
        refused(&desk.approvals(&[word, "approval_c2"]), "add `--as NAME`");
    }
    assert_eq!(desk.json(&["show", "approval_c2"])["answers"].as_array().unwrap().len(), 0);
    let allowed = RULES.replace("expires: 24h", "expires: 24h, anonymous: allow");
    let desk = Desk::new(&[("rules.yaml", &allowed)]);
    desk.resume(CALLS);
    assert_eq!(desk.approvals(&["approve", "approval_c2"]).code, Some(0));
    assert_eq!(desk.resume(CALLS)[1], "c2 executed");
}

#[test]
fn a_question_that_has_lapsed_is_not_answered() {
    let desk = Desk::new(&[("rules.yaml", &RULES.replace("24h", "1ms"))]);
    desk.resume(CALLS);
    refused(&desk.approvals(&["approve", "approval_c2", "--as", "ana"]), "has lapsed");
    assert!(desk.approvals(&["list"]).stdout.contains("nothing waits"));
    assert_eq!(desk.json(&["list", "--all"])["questions"][0]["approvals"][0]["stage"], "lapsed");
    assert_eq!(desk.resume(CALLS)[1], "c2 denied");
}

#[test]
fn arguments_are_changed_where_the_policy_allows_it() {
    let desk = waiting();
    let edit = |more: &[&str]| desk.approvals(&[&["edit", "approval_c2", "--as", "ana"], more].concat());
    refused(&edit(&["--set", "$.input.amount=1"]), "`$.input.amount` may not be changed");
    for (more, said) in [
        (&["--set", "note=late"][..], "is no JSON"),
        (&["--set", "note"], "names no place"),
        (&["--set", "$.tool=\"x\""], "names no place"),
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
    let outcome = desk.outcome(CALLS, "c2");
    assert_eq!((&outcome["outcome"], &outcome["input"]["note"]), (&"executed".into(), &"late=r".into()));
    assert_eq!(outcome["approved"]["edited"], true);
}

#[test]
fn all_arguments_can_come_from_a_file_or_stdin() {
    let whole = r#"{"amount":5,"note":"from stdin"}"#;
    let desk = waiting();
    let arguments =
        ["approvals", "edit", "approval_c2", "--as", "ana", "--state", "file:s.db", "--input", "-"];
    assert_eq!(desk.run_with_input(&arguments, r#"{"amount":5}"#).code, Some(0), "a note may be left out");
    let desk = waiting();
    refused(&desk.run_with_input(&arguments, "[]"), "no object");
    refused(&desk.run_with_input(&arguments, r#"{"note":"a"}"#), "`$.input.amount` may not be changed");
    assert_eq!(desk.run_with_input(&arguments, r#"{"amount":5,"#).code, Some(2));
    assert_eq!(desk.run_with_input(&arguments, whole).code, Some(0));
    assert_eq!(desk.outcome(CALLS, "c2")["input"]["note"], "from stdin");
}

#[test]
fn a_person_can_answer_in_the_tools_place_or_end_the_run() {
    let desk = waiting();
    let answer = |text: &str| desk.approvals(&["answer", "approval_c2", "--as", "ana", "--output", text]);
    let wrong = answer("done");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("in quotes"), "{}", wrong.stderr);
    assert_eq!(answer("{\"paid\":0}").code, Some(0));
    let outcome = desk.outcome(CALLS, "c2");
    assert_eq!(
        (&outcome["outcome"], &outcome["output"]["paid"].to_string()),
        (&"answered".into(), &"0".to_owned())
    );

    let desk = waiting();
    assert_eq!(
        desk.approvals(&["cancel", "approval_c2", "--as", "ana", "--reason", "stop it"]).code,
        Some(0)
    );
    assert_eq!(desk.resume(CALLS), ["c1 executed again", "c2 aborted", "c3 failed again"]);
    let later = "{\"id\":\"c4\",\"tool\":\"look\",\"input\":{},\"session\":\"s\"}\n";
    assert_eq!(desk.resume(&format!("{CALLS}{later}"))[3], "c4 halted");
}

/// A gateway before a server, and a client that stays until it has so many answers. These, and what is told on stderr.
fn through_gateway(desk: &Desk, options: &[&str], said: &str, answers: usize) -> (Vec<Value>, String) {
    let recorder = crate::gateway::script("recorder.py").display().to_string();
    let arguments = [&["proxy"], options, &["--", "python3", "-S", "-E", &recorder, "log"]].concat();
    let mut command = desk.command(&arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(said.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heard: Vec<Value> =
        lines.take(answers).map(|line| callgate::json::parse(&line.unwrap()).unwrap()).collect();
    drop(stdin);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!((ended.code, heard.len()), (Some(0), answers), "{}", ended.stderr);
    (heard, ended.stderr)
}

/// The questions about calls that a gateway's client makes; it can ask nobody itself.
fn asked_by_gateway(desk: &Desk, tools: &[&str]) -> Vec<String> {
    let calls = tools.iter().enumerate().map(|(id, tool)| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#) + "\n"
    });
    let options = ["--policies", "gateway.yaml", "--state", "file:s.db", "--session", "s"];
    let (_, told) = through_gateway(desk, &options, &calls.collect::<String>(), tools.len());
    let id = regex::Regex::new(r"(approval_\S+) is pending").unwrap();
    let ids: Vec<String> = id.captures_iter(&told).map(|found| found[1].to_owned()).collect();
    assert_eq!(ids.len(), tools.len(), "{told}");
    ids
}

#[test]
fn how_a_call_goes_on_is_said_of_runs_and_of_gateways() {
    let rules = "policies: [{ id: ask, match: '*', approval: { message: 'May it {{ tool }}?' } }]";
    let desk = Desk::new(&[("rules.yaml", RULES), ("gateway.yaml", rules)]);
    let ids = asked_by_gateway(&desk, &["safe", "write"]);
    let decide = |word: &str, id: &str| masked(&desk.approvals(&[word, id, "--as", "ana"]).stdout);
    let (first, second) = (&*ids[0], &*ids[1]);
    let again = "the same call with the same arguments goes on when the client makes it again";
    assert_eq!(decide("approve", first), format!("approved by ana (digest [digest])\n{again}\n"));
    let list = || desk.approvals(&["list"]).stdout;
    let of_one = "1 answered question goes on when the client makes the same call again\n";
    assert!(list().ends_with(of_one), "{}", list());
    let told = "the client is told when it makes the same call again";
    assert_eq!(
        decide("deny", second),
        format!("denied by ana (digest [digest]); the call will not run\n{told}\n")
    );
    desk.resume(&CALLS.replace("\"s\"", "\"t\""));
    let further = "take the session `t` further: callgate run --resume --state file:s.db --policies … CALLS";
    assert_eq!(decide("approve", "approval_c2"), format!("approved by ana (digest [digest])\n{further}\n"));
    let both = "1 answered question goes on with callgate run --resume --state file:s.db …
2 answered questions go on when the clients make the same calls again\n";
    assert!(list().ends_with(both), "{}", list());
}

/// Without `--session`, each gateway is a connection of its own.
#[test]
fn an_approval_outlives_the_gateway_and_is_used_once() {
    let rules = "policies: [{ id: ask, match: '*', approval: { message: 'May it?' } }]";
    let desk = Desk::new(&[("gateway.yaml", rules)]);
    let call = || {
        let call =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"n":1}}}"#;
        let options = ["--policies", "gateway.yaml", "--state", "file:s.db"];
        let (answers, told) = through_gateway(&desk, &options, &format!("{call}\n"), 1);
        let text = answers[0]["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let id = regex::Regex::new(r"(approval_\S+) is pending").unwrap();
        (text, id.captures(&told).map(|found| found[1].to_owned()))
    };
    let (text, id) = call();
    assert!(text.starts_with("Not run: pending approval. May it?"), "{text}");
    let id = id.unwrap();
    let (text, again) = call();
    assert!(text.starts_with("Not run: pending approval."), "{text}");
    assert_eq!(again, None, "the operator knows it already");
    assert_eq!(desk.approvals(&["approve", &id, "--as", "lea"]).code, Some(0));
    assert_eq!(call().0, "safe did it");
    let (text, anew) = call();
    assert!(text.starts_with("Not run: pending approval."), "{text}");
    let anew = anew.unwrap();
    assert_ne!(anew, id);
    assert_eq!(desk.approvals(&["deny", &anew, "--as", "lea", "--reason", "enough"]).code, Some(0));
    assert!(call().0.contains("lea denied this call: enough"));
}

#[test]
fn ids_are_found_or_what_was_meant_is_said() {
    let two = format!("{CALLS}{}", CALLS.replace("\"s\"", "\"o/ther \\u001b[2J\""));
    let desk = desk();
    desk.resume(&two);
    refused(&desk.approvals(&["show", "approval_c3"]), "did you mean `approval_c2`?");
    refused(&desk.approvals(&["approve", "c2"]), "did you mean `approval_c2`?");
    refused(&desk.approvals(&["approve", "nothing like it"]), "there is no question `nothing like it`");
    let ambiguous = desk.approvals(&["approve", "approval_c2"]);
    refused(&ambiguous, "`o/ther \\u{1b}[2J/approval_c2`, `s/approval_c2`");
    assert!(!ambiguous.stderr.contains('\u{1b}'));
    assert_eq!(desk.approvals(&["approve", "o/ther \u{1b}[2J/approval_c2", "--as", "ana"]).code, Some(0));
    assert_eq!(desk.json(&["show", "s/approval_c2"])["stage"], "waiting");
    // Equal questions stand together.
    let listed = desk.json(&["list", "--all"]);
    assert_eq!(listed["questions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["questions"][0]["count"].to_string(), "2");
    assert!(!desk.approvals(&["list", "--all"]).stdout.contains('\u{1b}'));
}

#[test]
fn the_command_that_is_shown_works_in_a_shell_whatever_the_id_is() {
    for id in
        ["a b", "it's", "$(touch owned)", "-x", "`x`", "a\"b\\c", "a\u{1b}[2Jb", "*", "ü\u{202e}x", "a/b"]
    {
        let desk = Desk::new(&[("rules.yaml", RULES)]);
        let line =
            callgate::json::json!({ "id": id, "tool": "pay", "input": { "amount": 1 }, "session": "s" });
        let arguments = ["run", "--policies", "rules.yaml", "--state", "file:s.db", "-"];
        let printed = desk.run_with_input(&arguments, line.to_string()).stdout;
        assert!(!printed.contains(['\u{1b}', '\u{202e}']), "{printed:?}");
        let command = printed.lines().find_map(|line| line.strip_prefix("Answer:  callgate ")).unwrap();
        let command = format!("'{}' {command}", env!("CARGO_BIN_EXE_callgate"));
        let mut shell = std::process::Command::new("bash");
        let ended = Ended::from(shell.current_dir(desk.0.path()).args(["-c", &command]).output().unwrap());
        assert_eq!(ended.code, Some(0), "{id:?}: {command}: {}", ended.stderr);
        assert!(!desk.0.path().join("owned").exists());
    }
}

#[test]
fn a_remembered_approval_is_listed_and_taken_back() {
    let desk = board();
    for who in ["ana", "lea"] {
        assert_eq!(desk.approvals(&["approve", "approval_c2", "--as", who, "--role", "lead"]).code, Some(0));
    }
    assert_eq!(desk.resume(BOARD_CALLS), ["c2 executed"]);
    let again = BOARD_CALLS.replace("\"c2\"", "\"c3\"");
    assert_eq!(desk.resume(&again), ["c3 executed"]);
    let grants = desk.json(&["grants"]);
    let id = grants["grants"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        (&grants["grants"][0]["tool"], &grants["grants"][0]["state"]),
        (&"pay".into(), &"stands".into())
    );
    let digest = regex::Regex::new("[0-9a-f]{12}").unwrap();
    settings().bind(|| {
        let text = masked(&desk.approvals(&["grants"]).shown());
        insta::assert_snapshot!("approvals_grants", digest.replace_all(&text, "[id]"));
    });
    refused(&desk.approvals(&["revoke", "nothing"]), "there is no remembered approval `nothing`");
    refused(&desk.approvals(&["revoke", ""]), "there is no remembered approval ``");
    assert_eq!(desk.approvals(&["revoke", id.get(..12).unwrap()]).code, Some(0));
    assert_eq!(desk.json(&["grants"])["grants"].as_array().unwrap().len(), 0);
    assert_eq!(desk.json(&["grants", "--all"])["grants"][0]["state"], "revoked");
    assert_eq!(desk.resume(&BOARD_CALLS.replace("\"c2\"", "\"c4\"")), ["c4 suspended"]);
}

#[test]
fn of_two_who_answer_at_once_both_are_heard() {
    let desk = board();
    let codes = std::thread::scope(|scope| {
        let answer = |who: &'static str| {
            let desk = &desk;
            scope.spawn(move || {
                desk.approvals(&["approve", "approval_c2", "--as", who, "--role", "lead"]).code
            })
        };
        [answer("ana"), answer("lea")].map(|run| run.join().unwrap())
    });
    assert_eq!(codes, [Some(0), Some(0)]);
    assert_eq!(desk.resume(BOARD_CALLS), ["c2 executed"]);
}

#[test]
fn an_answer_is_taken_from_whoever_may_give_it_with_a_state_that_is_there() {
    let desk = desk();
    let ended = desk.approvals(&["list"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("there is no state `s.db`"), "{}", ended.stderr);
    assert!(!desk.0.path().join("s.db").exists());
    for arguments in [
        &["approvals"][..],
        &["approvals", "list"],
        &["approvals", "approve", "--state", "file:s.db"],
        &["approvals", "approve", "x", "--role", "lead", "--state", "file:s.db"],
        &["approvals", "approve", "x", "--as", "", "--state", "file:s.db"],
        &["approvals", "approve", "x", "--as", " \u{a0}\u{200b}", "--state", "file:s.db"],
        &["approvals", "approve", "x", "--as", "an\u{7}a", "--state", "file:s.db"],
    ] {
        assert_eq!(desk.run(arguments).code, Some(2), "{arguments:?}");
    }
}
