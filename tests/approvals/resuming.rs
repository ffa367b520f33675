//! What becomes of a call by each answer.

use callgate::json::json;
use callgate::message::{Dialect, ResponsePart, Settled, approval_response};

use super::scene::Scene;
use crate::workshop::ended;

#[test]
fn an_approved_call_runs_once() {
    let mut scene = Scene::refund(250);
    assert_eq!(scene.tool.count(), 0);
    assert_eq!(scene.request().message.as_deref(), Some("Refund 250?"));
    scene.approve();
    let outcome = scene.outcome();
    assert_eq!(ended(&outcome), ("executed", "approved"));
    assert_eq!(scene.tool.inputs(), [json!({"amount": 250, "note": "late"})]);
    assert!(scene.resume().outcomes.is_empty());
    assert_eq!(scene.tool.count(), 1);
    assert_eq!(scene.results().len(), 1);
}

#[test]
fn a_denied_call_does_not_run_and_its_model_is_told_why() {
    for (reason, told) in
        [(Some("too much"), "a person denied this call: too much"), (None, "a person denied this call")]
    {
        let mut scene = Scene::refund(250);
        scene.deny(reason);
        let outcome = scene.outcome();
        assert_eq!(ended(&outcome), ("denied", "approval_denied"));
        let results = scene.results();
        assert_eq!((results[0].output.text().as_str(), results[0].settled), (told, Settled::Denied));
        assert_eq!(scene.tool.count(), 0);
    }
}

#[test]
fn what_waits_goes_on_waiting_in_every_dialect() {
    for dialect in Dialect::ALL {
        let mut scene = Scene::refund(250);
        let request = scene.request();
        scene.through(dialect);
        assert_eq!(ended(&scene.outcome()), ("suspended", "approval_required"), "{dialect:?}");
        assert_eq!(scene.request(), request, "{dialect:?}");
        scene.approve();
        scene.through(dialect);
        assert_eq!(ended(&scene.outcome()), ("executed", "approved"), "{dialect:?}");
        assert_eq!(scene.tool.count(), 1);
    }
}

#[test]
fn a_person_may_answer_in_the_tools_place() {
    let mut scene = Scene::refund(250);
    let response = approval_response(scene.request().approval_id, true);
    scene.answer(ResponsePart { output: Some(json!({"refunded": 100})), ..response });
    let outcome = scene.outcome();
    assert_eq!(ended(&outcome), ("answered", "answered"));
    assert_eq!(outcome.output, Some(json!({"refunded": 100})));
    assert_eq!(scene.tool.count(), 0);
}
