//! Remembered approvals: which later calls they cover, for how long, and how they end.

use callgate::json::{Value, json};
use callgate::message::{Approver, ResponsePart};

use super::scene::Scene;
use crate::fixtures::{Tool, kind_and_code};

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

/// A scene in which one call was approved and ran.
fn approved(rules: &str) -> Scene {
    let mut scene = Scene::asked(rules, refund());
    scene.approve();
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    scene.tool = Tool::counting(&scene.clock);
    scene
}

/// The outcome of the next call.
fn next(scene: &mut Scene, tool: &str, input: Value) -> String {
    scene.model_calls(&[("c2", tool, input)]);
    scene.round().outcomes[0].outcome.name().to_owned()
}

#[test]
fn remembered_approval_covers_exactly_the_calls_it_was_given_for() {
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
fn outcome_names_the_remembered_approval() {
    let mut scene = Scene::asked(&EXACT.replace("remember", "approvers: [bea], remember"), refund());
    scene.answer_as(Approver::new("bea"), scene.approval());
    scene.resume();
    scene.model_calls(&[("c2", "refund", refund())]);
    let outcome = scene.round().outcomes.remove(0);
    let by = outcome.approved.unwrap();
    assert_eq!((by.approval_id.as_str(), by.by.as_slice()), ("approval_c1", &["bea".to_owned()][..]));
    assert!(by.remembered && !by.edited);
}

/// I3. Neither the requester nor the policy may have changed.
#[test]
fn i3_remembered_approval_requires_the_same_requester_and_policy() {
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
fn i3_remembered_approval_covers_one_server_only() {
    let mut scene = Scene::new(EXACT);
    let session = |scene: &Scene, server: &'static str| {
        scene.session().with_call_reader(move |part| part.to_call().with_server(server))
    };
    scene.model_calls(&[("c1", "refund", refund())]);
    let mut first = session(&scene, "bank");
    scene.clock.block_on(first.run_round(&mut scene.history, &scene.tool)).unwrap();
    scene.approve();
    let mut second = session(&scene, "bank");
    let round = scene.clock.block_on(second.resume(&mut scene.history, &scene.tool)).unwrap();
    assert_eq!(round.outcomes[0].outcome.name(), "executed");
    for (server, outcome) in [("other", "suspended"), ("bank", "executed")] {
        scene.model_calls(&[("c2", "refund", refund())]);
        let mut later = session(&scene, server);
        let round = scene.clock.block_on(later.run_round(&mut scene.history, &scene.tool)).unwrap();
        assert_eq!(round.outcomes[0].outcome.name(), outcome, "{server}");
    }
}

#[test]
fn i3_remembered_approval_is_valid_only_within_its_time() {
    for (seconds, runs) in [(8 * 3600 - 1, true), (8 * 3600, false), (-1, false)] {
        let mut scene = approved(EXACT);
        let now = callgate::Clock::now(&scene.clock);
        scene.clock.set(now + jiff::SignedDuration::from_secs(seconds));
        let expected = if runs { "executed" } else { "suspended" };
        assert_eq!(next(&mut scene, "refund", refund()), expected, "{seconds}");
    }
}

#[test]
fn i3_revoked_approval_is_not_used_again() {
    let mut scene = approved(EXACT);
    let grants = scene.clock.block_on(scene.ledger().grants()).unwrap();
    assert_eq!(grants.len(), 1);
    let revoked = scene.clock.block_on(scene.ledger().revoke_grant(&grants[0].0)).unwrap();
    assert!(revoked.revoked && revoked.policy.as_deref() == Some("ask"));
    assert_eq!(next(&mut scene, "refund", refund()), "suspended");
    assert!(scene.clock.block_on(scene.ledger().revoke_grant("none")).is_err());
}

/// I3. Only a plain approval is remembered: no denial, no result from an approver, no edited arguments.
#[test]
fn i3_only_a_plain_approval_is_remembered() {
    type Answer = fn(&Scene) -> ResponsePart;
    let answers: [(&str, Answer); 4] = [
        ("no", |scene| ResponsePart { approved: false, ..scene.approval() }),
        ("result", |scene| ResponsePart { output: Some(json!(1)), ..scene.approval() }),
        ("end", |scene| ResponsePart { cancel: true, ..scene.approval() }),
        ("edit", |scene| ResponsePart { edited_input: Some(with("/amount", json!(1))), ..scene.approval() }),
    ];
    for (what, answer) in answers {
        let mut scene =
            Scene::asked(&EXACT.replace("remember", "edits: [$.input.amount], remember"), refund());
        scene.answer(answer(&scene));
        scene.resume();
        assert!(scene.clock.block_on(scene.ledger().grants()).unwrap().is_empty(), "{what}");
        scene.user_says("again");
        scene.resume();
        assert_eq!(next(&mut scene, "refund", refund()), "suspended", "{what}");
    }
}

/// I6. A remembered approval satisfies its own policy and nothing else.
#[test]
fn i6_remembered_approval_is_subject_to_all_other_rules() {
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
