//! How people are asked: one at a time, not too often, and who watches is told once.

use callgate::json::{Value, json};
use callgate::message::{Message, Output, ResponsePart, Role, Settled, Settlement, approval_response};

use super::scene::{REFUNDS, Scene};
use crate::workshop::ended;

fn refund() -> Value {
    json!({ "amount": 250 })
}

#[test]
fn of_a_round_one_call_asks_where_a_policy_says_so() {
    let rules = REFUNDS.replace("expires: 24h", "present: first");
    let mut scene = Scene::new(&rules);
    let calls = ["a", "b", "c"].map(|id| (id, "refund", json!({ "amount": 250, "of": id })));
    scene.model_calls(&calls);
    scene.model_calls(&[("d", "refund", json!({ "amount": 1 }))]);
    let round = scene.round();
    let outcomes: Vec<_> = round.outcomes.iter().map(ended).collect();
    assert_eq!(
        outcomes[..3],
        [("suspended", "approval_required"), ("denied", "ask_again"), ("denied", "ask_again")]
    );
    assert_eq!((outcomes[3].0, scene.requests().len()), ("executed", 1));
    scene.approve();
    scene.resume();
    // The model asks for the next one again.
    scene.model_calls(&[("e", "refund", json!({ "amount": 250, "of": "b" }))]);
    assert_eq!(ended(&scene.round().outcomes[0]), ("suspended", "approval_required"));
    assert_eq!(scene.tool.count(), 2);
}

/// The same question of one session is counted, shown with its count, and not put for ever.
#[test]
fn people_are_not_asked_the_same_for_ever() {
    for mut scene in Scene::with_both_stores(REFUNDS) {
        scene.resume();
        for repeat in 0..5_u64 {
            scene.ask(refund());
            assert_eq!(scene.request().repeats, (repeat > 0).then_some(repeat), "{repeat}");
            // Taking the session up again is no further question.
            assert_eq!(scene.resume().outcomes[0].outcome.name(), "suspended");
            scene.deny(None);
            scene.resume();
        }
        let outcome = scene.ask(refund()).outcomes.remove(0);
        assert_eq!(ended(&outcome), ("denied", "asked_too_often"));
        assert!(scene.requests().is_empty());
        // Something else is asked about all the same.
        let other = scene.ask(json!({ "amount": 300 })).outcomes.remove(0);
        assert_eq!(ended(&other), ("suspended", "approval_required"));
    }
}

/// What people let be done again and again is asked about each time.
#[test]
fn what_people_say_yes_to_is_asked_about_however_often_it_comes() {
    for mut scene in Scene::with_both_stores(REFUNDS) {
        scene.resume();
        for repeat in 0..8_u64 {
            let outcome = scene.ask(refund()).outcomes.remove(0);
            assert_eq!(ended(&outcome), ("suspended", "approval_required"), "{repeat}");
            assert_eq!(scene.request().repeats, None, "{repeat}");
            scene.answer(scene.yes());
            scene.resume();
        }
    }
}

/// Each question and each decision is told once, however often its session is taken up.
#[test]
fn who_watches_is_told_once_of_each_question_and_decision() {
    type Answer = fn(&Scene) -> ResponsePart;
    let table: [(Answer, &str); 4] = [
        (Scene::yes, "approved"),
        (|scene| ResponsePart { output: Some(json!(1)), ..scene.yes() }, "answered"),
        (|scene| ResponsePart { approved: false, ..scene.yes() }, "approval_denied"),
        (|scene| ResponsePart { cancel: true, ..scene.yes() }, "cancelled"),
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
                scene.watcher.told(),
                ["request approval_c1".to_owned(), format!("{code} approval_c1")]
            );
        }
    }
    let mut lapsed = Scene::refund(250);
    lapsed.advance(24 * 3600);
    lapsed.resume();
    lapsed.resume();
    assert_eq!(lapsed.watcher.told(), ["request approval_c1", "approval_expired approval_c1"]);
}

fn notified(scene: &Scene) -> Vec<(String, bool, String)> {
    let session = scene.session();
    let told = scene.clock.drive(session.notify_decisions(&scene.history));
    told.into_iter().map(|decision| (decision.approval_id, decision.approved, decision.code)).collect()
}

/// For agents whose tools are run elsewhere: decisions are told by the history alone, and nothing runs.
#[test]
fn decisions_of_a_history_are_told_without_running_anything() {
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
        assert!(notified(&scene).is_empty(), "told twice");
        assert_eq!(scene.tool.count(), 0);
        // Whoever then runs the calls all the same tells nothing again.
        scene.resume();
        assert_eq!(scene.tool.count(), 1);
        assert_eq!(scene.watcher.told().iter().filter(|told| !told.starts_with("request")).count(), 2);
        assert!(notified(&scene).is_empty());
    }
}

/// A host that acts on decisions by itself, beside one that takes sessions up: each call runs in one of the two places.
#[test]
fn a_host_drives_what_was_decided_by_itself_beside_resume() {
    let mut scene = Scene::new(REFUNDS);
    scene.model_calls(&["a", "b"].map(|id| (id, "refund", json!({ "amount": 250, "of": id }))));
    scene.round();
    for id in ["approval_a", "approval_b"] {
        scene.answer(approval_response(id, true));
    }
    assert_eq!(notified(&scene).len(), 2);
    // It refunds `a` in its own way, and puts the result into the history.
    let place = scene.history.occurrences()[0].place;
    let output = Output::Text("refunded by hand".to_owned());
    scene.history.append_results(vec![Settlement { place, output, settled: Settled::Output }]).unwrap();
    let older = scene.history.clone();
    scene.resume();
    assert_eq!(scene.tool.inputs(), [json!({ "amount": 250, "of": "b" })]);
    let told: Vec<String> = scene.results().iter().map(|result| result.output.text()).collect();
    assert_eq!(told, ["refunded by hand", "1"]);
    // It takes `b` up as well, by what it knew before.
    scene.history = older;
    scene.resume();
    assert_eq!((scene.tool.count(), scene.results().last().unwrap().output.text()), (1, "1".to_owned()));
    assert_eq!(scene.watcher.told().iter().filter(|told| told.starts_with("approved")).count(), 2);
}

#[test]
fn i3_no_decision_is_told_of_a_question_that_is_not_ours() {
    let mut scene = Scene::refund(250);
    scene.approve();
    scene.history = super::scene::with_request(&scene.history, |request| request.message = None);
    let elsewhere = Scene { history: scene.history.clone(), ..Scene::new(REFUNDS) };
    assert!(notified(&elsewhere).is_empty());
    assert!(elsewhere.watcher.told().is_empty());
}

#[test]
fn a_yes_that_came_too_late_is_told_as_lapsed() {
    let mut scene = Scene::refund(250);
    scene.approve();
    scene.advance(24 * 3600);
    assert_eq!(notified(&scene), [("approval_c1".to_owned(), false, "approval_expired".to_owned())]);
}
