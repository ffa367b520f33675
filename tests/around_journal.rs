//! Journals of `around` scripts: replay is deterministic in every process, and a changed journal is a mismatch or replays as the
//! script itself would.

use std::process::Command;
use std::sync::{Arc, LazyLock};

use callgate::call::{SessionState, ToolCall};
use callgate::json::{Value, json};
use callgate::script::{
    Answer, AroundScript, DataSet, Expression, Journal, JournalError, Names, ReplayResult, ScriptEffect,
};
use proptest::prelude::*;

const SCRIPT: &str = r#"
    let known = cache_get(#{ to: input.to });
    if !is_null(known) { return known; }
    audit(#{ phase: "start", at: now(), seen: session.facts.order });
    let tries = 0;
    loop {
        tries += 1;
        try {
            let out = next(input);
            cache_set(#{ to: input.to }, out, "1m");
            return #{ out: out, tries: tries, luck: random() < 0.5 };
        } catch (e) {
            if tries == 3 || e.kind != "timeout" { throw e; }
            input.attempt = tries;
        }
    }
"#;

static CALL: LazyLock<ToolCall> = LazyLock::new(|| {
    ToolCall::new("c1", "send", json!({"to": "ana", "body": "x"})).with_context(json!({"tenant": "acme"}))
});

fn session() -> SessionState {
    let mut session = SessionState::default();
    session.set_fact("order", None, json!({"status": "open"}));
    session
}

fn value(value: Value) -> Answer {
    Answer::Value(Arc::new(value))
}

fn timeout() -> Answer {
    Answer::Error { message: "too slow".to_owned(), kind: Some("timeout".to_owned()) }
}

/// The results of a run in which the tool times out at first.
fn answers() -> Vec<Answer> {
    let sent = value(json!({"sent": [1, null, "é"], "price": 1.5}));
    vec![
        value(json!(null)),
        value(json!(5)),
        value(json!(null)),
        timeout(),
        sent,
        value(json!(null)),
        value(json!(0.25)),
    ]
}

fn end(replay: &ReplayResult<'_>) -> Value {
    match replay {
        ReplayResult::Effect(effect) => json!({ "effect": effect.name(), "is": format!("{effect:?}") }),
        ReplayResult::Completed { output, from } => json!({ "output": Value::clone(output), "from": from }),
        ReplayResult::Exception(thrown) => {
            json!({ "threw": thrown.message, "kind": thrown.kind, "from": thrown.journal_entry })
        }
        ReplayResult::Failed(failure) => {
            json!({ "failed": failure.message, "mismatch": failure.is_mismatch })
        }
    }
}

/// Runs with these results, to the end or to the first effect without a result.
fn run(answers: &[Answer]) -> (Journal<'static>, ReplayResult<'static>) {
    let around = AroundScript::compile(SCRIPT).unwrap();
    let seen = around.begin(&CALL, None, &session()).unwrap();
    let mut journal = Journal::new(&seen);
    loop {
        match (around.replay(&seen, &journal), answers.get(journal.len())) {
            (ReplayResult::Effect(effect), Some(answer)) => journal.push(effect, answer.clone()),
            (end, _) => return (journal, end),
        }
    }
}

fn stored_journal(answers: &[Answer]) -> Value {
    callgate::json::to_value(run(answers).0).unwrap()
}

/// Resumes a stored journal as another process would.
fn resume_stored(stored: &Value) -> Result<ReplayResult<'static>, JournalError> {
    let around = AroundScript::compile(SCRIPT).unwrap();
    let (seen, journal) = around.resume(&CALL, None, stored)?;
    let replay = around.replay(&seen, &journal);
    assert_eq!(end(&replay), end(&around.replay(&seen, &journal)), "a replay is deterministic");
    assert_eq!(callgate::json::to_value(&journal).unwrap(), *stored, "a journal is stored as it was read");
    Ok(replay)
}

#[test]
fn stored_journal_resumes_where_it_stopped() {
    let answers = answers();
    for length in 0..=answers.len() {
        let (_, expected) = run(&answers[..length]);
        let text = callgate::json::to_string(&stored_journal(&answers[..length])).unwrap();
        let replay = resume_stored(&callgate::json::parse(&text).unwrap()).unwrap();
        assert_eq!(end(&replay), end(&expected), "after {length} answers");
    }
    assert!(matches!(run(&answers).1, ReplayResult::Completed { .. }));
}

#[test]
fn journal_is_bound_to_its_script_and_call() {
    let stored = stored_journal(&answers()[..3]);
    let call = &*CALL;
    let around = AroundScript::compile(SCRIPT).unwrap();
    let resume =
        |around: &AroundScript, call: &ToolCall| around.resume(call, None, &stored).map(|_| ()).unwrap_err();
    assert_eq!(
        resume(&AroundScript::compile(&format!("{SCRIPT} ")).unwrap(), call),
        JournalError::OtherScript
    );
    for other in [
        ToolCall { id: "c2".to_owned(), ..call.clone() },
        ToolCall { tool: "sent".to_owned(), ..call.clone() },
        ToolCall { server: Some("mail".to_owned()), ..call.clone() },
        ToolCall { input: json!({"to": "bob", "body": "x"}), ..call.clone() },
        ToolCall { options: json!({"timeout": 1}), ..call.clone() },
    ] {
        assert_eq!(resume(&around, &other), JournalError::OtherCall, "{other:?}");
    }
    // Equal JSON in another order, and a context that the script does not read.
    for same in [
        ToolCall { input: json!({"body": "x", "to": "ana"}), ..call.clone() },
        ToolCall { context: json!({"tenant": "other"}), ..call.clone() },
    ] {
        assert!(around.resume(&same, None, &stored).is_ok());
    }
}

#[test]
fn journal_is_bound_to_the_context_values_its_script_reads() {
    let context = json!({"plan": {"tier": 1}, "trace": 1});
    let call = CALL.clone().with_context(context);
    for (script, contexts) in [
        (
            "let tier = context.plan.tier; random(); next(input)",
            [
                (json!({"plan": {"tier": 1}, "trace": 2}), true),
                (json!({"plan": {"tier": 2}, "trace": 1}), false),
            ],
        ),
        (
            "let all = context; random(); next(input)",
            [
                (json!({"trace": 1, "plan": {"tier": 1}}), true),
                (json!({"plan": {"tier": 1}, "trace": 2}), false),
            ],
        ),
    ] {
        let around = AroundScript::compile(script).unwrap();
        let seen = around.begin(&call, None, &SessionState::default()).unwrap();
        let stored = callgate::json::to_value(Journal::new(&seen)).unwrap();
        for (context, fits) in contexts {
            let other = call.clone().with_context(context.clone());
            assert_eq!(around.resume(&other, None, &stored).is_ok(), fits, "{script} {context}");
        }
    }
}

#[test]
fn journal_of_another_call_is_not_replayed() {
    let session = session();
    let around = AroundScript::compile(SCRIPT).unwrap();
    let other = ToolCall::new("c9", "send", json!({"to": "bob"}));
    let seen = around.begin(&other, None, &session).unwrap();
    let (journal, _) = run(&answers()[..2]);
    assert!(matches!(around.replay(&seen, &journal), ReplayResult::Failed(failure) if failure.is_mismatch));
}

#[test]
fn invalid_journals_are_rejected() {
    let good = stored_journal(&answers());
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = good.clone();
        change(&mut changed);
        changed
    };
    for (bad, expected) in [
        (json!(null), "invalid script journal"),
        (json!({}), "invalid script journal"),
        (with(&|journal| journal["journal"] = json!(2)), "version 2"),
        (with(&|journal| journal["more"] = json!(1)), "unknown field"),
        (with(&|journal| journal["entries"][0]["more"] = json!(1)), "unknown field"),
        (with(&|journal| journal["entries"][0]["effect"] = json!("exec")), "not an effect"),
        (with(&|journal| journal["entries"][0]["effect"] = json!("len")), "not an effect"),
        (with(&|journal| journal["entries"][3]["value"] = json!(1)), "exactly one result"),
        (
            with(&|journal| drop(journal["entries"][0].as_object_mut().unwrap().remove("value"))),
            "exactly one result",
        ),
        (
            with(&|journal| drop(journal.as_object_mut().unwrap().remove("session"))),
            "session values that the script reads are missing",
        ),
        (with(&|journal| journal["entries"] = json!(vec![good["entries"][0].clone(); 100])), "too large"),
        (with(&|journal| journal["entries"][0]["value"] = json!("x".repeat(17 << 20))), "too large"),
    ] {
        let error = resume_stored(&bad).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} for {expected}");
    }
}

