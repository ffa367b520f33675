//! A yes that stands for later calls: for which, for how long, and how it ends.

use callgate::json::{Value, json};
use callgate::message::{Approver, ResponsePart};

use super::scene::Scene;
use crate::workshop::{Tool, ended};

const EXACT: &str = "policies:
  - id: ask
    match: refund
    approval: { message: 'Go?', remember: { scope: arguments, for: 8h } }
";
const FIELDS: &str = "policies:
  - id: ask
    match: '*'
    approval: { message: 'Go?', remember: { scope: fields, fields: [$.input.to, $.input.of.kind], for: 8h } }
";

fn refund() -> Value {
    json!({ "amount": 250, "to": "ana", "of": { "kind": "book", "n": 1 } })
}

fn with(path: &str, value: Value) -> Value {
    let mut input = refund();
    *input.pointer_mut(path).unwrap() = value;
    input
}

/// A scene in which one call was approved, and ran.
fn approved(rules: &str) -> Scene {
    let mut scene = Scene::asked(rules, refund());
    scene.approve();
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    scene.tool = Tool::counting(&scene.clock);
    scene
}

/// How the next call goes.
fn next(scene: &mut Scene, tool: &str, input: Value) -> String {
    scene.model_calls(&[("c2", tool, input)]);
    scene.round().outcomes[0].outcome.name().to_owned()
}

#[test]
fn a_yes_stands_for_the_calls_it_was_given_for_and_no_others() {
    for (rules, tool, input, runs) in [
        (EXACT, "refund", refund(), true),
        (EXACT, "refund", with("/amount", json!(250.0)), true),
        (EXACT, "refund", with("/amount", json!(251)), false),
        (FIELDS, "refund", with("/amount", json!(9)), true),
        (FIELDS, "refund", with("/of/n", json!(9)), true),
        (FIELDS, "refund", with("/of/kind", json!("car")), false),
        (FIELDS, "refund", with("/to", json!("bea")), false),
        (FIELDS, "refund", with("/to", Value::Null), false),
        (FIELDS, "refund", json!({ "to": "ana" }), false),
        (FIELDS, "refund", with("/of", json!("book")), false),
        (FIELDS, "refunds", refund(), false),
    ] {
        let mut scene = approved(rules);
        let expected = if runs { "executed" } else { "suspended" };
        assert_eq!(next(&mut scene, tool, input.clone()), expected, "{tool} {input}");
        assert_eq!(scene.tool.count(), usize::from(runs));
    }
}

#[test]
fn an_outcome_says_whose_yes_it_runs_by() {
    let mut scene = Scene::asked(&EXACT.replace("remember", "approvers: [bea], remember"), refund());
    scene.answer_as(Approver::new("bea"), scene.yes());
    scene.resume();
    scene.model_calls(&[("c2", "refund", refund())]);
    let outcome = scene.round().outcomes.remove(0);
    let by = outcome.approved.unwrap();
    assert_eq!((by.approval_id.as_str(), by.by.as_slice()), ("approval_c1", &["bea".to_owned()][..]));
    assert!(by.remembered && !by.edited);
}

/// I3. Nothing of whom it is for, or of what asked, may have changed.
#[test]
fn i3_a_yes_stands_only_for_the_same_people_and_policy() {
    type Change = fn(&mut Scene);
    let changes: [(&str, Change, bool); 7] = [
        ("nothing", |_| {}, true),
        ("conversation", |scene| scene.conversation = "other".to_owned(), true),
        ("principal", |scene| scene.context["principal"] = "bea".into(), false),
        ("tenant", |scene| scene.context["tenant"] = "umbrella".into(), false),
        ("nobody", |scene| scene.context = json!({}), false),
        ("question", |scene| scene.rules = EXACT.replace("Go?", "Really?"), false),
        ("description", |scene| scene.rules = EXACT.replace("match", "description: Go\n    match"), true),
    ];
    for (what, change, runs) in changes {
        let mut scene = approved(EXACT);
        change(&mut scene);
        let expected = if runs { "executed" } else { "suspended" };
        assert_eq!(next(&mut scene, "refund", refund()), expected, "{what}");
    }
}

