//! Approvers and quorums, and several policies that require approval of one call.

use callgate::json::{Value, json};
use callgate::message::{Approver, ResponsePart, approval_response};

use super::scene::{NEXT_KEY, Scene, pending};
use crate::fixtures::kind_and_code;

fn approval(what: &str) -> String {
    format!("policies: [ {{ id: ask, match: refund, approval: {{ {what} }} }} ]")
}

fn refund() -> Value {
    json!({ "amount": 250 })
}

fn named(name: &str) -> Approver {
    Approver::new(name)
}

/// Sequences of approvers with the resulting outcome; the agent acts for `ana`.
#[test]
fn i3_only_sealed_names_of_eligible_approvers_count() {
    let lead = |name: &str| Approver::new(name).with_role("lead");
    type Row = (&'static str, Vec<(Approver, bool)>, &'static str, usize);
    let table: Vec<Row> = vec![
        ("approvers: [bea, role:lead]", vec![(named("bea"), true)], "executed", 0),
        ("approvers: [bea, role:lead]", vec![(lead("cid"), true)], "executed", 0),
        ("approvers: [bea, role:lead]", vec![(named("cid"), true)], "suspended", 1),
        ("approvers: [bea, role:lead]", vec![(named("cid"), false)], "suspended", 1),
        ("approvers: [bea, role:lead]", vec![(named("cid"), false), (lead("dan"), true)], "executed", 1),
        ("approvers: [bea, role:lead]", vec![(named("bea"), false), (lead("dan"), true)], "denied", 0),
        ("approvers: [ana]", vec![(named("ana"), true)], "suspended", 1),
        ("approvers: [role:lead]", vec![(lead("ana"), true)], "suspended", 1),
        ("approvers: [role:lead]", vec![(lead("ana"), false)], "suspended", 1),
        ("quorum: 2", vec![(named("bea"), true)], "suspended", 0),
        ("quorum: 2", vec![(named("bea"), true), (named("bea"), true)], "suspended", 0),
        ("quorum: 2", vec![(named("bea"), true), (named("ana"), true)], "suspended", 1),
        ("quorum: 2", vec![(named("bea"), true), (named("cid"), true)], "executed", 0),
        ("quorum: 2", vec![(named("bea"), true), (named("cid"), false)], "denied", 0),
        ("quorum: 2", vec![(named("bea"), true), (named("bea"), false)], "suspended", 0),
        (
            "quorum: 2, approvers: [role:lead]",
            vec![(lead("bea"), true), (named("cid"), true)],
            "suspended",
            1,
        ),
        ("quorum: 2, approvers: [role:lead]", vec![(lead("bea"), true), (lead("cid"), true)], "executed", 0),
        // If names do not count, requesters may approve their own calls.
        ("message: 'Go?'", vec![(named("ana"), true)], "executed", 0),
    ];
    for (what, answers, outcome, ignored) in table {
        for mut scene in Scene::each(&approval(what), &refund()) {
            for (by, approved) in answers.clone() {
                let answer = ResponsePart { approved, ..scene.approval() };
                scene.answer_as(by, answer);
            }
            let round = scene.resume();
            let told = format!("{what}: {answers:?}");
            assert_eq!(round.outcomes[0].outcome.name(), outcome, "{told}");
            assert_eq!(round.ignored.len(), ignored, "{told}: {:?}", round.ignored);
            assert_eq!(scene.tool.count(), usize::from(outcome == "executed"), "{told}");
        }
    }
}

#[test]
fn outcomes_say_who_approved() {
    let mut scene = Scene::asked(&approval("quorum: 2"), refund());
    scene.answer_as(named("bea"), scene.approval());
    scene.answer_as(named("cid"), scene.approval());
    assert_eq!(scene.outcome().approved.unwrap().by, ["bea", "cid"]);
    let mut scene = Scene::asked(&approval("approvers: [bea]"), refund());
    scene.answer_as(
        named("bea"),
        ResponsePart { reason: Some("no".into()), approved: false, ..scene.approval() },
    );
    scene.resume();
    assert_eq!(scene.results()[0].output.text(), "bea denied this call: no");
}

/// I3. A name that the host did not seal, or that is sealed for another request, counts as anonymous.
#[test]
fn i3_approver_name_without_valid_seal_is_ignored() {
    let rules = approval("approvers: [bea]");
    type Forge = fn(&Scene) -> ResponsePart;
    let forgeries: [(&str, Forge); 5] = [
        ("no name", Scene::approval),
        ("no seal", |scene| ResponsePart { answered_by: Some(named("bea")), ..scene.approval() }),
        ("an invalid seal", |scene| ResponsePart {
            answered_by: Some(named("bea")),
            answer_seal: Some("v1.x.y".into()),
            ..scene.approval()
        }),
        ("a seal of another server", |scene| {
            let other = Scene { keys: Some(NEXT_KEY.to_owned()), ..Scene::new(&scene.rules) };
            let mut other = other;
            other.ask(refund());
            other.signed(named("bea"), other.approval())
        }),
        ("a seal for a later request", |scene| {
            let mut later = Scene::new(&scene.rules);
            later.advance(7);
            later.ask(refund());
            later.signed(named("bea"), later.approval())
        }),
    ];
    for (what, forge) in forgeries {
        let mut scene = Scene::asked(&rules, refund());
        scene.answer(forge(&scene));
        let round = scene.resume();
        assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"), "{what}");
        assert_eq!((round.ignored.len(), scene.tool.count()), (1, 0), "{what}");
    }
}

