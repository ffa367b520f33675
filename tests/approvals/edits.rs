//! Arguments that a person changes: what may be changed, what then runs, and what the model is told of it.

use callgate::ToolDescriptor;
use callgate::json::{Value, json};
use callgate::message::{Approver, ResponsePart, Settled};

use super::scene::{Scene, pending};
use crate::workshop::ended;

const EDITABLE: &str = "policies:
  - id: ask
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Refund?', edits: [$.input.amount, $.input.to] }
";

fn refund() -> Value {
    json!({ "amount": 250, "note": "late", "to": { "city": "Graz", "zip": 8010 } })
}

fn edited(of: &Scene, input: Value) -> ResponsePart {
    ResponsePart { edited_input: Some(input), ..of.yes() }
}

fn with(change: impl Fn(&mut Value)) -> Value {
    let mut input = refund();
    change(&mut input);
    input
}

#[test]
fn i1_what_a_person_may_change_runs_as_they_changed_it_and_the_model_is_told() {
    for given in [
        with(|input| input["amount"] = 120.into()),
        with(|input| input["to"]["zip"] = 8020.into()),
        with(|input| input["to"] = json!("pickup")),
        with(|input| drop(input.as_object_mut().unwrap().remove("to"))),
    ] {
        for mut scene in Scene::each(EDITABLE, &refund()) {
            scene.answer(edited(&scene, given.clone()));
            let outcome = scene.outcome();
            assert_eq!(ended(&outcome), ("executed", "approved"), "{given}");
            assert!(outcome.approved.as_ref().unwrap().edited);
            assert_eq!(scene.tool.inputs(), std::slice::from_ref(&given));
            let told = scene.results()[0].output.text();
            assert!(told.contains("changed its arguments") && told.contains(&given.to_string()), "{told}");
        }
    }
}

#[test]
fn i3_a_change_elsewhere_makes_the_answer_none() {
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
            assert_eq!(ended(&round.outcomes[0]), ("suspended", "approval_required"), "{given}");
            assert_eq!(round.ignored.len(), 1, "{given}");
            // As if it had not been given: another one counts.
            scene.approve();
            assert_eq!(ended(&scene.outcome()), ("executed", "approved"), "{given}");
            assert_eq!(scene.tool.inputs(), [refund()]);
        }
    }
}

#[test]
fn arguments_given_back_unchanged_are_no_change() {
    for mut scene in Scene::each(EDITABLE, &refund()) {
        let same = json!({ "to": { "zip": 8010, "city": "Graz" }, "note": "late", "amount": 250.0 });
        scene.answer(edited(&scene, same));
        let outcome = scene.outcome();
        assert_eq!(ended(&outcome), ("executed", "approved"));
        assert!(!outcome.approved.unwrap().edited);
        assert_eq!(scene.tool.inputs(), [refund()]);
    }
    // Nor do they part those who say yes to the same.
    let mut scene = Scene::asked(&EDITABLE.replace("edits", "quorum: 2, edits"), refund());
    scene.answer_as(Approver::new("bea"), edited(&scene, refund()));
    scene.answer_as(Approver::new("cid"), scene.yes());
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
}

#[test]
fn people_who_change_arguments_differently_have_not_agreed() {
    let mut scene = Scene::asked(&EDITABLE.replace("edits", "quorum: 2, edits"), refund());
    let given = with(|input| input["amount"] = 120.into());
    scene.answer_as(Approver::new("bea"), edited(&scene, given.clone()));
    scene.answer_as(Approver::new("cid"), scene.yes());
    assert_eq!(ended(&scene.outcome()), ("suspended", "approval_required"));
    scene.answer_as(Approver::new("dan"), edited(&scene, given.clone()));
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.inputs(), [given]);
}

