//! Tools that an SDK drives, beside rounds that Callgate drives.

use callgate::json::{Value, json};
use callgate::lifecycle::ModelConfig;
use callgate::message::{CallPart, History, PartContent, ResultOutput, ResultStatus};
use callgate::session::SdkSession;

use super::{push_call, session, tool, user};
use crate::fixtures::{Tool, kind_and_code, noon, rules};

const RULES: &str = "policies:
  - { id: never, match: drop, deny: {} }
  - { id: ask, match: pay, approval: {} }
  - { id: stop, match: { tool: look, where: [ { path: $.input.q, eq: stop } ] }, halt: {} }";

fn armed(text: &str) -> (SdkSession<Tool>, Tool, callgate::host::ManualClock) {
    let clock = noon();
    let counting = Tool::counting(&clock);
    let tools = ["look", "pay", "drop"].map(tool);
    let session = rules(text).tools(tools).clock(clock.clone()).build().session();
    (session.into_sdk_session(counting.clone()), counting, clock)
}

fn part(id: &str, name: &str, input: Value) -> CallPart {
    CallPart { id: id.into(), name: name.into(), input }
}

#[test]
fn sdk_gets_the_offered_tools_and_can_ask_which_need_approval() {
    let (armed, counting, clock) = armed(RULES);
    let names: Vec<String> = clock.block_on(armed.tools()).into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["look", "pay"]);
    assert!(clock.block_on(armed.needs_approval("pay", &json!({}))));
    assert!(!clock.block_on(armed.needs_approval("look", &json!({}))));
    assert_eq!(counting.count(), 0);
}

#[test]
fn each_sdk_call_passes_the_gate_and_has_a_result_for_the_model() {
    let (armed, counting, clock) = armed(RULES);
    let call = |id: &str, tool: &str| clock.block_on(armed.call(id, tool, json!({})));
    let looked = call("c1", "look");
    assert_eq!(kind_and_code(&looked.outcome).0, "executed");
    assert_eq!(looked.result.unwrap().output, ResultOutput::Json(json!(1)));
    let denied = call("c2", "drop");
    assert_eq!(
        (kind_and_code(&denied.outcome).0, denied.result.unwrap().status),
        ("denied", ResultStatus::Denied)
    );
    let waits = call("c3", "pay");
    assert_eq!((kind_and_code(&waits.outcome).0, waits.result), ("suspended", None));
    assert_eq!(counting.count(), 1);
}

#[test]
fn suspend_adds_completed_and_pending_calls_to_the_sdks_history() {
    let (armed, counting, clock) = armed(RULES);
    let mut history = user("look and pay twice");
    let calls = [
        part("c1", "look", json!({})),
        part("c2", "pay", json!({})),
        part("c3", "look", json!({ "q": "x" })),
    ];
    let parts = calls.iter().map(|call| PartContent::Call(call.clone()).into()).collect();
    history.push(callgate::message::Message::new(callgate::message::Role::Assistant, parts));
    // The SDK stops at the pending call, and never makes the third one.
    clock.block_on(armed.call("c1", "look", json!({})));
    clock.block_on(armed.call("c2", "pay", json!({})));
    let round = clock.block_on(armed.suspend(&mut history)).unwrap();
    let kinds: Vec<_> = round.outcomes.iter().map(|outcome| outcome.outcome.name()).collect();
    assert_eq!((kinds, counting.count()), (vec!["executed", "suspended", "executed"], 2));
    let calls = history.occurrences();
    assert!(calls[0].result.is_some() && calls[2].result.is_some());
    assert!(calls[1].result.is_none() && calls[1].request.is_some());
    // A second time: nothing runs, and approval is not requested again.
    let again = clock.block_on(armed.suspend(&mut history.clone())).unwrap();
    assert_eq!((again.outcomes.len(), counting.count()), (0, 2));
}

#[test]
fn announced_round_is_decided_as_a_whole() {
    let (armed, counting, clock) = armed(RULES);
    let calls = [part("c1", "look", json!({})), part("c2", "look", json!({ "q": "stop" }))];
    clock.block_on(armed.announce_round(&calls));
    let first = clock.block_on(armed.call("c1", "look", json!({})));
    assert_eq!((kind_and_code(&first.outcome).0, counting.count()), ("halted", 0));
}

