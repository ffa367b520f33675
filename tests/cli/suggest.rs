//! `callgate suggest`: drafted rules load, pass their tests, permit what is usual, and neither permit nor write anything else.

use std::fmt::Write as _;
use std::fs;

use callgate::json::{Value, json};
use callgate::{Effect, Engine, SessionState, ToolCall};
use proptest::prelude::*;

use super::{CommandResult, TestDir, settings};

/// One event of a decision log: a call that ran in a session.
fn event(session: usize, number: usize, tool: &str, input: &Value) -> Value {
    json!({
        "version": 1, "event": "call_completed", "time": format!("2026-11-{:02}T10:{:02}:00Z", session % 28 + 1, number % 60),
        "run": format!("r{session}"), "session": format!("s{session}"), "id": format!("c{session}_{number}"), "tool": tool,
        "principal": "ann", "outcome": "executed", "reason": { "code": "allowed" }, "duration_us": 5, "input": input,
        "context": { "principal": "ann" },
    })
}

fn lines(events: impl IntoIterator<Item = Value>) -> String {
    events.into_iter().fold(String::new(), |mut log, event| {
        writeln!(log, "{event}").unwrap();
        log
    })
}

/// A shop's agent: amounts, an enumeration, identifiers, addresses, hosts, directories, lists and free text.
fn shop_log() -> Vec<Value> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut events = Vec::new();
    for session in 0..40 {
        for number in 0..6 {
            let (tool, input) = match number {
                0 | 1 => (
                    "create_refund",
                    json!({
                        "order_id": format!("#W{:07}", random.u32(0..9_999_999)), "amount": random.u32(1..450),
                        "currency": if random.u8(0..4) == 0 { "USD" } else { "EUR" },
                    }),
                ),
                2 => (
                    "send_email",
                    json!({ "to": format!("p{}@example.com", random.u8(..)), "body": "text ".repeat(random.usize(1..20)) }),
                ),
                3 => ("fetch", json!({ "url": format!("https://api.example.com/v1/{}", random.u16(..)) })),
                4 => ("read_file", json!({ "path": format!("/srv/work/shop/f{}.txt", random.u8(..)) })),
                _ => (
                    "search",
                    json!({ "tags": vec!["a"; random.usize(0..3)], "deep": { "limit": random.u8(1..4) } }),
                ),
            };
            events.push(event(session, number, tool, &input));
        }
    }
    events
}

/// A directory with a draft, and what drafting it printed.
fn drafted(log: &str, arguments: &[&str]) -> (TestDir, CommandResult) {
    let dir = TestDir::new(&[("log.jsonl", log)]);
    let ended = dir.run(&[&["suggest", "log.jsonl", "--output", "draft"], arguments].concat());
    (dir, ended)
}

fn rules(dir: &TestDir) -> String {
    fs::read_to_string(dir.0.path().join("draft/rules.yaml")).unwrap()
}

/// Whether the draft lets a call of `ann` run.
fn permits(engine: &Engine, tool: &str, input: Value) -> bool {
    let mut call = ToolCall::new("c1", tool, input);
    call.context = json!({ "principal": "ann" });
    engine.decide(&call, &SessionState::default()).effect() == Effect::Run
}