#[test]
fn i3_a_yes_stands_for_one_server_only() {
    let mut scene = Scene::new(EXACT);
    let session = |scene: &Scene, server: &'static str| {
        scene.session().reading_calls(move |part| part.to_call().on_server(server))
    };
    scene.model_calls(&[("c1", "refund", refund())]);
    let mut first = session(&scene, "bank");
    scene.clock.drive(first.round(&mut scene.history, &scene.tool)).unwrap();
    scene.approve();
    let mut second = session(&scene, "bank");
    let round = scene.clock.drive(second.resume(&mut scene.history, &scene.tool)).unwrap();
    assert_eq!(round.outcomes[0].outcome.name(), "executed");
    for (server, outcome) in [("other", "suspended"), ("bank", "executed")] {
        scene.model_calls(&[("c2", "refund", refund())]);
        let mut later = session(&scene, server);
        let round = scene.clock.drive(later.round(&mut scene.history, &scene.tool)).unwrap();
        assert_eq!(round.outcomes[0].outcome.name(), outcome, "{server}");
    }
}

#[test]
fn i3_a_yes_stands_for_its_time_and_not_before_it_was_given() {
    for (seconds, runs) in [(8 * 3600 - 1, true), (8 * 3600, false), (-1, false)] {
        let mut scene = approved(EXACT);
        let now = callgate::Clock::now(&scene.clock);
        scene.clock.set(now + jiff::SignedDuration::from_secs(seconds));
        let expected = if runs { "executed" } else { "suspended" };
        assert_eq!(next(&mut scene, "refund", refund()), expected, "{seconds}");
    }
}

#[test]
fn i3_a_yes_that_was_taken_back_stands_no_more() {
    let mut scene = approved(EXACT);
    let grants = scene.clock.drive(scene.ledger().grants()).unwrap();
    assert_eq!(grants.len(), 1);
    let revoked = scene.clock.drive(scene.ledger().revoke(&grants[0].0)).unwrap();
    assert!(revoked.revoked && revoked.policy.as_deref() == Some("ask"));
    assert_eq!(next(&mut scene, "refund", refund()), "suspended");
    assert!(scene.clock.drive(scene.ledger().revoke("none")).is_err());
}

/// I3. Only a yes to running the tool is remembered: no denial, no result of a person's own, no arguments of their own.
#[test]
fn i3_what_is_no_plain_yes_is_not_remembered() {
    type Answer = fn(&Scene) -> ResponsePart;
    let answers: [(&str, Answer); 4] = [
        ("no", |scene| ResponsePart { approved: false, ..scene.yes() }),
        ("result", |scene| ResponsePart { output: Some(json!(1)), ..scene.yes() }),
        ("end", |scene| ResponsePart { cancel: true, ..scene.yes() }),
        ("edit", |scene| ResponsePart { edited_input: Some(with("/amount", json!(1))), ..scene.yes() }),
    ];
    for (what, answer) in answers {
        let mut scene =
            Scene::asked(&EXACT.replace("remember", "edits: [$.input.amount], remember"), refund());
        scene.answer(answer(&scene));
        scene.resume();
        assert!(scene.clock.drive(scene.ledger().grants()).unwrap().is_empty(), "{what}");
        scene.user_says("again");
        scene.resume();
        assert_eq!(next(&mut scene, "refund", refund()), "suspended", "{what}");
    }
}

/// I6. A remembered yes lifts its own question and nothing else.
#[test]
fn i6_a_remembered_yes_meets_all_other_rules() {
    for (policy, outcome) in [
        ("{ id: no, match: refund, deny: {} }", "denied"),
        ("{ id: two, match: refund, approval: {} }", "suspended"),
        ("{ id: stop, match: refund, halt: {} }", "halted"),
    ] {
        let mut scene = approved(EXACT);
        scene.rules = format!("{EXACT}  - {policy}\n");
        assert_eq!(next(&mut scene, "refund", refund()), outcome, "{policy}");
        assert_eq!(scene.tool.count(), 0);
    }
}
