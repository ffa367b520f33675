//! Tool middleware and the lifecycle session: the documented behaviours that no other test covers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::json::{Value, json};
use callgate::lifecycle::{BeforeAction, ErrorAction, ToolHooks};
use callgate::message::{
    History, Message, Part, PartContent, Role, approval_response, approval_response_message,
};
use callgate::{ToolCall, ToolError};

use super::{Log, NONE, note};
use crate::fixtures::{Tool, call, keys, kind_and_code, noon, rules};

#[test]
fn hooks_get_id_tool_input_output_error_and_duration() {
    let clock = noon();
    let log = Log::default();
    let (before, after, error) = (Arc::clone(&log), Arc::clone(&log), Arc::clone(&log));
    let hook = ToolHooks::new("all")
        .before(move |call| {
            note(&before, format!("before {} {} {}", call.id, call.tool, call.input));
            BeforeAction::Continue
        })
        .on_error(move |call, failed| {
            note(
                &error,
                format!("error {} {:?} of {} {}", failed.message, failed.kind, call.tool, call.input),
            );
            ErrorAction::Keep
        })
        .after(move |end| {
            assert_eq!(end.duration, Duration::from_micros(end.outcome.duration_us));
            note(
                &after,
                format!("after {} {:?} {:?}", end.outcome.id, end.outcome.output, end.outcome.error),
            );
        });
    let failed = Err(ToolError::new("down").with_kind("timeout"));
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!(7))), (Duration::ZERO, failed)]);
    let mut session = rules(NONE).middleware(hook).build().session();
    for id in ["c1", "c2"] {
        clock.block_on(session.execute(ToolCall::new(id, "look", json!({ "q": id })), &tool));
    }
    let expected = [
        r#"before c1 look {"q":"c1"}"#,
        "after c1 Some(Number(7)) None",
        r#"before c2 look {"q":"c2"}"#,
        r#"error down None of look {"q":"c2"}"#,
        r#"after c2 None Some("down")"#,
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn predicate_matches_on_the_input() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let audit = ToolHooks::new("customer-data-audit")
        .with_filter(|call| {
            call.tool == "exportCustomers"
                || call.tool.starts_with("admin")
                || call.tool == "searchCustomers" && call.input.get("email").is_some()
        })
        .before(|_| BeforeAction::Block("audited".into()));
    let mut session = rules(NONE).middleware(audit).build().session();
    for (name, input, kind) in [
        ("exportCustomers", json!({}), "denied"),
        ("adminReset", json!({}), "denied"),
        ("searchCustomers", json!({ "email": "ana@example.com" }), "denied"),
        ("searchCustomers", json!({ "name": "ana" }), "executed"),
        ("searchCustomers", json!("email"), "denied"),
        ("look", json!({ "email": "ana@example.com" }), "executed"),
    ] {
        let outcome = clock.block_on(session.execute(call(name, input.clone()), &tool));
        assert_eq!(kind_and_code(&outcome).0, kind, "{name} {input}");
    }
}

#[test]
fn hook_is_named_in_its_reasons() {
    let tool = Tool::counting(&noon());
    for says in [BeforeAction::Block("no".into()), BeforeAction::Halt("no".into())] {
        let hook = ToolHooks::new("dangerous-tools").before(move |_| says.clone());
        let mut session = rules(NONE).middleware(hook).build().session();
        let outcome = noon().block_on(session.execute(call("look", json!({})), &tool));
        assert_eq!(outcome.reason.policy.as_deref(), Some("dangerous-tools"));
        assert_eq!(outcome.reason.message, "no");
    }
}

#[test]
fn middleware_of_a_prompt_or_a_call_affects_only_its_own_session() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let engine = rules(NONE).build();
    let guard = ToolHooks::new("approval-for-this-route").before(|_| BeforeAction::Block("not here".into()));
    let mut guarded = engine.session().with_middleware(guard);
    let mut other = engine.session();
    assert_eq!(
        kind_and_code(&clock.block_on(guarded.execute(call("look", json!({})), &tool))),
        ("denied", "blocked")
    );
    assert_eq!(kind_and_code(&clock.block_on(other.execute(call("look", json!({})), &tool))).0, "executed");
}

fn calling(calls: &[(&str, &str)]) -> History {
    let parts = calls.iter().map(|(id, tool)| Part::call(*id, *tool, json!({}))).collect();
    History::new(vec![
        Message::new(Role::User, vec![Part::text("go on")]),
        Message::new(Role::Assistant, parts),
    ])
}