#[test]
fn arguments_that_do_not_fit_their_schema_are_not_run() {
    let own = json!({ "type": "object", "properties": { "amount": { "maximum": 500 } } });
    let policys = EDITABLE.replace(
        "edits: [$.input.amount, $.input.to]",
        "edits: { fields: [$.input.amount], schema: { properties: { amount: { maximum: 500 } } } }",
    );
    let tool = ToolDescriptor {
        input_schema: Some(own),
        ..callgate::json::from_value(json!({ "name": "refund" })).unwrap()
    };
    for (rules, tools) in [(EDITABLE, vec![tool]), (policys.as_str(), Vec::new())] {
        let mut scene = Scene::new(rules);
        scene.tools = tools;
        scene.ask(refund());
        scene.answer(edited(&scene, with(|input| input["amount"] = 900.into())));
        let outcome = scene.outcome();
        assert_eq!(ended(&outcome), ("invalid", "schema_violation"));
        assert_eq!(scene.results()[0].settled, Settled::Error);
        assert_eq!(scene.tool.count(), 0);
        assert!(scene.resume().outcomes.is_empty());
    }
}

/// I10. People are shown no secrets; what they leave as it was shown stays what it really is.
#[test]
fn i1_what_is_hidden_from_people_keeps_its_real_value() {
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
        assert_eq!(ended(&outcome), ("executed", "approved"));
        assert!(!outcome.input.to_string().contains("ana@"));
        assert!(!scene.results()[0].output.text().contains("ana@"));
        let mut real = input.clone();
        real["amount"] = 120.into();
        assert_eq!(scene.tool.inputs(), [real]);
    }
}

#[test]
fn i6_changed_arguments_go_through_gate_again() {
    let denying = format!(
        "{EDITABLE}  - id: never
    match: {{ tool: refund, where: [ {{ path: $.input.amount, gt: 1000 }} ] }}
    deny: {{ message: 'too much' }}
"
    );
    let mut scene = Scene::asked(&denying, refund());
    scene.answer(edited(&scene, with(|input| input["amount"] = 2000.into())));
    assert_eq!(ended(&scene.outcome()), ("denied", "denied"));
    assert_eq!((scene.tool.count(), scene.results().len()), (0, 1));
}

/// I1. What another policy asks about is what the person made of it, and both yeses are for that.
#[test]
fn i1_changed_arguments_that_another_policy_asks_about_are_asked_about_as_they_are_now() {
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
        assert_eq!(ended(&round.outcomes[0]), ("suspended", "approval_required"));
        let asked = pending(&round).remove(0);
        assert_eq!((asked.policies.as_slice(), &asked.input), (&["boss".to_owned()][..], &large));
        assert_eq!(scene.request().input, Some(large.clone()));
        assert_eq!(scene.tool.count(), 0);
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(ended(&outcome), ("executed", "approved"));
        assert!(outcome.approved.unwrap().edited);
        assert_eq!(scene.tool.inputs(), std::slice::from_ref(&large));
    }
}

#[test]
fn i1_changed_arguments_that_a_transform_changes_again_are_asked_about_as_they_would_run() {
    let rules = format!(
        "{EDITABLE}  - id: cap
    match: {{ tool: refund, where: [ {{ path: $.input.amount, gt: 500 }} ] }}
    transform: {{ input: [ {{ path: $.input.amount, set: 500 }} ] }}
"
    );
    for (amount, outcome) in [(400, ("executed", "approved")), (900, ("suspended", "approval_required"))] {
        let mut scene = Scene::asked(&rules, refund());
        scene.answer(edited(&scene, with(|input| input["amount"] = amount.into())));
        assert_eq!(ended(&scene.outcome()), outcome);
        assert_eq!(scene.tool.count(), usize::from(amount == 400));
        if amount == 900 {
            let shown = with(|input| input["amount"] = 500.into());
            assert_eq!(scene.request().input, Some(shown.clone()));
            scene.approve();
            assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
            assert_eq!(scene.tool.inputs(), [shown]);
        }
    }
}

#[test]
fn i1_a_call_that_a_transform_changed_runs_as_people_saw_it() {
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
        assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
        assert_eq!(scene.tool.inputs(), [shown]);
    }
}
