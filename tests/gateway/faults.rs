//! What comes of calls when servers break, talk nonsense, are slow, or mean harm, and when clients leave or rules change meanwhile.

mod behind;
mod ends;
mod harm;
mod prefixes;
mod silent;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callgate::Engine;
use callgate::json::{Value, json};
use callgate::mcp::{ChildSpec, Gateway, Reach, ServerSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use behind::{Behind, Folder, answers};

const OPEN: &str = "policies: []";
const CLOSED: &str = "policies:\n  - { id: closed, match: echo, deny: {} }";

/// The text of a call's result.
fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// The code of a call that came to no result of its server's.
fn code(answer: &Value) -> &str {
    answer["result"]["_meta"]["dev.callgate/outcome"]["code"].as_str().unwrap_or_default()
}

fn is_error(answer: &Value) -> bool {
    answer["result"]["isError"] == true
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again_by_the_next() {
    let mut behind = Behind::rules(OPEN);
    let answer = behind.call("die", json!({}));
    assert!(is_error(&answer) && said(&answer).contains("may have taken effect"), "{answer}");
    assert_eq!(said(&behind.call("echo", json!({ "text": "again" }))), "done again");
    let log = behind.folder.log();
    let count = |method: &str| log.iter().filter(|message| message["method"] == method).count();
    assert_eq!(log.iter().filter(|message| message.get("started").is_some()).count(), 2);
    assert_eq!((count("initialize"), count("notifications/initialized")), (2, 2), "{log:#?}");
    assert_eq!(behind.folder.calls("die"), 1, "a call that was on its way is not sent again");
    let greetings: Vec<_> = log.iter().filter(|message| message["method"] == "initialize").collect();
    assert_eq!(greetings[0]["params"], greetings[1]["params"]);
    behind.end();
}

#[test]
fn what_is_cancelled_while_its_server_is_started_again_reaches_nobody() {
    let mut behind = Behind::rules(OPEN);
    behind.call("die", json!({}));
    let id = behind.begin("guarded", json!({}));
    behind.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    assert_eq!(said(&behind.call("echo", json!({ "text": "after" }))), "done after");
    assert_eq!(behind.folder.calls("guarded"), 0, "{:#?}", behind.folder.log());
    let heard = behind.end();
    assert_eq!(answers(&heard, &id), 0);
}

#[test]
fn a_server_that_always_dies_is_not_started_for_ever() {
    let mut behind = Behind::rules(OPEN);
    behind.folder.write("dead", "");
    behind.call("die", json!({}));
    for number in 0..12 {
        let answer = behind.call("echo", json!({ "text": number.to_string() }));
        assert!(is_error(&answer), "{answer}");
        assert!(said(&answer).contains("is gone"), "{answer}");
        assert!(!said(&answer).contains("may have taken effect"), "it never reached the server: {answer}");
    }
    let answer = behind.ask("tools/list", json!({}));
    assert!(answer["error"]["message"].as_str().is_some_and(|why| why.contains("too often")), "{answer}");
    let starts = behind.folder.log().iter().filter(|message| message.get("started").is_some()).count();
    assert!((3..=6).contains(&starts), "{starts} starts");
    assert_eq!(behind.folder.calls("echo"), 0);
    behind.end();
}

const FINE: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"fine"}]}}"#;

#[test]
fn a_call_is_answered_once_whatever_else_its_server_says() {
    let mut behind = Behind::rules(OPEN);
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
        let id = behind.begin("say", json!({ "lines": lines }));
        assert_eq!(said(&behind.answer(&id)), "fine", "{lines}");
        ids.push(id);
    }
    assert_eq!(said(&behind.call("echo", json!({ "text": "last" }))), "done last");
    let heard = behind.end();
    for (id, lines) in ids.iter().zip(&cases) {
        assert_eq!(answers(&heard, id), 1, "{lines}");
    }
}

#[test]
fn what_a_server_says_after_an_answer_comes_after_it() {
    let mut behind = Behind::rules(OPEN);
    let after =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"after $ID"}}"#;
    let ids: Vec<_> =
        (0..20).map(|_| behind.begin("say", json!({ "lines": format!("{FINE}\n{after}\n") }))).collect();
    for id in &ids {
        behind.answer(id);
    }
    let heard = behind.end();
    let place = |what: &dyn Fn(&Value) -> bool| heard.iter().position(what);
    for id in &ids {
        let told = format!("after {id}");
        let answer = place(&|message| message["id"] == *id && message.get("result").is_some());
        let after = place(&|message| message["params"]["data"] == told.as_str());
        assert!(answer.is_some() && answer < after, "{id}: {answer:?} {after:?} in {heard:#?}");
    }
}