fn kinds(history: &History) -> Vec<String> {
    let parts = history.messages().iter().flat_map(Message::parts);
    let kind = |part: &Part| match part.content() {
        PartContent::Call(call) => Some(format!("call {}", call.id)),
        PartContent::Request(request) => Some(format!("request {}", request.tool_call_id)),
        PartContent::Response(response) => Some(format!("response {}", response.approved)),
        PartContent::Result(result) => Some(format!("result {} {}", result.call_id, result.name)),
        _ => None,
    };
    parts.filter_map(kind).collect()
}

#[test]
fn suspended_round_keeps_its_request_and_results_and_resume_repeats_none() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let session = || {
        let text = "policies: [ { id: ask, match: pay, approval: {} } ]";
        rules(text).keys(keys()).clock(clock.clone()).build().session().with_name("talk")
    };
    let mut history = calling(&[("a", "look"), ("b", "pay"), ("c", "look")]);
    let round = clock.block_on(session().run_round(&mut history, &tool)).unwrap();
    assert!(round.is_suspended());
    assert_eq!(round.pending().map(|request| request.tool_call_id.as_str()).collect::<Vec<_>>(), ["b"]);
    let mut left = kinds(&history);
    left.sort();
    assert_eq!(left, ["call a", "call b", "call c", "request b", "result a look", "result c look"]);
    let stored = history.clone();
    clock.block_on(session().resume(&mut history, &tool)).unwrap();
    // The session state is encrypted again each time.
    let visible = |history: &History| -> Vec<Part> {
        let parts = history.messages().iter().flat_map(Message::parts);
        parts.filter(|part| !matches!(part.content(), PartContent::State(_))).cloned().collect()
    };
    assert_eq!((visible(&history), tool.count()), (visible(&stored), 2));
    history.append_approval_response(approval_response("approval_b", true)).unwrap();
    clock.block_on(session().resume(&mut history, &tool)).unwrap();
    clock.block_on(session().resume(&mut history, &tool)).unwrap();
    assert_eq!(tool.calls().iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "c", "b"]);
}

#[test]
fn approval_helpers_build_find_and_append_the_same_response() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let engine = rules("policies: [ { id: ask, match: pay, approval: {} } ]").clock(clock.clone()).build();
    let mut history = calling(&[("c1", "pay")]);
    clock.block_on(engine.session().with_name("talk").run_round(&mut history, &tool)).unwrap();
    let id = history.find_approval_requests()[0].approval_id.clone();
    let mut response = approval_response(id.clone(), false);
    response.reason = Some("Refund exceeds the approval limit.".to_owned());
    let mut appended = history.clone();
    appended.append_approval_response(response.clone()).unwrap();
    history.push(approval_response_message(response.clone()));
    assert_eq!(kinds(&history), kinds(&appended));
    for mut history in [history, appended] {
        assert_eq!(history.find_approval_decision(&id), Some(&response));
        let round = clock.block_on(engine.session().with_name("talk").resume(&mut history, &tool)).unwrap();
        let [outcome] = &round.outcomes[..] else { panic!("{round:?}") };
        assert_eq!((kind_and_code(outcome), tool.count()), (("denied", "approval_denied"), 0));
        assert!(outcome.reason.message.contains("Refund exceeds the approval limit."));
        assert!(history.find_approval_requests().is_empty());
    }
}

/// The host puts a prompt's id and its input into the context, where hooks and rules read them.
#[test]
fn prompt_id_and_input_reach_hooks_and_rules_through_the_context() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let heard = Arc::clone(&seen);
    let hook = ToolHooks::new("ear").before(move |call| {
        heard.lock().unwrap().push(call.run.context["promptId"].clone());
        BeforeAction::Continue
    });
    let text = "policies: [ { id: p, match: { where: [ { path: $.context.promptId, eq: assistant } ] }, deny: {} } ]";
    let session = rules(text).middleware(hook).build().session();
    let mut session = session.with_context(json!({ "promptId": "assistant", "input": { "q": 1 } }));
    let mut history = calling(&[("c1", "look")]);
    let round = clock.block_on(session.run_round(&mut history, &tool)).unwrap();
    assert_eq!(kind_and_code(&round.outcomes[0]).0, "denied");
    assert_eq!(*seen.lock().unwrap(), [json!("assistant")]);
}