#[test]
fn decisions_of_an_announced_round_hold_whatever_runs_before() {
    let text = "policies:
  - { id: unknown, match: { tool: pay, where: [ { not: { path: '$.session.labels[*]', eq: known } } ] }, approval: {} }
  - { id: not-yet, match: { tool: drop, where: [ { not: { path: '$.session.labels[*]', eq: known } } ] }, deny: {} }
  - { id: know, match: look, label: { add: [known] } }";
    let parts = [part("c1", "look", json!({})), part("c2", "pay", json!({})), part("c3", "drop", json!({}))];
    for (told, expected) in
        [(true, ["executed", "suspended", "denied"]), (false, ["executed", "executed", "executed"])]
    {
        let (armed, _, clock) = armed(text);
        if told {
            clock.block_on(armed.announce_round(&parts));
        }
        let kinds = parts.clone().map(|CallPart { id, name, input }| {
            clock.block_on(armed.call(&id, &name, input)).outcome.outcome.name()
        });
        assert_eq!(kinds, expected, "{told}");
    }
}

/// The SDK stops at the first call of an announced round; the other calls end as they were decided.
#[test]
fn rest_of_an_announced_round_is_completed_when_the_sdk_stops() {
    let (armed, counting, clock) = armed(RULES);
    let mut history = user("look");
    let calls = [
        part("c1", "look", json!({})),
        part("c2", "drop", json!({})),
        part("c3", "look", json!({ "q": "stop" })),
        part("c4", "look", json!({})),
    ];
    let parts = calls.iter().map(|call| PartContent::Call(call.clone()).into()).collect();
    history.push(callgate::message::Message::new(callgate::message::Role::Assistant, parts));
    clock.block_on(armed.announce_round(&calls));
    clock.block_on(armed.call("c1", "look", json!({})));
    let round = clock.block_on(armed.suspend(&mut history)).unwrap();
    let ends: Vec<_> = round.outcomes.iter().map(kind_and_code).collect();
    let halted = ("halted", "session_halted");
    assert_eq!(ends, [halted, ("denied", "denied"), ("halted", "halted"), halted]);
    assert_eq!(counting.count(), 0);
}

/// A host without anything to resume: usage from before its first history stays counted.
#[test]
fn usage_of_a_run_stays_counted_when_its_history_is_first_seen() {
    let (armed, counting, clock) = armed("policies: [ { id: one, budget: { calls: 1, on_exceed: deny } } ]");
    let mut history = user("look");
    push_call(&mut history, "c1", "look", json!({}));
    clock.block_on(armed.call("c1", "look", json!({})));
    clock.block_on(armed.suspend(&mut history)).unwrap();
    let next = clock.block_on(armed.call("c2", "look", json!({}))).outcome;
    assert_eq!((kind_and_code(&next), counting.count()), (("denied", "budget_exceeded"), 1));
}

#[test]
fn clones_share_one_session_and_concurrent_calls_count_separately() {
    let text = "policies: [ { id: one, budget: { calls: 1, on_exceed: deny } } ]";
    let (armed, counting, clock) = armed(text);
    let other = armed.clone();
    let (first, second) = clock.block_on(async {
        tokio::join!(armed.call("c1", "look", json!({})), other.call("c2", "look", json!({})))
    });
    assert_eq!([kind_and_code(&first.outcome).0, kind_and_code(&second.outcome).0], ["executed", "denied"]);
    assert_eq!(counting.count(), 1);
}

#[test]
fn armed_session_gives_access_to_the_lifecycle() {
    let (session, log) = session("policies: []");
    let clock = noon();
    let armed = session.into_sdk_session(Tool::counting(&clock));
    clock.block_on(async {
        armed.session().await.begin(ModelConfig::default()).unwrap();
        armed.call("c1", "look", json!({})).await;
        let _ = armed.session().await.end(&super::ending()).await;
    });
    assert!(log.take().last().unwrap().contains("finished"));
}

#[test]
fn approved_sdk_call_runs_when_the_history_is_resumed() {
    let (armed, counting, clock) = armed(RULES);
    let mut history = user("pay");
    push_call(&mut history, "c1", "pay", json!({}));
    clock.block_on(armed.call("c1", "pay", json!({})));
    clock.block_on(armed.suspend(&mut history)).unwrap();
    let id = history.find_approval_requests()[0].approval_id.clone();
    history.append_approval_response(callgate::message::approval_response(id, true)).unwrap();
    let resume = async |history: &mut History| {
        let mut session = armed.session().await;
        session.resume(history, &counting).await.unwrap().outcomes
    };
    assert_eq!(clock.block_on(resume(&mut history))[0].outcome.name(), "executed");
    assert!(clock.block_on(resume(&mut history)).is_empty());
    assert_eq!(counting.count(), 1);
}
