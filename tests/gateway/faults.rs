//! Fault injection: calls to servers that crash, send malformed messages, are slow or hostile, with clients that disconnect and rules that
//! are reloaded meanwhile.

mod harness;
mod hostile;
mod prefixes;
mod server_list;
mod shutdown;
mod silent;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callgate::Engine;
use callgate::json::{Value, json};
use callgate_mcp::{Gateway, ServerSpec, StdioSpec, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use harness::{Folder, Session, response_count};

const OPEN: &str = "policies: []";
const CLOSED: &str = "policies:\n  - { id: closed, match: echo, deny: {} }";

/// The text of a call's result.
fn result_text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// The reason code of a call whose result is not the server's.
fn code(answer: &Value) -> &str {
    answer["result"]["_meta"]["dev.callgate/outcome"]["code"].as_str().unwrap_or_default()
}

fn is_error(answer: &Value) -> bool {
    answer["result"]["isError"] == true
}

#[test]
fn next_call_restarts_a_crashed_server() {
    let mut session = Session::with_rules(OPEN);
    let answer = session.call("die", json!({}));
    assert!(is_error(&answer) && result_text(&answer).contains("may have taken effect"), "{answer}");
    assert_eq!(result_text(&session.call("echo", json!({ "text": "again" }))), "done again");
    let log = session.folder.log();
    let count = |method: &str| log.iter().filter(|message| message["method"] == method).count();
    assert_eq!(log.iter().filter(|message| message.get("started").is_some()).count(), 2);
    assert_eq!((count("initialize"), count("notifications/initialized")), (2, 2), "{log:#?}");
    assert_eq!(session.folder.call_count("die"), 1, "a call in flight is not sent again");
    let greetings: Vec<_> = log.iter().filter(|message| message["method"] == "initialize").collect();
    assert_eq!(greetings[0]["params"], greetings[1]["params"]);
    session.finish();
}

#[test]
fn call_cancelled_during_a_restart_does_not_reach_the_server() {
    let mut session = Session::with_rules(OPEN);
    session.call("die", json!({}));
    let id = session.start_call("guarded", json!({}));
    session.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    assert_eq!(result_text(&session.call("echo", json!({ "text": "after" }))), "done after");
    assert_eq!(session.folder.call_count("guarded"), 0, "{:#?}", session.folder.log());
    let heard = session.finish();
    assert_eq!(response_count(&heard, &id), 0);
}

#[test]
fn server_that_always_crashes_is_restarted_a_bounded_number_of_times() {
    let mut session = Session::with_rules(OPEN);
    session.folder.write("dead", "");
    session.call("die", json!({}));
    for number in 0..12 {
        let answer = session.call("echo", json!({ "text": number.to_string() }));
        assert!(is_error(&answer), "{answer}");
        assert!(result_text(&answer).contains("is unavailable"), "{answer}");
        assert!(
            !result_text(&answer).contains("may have taken effect"),
            "the call never reached the server: {answer}"
        );
    }
    let answer = session.request("tools/list", json!({}));
    assert!(answer["error"]["message"].as_str().is_some_and(|why| why.contains("too often")), "{answer}");
    let starts = session.folder.log().iter().filter(|message| message.get("started").is_some()).count();
    assert!((3..=6).contains(&starts), "{starts} starts");
    assert_eq!(session.folder.call_count("echo"), 0);
    session.finish();
}

const FINE: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"fine"}]}}"#;