#[test]
fn oversized_journal_is_an_error() {
    let (journal, _) = run(&[value(json!("x".repeat(17 << 20)))]);
    assert!(callgate::json::to_value(journal).unwrap_err().to_string().contains("too large"));
}

/// Child process of [`another_process_resumes_to_the_same_end`], which passes the journal in a file.
#[test]
#[ignore = "run by another_process_resumes_to_the_same_end"]
fn resume_in_child_process() {
    let Some(path) = std::env::var_os("CALLGATE_TEST_JOURNAL") else { return };
    let stored = callgate::json::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let around = AroundScript::compile(SCRIPT).unwrap();
    let (seen, mut journal) = around.resume(&CALL, None, &stored).unwrap();
    let rest = answers();
    let end = loop {
        match around.replay(&seen, &journal) {
            ReplayResult::Effect(effect) => {
                let answer = rest[journal.len()].clone();
                journal.push(effect, answer);
            }
            other => break end(&other),
        }
    };
    std::fs::write(path, end.to_string()).unwrap();
}

#[test]
fn another_process_resumes_to_the_same_end() {
    let answers = answers();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), callgate::json::to_string(&stored_journal(&answers[..4])).unwrap()).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "around_journal::resume_in_child_process", "--ignored", "--quiet"])
        .env("CALLGATE_TEST_JOURNAL", file.path())
        .status()
        .unwrap();
    assert!(status.success());
    let ended = callgate::json::parse(&std::fs::read_to_string(file.path()).unwrap()).unwrap();
    assert!(ended == end(&run(&answers).1), "{ended}");
}