#[test]
fn a_draft_permits_what_is_usual_and_passes_its_tests() {
    let (dir, ended) = drafted(&lines(shop_log()), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    let text = rules(&dir);
    let mut settings = settings();
    settings.add_filter(r"\d{4}-\d\d-\d\d", "[day]");
    settings.bind(|| {
        insta::assert_snapshot!("suggest_rules", text);
        insta::assert_snapshot!("suggest", ended.transcript());
    });
    for command in [&["check", "draft", "--deny-warnings"][..], &["test", "draft"]] {
        let ended = dir.run(command);
        assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.transcript());
    }
    let engine = Engine::from_text(&text).unwrap();
    let refund = |amount: Value, currency: &str| {
        permits(
            &engine,
            "create_refund",
            json!({ "order_id": "#W0000001", "amount": amount, "currency": currency }),
        )
    };
    assert!(refund(json!(20), "EUR") && !refund(json!(2_000), "EUR") && !refund(json!(-1), "EUR"));
    assert!(!refund(json!(20), "GBP") && !refund(json!("20"), "EUR"));
    let one = |tool: &str, name: &str, value: &str| {
        let mut input = json!({ "body": "text " });
        if tool != "send_email" {
            input = json!({});
        }
        input[name] = value.into();
        permits(&engine, tool, input)
    };
    assert!(one("send_email", "to", "x@example.com") && !one("send_email", "to", "x@evil.example"));
    assert!(
        one("fetch", "url", "https://api.example.com/x") && !one("fetch", "url", "https://evil.example/")
    );
    assert!(!one("fetch", "url", "http://api.example.com/x"));
    assert!(
        one("read_file", "path", "/srv/work/shop/a") && !one("read_file", "path", "/srv/work/shop/../../x")
    );
    assert!(!permits(&engine, "other", json!({})));
}