#[test]
fn call_gets_one_response_despite_other_server_output() {
    let mut session = Session::with_rules(OPEN);
    let cases = [
        format!("Server is listening\n{FINE}\n"),
        format!("\n \r\n{FINE}\r\n"),
        format!("null\n42\n[]\n\"text\"\n{{}}\n{FINE}\n"),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\",\"para\n{FINE}\n"),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":999999999999,\"result\":{{}}}}\n{FINE}\n"),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"$ID\",\"result\":{{}}}}\n{FINE}\n"),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{{\"code\":-32700,\"message\":\"?\"}}}}\n{FINE}\n"
        ),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{{}}}}\n{FINE}\n"),
        format!("\u{ff}\u{fe}\n{FINE}\n"),
        format!("{FINE}\n{FINE}\n"),
    ];
    let mut ids = Vec::new();
    for lines in &cases {
        let id = session.start_call("say", json!({ "lines": lines }));
        assert_eq!(result_text(&session.response(&id)), "fine", "{lines}");
        ids.push(id);
    }
    assert_eq!(result_text(&session.call("echo", json!({ "text": "last" }))), "done last");
    let heard = session.finish();
    for (id, lines) in ids.iter().zip(&cases) {
        assert_eq!(response_count(&heard, id), 1, "{lines}");
    }
}

#[test]
fn messages_after_a_response_are_forwarded_after_it() {
    let mut session = Session::with_rules(OPEN);
    let after =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"after $ID"}}"#;
    let ids: Vec<_> = (0..20)
        .map(|_| session.start_call("say", json!({ "lines": format!("{FINE}\n{after}\n") })))
        .collect();
    for id in &ids {
        session.response(id);
    }
    let heard = session.finish();
    let place = |what: &dyn Fn(&Value) -> bool| heard.iter().position(what);
    for id in &ids {
        let told = format!("after {id}");
        let answer = place(&|message| message["id"] == *id && message.get("result").is_some());
        let after = place(&|message| message["params"]["data"] == told.as_str());
        assert!(answer.is_some() && answer < after, "{id}: {answer:?} {after:?} in {heard:#?}");
    }
}

#[test]
fn malformed_response_is_an_error_of_its_call() {
    let mut session = Session::with_rules(OPEN);
    let deep =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}1{}}}", "[".repeat(300), "]".repeat(300));
    let cases = [
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"id":$ID,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":{"code":1,"message":"both"}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"mean":NaN}}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\u{e9}\"}]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\rb\"}]}}",
        r#"[{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}]"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"te"#,
        r#"{"id":$ID,"result":{"content":[]}}"#,
        &deep,
    ];
    let mut ids = Vec::new();
    for line in cases {
        let id = session.start_call("say", json!({ "lines": format!("{line}\n") }));
        let answer = session.response(&id);
        let why = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains("is malformed"), "{line}: {answer}");
        ids.push(id);
    }
    let heard = session.finish();
    assert!(ids.iter().all(|id| response_count(&heard, id) == 1));
}

#[test]
fn lone_surrogate_is_forwarded_as_the_replacement_character() {
    let mut session = Session::with_rules(OPEN);
    let line = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"hello \ud83d"}]}}"#;
    let answer = session.call("say", json!({ "lines": format!("{line}\n") }));
    assert_eq!(result_text(&answer), "hello \u{fffd}");
    session.send_line(
        r#"{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"echo","arguments":{"text":"\ud83d!"}}}"#,
    );
    assert_eq!(result_text(&session.response(&json!("half"))), "done \u{fffd}!");
    let call = session.folder.wait_for_received("tools/call", 2).pop().unwrap();
    assert_eq!(call["params"]["arguments"]["text"], "\u{fffd}!", "{call}");
    session.finish();
}

