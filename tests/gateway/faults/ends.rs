//! How a gateway ends whose client or server does not do its part.

use std::sync::Arc;
use std::time::Duration;

use callgate::Engine;
use callgate::json::{Value, json};
use callgate::mcp::{ChildSpec, Gateway, Reach, ServerSpec};
use tokio::io::AsyncWriteExt;

use super::behind::{Behind, Folder, answers};
use super::{OPEN, is_error, said};

const GUARDED: &str = "policies:\n  - { id: ask-first, match: guarded, approval: { message: May it? } }";

/// A gateway with a call under way.
fn under_way(tool: &str, arguments: Value) -> (Behind, Value) {
    let mut behind = Behind::rules(OPEN);
    let id = behind.begin(tool, arguments);
    behind.folder.got("tools/call", 1);
    (behind, id)
}

/// One whose server heeds no signal.
fn before_a_stubborn_server() -> Behind {
    let (mut behind, _) = under_way("stubborn", json!({}));
    behind.hear("the sign of the server", |message| message["params"]["data"] == "stubborn");
    behind
}

#[test]
fn a_call_is_still_answered_when_its_client_says_nothing_more() {
    let (behind, id) = under_way("slow", json!({ "seconds": 0.3 }));
    assert_eq!(answers(&behind.end(), &id), 1);
}

#[test]
fn a_call_is_still_answered_when_the_gateway_is_told_to_end() {
    let (mut behind, id) = under_way("slow", json!({ "seconds": 0.5 }));
    behind.signal("TERM");
    assert_eq!(said(&behind.answer(&id)), "at last");
    behind.ends();
    behind.folder.nobody_stays();
}

/// As clients end their servers: first their input, then a signal.
#[test]
fn a_client_that_hangs_up_and_tells_the_gateway_to_end_leaves_nobody_behind() {
    let (mut behind, _) = under_way("never", json!({}));
    behind.hang_up();
    std::thread::sleep(Duration::from_millis(200));
    behind.signal("TERM");
    behind.ends_without_answers();
    behind.folder.nobody_stays();
}

#[test]
fn a_server_that_will_not_end_does_not_outlive_a_gateway_that_is_told_to() {
    let mut behind = before_a_stubborn_server();
    behind.ends_when_told_again();
    behind.folder.nobody_stays();
}

#[test]
fn a_gateway_that_is_killed_leaves_nobody_behind() {
    let (mut behind, _) = under_way("never", json!({}));
    behind.signal("KILL");
    behind.ends();
    behind.folder.nobody_stays();
}

/// Of one that heeds neither the end of its input nor SIGTERM, too.
#[cfg(target_os = "linux")]
#[test]
fn a_gateway_that_is_killed_leaves_no_stubborn_server_behind() {
    let mut behind = before_a_stubborn_server();
    behind.signal("KILL");
    behind.ends();
    behind.folder.nobody_stays();
}

/// A gateway with a question open, which its client never answers.
fn with_a_question(rules: &str, tool: &str, arguments: Value) -> (Behind, Value) {
    let mut behind = Behind::rules(rules);
    let id = behind.begin(tool, arguments);
    behind.hear("the question", |message| message["method"] == "elicitation/create");
    (behind, id)
}

#[test]
fn a_question_of_the_gateway_does_not_outlive_what_its_client_says() {
    let (mut behind, id) = with_a_question(GUARDED, "guarded", json!({}));
    behind.hang_up();
    behind.ends_without_answers();
    let answer = behind.answer(&id);
    assert!(is_error(&answer) && said(&answer).contains("pending approval"), "{answer}");
    assert_eq!(behind.folder.calls("guarded"), 0);
    behind.folder.nobody_stays();
}

#[test]
fn a_question_that_comes_after_the_end_is_not_waited_for() {
    let mut behind = Behind::rules(GUARDED);
    // Before the question the server is asked for its tools.
    let id = behind.begin("guarded", json!({}));
    behind.hang_up();
    behind.ends_without_answers();
    assert!(said(&behind.answer(&id)).contains("pending approval"));
    behind.folder.nobody_stays();
}

#[test]
fn a_question_does_not_outlive_a_gateway_that_is_told_to_end() {
    let (mut behind, _) = with_a_question(GUARDED, "guarded", json!({}));
    behind.signal("TERM");
    behind.ends_without_answers();
    behind.folder.nobody_stays();
}

#[test]
fn a_server_is_told_that_its_question_is_not_answered_any_more() {
    let (mut behind, id) = with_a_question(OPEN, "ask", json!({ "message": "Which colour?" }));
    behind.hang_up();
    behind.ends_without_answers();
    let answer = behind.answer(&id);
    assert!(said(&answer).contains("the client says nothing more"), "{answer}");
    behind.folder.nobody_stays();
}

#[test]
fn a_server_that_heeds_neither_the_end_of_its_input_nor_a_signal_is_ended() {
    let mut behind = Behind::rules(OPEN);
    assert_eq!(said(&behind.call("stay", json!({}))), "it stays");
    let heard = behind.end();
    let last = heard.last().unwrap();
    assert_eq!(last["params"]["data"], "still here", "what it says meanwhile is passed on: {last}");
}

#[test]
fn a_server_that_takes_nothing_more_may_still_talk() {
    let mut behind = Behind::rules(OPEN);
    // Longer than a server has to end.
    let id = behind.begin("deafen", json!({ "seconds": 5 }));
    behind.folder.got("tools/call", 1);
    std::thread::sleep(Duration::from_millis(300));
    // It can't be written to, which is noticed by writing.
    behind.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    assert_eq!(said(&behind.answer(&id)), "deaf");
    assert_eq!(answers(&behind.end(), &id), 1);
}

#[tokio::test]
async fn a_client_that_reads_nothing_keeps_neither_the_gateway_nor_its_server() {
    let folder = Folder::new();
    let mut words = folder.server().into_iter();
    let child =
        ChildSpec { command: words.next().unwrap(), args: words.collect(), env: Vec::new(), cwd: None };
    let server =
        ServerSpec { name: "server".to_owned(), prefix: None, reach: Reach::Child(child), rules: None };
    let gateway = Arc::new(Gateway::new(Engine::from_text(OPEN).unwrap(), [server]));
    let (mut client, from) = tokio::io::duplex(4096);
    let (to, _unread) = tokio::io::duplex(64);
    let served = tokio::spawn(gateway.serve_lines(from, to));
    let line = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "more" } });
    let more = json!({ "lines": format!("{line}\n"), "times": 100_000 });
    for (id, tool, arguments) in [(1, "stay", json!({})), (2, "say", more)] {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        client.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }
    while folder.calls("say") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(client);
    // What comes now waits for one time or another, none of which need pass.
    tokio::time::pause();
    tokio::time::timeout(Duration::from_secs(300), served).await.expect("it ends").unwrap().unwrap();
    folder.nobody_stays();
}
