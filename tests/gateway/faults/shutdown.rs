//! Shutdown of the gateway with clients and servers that do not cooperate.

use std::sync::Arc;
use std::time::Duration;

use callgate::Engine;
use callgate::json::{Value, json};
use callgate_mcp::{Gateway, ServerSpec, StdioSpec, Transport};
use tokio::io::AsyncWriteExt;

use super::harness::{Folder, Session, response_count};
use super::{OPEN, is_error, result_text};

const GUARDED: &str = "policies:\n  - { id: ask-first, match: guarded, approval: { message: May it? } }";

/// A gateway with a call in flight.
fn with_call_in_flight(tool: &str, arguments: Value) -> (Session, Value) {
    let mut session = Session::with_rules(OPEN);
    let id = session.start_call(tool, arguments);
    session.folder.wait_for_received("tools/call", 1);
    (session, id)
}

/// A gateway whose server ignores SIGTERM.
fn with_stubborn_server() -> Session {
    let (mut session, _) = with_call_in_flight("stubborn", json!({}));
    session.wait_for_message("the notification of the server", |message| {
        message["params"]["data"] == "stubborn"
    });
    session
}

#[test]
fn call_in_flight_is_answered_after_the_client_closes_its_input() {
    let (session, id) = with_call_in_flight("slow", json!({ "seconds": 0.3 }));
    assert_eq!(response_count(&session.finish(), &id), 1);
}

#[test]
fn call_in_flight_is_answered_after_sigterm() {
    let (mut session, id) = with_call_in_flight("slow", json!({ "seconds": 0.5 }));
    session.signal("TERM");
    assert_eq!(result_text(&session.response(&id)), "at last");
    session.wait_for_exit();
    session.folder.assert_server_ended();
}

/// Clients end their servers like this: they close the input, then send a signal.
#[test]
fn closed_input_and_sigterm_leave_no_process_behind() {
    let (mut session, _) = with_call_in_flight("never", json!({}));
    session.close_input();
    std::thread::sleep(Duration::from_millis(200));
    session.signal("TERM");
    session.wait_for_prompt_exit();
    session.folder.assert_server_ended();
}

#[test]
fn stubborn_server_is_killed_after_repeated_sigterm() {
    let mut session = with_stubborn_server();
    session.terminate_repeatedly();
    session.folder.assert_server_ended();
}

#[test]
fn killed_gateway_leaves_no_process_behind() {
    let (mut session, _) = with_call_in_flight("never", json!({}));
    session.signal("KILL");
    session.wait_for_exit();
    session.folder.assert_server_ended();
}

/// Also for a server that ignores both the end of its input and SIGTERM.
#[cfg(target_os = "linux")]
#[test]
fn killed_gateway_leaves_no_stubborn_server_behind() {
    let mut session = with_stubborn_server();
    session.signal("KILL");
    session.wait_for_exit();
    session.folder.assert_server_ended();
}

/// A gateway with a pending elicitation that the client never answers.
fn with_pending_elicitation(rules: &str, tool: &str, arguments: Value) -> (Session, Value) {
    let mut session = Session::with_rules(rules);
    let id = session.start_call(tool, arguments);
    session.wait_for_message("the elicitation", |message| message["method"] == "elicitation/create");
    (session, id)
}

#[test]
fn elicitation_of_the_gateway_ends_when_the_client_closes_its_input() {
    let (mut session, id) = with_pending_elicitation(GUARDED, "guarded", json!({}));
    session.close_input();
    session.wait_for_prompt_exit();
    let answer = session.response(&id);
    assert!(is_error(&answer) && result_text(&answer).contains("pending approval"), "{answer}");
    assert_eq!(session.folder.call_count("guarded"), 0);
    session.folder.assert_server_ended();
}

#[test]
fn gateway_does_not_wait_for_elicitations_after_the_input_closes() {
    let mut session = Session::with_rules(GUARDED);
    // The gateway lists the server's tools before it asks.
    let id = session.start_call("guarded", json!({}));
    session.close_input();
    session.wait_for_prompt_exit();
    assert!(result_text(&session.response(&id)).contains("pending approval"));
    session.folder.assert_server_ended();
}

#[test]
fn sigterm_ends_the_gateway_despite_a_pending_elicitation() {
    let (mut session, _) = with_pending_elicitation(GUARDED, "guarded", json!({}));
    session.signal("TERM");
    session.wait_for_prompt_exit();
    session.folder.assert_server_ended();
}

#[test]
fn server_elicitation_fails_when_the_client_closes_its_input() {
    let (mut session, id) = with_pending_elicitation(OPEN, "ask", json!({ "message": "Which colour?" }));
    session.close_input();
    session.wait_for_prompt_exit();
    let answer = session.response(&id);
    assert!(result_text(&answer).contains("the client has closed the connection"), "{answer}");
    session.folder.assert_server_ended();
}

#[test]
fn server_that_ignores_closed_input_and_sigterm_is_killed() {
    let mut session = Session::with_rules(OPEN);
    assert_eq!(result_text(&session.call("stay", json!({}))), "it stays");
    let heard = session.finish();
    let last = heard.last().unwrap();
    assert_eq!(last["params"]["data"], "still here", "its last messages are forwarded: {last}");
}

#[test]
fn server_with_closed_stdin_can_still_respond() {
    let mut session = Session::with_rules(OPEN);
    // Longer than the grace period of a server.
    let id = session.start_call("deafen", json!({ "seconds": 5 }));
    session.folder.wait_for_received("tools/call", 1);
    std::thread::sleep(Duration::from_millis(300));
    // Its stdin is closed, which the gateway notices when it writes.
    session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    assert_eq!(result_text(&session.response(&id)), "deaf");
    assert_eq!(response_count(&session.finish(), &id), 1);
}

#[tokio::test]
async fn client_that_reads_nothing_does_not_block_shutdown() {
    let folder = Folder::new();
    let mut words = folder.server().into_iter();
    let child =
        StdioSpec { command: words.next().unwrap(), args: words.collect(), env: Vec::new(), cwd: None };
    let server = ServerSpec::new("server", Transport::Child(child));
    let gateway = Arc::new(Gateway::new(Engine::from_text(OPEN).unwrap(), [server]));
    let (mut client, from) = tokio::io::duplex(4096);
    let (to, _unread) = tokio::io::duplex(64);
    let served = tokio::spawn(gateway.serve_stdio(from, to));
    let line = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "more" } });
    let more = json!({ "lines": format!("{line}\n"), "times": 100_000 });
    for (id, tool, arguments) in [(1, "stay", json!({})), (2, "say", more)] {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        client.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }
    while folder.call_count("say") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(client);
    // From here on the gateway only waits for timers, so skip the time.
    tokio::time::pause();
    tokio::time::timeout(Duration::from_secs(300), served)
        .await
        .expect("the gateway does not end")
        .unwrap()
        .unwrap();
    folder.assert_server_ended();
}