/// One way to change a journal.
#[derive(Clone, Debug)]
enum Change {
    Cut(usize),
    Remove(usize),
    Swap(usize, usize),
    Repeat(usize),
    Answer(usize, Value),
    Fail(usize, Option<String>),
    Rename(usize, &'static str),
    Arguments(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let entry = 0..7usize;
    let answer = prop_oneof![
        Just(json!(null)),
        Just(json!(0.75)),
        Just(json!({"sent": 1})),
        Just(json!("text")),
        Just(json!([[1], {"a": null}])),
    ];
    let kind = prop_oneof![Just(None), Just(Some("timeout".to_owned())), Just(Some("other".to_owned()))];
    let name =
        prop::sample::select(vec!["next", "now", "random", "audit", "cache_get", "cache_set", "approve"]);
    prop_oneof![
        (0..8usize).prop_map(Change::Cut),
        entry.clone().prop_map(Change::Remove),
        (entry.clone(), entry.clone()).prop_map(|(a, b)| Change::Swap(a, b)),
        entry.clone().prop_map(Change::Repeat),
        (entry.clone(), answer).prop_map(|(at, answer)| Change::Answer(at, answer)),
        (entry.clone(), kind).prop_map(|(at, kind)| Change::Fail(at, kind)),
        (entry.clone(), name).prop_map(|(at, name)| Change::Rename(at, name)),
        (entry.clone(), entry).prop_map(|(at, other)| Change::Arguments(at, other)),
    ]
}

fn apply(change: &Change, entries: &mut Vec<Value>) {
    let has = |at: &usize| *at < entries.len();
    match change {
        Change::Cut(length) => entries.truncate(*length),
        Change::Remove(at) if has(at) => drop(entries.remove(*at)),
        Change::Swap(a, b) if has(a) && has(b) => entries.swap(*a, *b),
        Change::Repeat(at) if has(at) => entries.insert(*at, entries[*at].clone()),
        Change::Answer(at, answer) if has(at) => {
            let entry = entries[*at].as_object_mut().unwrap();
            entry.remove("error");
            entry.insert("value", answer.clone());
        }
        Change::Fail(at, kind) if has(at) => {
            let entry = entries[*at].as_object_mut().unwrap();
            entry.remove("value");
            let error = match kind {
                Some(kind) => json!({"message": "no", "kind": kind}),
                None => json!({"message": "no"}),
            };
            entry.insert("error", error);
        }
        Change::Rename(at, name) if has(at) => entries[*at]["effect"] = json!(name),
        Change::Arguments(at, other) if has(at) && has(other) => {
            entries[*at]["arguments"] = entries[*other]["arguments"].clone();
        }
        _ => {}
    }
}

fn answer_of(entry: &Value) -> Answer {
    match entry.get("error") {
        Some(error) => Answer::Error {
            message: error["message"].as_str().unwrap().to_owned(),
            kind: error["kind"].as_str().map(str::to_owned),
        },
        None => value(entry["value"].clone()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Runs the script with the changed results: if its effects differ from the journal, the journal is a mismatch; otherwise the
    /// journal replays as the script does.
    #[test]
    fn changed_journal_is_a_mismatch_or_replays_as_the_script_would(changes in prop::collection::vec(change(), 1..4)) {
        let mut stored = stored_journal(&answers());
        let mut entries = stored["entries"].as_array().unwrap().clone();
        for change in &changes {
            apply(change, &mut entries);
        }
        stored["entries"] = json!(entries);
        let answers: Vec<Answer> = entries.iter().map(answer_of).collect();
        let (honest, expected) = run(&answers);
        let honest = callgate::json::to_value(&honest).unwrap();
        let honest = honest["entries"].as_array().unwrap();
        let evaluate_effect = |entry: &Value| (entry["effect"].clone(), entry["arguments"].clone());
        let effects_match = honest.len() == entries.len()
            && honest.iter().zip(&entries).all(|(honest, stored)| evaluate_effect(honest) == evaluate_effect(stored));
        let replay = resume_stored(&stored).unwrap();
        if effects_match {
            prop_assert_eq!(end(&replay), end(&expected));
        } else {
            prop_assert!(matches!(&replay, ReplayResult::Failed(failure) if failure.is_mismatch), "{replay:?}");
        }
    }

    #[test]
    fn replay_never_panics(
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 1..14),
        answer in prop::sample::select(vec![json!(null), json!(1), json!("a"), json!([1, {"a": 2}]), json!({"a": {"b": [1]}})]),
    ) {
        let script = words.join(" ");
        let Ok(around) = AroundScript::compile(&script) else { return Ok(()) };
        let seen = around.begin(&CALL, None, &session()).unwrap();
        let mut journal = Journal::new(&seen);
        for _ in 0..4 {
            let replay = around.replay(&seen, &journal);
            prop_assert_eq!(end(&replay), end(&around.replay(&seen, &journal)));
            match replay {
                ReplayResult::Effect(effect @ ScriptEffect::Approve { .. }) => {
                    journal.push(effect, Answer::Error { message: "no".to_owned(), kind: None });
                }
                ReplayResult::Effect(effect) => journal.push(effect, value(answer.clone())),
                ReplayResult::Failed(failure) => {
                    prop_assert!(!failure.message.contains("failed with an internal error"), "{script}: {failure:?}");
                    break;
                }
                _ => break,
            }
        }
    }
}

/// Fragments of generated scripts.
const WORDS: &[&str] = &[
    "let x = next(input);",
    "let y = [1, 2];",
    "let z = #{a: [1], b: \"s\"};",
    "input.a = x;",
    "input.to += \"x\";",
    "x.a = y;",
    "x.a.b[0] = z;",
    "y[0] = x;",
    "z.c = z;",
    "y.push(x);",
    "y.push(y);",
    "z.remove(\"a\");",
    "y.pop();",
    "for k in x {",
    "for k in y {",
    "while y.len() < 5 {",
    "loop {",
    "break;",
    "continue;",
    "}",
    "if y[0] == 1 {",
    "} else {",
    "try {",
    "} catch (e) {",
    "throw e;",
    "throw \"t\";",
    "return x;",
    "approve(\"?\");",
    "now();",
    "audit(z);",
    "audit(x);",
    "cache_get(x);",
    "cache_set(x, y, \"1s\");",
    "let x = y.map(|n| n == x);",
    "let y = y.filter(|n| n != k);",
    "fn f(a) { a.a }",
    "let x = f(x);",
    "x",
    "y == x",
    "z.b + x",
    "merge(z, x)",
    "slice(y, 0, 1)",
    "sort(y)",
    "to_text(x)",
    "x ?? y",
    "session.facts.order",
];

/// A named value is evaluated when the script begins, and its journal keeps it: a fact that changes meanwhile changes no replay.
#[test]
fn named_values_keep_the_value_that_they_had_when_the_script_began() {
    let script = "let seen = next(#{ limit: limit }); [limit, missing ?? 0, seen, limit in data.known]";
    let mut names = Names::default();
    names.set_data(DataSet::new(json!({"known": [5, 6]}).as_object().unwrap().clone()));
    for (name, text) in [("limit", "session.facts.limit * 1"), ("missing", "session.facts.other + 1")] {
        let value = Expression::compile_with(text, &names).unwrap().into_named(name);
        names.add_let(name, Some(value));
    }
    let around = AroundScript::compile_with(script, &names).unwrap();
    let (call, mut session) = (ToolCall::new("c1", "pay", json!({})), SessionState::default());
    session.set_fact("limit", None, json!(5));
    let seen = around.begin(&call, None, &session).unwrap();
    let mut journal = Journal::new(&seen);
    let ReplayResult::Effect(effect) = around.replay(&seen, &journal) else { panic!("no effect") };
    session.set_fact("limit", None, json!(9));
    let stored = callgate::json::to_value(&journal).unwrap();
    journal.push(effect, Answer::Value(Arc::new(json!("paid"))));
    let expected = json!({"output": [5, 0, "paid", true], "from": null});
    assert_eq!(end(&around.replay(&seen, &journal)), expected);

    let (seen, mut resumed) = around.resume(&call, None, &stored).unwrap();
    let ReplayResult::Effect(effect) = around.replay(&seen, &resumed) else { panic!("no effect") };
    resumed.push(effect, Answer::Value(Arc::new(json!("paid"))));
    assert_eq!(end(&around.replay(&seen, &resumed)), expected);

    let mut without = stored;
    without.as_object_mut().unwrap().remove("lets");
    assert!(matches!(around.resume(&call, None, &without), Err(JournalError::Malformed(_))));
}
