//! How approvers are asked: one request at a time, not too often, and with one notification per event.

use callgate::json::{Value, json};
use callgate::message::{
    CallResult, Message, ResponsePart, ResultOutput, ResultStatus, Role, approval_response,
};

use super::scene::{REFUNDS, Scene};
use crate::fixtures::kind_and_code;

fn refund() -> Value {
    json!({ "amount": 250 })
}

#[test]
fn only_one_call_of_a_round_is_pending_if_so_configured() {
    let rules = REFUNDS.replace("expires: 24h", "present: first");
    let mut scene = Scene::new(&rules);
    let calls = ["a", "b", "c"].map(|id| (id, "refund", json!({ "amount": 250, "of": id })));
    scene.model_calls(&calls);
    scene.model_calls(&[("d", "refund", json!({ "amount": 1 }))]);
    let round = scene.round();
    let outcomes: Vec<_> = round.outcomes.iter().map(kind_and_code).collect();
    assert_eq!(
        outcomes[..3],
        [("suspended", "approval_required"), ("denied", "ask_again"), ("denied", "ask_again")]
    );
    assert_eq!((outcomes[3].0, scene.requests().len()), ("executed", 1));
    scene.approve();
    scene.resume();
    // The model makes the next call again.
    scene.model_calls(&[("e", "refund", json!({ "amount": 250, "of": "b" }))]);
    assert_eq!(kind_and_code(&scene.round().outcomes[0]), ("suspended", "approval_required"));
    assert_eq!(scene.tool.count(), 2);
}

/// Repeated requests of one session are counted, show their count, and stop at a limit.
#[test]
fn identical_requests_are_limited() {
    for mut scene in Scene::with_both_stores(REFUNDS) {
        scene.resume();
        for repeat in 0..5_u64 {
            scene.ask(refund());
            assert_eq!(scene.request().repeats, (repeat > 0).then_some(repeat), "{repeat}");
            // Resuming the session does not count as another request.
            assert_eq!(scene.resume().outcomes[0].outcome.name(), "suspended");
            scene.deny(None);
            scene.resume();
        }
        let outcome = scene.ask(refund()).outcomes.remove(0);
        assert_eq!(kind_and_code(&outcome), ("denied", "asked_too_often"));
        assert!(scene.requests().is_empty());
        // Requests about other calls are not affected.
        let other = scene.ask(json!({ "amount": 300 })).outcomes.remove(0);
        assert_eq!(kind_and_code(&other), ("suspended", "approval_required"));
    }
}

/// A call that is approved every time requires approval every time.
#[test]
fn approved_call_requires_approval_each_time_it_is_made() {
    for mut scene in Scene::with_both_stores(REFUNDS) {
        scene.resume();
        for repeat in 0..8_u64 {
            let outcome = scene.ask(refund()).outcomes.remove(0);
            assert_eq!(kind_and_code(&outcome), ("suspended", "approval_required"), "{repeat}");
            assert_eq!(scene.request().repeats, None, "{repeat}");
            scene.answer(scene.approval());
            scene.resume();
        }
    }
}

/// Observers are notified of each request and each decision once, however often the session resumes.
#[test]
fn observers_are_notified_once_of_each_request_and_decision() {
    type Answer = fn(&Scene) -> ResponsePart;
    let table: [(Answer, &str); 4] = [
        (Scene::approval, "approved"),
        (|scene| ResponsePart { output: Some(json!(1)), ..scene.approval() }, "answered"),
        (|scene| ResponsePart { approved: false, ..scene.approval() }, "approval_denied"),
        (|scene| ResponsePart { cancel: true, ..scene.approval() }, "cancelled"),
    ];
    for (answer, code) in table {
        for mut scene in Scene::each(REFUNDS, &refund()) {
            scene.resume();
            scene.answer(answer(&scene));
            let before = scene.history.clone();
            scene.resume();
            scene.resume();
            scene.history = before;
            scene.resume();
            assert_eq!(
                scene.watcher.notifications(),
                ["request approval_c1".to_owned(), format!("{code} approval_c1")]
            );
        }
    }
    let mut lapsed = Scene::refund(250);
    lapsed.advance(24 * 3600);
    lapsed.resume();
    lapsed.resume();
    assert_eq!(lapsed.watcher.notifications(), ["request approval_c1", "approval_expired approval_c1"]);
}

