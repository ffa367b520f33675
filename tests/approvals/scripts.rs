//! Approvals inside of `around` scripts: a script's own questions, and calls that it makes of the model's.

use callgate::json::{Value, json};
use callgate::message::ResponsePart;

use super::scene::Scene;
use crate::workshop::ended;

fn script(text: &str, others: &str) -> String {
    let text = text.replace('\n', "\n        ");
    format!(
        "policies:\n  - id: wrap\n    match: refund\n    around:\n      script: |\n        {text}\n{others}"
    )
}

/// Asks about what is above 100.
const ASK: &str = "  - id: ask
    match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
    approval: { message: 'Refund {{ input.amount }}?', edits: [$.input.note] }
";

fn refund() -> Value {
    json!({ "amount": 40, "note": "late" })
}

#[test]
fn a_script_that_asked_goes_on_from_where_it_stopped() {
    let rules = script(
        "let lot = random();\napprove(\"Refund it?\");\nlet gave = next(input);\n#{ lot: lot, gave: gave }",
        "",
    );
    for mut scene in Scene::each(&rules, &refund()) {
        assert_eq!(scene.request().message.as_deref(), Some("Refund it?"));
        assert_eq!(scene.request().policies, ["wrap"]);
        assert_eq!(ended(&scene.outcome()), ("suspended", "approval_required"));
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(outcome.outcome.name(), "executed", "{outcome:?}");
        assert_eq!(scene.tool.inputs(), [refund()]);
        assert!(scene.resume().outcomes.is_empty());
    }
}

#[test]
fn i3_a_script_whose_question_was_denied_does_not_go_on() {
    let rules = script("if approve(\"Go?\") { next(input) } else { \"not\" }", "");
    for mut scene in Scene::each(&rules, &refund()) {
        scene.deny(Some("no"));
        assert_eq!(ended(&scene.outcome()), ("denied", "approval_denied"));
        assert_eq!(scene.tool.count(), 0);
    }
}

#[test]
fn a_script_may_ask_several_times_and_each_yes_is_for_its_own_question() {
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

/// A yes that gives the arguments back as they were shown is a plain yes.
#[test]
fn arguments_given_back_to_a_scripts_question_change_nothing() {
    let rules = script("approve(\"Go?\"); next(input)", "");
    for mut scene in Scene::each(&rules, &refund()) {
        let shown = scene.request().input;
        scene.answer(ResponsePart { edited_input: shown, ..scene.yes() });
        let outcome = scene.outcome();
        assert_eq!(outcome.outcome.name(), "executed", "{outcome:?}");
        assert!(!outcome.approved.unwrap().edited);
    }
}

/// I1. What a script calls with is what people are asked about, and what runs.
#[test]
fn i1_arguments_that_a_script_makes_are_those_that_are_bound() {
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
        assert_eq!(ended(&outcome).0, "executed", "{outcome:?}");
        assert_eq!((scene.tool.inputs(), outcome.input), (vec![large.clone()], large));
    }
}

/// I1. A person can't exchange what a script calls with.
#[test]
fn i1_a_change_of_arguments_that_a_script_made_counts_for_nothing() {
    let rules = script("input.amount = 400;\nnext(input)", ASK);
    for mut scene in Scene::each(&rules, &refund()) {
        let changed = json!({ "amount": 400, "note": "soon" });
        scene.answer(ResponsePart { edited_input: Some(changed), ..scene.yes() });
        let round = scene.resume();
        assert_eq!(ended(&round.outcomes[0]), ("suspended", "approval_required"));
        assert_eq!((round.ignored.len(), scene.tool.count()), (1, 0));
    }
}

/// I1. A script that does something else after the answer than it did before is not run with that answer.
#[test]
fn i1_a_script_that_changed_since_asks_for_what_it_does_now() {
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
                    assert_eq!(ended(&outcome), ("suspended", "approval_required"));
                    assert_eq!(scene.request().input.unwrap()["amount"], amount);
                    assert_eq!(scene.tool.count(), 0);
                }
                None => assert_eq!(scene.tool.inputs(), [json!({ "amount": 50, "note": "late" })]),
            }
        }
    }
}

/// Both the call and what a script makes of it are asked about, one after the other, and both yeses hold.
#[test]
fn i1_a_call_and_what_a_script_makes_of_it_are_asked_about_each() {
    let rules = script("input.amount += 100;\nnext(input)", ASK);
    for mut scene in Scene::each(&rules, &json!({ "amount": 150 })) {
        assert_eq!(scene.request().input, Some(json!({ "amount": 150 })));
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(ended(&outcome), ("suspended", "approval_required"));
        assert_eq!(scene.request().input, Some(json!({ "amount": 250 })));
        assert_eq!(scene.tool.count(), 0);
        scene.approve();
        assert_eq!(scene.outcome().outcome.name(), "executed");
        assert_eq!(scene.tool.inputs(), [json!({ "amount": 250 })]);
    }
}

#[test]
fn i3_what_a_script_holds_is_lost_with_a_token_that_was_changed() {
    let rules = script("let lot = random();\napprove(\"Go?\"); next(#{ lot: lot })", "");
    let mut scene = Scene::asked(&rules, refund());
    scene.approve();
    scene.history = super::scene::with_request(&scene.history, |request| {
        let token = request.approval_token.take().unwrap();
        request.approval_token = Some(token.replacen('A', "B", 1));
    });
    // Gate lets the call by: only its script would ask, and with nobody's question it does not begin.
    let round = scene.resume();
    assert_eq!(ended(&round.outcomes[0]), ("denied", "approval_invalid"));
    assert_eq!((round.ignored.len(), scene.tool.count()), (1, 0));
}