/// Two policies share one request; the requirements of both must be met.
#[test]
fn several_policies_share_a_request_and_each_must_be_satisfied() {
    let two = |first: &str, second: &str| {
        format!(
            "policies:
  - {{ id: one, match: refund, approval: {{ message: 'One?', {first} }} }}
  - {{ id: two, match: refund, approval: {{ message: 'Two?', {second} }} }}
"
        )
    };
    for (first, second, answers, outcome) in [
        ("expires: 1h", "expires: 2h", vec![None], "executed"),
        ("approvers: [bea]", "approvers: [cid]", vec![Some("bea")], "suspended"),
        ("approvers: [bea]", "approvers: [cid]", vec![Some("bea"), Some("cid")], "executed"),
        ("approvers: [bea]", "approvers: [bea, cid]", vec![Some("bea")], "executed"),
        ("approvers: [bea]", "expires: 1h", vec![None], "suspended"),
        ("approvers: [bea]", "expires: 1h", vec![Some("bea")], "executed"),
        ("quorum: 2", "quorum: 3", vec![Some("bea"), Some("cid")], "suspended"),
        ("quorum: 2", "quorum: 3", vec![Some("bea"), Some("cid"), Some("dan")], "executed"),
    ] {
        for mut scene in Scene::each(&two(first, second), &refund()) {
            let request = scene.request();
            assert_eq!(request.policies, ["one", "two"]);
            assert_eq!(request.message.as_deref(), Some("One? Two?"));
            for by in &answers {
                match by {
                    None => scene.approve(),
                    Some(by) => scene.answer_as(named(by), scene.approval()),
                }
            }
            let what = format!("{first} | {second} | {answers:?}");
            assert_eq!(scene.outcome().outcome.name(), outcome, "{what}");
            assert_eq!(scene.tool.count(), usize::from(outcome == "executed"), "{what}");
        }
    }
}

#[test]
fn shortest_expiry_of_several_policies_applies() {
    let rules = "policies:
  - { id: one, match: refund, approval: { expires: 2h } }
  - { id: two, match: refund, approval: { expires: 1h } }
";
    let mut scene = Scene::asked(rules, refund());
    scene.advance(3600);
    scene.approve();
    assert_eq!(kind_and_code(&scene.outcome()), ("denied", "approval_expired"));
}

/// An argument is editable only if every policy that requires approval allows it.
#[test]
fn i1_argument_is_editable_only_if_every_policy_allows_it() {
    let rules = "policies:
  - { id: one, match: refund, approval: { edits: [$.input.to, $.input.note] } }
  - { id: two, match: refund, approval: { edits: [$.input.to.zip, $.input.amount] } }
";
    let input = json!({ "amount": 250, "note": "late", "to": { "zip": 1, "city": "Graz" } });
    for (place, runs) in [("/to/zip", true), ("/to/city", false), ("/note", false), ("/amount", false)] {
        let mut scene = Scene::asked(rules, input.clone());
        let mut given = input.clone();
        *given.pointer_mut(place).unwrap() = json!(7);
        scene.answer(ResponsePart { edited_input: Some(given), ..scene.approval() });
        assert_eq!(scene.outcome().outcome.name() == "executed", runs, "{place}");
    }
}

/// Unmatched calls may require approval, and so may those of each lower layer.
#[test]
fn layers_and_unmatched_calls_require_approval_like_policies() {
    let unmatched = "defaults: { unmatched: approval }\npolicies: [ { id: ok, match: look, allow: {} } ]";
    for mut scene in Scene::each(unmatched, &refund()) {
        assert!(scene.request().policies.is_empty());
        scene.approve();
        assert_eq!(scene.outcome().outcome.name(), "executed");
    }
    // I6. Unmatched calls are denied by now.
    for mut scene in Scene::each(unmatched, &refund()) {
        scene.approve();
        scene.rules = unmatched.replace("unmatched: approval", "unmatched: deny");
        assert_eq!(kind_and_code(&scene.outcome()), ("denied", "unmatched"));
    }
    let lower = approval("message: 'Lower?', approvers: [bea]");
    let mut scene = Scene::new(&approval("message: 'Upper?', approvers: [bea]"));
    scene.layers = vec![lower, unmatched.to_owned()];
    let round = scene.ask(refund());
    assert_eq!(pending(&round)[0].message.as_deref(), Some("Upper? Lower?"));
    scene.answer(approval_response("approval_c1", true));
    assert_eq!(scene.outcome().outcome.name(), "suspended");
    scene.answer_as(named("bea"), scene.approval());
    assert_eq!(scene.outcome().outcome.name(), "executed");
    assert_eq!(scene.tool.count(), 1);
}