fn notified(scene: &Scene) -> Vec<(String, bool, String)> {
    let session = scene.session();
    let told = scene.clock.block_on(session.notify_decisions(&scene.history));
    told.into_iter().map(|decision| (decision.approval_id, decision.approved, decision.code)).collect()
}

/// For agents whose tools run elsewhere: decisions are reported from the history alone, and nothing runs.
#[test]
fn decisions_in_a_history_are_reported_without_running_anything() {
    for keys in [true, false] {
        let mut scene = Scene::new(REFUNDS);
        if !keys {
            scene.keys = None;
        }
        let calls = ["a", "b", "c", "d"].map(|id| (id, "refund", json!({ "amount": 250, "of": id })));
        scene.model_calls(&calls);
        scene.round();
        assert!(notified(&scene).is_empty());
        scene.answer(approval_response("approval_a", true));
        scene.answer(ResponsePart { reason: Some("no".into()), ..approval_response("approval_b", false) });
        scene.answer(ResponsePart {
            approval_token: Some("wrong".into()),
            ..approval_response("approval_c", true)
        });
        scene.history.push(Message::new(Role::Tool, vec![approval_response("approval_x", true).into()]));
        let told = [("approval_a", true, "approved"), ("approval_b", false, "approval_denied")];
        let told = told.map(|(id, approved, code)| (id.to_owned(), approved, code.to_owned()));
        assert_eq!(notified(&scene), told);
        assert!(notified(&scene).is_empty(), "notified twice");
        assert_eq!(scene.tool.count(), 0);
        // Running the calls afterwards reports nothing again.
        scene.resume();
        assert_eq!(scene.tool.count(), 1);
        assert_eq!(
            scene.watcher.notifications().iter().filter(|told| !told.starts_with("request")).count(),
            2
        );
        assert!(notified(&scene).is_empty());
    }
}

/// A host that executes decided calls itself, beside one that resumes sessions: each call runs in exactly one of them.
#[test]
fn host_can_execute_decided_calls_beside_resume() {
    let mut scene = Scene::new(REFUNDS);
    scene.model_calls(&["a", "b"].map(|id| (id, "refund", json!({ "amount": 250, "of": id }))));
    scene.round();
    for id in ["approval_a", "approval_b"] {
        scene.answer(approval_response(id, true));
    }
    assert_eq!(notified(&scene).len(), 2);
    // It refunds `a` itself and adds the result to the history.
    let position = scene.history.occurrences()[0].position;
    let output = ResultOutput::Text("refunded by hand".to_owned());
    scene
        .history
        .append_results(vec![CallResult { position, output, status: ResultStatus::Output }])
        .unwrap();
    let older = scene.history.clone();
    scene.resume();
    assert_eq!(scene.tool.inputs(), [json!({ "amount": 250, "of": "b" })]);
    let told: Vec<String> = scene.results().iter().map(|result| result.output.text()).collect();
    assert_eq!(told, ["refunded by hand", "1"]);
    // It resumes `b` as well, from its older copy of the history.
    scene.history = older;
    scene.resume();
    assert_eq!((scene.tool.count(), scene.results().last().unwrap().output.text()), (1, "1".to_owned()));
    assert_eq!(scene.watcher.notifications().iter().filter(|told| told.starts_with("approved")).count(), 2);
}

#[test]
fn i3_decision_on_a_foreign_request_is_not_reported() {
    let mut scene = Scene::refund(250);
    scene.approve();
    scene.history = super::scene::with_request(&scene.history, |request| request.message = None);
    let elsewhere = Scene { history: scene.history.clone(), ..Scene::new(REFUNDS) };
    assert!(notified(&elsewhere).is_empty());
    assert!(elsewhere.watcher.notifications().is_empty());
}

#[test]
fn late_approval_is_reported_as_expired() {
    let mut scene = Scene::refund(250);
    scene.approve();
    scene.advance(24 * 3600);
    assert_eq!(notified(&scene), [("approval_c1".to_owned(), false, "approval_expired".to_owned())]);
}
