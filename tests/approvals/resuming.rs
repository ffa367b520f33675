//! The outcome of a call for each response.

use callgate::json::json;
use callgate::message::{Dialect, ResponsePart, ResultStatus, approval_response};

use super::scene::Scene;
use crate::fixtures::kind_and_code;

#[test]
fn approved_call_runs_once() {
    let mut scene = Scene::refund(250);
    assert_eq!(scene.tool.count(), 0);
    assert_eq!(scene.request().message.as_deref(), Some("Refund 250?"));
    scene.approve();
    let outcome = scene.outcome();
    assert_eq!(kind_and_code(&outcome), ("executed", "approved"));
    assert_eq!(scene.tool.inputs(), [json!({"amount": 250, "note": "late"})]);
    assert!(scene.resume().outcomes.is_empty());
    assert_eq!(scene.tool.count(), 1);
    assert_eq!(scene.results().len(), 1);
}

#[test]
fn denied_call_does_not_run_and_the_model_reads_why() {
    for (reason, told) in
        [(Some("too much"), "a person denied this call: too much"), (None, "a person denied this call")]
    {
        let mut scene = Scene::refund(250);
        scene.deny(reason);
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("denied", "approval_denied"));
        let results = scene.results();
        assert_eq!((results[0].output.text().as_str(), results[0].status), (told, ResultStatus::Denied));
        assert_eq!(scene.tool.count(), 0);
    }
}

#[test]
fn pending_call_stays_pending_in_every_dialect() {
    for dialect in Dialect::ALL {
        let mut scene = Scene::refund(250);
        let request = scene.request();
        scene.through(dialect);
        assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"), "{dialect:?}");
        assert_eq!(scene.request(), request, "{dialect:?}");
        scene.approve();
        scene.through(dialect);
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"), "{dialect:?}");
        assert_eq!(scene.tool.count(), 1);
    }
}

#[test]
fn approver_can_answer_in_place_of_the_tool() {
    let mut scene = Scene::refund(250);
    let response = approval_response(scene.request().approval_id, true);
    scene.answer(ResponsePart { output: Some(json!({"refunded": 100})), ..response });
    let outcome = scene.outcome();
    assert_eq!(kind_and_code(&outcome), ("answered", "answered"));
    assert_eq!(outcome.output, Some(json!({"refunded": 100})));
    assert_eq!(scene.tool.count(), 0);
}