/// What one session did, however often, is not permitted, and is listed with the line.
#[test]
fn one_poisoned_session_widens_nothing() {
    let clean = drafted(&lines(shop_log()), &[]);
    let mut events = shop_log();
    let hostile = [
        ("create_refund", json!({ "order_id": "#W0000001", "amount": 1e30, "currency": "EUR" })),
        ("create_refund", json!({ "order_id": "#W0000001", "amount": 5, "currency": "ЕUR" })),
        ("create_refund", json!({ "order_id": "#W0000001' }", "amount": 5, "currency": "EUR\n  - id: x" })),
        (
            "create_refund",
            json!({ "order_id": "#W0000001", "amount": 5, "currency": "EUR", "to": "mallory" }),
        ),
        ("crеate_refund", json!({ "order_id": "#W0000001", "amount": 5, "currency": "EUR" })),
        ("fetch", json!({ "url": "https://evil.example/" })),
        ("fetch", json!({ "url": "https://api.еxample.com/" })),
        ("read_file", json!({ "path": "/etc/shadow" })),
        ("send_email", json!({ "to": "x@evil.example", "body": "x".repeat(100_000) })),
        ("*", json!({})),
        ("@all", json!({})),
        ("x\npolicies: []", json!({ "\u{202e}\n": 1 })),
        ("search", json!({ "tags": vec!["a"; 1_000], "deep": { "limit": 3, "more": { "x": [1] } } })),
    ];
    for repeat in 0..50 {
        for (index, (tool, input)) in hostile.iter().enumerate() {
            events.insert(100, event(12, 10 + repeat * 20 + index, tool, input));
        }
    }
    let (dir, ended) = drafted(&lines(events), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    let without_comments = |text: &str| {
        text.lines()
            .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    // The end of a range is what enough sessions reach: one of them more moves it to what two others reach.
    let poisoned = without_comments(&rules(&dir)).replace("gte: 1, lte: 450", "gte: 1, lte: 440");
    assert_eq!(poisoned, without_comments(&rules(&clean.0)));
    let text = rules(&dir);
    for listed in ["1e+30: 50 calls", "/etc", "evil.example", "looks like", "is not valid", "mallory"] {
        // An argument that is not permitted is listed by name.
        let listed = if listed == "mallory" { "$.input.to" } else { listed };
        assert!(text.contains(listed), "{listed} is not listed:\n{text}");
    }
    assert!(
        !text.contains('\u{202e}') && text.lines().all(|line| !line.starts_with("policies: []")),
        "{text}"
    );
    assert_eq!(dir.run(&["test", "draft"]).code, Some(0));
}

/// Neither values that look personal or secret, nor values of arguments that are named like secrets, nor redacted ones.
#[test]
fn confidential_values_are_not_written() {
    let secrets = [
        "hunter2",
        "4111111111111111",
        "ana.mueller@example.com",
        "sk_live_51HqLyjWDarjtT1zdp7dcXYZ",
        "8731",
        "marker-body",
    ];
    let events = (0..20).flat_map(|session| {
        (0..3).map(move |number| {
            let input = json!({
                "password": "hunter2", "card": "4111111111111111", "owner": "ana.mueller@example.com",
                "key": "sk_live_51HqLyjWDarjtT1zdp7dcXYZ", "pin": 8731, "name": "[email]", "amount": 5,
                "note": format!("marker-body {session} {number} and other words"),
                "meta": { "sk_live_51HqLyjWDarjtT1zdp7dcXYZ": 1 },
            });
            event(session, number, "pay", &input)
        })
    });
    let (dir, ended) = drafted(&lines(events), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    let tests = fs::read_to_string(dir.0.path().join("draft/rules.test.yaml")).unwrap();
    for secret in secrets {
        for text in [&rules(&dir), &tests, &ended.stdout, &ended.stderr] {
            assert!(!text.contains(secret), "{secret} in\n{text}");
        }
    }
    assert!(
        rules(&dir).contains("named like a secret") && rules(&dir).contains("is redacted"),
        "{}",
        rules(&dir)
    );
    assert_eq!(dir.run(&["test", "draft"]).code, Some(0), "{}", dir.run(&["test", "draft"]).transcript());
}

#[test]
fn later_sessions_are_held_out_and_show_false_positives() {
    let mut events = shop_log();
    for session in 32..40 {
        events.push(event(session, 9, "new_tool", &json!({})));
    }
    let (_, ended) = drafted(&lines(events.clone()), &[]);
    assert!(
        ended.stdout.contains("held out: ") && ended.stdout.contains("in 8 of 8 sessions"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("new_tool  [unmatched]  8 calls"), "{}", ended.stdout);
    let (dir, ended) = drafted(&lines(events), &["--hold-out", "0"]);
    assert!(ended.stdout.contains("the rate of false positives is unknown"), "{}", ended.stdout);
    assert!(rules(&dir).contains("- id: new_tool"));
}

#[test]
fn only_known_tools_with_declared_arguments_are_permitted() {
    let tools = json!([
        { "name": "fetch", "input_schema": { "type": "object", "properties": { "url": { "type": "string" } } } },
        { "name": "never", "input_schema": { "type": "object", "properties": {} } },
    ]);
    let dir = TestDir::new(&[("log.jsonl", &lines(shop_log())), ("t.json", &tools.to_string())]);
    let ended = dir.run(&["suggest", "log.jsonl", "--tools", "t.json", "--output", "draft"]);
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    assert!(ended.stdout.contains("it is not a known tool") && ended.stdout.contains("never called: never"));
    assert!(rules(&dir).contains("tools: tools.json") && !rules(&dir).contains("match: search"));
    assert_eq!(dir.run(&["check", "draft"]).code, Some(0));
    assert_eq!(dir.run(&["test", "draft"]).code, Some(0));
}

#[test]
fn principals_have_rules_of_their_own_where_their_calls_differ() {
    let events = (0..40).flat_map(|session| {
        (0..2).flat_map(move |number| {
            let is_robot = session % 2 == 0;
            let amount = if is_robot { 5 + session } else { 300 + session };
            let mut pay = event(session, number, "pay", &json!({ "amount": amount }));
            let mut stop = event(session, number + 5, if is_robot { "ping" } else { "stop" }, &json!({}));
            for call in [&mut pay, &mut stop] {
                call["context"]["principal"] = if is_robot { "robot" } else { "ann" }.into();
                call["principal"] = call["context"]["principal"].clone();
            }
            [pay, stop]
        })
    });
    let (dir, ended) = drafted(&lines(events), &["--hold-out", "0"]);
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    let engine = Engine::from_text(&rules(&dir)).unwrap();
    assert!(
        permits(&engine, "pay", json!({ "amount": 310 }))
            && !permits(&engine, "pay", json!({ "amount": 20 }))
    );
    assert!(permits(&engine, "stop", json!({})) && !permits(&engine, "ping", json!({})));
    assert_eq!(dir.run(&["test", "draft"]).code, Some(0), "{}", dir.run(&["test", "draft"]).transcript());
}

#[test]
fn calls_that_were_approved_require_an_approval() {
    let events = (0..30).flat_map(|session| {
        let run = event(session, 1, "pay", &json!({ "amount": session % 50 + 1, "note": if session % 2 == 0 { json!("x") } else { json!(null) } }));
        let mut approved = event(session, 2, "pay", &json!({ "amount": 500 + session }));
        approved["approved_by"] = json!(["lead"]);
        [run, approved]
    });
    let (dir, ended) = drafted(&lines(events), &["--hold-out", "0"]);
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    let engine = Engine::from_text(&rules(&dir)).unwrap();
    let effect = |amount: u32| {
        let mut call = ToolCall::new("c1", "pay", json!({ "amount": amount }));
        call.context = json!({ "principal": "ann" });
        engine.decide(&call, &SessionState::default()).effect()
    };
    assert_eq!((effect(510), effect(2_000)), (Effect::Suspend, Effect::Deny), "{}", rules(&dir));
    assert_eq!(dir.run(&["test", "draft"]).code, Some(0), "{}", dir.run(&["test", "draft"]).transcript());
}

#[test]
fn nothing_is_overwritten_and_bad_input_is_reported() {
    let log = lines(shop_log());
    let (dir, _) = drafted(&log, &[]);
    let before = rules(&dir);
    let again = dir.run(&["suggest", "log.jsonl", "--output", "draft"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("already exist") && rules(&dir) == before, "{}", again.stderr);
    let cut = log.get(..log.len() - 20).unwrap();
    let bad = format!(
        "{cut}\n{{\"version\":1,\"event\":\"log_opened\",\"time\":\"2026-11-01T00:00:00Z\"}}\nnonsense\n{log}"
    );
    fs::write(dir.0.path().join("bad.jsonl"), bad).unwrap();
    fs::write(dir.0.path().join("empty.jsonl"), "").unwrap();
    fs::write(dir.0.path().join("digests.jsonl"), r#"{"version":1,"event":"call_completed","time":"2026-11-01T00:00:00Z","tool":"t","outcome":"executed","reason":{"code":"allowed"},"input_digest":"4f"}"#).unwrap();
    fs::write(dir.0.path().join("later.jsonl"), log.replace("\"version\":1", "\"version\":99")).unwrap();
    for (arguments, code, message) in [
        (&["bad.jsonl"][..], 2, "bad.jsonl:"),
        (&["empty.jsonl"], 2, "contain no calls"),
        (&["digests.jsonl"], 2, "--log-content redacted"),
        (&["later.jsonl"], 2, "use a newer Callgate"),
        (&["-"], 2, "write it to a file first"),
        (&["nowhere.jsonl"], 2, "can't be read"),
        (&["log.jsonl", "--hold-out", "1"], 2, "below 1"),
        (&["log.jsonl", "--min-sessions", "0"], 2, "0 is not in"),
        (&["log.jsonl", "--output", "log.jsonl"], 2, "can't be written"),
    ] {
        let ended = dir.run(&[&["suggest"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.transcript());
        assert!(ended.stderr.contains(message), "{arguments:?}: {}", ended.stderr);
    }
    let printed = dir.run(&["suggest", "log.jsonl"]);
    assert_eq!(printed.stdout, before, "the rules are printed without --output");
}

/// Clocks that jump change limits per hour at most; sessions that are mixed and files in another order lose nothing.
#[test]
fn clock_jumps_and_mixed_sessions_are_read() {
    let mut events = shop_log();
    for (index, event) in events.iter_mut().enumerate() {
        if index % 7 == 0 {
            event["time"] = ["1970-01-01T00:00:00Z", "2199-12-31T23:59:59Z"][index % 2].into();
        }
    }
    events.sort_by_key(|event| event["id"].as_str().map(|id| id.chars().rev().collect::<String>()));
    let (dir, ended) = drafted(&lines(events), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    assert!(ended.stdout.contains("learned from: 192 calls"), "{}", ended.stdout);
    assert_eq!(dir.run(&["test", "draft"]).code, Some(0));
}

/// Values of one argument: what an agent sends, and what an attacker makes it send.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e12..1e12).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z]{1,3}(_[0-9]{1,3})?".prop_map(Value::from),
        "https?://[a-c]\\.example\\.(com|org)/[a-z/]{0,6}".prop_map(Value::from),
        "/[a-c]/[a-c]/[a-c.]{1,4}".prop_map(Value::from),
        "[a-c]@[a-c]\\.example".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"'#{: \n]{1,3}", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_log() -> impl Strategy<Value = Vec<Value>> {
    // Few different values, so that some are usual.
    (
        prop::collection::vec(any_value(), 1..6),
        prop::collection::vec((0_usize..12, 0_usize..3, any::<[u8; 2]>()), 1..80),
    )
        .prop_map(|(values, calls)| {
            let calls = calls.into_iter().enumerate().map(|(number, (session, tool, picked))| {
                let value = |pick: u8| values[usize::from(pick) % values.len()].clone();
                let tool = ["read", "pay", "*/@ #x"][tool];
                let input =
                    json!({ "a": value(picked[0]), "b?": value(picked[1]), "c": { "d": value(picked[1]) } });
                event(session, number, tool, &input)
            });
            calls.collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever the recordings, the draft loads and passes its tests; it permits as many calls as it claims; the same recordings give
    /// the same draft.
    #[test]
    fn every_draft_loads_and_keeps_its_claims(events in any_log()) {
        let log = lines(events);
        let (dir, ended) = drafted(&log, &["--min-sessions", "2", "--hold-out", "0"]);
        prop_assert!(ended.code == Some(0), "{}", ended.transcript());
        let text = rules(&dir);
        let tested = dir.run(&["test", "draft"]);
        prop_assert!(tested.code == Some(0), "{}\n{}", tested.transcript(), text);
        let (again, _) = drafted(&log, &["--min-sessions", "2", "--hold-out", "0"]);
        prop_assert_eq!(&rules(&again), &text);
        let backtest = dir.run(&["backtest", "--policies", "draft/rules.yaml", "--format", "json", "log.jsonl"]);
        let report: Value = callgate::json::from_str(&backtest.stdout).unwrap();
        let unchanged = report["summary"]["unchanged"].as_u64().unwrap();
        prop_assert!(text.contains(&format!("# Permits {unchanged} of the ")), "{}\n{}", backtest.stdout, text);
    }
}

#[test]
fn the_json_document_has_the_rules_their_tests_and_the_report() {
    let mut events = shop_log();
    events.push(event(39, 9, "erase", &json!({})));
    let dir = TestDir::new(&[("log.jsonl", &lines(events))]);
    let text = dir.run(&["suggest", "log.jsonl"]);
    let run = dir.run(&["suggest", "log.jsonl", "--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let document: Value = callgate::json::from_str(&run.stdout).unwrap();
    assert_eq!((&document["version"], document["rules"].as_str()), (&json!(1), Some(text.stdout.as_str())));
    let tools = document["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["tool"] == "fetch" && tool["to_decide"].is_number()), "{tools:?}");
    let (learned, held_out) = (&document["learned"], &document["held_out"]);
    assert!(learned["calls"].as_u64() > held_out["calls"].as_u64(), "{document}");
    let stopped = held_out["stopped"].as_array().unwrap();
    let erased = stopped.iter().find(|stopped| stopped["tool"] == "erase").unwrap();
    assert_eq!((&erased["calls"], &erased["examples"][0]["line"]), (&json!(1), &json!(241)));
    // With a directory, the files are written, and the document is printed.
    let written = dir.run(&["suggest", "log.jsonl", "--format", "json", "--output", "draft"]);
    assert_eq!(written.stdout, run.stdout);
    assert_eq!(rules(&dir), text.stdout);
    assert_eq!(
        fs::read_to_string(dir.0.path().join("draft/rules.test.yaml")).unwrap(),
        document["tests"].as_str().unwrap()
    );
}
