//! Edits by approvers: which arguments are editable, what runs then, and what the model reads about it.

use callgate::ToolDescriptor;
use callgate::json::{Value, json};
use callgate::message::{Approver, ResponsePart, ResultStatus};

use super::scene::{Scene, pending};
use crate::fixtures::kind_and_code;

const EDITABLE: &str = "policies:
  - id: ask
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Refund?', edits: [$.input.amount, $.input.to] }
";

fn refund() -> Value {
    json!({ "amount": 250, "note": "late", "to": { "city": "Graz", "zip": 8010 } })
}

fn edited(of: &Scene, input: Value) -> ResponsePart {
    ResponsePart { edited_input: Some(input), ..of.approval() }
}

fn with(change: impl Fn(&mut Value)) -> Value {
    let mut input = refund();
    change(&mut input);
    input
}

#[test]
fn i1_edited_arguments_run_and_are_reported_to_the_model() {
    for given in [
        with(|input| input["amount"] = 120.into()),
        with(|input| input["to"]["zip"] = 8020.into()),
        with(|input| input["to"] = json!("pickup")),
        with(|input| drop(input.as_object_mut().unwrap().remove("to"))),
    ] {
        for mut scene in Scene::each(EDITABLE, &refund()) {
            scene.answer(edited(&scene, given.clone()));
            let outcome = scene.outcome();
            assert_eq!(kind_and_code(&outcome), ("executed", "approved"), "{given}");
            assert!(outcome.approved.as_ref().unwrap().edited);
            assert_eq!(scene.tool.inputs(), std::slice::from_ref(&given));
            let told = scene.results()[0].output.text();
            assert!(told.contains("changed its arguments") && told.contains(&given.to_string()), "{told}");
        }
    }
}

#[test]
fn i3_edit_of_non_editable_argument_invalidates_the_answer() {
    for given in [
        with(|input| input["note"] = "very late".into()),
        with(|input| drop(input.as_object_mut().unwrap().remove("note"))),
        with(|input| input["more"] = 1.into()),
        json!([]),
        json!("yes"),
        Value::Null,
    ] {
        for mut scene in Scene::each(EDITABLE, &refund()) {
            scene.answer(edited(&scene, given.clone()));
            let round = scene.resume();
            assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"), "{given}");
            assert_eq!(round.ignored.len(), 1, "{given}");
            // The response is ignored: another one counts.
            scene.approve();
            assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"), "{given}");
            assert_eq!(scene.tool.inputs(), [refund()]);
        }
    }
}

#[test]
fn unchanged_arguments_are_not_an_edit() {
    for mut scene in Scene::each(EDITABLE, &refund()) {
        let same = json!({ "to": { "zip": 8010, "city": "Graz" }, "note": "late", "amount": 250.0 });
        scene.answer(edited(&scene, same));
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("executed", "approved"));
        assert!(!outcome.approved.unwrap().edited);
        assert_eq!(scene.tool.inputs(), [refund()]);
    }
    // Nor do they make equal approvals differ.
    let mut scene = Scene::asked(&EDITABLE.replace("edits", "quorum: 2, edits"), refund());
    scene.answer_as(Approver::new("bea"), edited(&scene, refund()));
    scene.answer_as(Approver::new("cid"), scene.approval());
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
}

#[test]
fn approvals_with_different_edits_do_not_form_a_quorum() {
    let mut scene = Scene::asked(&EDITABLE.replace("edits", "quorum: 2, edits"), refund());
    let given = with(|input| input["amount"] = 120.into());
    scene.answer_as(Approver::new("bea"), edited(&scene, given.clone()));
    scene.answer_as(Approver::new("cid"), scene.approval());
    assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
    scene.answer_as(Approver::new("dan"), edited(&scene, given.clone()));
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.inputs(), [given]);
}

#[test]
fn edited_arguments_that_violate_the_schema_are_not_run() {
    let own = json!({ "type": "object", "properties": { "amount": { "maximum": 500 } } });
    let policys = EDITABLE.replace(
        "edits: [$.input.amount, $.input.to]",
        "edits: { fields: [$.input.amount], schema: { properties: { amount: { maximum: 500 } } } }",
    );
    let tool = ToolDescriptor {
        input_schema: Some(own),
        output_schema: None,
        ..callgate::json::from_value(json!({ "name": "refund" })).unwrap()
    };
    for (rules, tools) in [(EDITABLE, vec![tool]), (policys.as_str(), Vec::new())] {
        let mut scene = Scene::new(rules);
        scene.tools = tools;
        scene.ask(refund());
        scene.answer(edited(&scene, with(|input| input["amount"] = 900.into())));
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("invalid", "schema_violation"));
        assert_eq!(scene.results()[0].status, ResultStatus::Error);
        assert_eq!(scene.tool.count(), 0);
        assert!(scene.resume().outcomes.is_empty());
    }
}