#[test]
fn an_answer_that_can_not_be_read_is_an_error_of_its_call() {
    let mut behind = Behind::rules(OPEN);
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
        let id = behind.begin("say", json!({ "lines": format!("{line}\n") }));
        let answer = behind.answer(&id);
        let why = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains("can't be read"), "{line}: {answer}");
        ids.push(id);
    }
    let heard = behind.end();
    assert!(ids.iter().all(|id| answers(&heard, id) == 1));
}

#[test]
fn half_a_character_is_passed_on_as_one_that_stands_for_any() {
    let mut behind = Behind::rules(OPEN);
    let line = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"hello \ud83d"}]}}"#;
    let answer = behind.call("say", json!({ "lines": format!("{line}\n") }));
    assert_eq!(said(&answer), "hello \u{fffd}");
    behind.send_line(
        r#"{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"echo","arguments":{"text":"\ud83d!"}}}"#,
    );
    assert_eq!(said(&behind.answer(&json!("half"))), "done \u{fffd}!");
    let call = behind.folder.got("tools/call", 2).pop().unwrap();
    assert_eq!(call["params"]["arguments"]["text"], "\u{fffd}!", "{call}");
    behind.end();
}

#[test]
fn a_request_that_can_not_be_read_is_answered_by_its_id() {
    let mut behind = Behind::rules(OPEN);
    for (id, line) in [
        ("doubled", r#"{"jsonrpc":"2.0","id":"doubled","method":"ping","method":"ping"}"#),
        ("nan", r#"{"jsonrpc":"2.0","method":"ping","params":{"id":"other","x":NaN},"id":"nan"}"#),
        ("broken", "{\"jsonrpc\":\"2.0\",\r\"id\":\"broken\",\"method\":\"ping\"}"),
        ("cut off", r#"{"jsonrpc":"2.0","id":"cut off","method":"ping","params":{"x":[1"#),
    ] {
        behind.send_line(line);
        let answer = behind.answer(&json!(id));
        assert_eq!(answer["error"]["code"], -32700, "{line}: {answer}");
    }
    behind.send_line(r#"{"jsonrpc":"2.0","id":"one","id":"two","method":"ping"}"#);
    behind.answer(&Value::Null);
    let heard = behind.end();
    assert_eq!((answers(&heard, &json!("one")), answers(&heard, &json!("two"))), (0, 0));
}

#[test]
fn what_is_told_of_a_server_is_readable_and_nothing_of_its_own_stands_in_it_as_it_came() {
    let mut behind = Behind::rules(OPEN);
    let odd = "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}";
    let harmful = r#"{"`\u001b[2J\ncallgate: fine":1,"`\u001b[2J\ncallgate: fine":2}"#;
    let answer = behind.call("say", json!({ "lines": format!("{odd}\n{harmful}\n{FINE}\n") }));
    assert_eq!(said(&answer), "fine");
    behind.is_told("it says what is no message: an `id` is a string or a whole number");
    behind.is_told(r"duplicate key `\u{60}\u{1b}[2J\u{a}callgate: fine`");
    behind.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_end_is_cut_off_with_its_server() {
    let folder = Folder::new();
    let mut words = folder.server().into_iter();
    let child =
        ChildSpec { command: words.next().unwrap(), args: words.collect(), env: Vec::new(), cwd: None };
    let server =
        ServerSpec { name: "server".to_owned(), prefix: None, reach: Reach::Child(child), rules: None };
    let gateway = Gateway::new(Engine::from_text(OPEN).unwrap(), [server]).with_longest_message(64 << 10);
    let call = json!({ "name": "say", "arguments": { "lines": "endless ", "times": 20_000 } });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call }).to_string();
    let (to, mut from) = tokio::io::duplex(1 << 20);
    let mut heard = String::new();
    let session = async {
        tokio::join!(Arc::new(gateway).serve_lines(call.as_bytes(), to), from.read_to_string(&mut heard))
    };
    let (served, _) = tokio::time::timeout(Duration::from_secs(50), session).await.expect("it is answered");
    served.unwrap();
    assert_eq!(heard.lines().count(), 1, "{heard}");
    let answer: Value = callgate::json::from_str(&heard).unwrap();
    assert!(is_error(&answer) && said(&answer).contains("may have taken effect"), "{answer}");
    folder.nobody_stays();
}

#[test]
fn a_slow_call_holds_up_no_other() {
    let mut behind = Behind::rules(OPEN);
    let slow = behind.begin("never", json!({}));
    for number in 0..5 {
        assert_eq!(
            said(&behind.call("echo", json!({ "text": number.to_string() }))),
            format!("done {number}")
        );
    }
    assert_eq!(answers(&behind.heard, &slow), 0);
}

#[test]
fn a_call_that_takes_too_long_is_answered_once_and_cancelled_at_its_server() {
    let mut behind = Behind::rules("policies:\n  - { id: quick, match: brief, timeout: 200ms }");
    let late = behind.begin("brief", json!({ "seconds": 0.5 }));
    let answer = behind.answer(&late);
    assert!(is_error(&answer) && code(&answer) == "timeout", "{answer}");
    let sent = behind.folder.log().into_iter().find(|message| message["method"] == "tools/call").unwrap();
    let cancelled = behind.folder.got("notifications/cancelled", 1);
    assert_eq!(cancelled[0]["params"]["requestId"], sent["id"]);
    // Meanwhile the server has answered all the same.
    assert_eq!(said(&behind.call("slow", json!({ "seconds": 0.7 }))), "at last");
    let heard = behind.end();
    assert_eq!(answers(&heard, &late), 1);
}

#[test]
fn a_call_that_its_client_cancels_is_cancelled_at_the_server() {
    let mut behind = Behind::rules(OPEN);
    let never = behind.begin("never", json!({}));
    let late = behind.begin("slow", json!({ "seconds": 0.5 }));
    let calls = behind.folder.got("tools/call", 2);
    for id in [&never, &late] {
        let params = json!({ "requestId": id, "reason": "changed my mind" });
        behind.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    let cancelled = behind.folder.got("notifications/cancelled", 2);
    for (call, cancelled) in calls.iter().zip(&cancelled) {
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        assert_eq!(cancelled["params"]["reason"], "changed my mind");
    }
    assert_eq!(said(&behind.call("slow", json!({ "seconds": 0.7 }))), "at last");
    let heard = behind.end();
    assert_eq!(answers(&heard, &never), 0);
    assert!(answers(&heard, &late) <= 1);
}

#[test]
fn every_call_is_executed_or_denied_while_rules_change() {
    let mut behind = Behind::rules(OPEN);
    let mut ids = Vec::new();
    let is_over = AtomicBool::new(false);
    let (rules, half) = (behind.folder.path("rules.yaml"), behind.folder.path("next"));
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
                .map(|number| behind.begin("echo", json!({ "text": (ids.len() + number).to_string() })))
                .collect();
            for id in some {
                behind.answer(&id);
                ids.push(id);
            }
        }
    });
    let denied_now = |behind: &mut Behind| {
        let answer = behind.call("echo", json!({ "text": "probe" }));
        code(&answer) == "denied"
    };
    behind.folder.write("rules.yaml", CLOSED);
    behind::until("the last rules decide", || denied_now(&mut behind));
    behind.hear("word of other tools", |message| message["method"] == "notifications/tools/list_changed");
    behind.folder.write("rules.yaml", "policies: [");
    behind.is_told("refused");
    assert!(denied_now(&mut behind), "broken rules change nothing");
    behind.folder.write("rules.yaml", OPEN);
    behind::until("mended rules decide", || !denied_now(&mut behind));
    let log = behind.folder.log();
    let heard = behind.end();
    let (mut executed, mut denied) = (BTreeSet::new(), 0);
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(answers(&heard, id), 1);
        let answer = heard.iter().find(|message| message["id"] == *id).unwrap();
        if said(answer) == format!("done {number}") {
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

/// A server that only listens, and never says which tools it has.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_list_its_tools_is_called_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let heard = folder.path().join("heard");
    let command = ChildSpec {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), format!("cat > {}", heard.display())],
        env: Vec::new(),
        cwd: None,
    };
    let server =
        ServerSpec { name: "silent".to_owned(), prefix: None, reach: Reach::Child(command), rules: None };
    let engine = Engine::from_text("policies: []").unwrap();
    let gateway = Arc::new(Gateway::new(engine, [server]));
    let (mut client, theirs) = tokio::io::duplex(4096);
    let (from, to) = tokio::io::split(theirs);
    let served = tokio::spawn(gateway.serve_lines(from, to));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"do","arguments":{}}}"#;
    client.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let said = || std::fs::read_to_string(&heard).unwrap_or_default();
    // Time stands still while anything happens, and leaps to the next thing that waits for it otherwise.
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