#[test]
fn parse_error_carries_the_id_of_the_request() {
    let mut session = Session::with_rules(OPEN);
    for (id, line) in [
        ("doubled", r#"{"jsonrpc":"2.0","id":"doubled","method":"ping","method":"ping"}"#),
        ("nan", r#"{"jsonrpc":"2.0","method":"ping","params":{"id":"other","x":NaN},"id":"nan"}"#),
        ("broken", "{\"jsonrpc\":\"2.0\",\r\"id\":\"broken\",\"method\":\"ping\"}"),
        ("cut off", r#"{"jsonrpc":"2.0","id":"cut off","method":"ping","params":{"x":[1"#),
    ] {
        session.send_line(line);
        let answer = session.response(&json!(id));
        assert_eq!(answer["error"]["code"], -32700, "{line}: {answer}");
    }
    session.send_line(r#"{"jsonrpc":"2.0","id":"one","id":"two","method":"ping"}"#);
    session.response(&Value::Null);
    let heard = session.finish();
    assert_eq!((response_count(&heard, &json!("one")), response_count(&heard, &json!("two"))), (0, 0));
}

#[test]
fn log_lines_about_a_server_are_escaped() {
    let mut session = Session::with_rules(OPEN);
    let odd = "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}";
    let harmful = r#"{"`\u001b[2J\ncallgate: fine":1,"`\u001b[2J\ncallgate: fine":2}"#;
    let answer = session.call("say", json!({ "lines": format!("{odd}\n{harmful}\n{FINE}\n") }));
    assert_eq!(result_text(&answer), "fine");
    session.wait_for_log("it sent a malformed message: `id` must be a string or an integer");
    session.wait_for_log(r"duplicate key `\u{60}\u{1b}[2J\u{a}callgate: fine`");
    session.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_response_is_cut_off_and_its_server_is_ended() {
    let folder = Folder::new();
    let mut words = folder.server().into_iter();
    let child =
        StdioSpec { command: words.next().unwrap(), args: words.collect(), env: Vec::new(), cwd: None };
    let server = ServerSpec::new("server", Transport::Child(child));
    let gateway = Gateway::new(Engine::from_text(OPEN).unwrap(), [server]).with_max_message_size(64 << 10);
    let call = json!({ "name": "say", "arguments": { "lines": "endless ", "times": 20_000 } });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call }).to_string();
    let (to, mut from) = tokio::io::duplex(1 << 20);
    let mut heard = String::new();
    let session = async {
        tokio::join!(Arc::new(gateway).serve_stdio(call.as_bytes(), to), from.read_to_string(&mut heard))
    };
    let (served, _) = tokio::time::timeout(Duration::from_secs(50), session)
        .await
        .expect("timed out waiting for the response");
    served.unwrap();
    assert_eq!(heard.lines().count(), 1, "{heard}");
    let answer: Value = callgate::json::from_str(&heard).unwrap();
    assert!(is_error(&answer) && result_text(&answer).contains("may have taken effect"), "{answer}");
    folder.assert_server_ended();
}

#[test]
fn slow_call_does_not_block_other_calls() {
    let mut session = Session::with_rules(OPEN);
    let slow = session.start_call("never", json!({}));
    for number in 0..5 {
        assert_eq!(
            result_text(&session.call("echo", json!({ "text": number.to_string() }))),
            format!("done {number}")
        );
    }
    assert_eq!(response_count(&session.received, &slow), 0);
}

#[test]
fn timed_out_call_is_answered_once_and_cancelled_at_the_server() {
    let mut session = Session::with_rules("policies:\n  - { id: quick, match: brief, timeout: 200ms }");
    let late = session.start_call("brief", json!({ "seconds": 0.5 }));
    let answer = session.response(&late);
    assert!(is_error(&answer) && code(&answer) == "timeout", "{answer}");
    let sent = session.folder.log().into_iter().find(|message| message["method"] == "tools/call").unwrap();
    let cancelled = session.folder.wait_for_received("notifications/cancelled", 1);
    assert_eq!(cancelled[0]["params"]["requestId"], sent["id"]);
    // The server answers nevertheless.
    assert_eq!(result_text(&session.call("slow", json!({ "seconds": 0.7 }))), "at last");
    let heard = session.finish();
    assert_eq!(response_count(&heard, &late), 1);
}

#[test]
fn cancellation_by_the_client_is_forwarded_to_the_server() {
    let mut session = Session::with_rules(OPEN);
    let never = session.start_call("never", json!({}));
    let late = session.start_call("slow", json!({ "seconds": 0.5 }));
    let calls = session.folder.wait_for_received("tools/call", 2);
    for id in [&never, &late] {
        let params = json!({ "requestId": id, "reason": "changed my mind" });
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    let cancelled = session.folder.wait_for_received("notifications/cancelled", 2);
    for (call, cancelled) in calls.iter().zip(&cancelled) {
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        assert_eq!(cancelled["params"]["reason"], "changed my mind");
    }
    assert_eq!(result_text(&session.call("slow", json!({ "seconds": 0.7 }))), "at last");
    let heard = session.finish();
    assert_eq!(response_count(&heard, &never), 0);
    assert!(response_count(&heard, &late) <= 1);
}

#[test]
fn every_call_is_executed_or_denied_during_reloads() {
    let mut session = Session::with_rules(OPEN);
    let mut ids = Vec::new();
    let is_over = AtomicBool::new(false);
    let (rules, half) = (session.folder.path("rules.yaml"), session.folder.path("next"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..40 {
                let text = if number % 2 == 0 { CLOSED } else { OPEN };
                std::fs::write(&half, text).unwrap();
                std::fs::rename(&half, &rules).unwrap();
                std::thread::sleep(Duration::from_millis(40));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            let some: Vec<_> = (0..8)
                .map(|number| session.start_call("echo", json!({ "text": (ids.len() + number).to_string() })))
                .collect();
            for id in some {
                session.response(&id);
                ids.push(id);
            }
        }
    });
    let denied_now = |session: &mut Session| {
        let answer = session.call("echo", json!({ "text": "probe" }));
        code(&answer) == "denied"
    };
    session.folder.write("rules.yaml", CLOSED);
    harness::wait_until("the last rules take effect", || denied_now(&mut session));
    session.wait_for_message("tools/list_changed", |message| {
        message["method"] == "notifications/tools/list_changed"
    });
    session.folder.write("rules.yaml", "policies: [");
    session.wait_for_log("rejected");
    assert!(denied_now(&mut session), "invalid rules change nothing");
    session.folder.write("rules.yaml", OPEN);
    harness::wait_until("the fixed rules take effect", || !denied_now(&mut session));
    let log = session.folder.log();
    let heard = session.finish();
    let (mut executed, mut denied) = (BTreeSet::new(), 0);
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(response_count(&heard, id), 1);
        let answer = heard.iter().find(|message| message["id"] == *id).unwrap();
        if result_text(answer) == format!("done {number}") {
            executed.insert(number.to_string());
        } else {
            assert_eq!(code(answer), "denied", "{answer}");
            denied += 1;
        }
    }
    let texts = log.iter().filter_map(|message| message["params"]["arguments"]["text"].as_str());
    let reached: BTreeSet<String> = texts.filter(|text| *text != "probe").map(str::to_owned).collect();
    assert_eq!(reached, executed);
    assert!(denied > 0 && !executed.is_empty(), "{denied} denied, {} executed", executed.len());
}

/// A server that only reads, and never lists its tools.
#[tokio::test(start_paused = true)]
async fn server_that_does_not_list_its_tools_is_still_called() {
    let folder = tempfile::tempdir().unwrap();
    let heard = folder.path().join("heard");
    let command = StdioSpec {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), format!("cat > {}", heard.display())],
        env: Vec::new(),
        cwd: None,
    };
    let server = ServerSpec::new("silent", Transport::Child(command));
    let engine = Engine::from_text("policies: []").unwrap();
    let gateway = Arc::new(Gateway::new(engine, [server]));
    let (mut client, theirs) = tokio::io::duplex(4096);
    let (from, to) = tokio::io::split(theirs);
    let served = tokio::spawn(gateway.serve_stdio(from, to));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"do","arguments":{}}}"#;
    client.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let said = || std::fs::read_to_string(&heard).unwrap_or_default();
    // Paused time advances to the next timer only when every task is idle.
    for _ in 0..10_000 {
        if said().contains("tools/call") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(said().contains("tools/list") && said().contains("tools/call"), "{}", said());
    served.abort();
}
