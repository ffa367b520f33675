//! How a gateway ends whose client or server does not do its part.

use serde_json::{Value, json};

use super::behind::{Behind, answers};
use super::{OPEN, is_error, said};

const GUARDED: &str = "policies:\n  - { id: ask-first, match: guarded, approval: { message: May it? } }";

fn hear_question(behind: &mut Behind) -> Value {
    behind.hear("the question", |message| message["method"] == "elicitation/create")
}

#[test]
fn a_question_of_the_gateway_does_not_outlive_what_its_client_says() {
    let mut behind = Behind::rules(GUARDED);
    let id = behind.begin("guarded", json!({}));
    hear_question(&mut behind);
    behind.hang_up();
    behind.ends_without_answers();
    let answer = behind.answer(&id);
    assert!(is_error(&answer) && said(&answer).contains("Waits for approval"), "{answer}");
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
    assert!(said(&behind.answer(&id)).contains("Waits for approval"));
    behind.folder.nobody_stays();
}

#[test]
fn a_question_does_not_outlive_a_gateway_that_is_told_to_end() {
    let mut behind = Behind::rules(GUARDED);
    behind.begin("guarded", json!({}));
    hear_question(&mut behind);
    behind.signal("TERM");
    behind.ends_without_answers();
    behind.folder.nobody_stays();
}

#[test]
fn a_server_is_told_that_its_question_is_not_answered_any_more() {
    let mut behind = Behind::rules(OPEN);
    let id = behind.begin("ask", json!({ "message": "Which colour?" }));
    hear_question(&mut behind);
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
    std::thread::sleep(std::time::Duration::from_millis(300));
    // It can't be written to, which is noticed by writing.
    behind.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    assert_eq!(said(&behind.answer(&id)), "deaf");
    assert_eq!(answers(&behind.end(), &id), 1);
}
