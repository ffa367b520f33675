//! Approvals inside `around` scripts: requests by the script itself, and requests about the calls that it makes.

use callgate::json::{Value, json};
use callgate::message::ResponsePart;

use super::scene::Scene;
use crate::fixtures::kind_and_code;

fn script(text: &str, others: &str) -> String {
    let text = text.replace('\n', "\n        ");
    format!(
        "policies:\n  - id: wrap\n    match: refund\n    around:\n      script: |\n        {text}\n{others}"
    )
}

/// Requires approval of amounts above 100.
const ASK: &str = "  - id: ask
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Refund {{ input.amount }}?', edits: [$.input.note] }
";

fn refund() -> Value {
    json!({ "amount": 40, "note": "late" })
}

#[test]
fn script_resumes_where_it_requested_approval() {
    let rules = script(
        "let lot = random();\napprove(\"Refund it?\");\nlet gave = next(input);\n#{ lot: lot, gave: gave }",
        "",
    );
    for mut scene in Scene::each(&rules, &refund()) {
        assert_eq!(scene.request().message.as_deref(), Some("Refund it?"));
        assert_eq!(scene.request().policies, ["wrap"]);
        assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(outcome.outcome.name(), "executed", "{outcome:?}");
        assert_eq!(scene.tool.inputs(), [refund()]);
        assert!(scene.resume().outcomes.is_empty());
    }
}

#[test]
fn i3_script_does_not_continue_after_denial() {
    let rules = script("if approve(\"Go?\") { next(input) } else { \"not\" }", "");
    for mut scene in Scene::each(&rules, &refund()) {
        scene.deny(Some("no"));
        assert_eq!(kind_and_code(&scene.outcome()), ("denied", "approval_denied"));
        assert_eq!(scene.tool.count(), 0);
    }
}

#[test]
fn script_may_request_several_approvals_each_for_its_own_request() {
    let rules = script("approve(\"One?\"); approve(\"Two?\"); next(input)", "");
    for mut scene in Scene::each(&rules, &refund()) {
        for question in ["One?", "Two?"] {
            assert_eq!(scene.request().message.as_deref(), Some(question));
            assert_eq!(scene.tool.count(), 0);
            scene.approve();
            scene.resume();
        }
        assert_eq!((scene.tool.count(), scene.results().len()), (1, 1));
    }
}

/// An approval that returns the arguments unchanged is a plain approval.
#[test]
fn unchanged_arguments_in_a_scripts_approval_are_not_an_edit() {
    let rules = script("approve(\"Go?\"); next(input)", "");
    for mut scene in Scene::each(&rules, &refund()) {
        let shown = scene.request().input;
        scene.answer(ResponsePart { edited_input: shown, ..scene.approval() });
        let outcome = scene.outcome();
        assert_eq!(outcome.outcome.name(), "executed", "{outcome:?}");
        assert!(!outcome.approved.unwrap().edited);
    }
}

/// I1. The arguments that a script passes on require approval, and run.
#[test]
fn i1_arguments_produced_by_a_script_are_bound() {
    let rules = script("input.amount = 400;\nnext(input)", ASK);
    for mut scene in Scene::each(&rules, &refund()) {
        let large = json!({ "amount": 400, "note": "late" });
        let request = scene.request();
        assert_eq!(
            (request.input.as_ref(), request.policies.as_slice()),
            (Some(&large), &["ask".to_owned()][..])
        );
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome).0, "executed", "{outcome:?}");
        assert_eq!((scene.tool.inputs(), outcome.input), (vec![large.clone()], large));
    }
}

/// I1. Approvers cannot edit the arguments that a script passes on.
#[test]
fn i1_edit_of_script_arguments_is_ignored() {
    let rules = script("input.amount = 400;\nnext(input)", ASK);
    for mut scene in Scene::each(&rules, &refund()) {
        let changed = json!({ "amount": 400, "note": "soon" });
        scene.answer(ResponsePart { edited_input: Some(changed), ..scene.approval() });
        let round = scene.resume();
        assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"));
        assert_eq!((round.ignored.len(), scene.tool.count()), (1, 0));
    }
}

/// I1. A script that behaves differently after the approval does not run with that approval.
#[test]
fn i1_changed_script_requests_approval_for_its_new_call() {
    let rules = script("input.amount = 400;\nnext(input)", ASK);
    for (changed, asks) in [
        (script("input.amount = 900;\nnext(input)", ASK), Some(900)),
        (script("input.amount = 50;\nnext(input)", ASK), None),
    ] {
        for mut scene in Scene::each(&rules, &refund()) {
            scene.approve();
            scene.rules = changed.clone();
            let outcome = scene.outcome();
            match asks {
                Some(amount) => {
                    assert_eq!(kind_and_code(&outcome), ("suspended", "approval_required"));
                    assert_eq!(scene.request().input.unwrap()["amount"], amount);
                    assert_eq!(scene.tool.count(), 0);
                }
                None => assert_eq!(scene.tool.inputs(), [json!({ "amount": 50, "note": "late" })]),
            }
        }
    }
}

/// The call and the script's version of it require approval one after the other, and both approvals count.
#[test]
fn i1_call_and_its_scripted_version_each_require_approval() {
    let rules = script("input.amount += 100;\nnext(input)", ASK);
    for mut scene in Scene::each(&rules, &json!({ "amount": 150 })) {
        assert_eq!(scene.request().input, Some(json!({ "amount": 150 })));
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("suspended", "approval_required"));
        assert_eq!(scene.request().input, Some(json!({ "amount": 250 })));
        assert_eq!(scene.tool.count(), 0);
        scene.approve();
        assert_eq!(scene.outcome().outcome.name(), "executed");
        assert_eq!(scene.tool.inputs(), [json!({ "amount": 250 })]);
    }
}

#[test]
fn i3_script_state_is_lost_with_a_tampered_token() {
    let rules = script("let lot = random();\napprove(\"Go?\"); next(#{ lot: lot })", "");
    let mut scene = Scene::asked(&rules, refund());
    scene.approve();
    scene.history = super::scene::with_request(&scene.history, |request| {
        let token = request.approval_token.take().unwrap();
        request.approval_token = Some(token.replacen('A', "B", 1));
    });
    // The gate allows the call: only its script would require approval, and with an unverified request it does not start.
    let round = scene.resume();
    assert_eq!(kind_and_code(&round.outcomes[0]), ("denied", "approval_invalid"));
    assert_eq!((round.ignored.len(), scene.tool.count()), (1, 0));
}