/// I10. Approvers see no secrets; redacted values that they leave alone keep their real value.
#[test]
fn i1_redacted_value_keeps_its_real_value_when_unedited() {
    let rules = format!(
        "{EDITABLE}  - id: hide
    match: {{ tool: refund }}
    redact: {{ detect: [email], in: [input] }}
"
    );
    let input = json!({ "amount": 250, "note": "for ana@example.com", "to": { "mail": "ana@example.com" } });
    for mut scene in Scene::each(&rules, &input) {
        let mut shown = scene.request().input.unwrap();
        assert!(!shown.to_string().contains("ana@"), "{shown}");
        shown["amount"] = 120.into();
        scene.answer(edited(&scene, shown));
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("executed", "approved"));
        assert!(!outcome.input.to_string().contains("ana@"));
        assert!(!scene.results()[0].output.text().contains("ana@"));
        let mut real = input.clone();
        real["amount"] = 120.into();
        assert_eq!(scene.tool.inputs(), [real]);
    }
}

#[test]
fn i6_edited_arguments_pass_the_gate_again() {
    let denying = format!(
        "{EDITABLE}  - id: never
    match: {{ tool: refund, where: [ {{ path: $.input.amount, gt: 1000 }} ] }}
    deny: {{ message: 'too much' }}
"
    );
    let mut scene = Scene::asked(&denying, refund());
    scene.answer(edited(&scene, with(|input| input["amount"] = 2000.into())));
    assert_eq!(kind_and_code(&scene.outcome()), ("denied", "denied"));
    assert_eq!((scene.tool.count(), scene.results().len()), (0, 1));
}

/// I1. Another policy requires approval of the edited arguments, and both approvals are for those.
#[test]
fn i1_another_policy_requires_approval_of_the_edited_arguments() {
    let asking = format!(
        "{EDITABLE}  - id: boss
    match: {{ tool: refund, where: [ {{ path: $.input.amount, gt: 1000 }} ] }}
    approval: {{ message: 'So much?' }}
"
    );
    let large = with(|input| input["amount"] = 2000.into());
    for mut scene in Scene::each(&asking, &refund()) {
        scene.answer(edited(&scene, large.clone()));
        let round = scene.resume();
        assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"));
        let asked = pending(&round).remove(0);
        assert_eq!((asked.policies.as_slice(), &asked.input), (&["boss".to_owned()][..], &large));
        assert_eq!(scene.request().input, Some(large.clone()));
        assert_eq!(scene.tool.count(), 0);
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("executed", "approved"));
        assert!(outcome.approved.unwrap().edited);
        assert_eq!(scene.tool.inputs(), std::slice::from_ref(&large));
    }
}

#[test]
fn i1_transformed_edits_require_approval_as_they_would_run() {
    let rules = format!(
        "{EDITABLE}  - id: cap
    match: {{ tool: refund, where: [ {{ path: $.input.amount, gt: 500 }} ] }}
    transform: {{ input: [ {{ path: $.input.amount, set: 500 }} ] }}
"
    );
    for (amount, outcome) in [(400, ("executed", "approved")), (900, ("suspended", "approval_required"))] {
        let mut scene = Scene::asked(&rules, refund());
        scene.answer(edited(&scene, with(|input| input["amount"] = amount.into())));
        assert_eq!(kind_and_code(&scene.outcome()), outcome);
        assert_eq!(scene.tool.count(), usize::from(amount == 400));
        if amount == 900 {
            let shown = with(|input| input["amount"] = 500.into());
            assert_eq!(scene.request().input, Some(shown.clone()));
            scene.approve();
            assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
            assert_eq!(scene.tool.inputs(), [shown]);
        }
    }
}

#[test]
fn i1_transformed_call_runs_as_approvers_saw_it() {
    let rules = format!(
        "{EDITABLE}  - id: mark
    match: {{ tool: refund }}
    transform: {{ input: [ {{ path: $.input.reviewed, set: true }} ] }}
"
    );
    for mut scene in Scene::each(&rules, &refund()) {
        let shown = scene.request().input.unwrap();
        assert_eq!(shown["reviewed"], json!(true));
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
        assert_eq!(scene.tool.inputs(), [shown]);
    }
}
