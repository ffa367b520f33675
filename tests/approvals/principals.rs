//! Principals in every spelling and of every type, as requester and as approver.

use callgate::approval::{Inbox, InboxError, Tally, count_answers};
use callgate::json::{Value, json};
use callgate::message::{Approver, ResponsePart};
use callgate::seal::Keys;
use proptest::prelude::*;

use super::scene::{KEY, Scene};
use crate::fixtures::kind_and_code;

fn approval(what: &str) -> String {
    format!("policies: [ {{ id: ask, match: refund, approval: {{ {what} }} }} ]")
}

fn exact(what: &str) -> String {
    format!("defaults: {{ principals: exact }}\n{}", approval(what))
}

fn refund() -> Value {
    json!({ "amount": 250 })
}

/// A request for this principal, or for none.
fn scene_requested_by(rules: &str, principal: Option<Value>) -> Scene {
    let mut scene = Scene::new(rules);
    scene.context = match principal {
        Some(principal) => json!({ "principal": principal, "tenant": "acme" }),
        None => json!({ "tenant": "acme" }),
    };
    scene.ask(refund());
    scene
}

/// Every JSON type, and strings that name no principal.
fn anonymous_principals() -> Vec<Option<Value>> {
    let values = [
        json!(null),
        json!(42),
        json!(4.2),
        json!(true),
        json!([]),
        json!(["bea"]),
        json!({}),
        json!({ "name": "bea" }),
        json!(""),
        json!(" \u{a0}\t"),
        json!("\u{200b}\u{feff}"),
        json!("be\u{0}a"),
    ];
    values.into_iter().map(Some).chain([None]).collect()
}

/// I3. If the requester is unknown, any approver might be the requester.
#[test]
fn i3_nobody_can_approve_for_an_unknown_requester_if_names_count() {
    for principal in anonymous_principals() {
        for what in ["approvers: [bea]", "quorum: 2", "approvers: ['role:lead'], quorum: 2"] {
            let mut scene = scene_requested_by(&approval(what), principal.clone());
            for name in ["bea", "cid", "42", "null"] {
                scene.answer_as(Approver::new(name).with_role("lead"), scene.approval());
            }
            let round = scene.resume();
            assert_eq!(round.outcomes[0].outcome.name(), "suspended", "{principal:?} {what}");
            assert!(
                round.ignored.iter().all(|ignored| ignored.code == "unknown_requester"),
                "{:?}",
                round.ignored
            );
            assert_eq!((round.ignored.len(), scene.tool.count()), (4, 0), "{principal:?} {what}");
        }
        // If names do not count, any approval counts.
        let mut scene = scene_requested_by(&approval("expires: 1h"), principal.clone());
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"), "{principal:?}");
    }
}

/// The approver gets an error with a stable code, and the response is not recorded.
#[test]
fn inbox_rejects_an_answer_to_an_unknown_requester() {
    let scene = scene_requested_by(&approval("approvers: [bea]"), Some(json!(42)));
    let inbox = Inbox::new(scene.store.clone(), Keys::parse(KEY).unwrap(), scene.clock.clone());
    let (name, yes) = (scene.name("c1"), ResponsePart { approved: true, ..ResponsePart::default() });
    let answer = inbox.answer(&name, yes, Some(Approver::new("bea")));
    let Err(InboxError::Rejected { code, why }) = scene.clock.block_on(answer) else {
        panic!("it was taken")
    };
    assert_eq!(code, "unknown_requester");
    assert!(why.contains("`context.principal`"), "{why}");
    assert!(scene.clock.block_on(inbox.list()).unwrap()[0].answers.is_empty());
}

#[test]
fn i3_spelling_variants_are_the_same_person() {
    let spellings = ["Ana", "ana\u{a0}", " ana", "\u{ff41}na", "a\u{200b}na", "ANA", "an\u{ad}a\u{feff}"];
    for spelling in spellings {
        // As requester and approver.
        for (requester, approver) in [("ana", spelling), (spelling, "ana")] {
            let mut scene =
                scene_requested_by(&approval("approvers: [ana, 'role:lead']"), Some(requester.into()));
            scene.answer_as(Approver::new(approver).with_role("lead"), scene.approval());
            let round = scene.resume();
            assert_eq!(round.ignored[0].code, "self_approval", "{requester:?} {approver:?}");
            assert_eq!((round.outcomes[0].outcome.name(), scene.tool.count()), ("suspended", 0));
        }
        // Toward a quorum.
        let mut scene = scene_requested_by(&approval("quorum: 2"), Some("zoe".into()));
        scene.answer_as(Approver::new("ana"), scene.approval());
        scene.answer_as(Approver::new(spelling), scene.approval());
        assert_eq!((scene.outcome().outcome.name(), scene.tool.count()), ("suspended", 0), "{spelling:?}");
        // As one of those who may answer.
        let mut scene = scene_requested_by(&approval("approvers: [ana]"), Some("zoe".into()));
        scene.answer_as(Approver::new(spelling), scene.approval());
        assert_eq!(scene.outcome().outcome.name(), "executed", "{spelling:?}");
    }
    // Letters of another script are different letters.
    let mut scene = scene_requested_by(&approval("approvers: [ana]"), Some("zoe".into()));
    scene.answer_as(Approver::new("\u{430}na"), scene.approval());
    assert_eq!(scene.resume().ignored[0].code, "not_an_approver");
}

#[test]
fn names_are_compared_exactly_if_so_configured() {
    let mut scene = scene_requested_by(&exact("quorum: 2"), Some("ana".into()));
    scene.answer_as(Approver::new("bob"), scene.approval());
    scene.answer_as(Approver::new("Bob"), scene.approval());
    assert_eq!(scene.outcome().outcome.name(), "executed");
    let mut scene = scene_requested_by(&exact("approvers: [Bob]"), Some("ana".into()));
    scene.answer_as(Approver::new("bob"), scene.approval());
    assert_eq!(scene.resume().ignored[0].code, "not_an_approver");
    for nobody in anonymous_principals() {
        let mut scene = scene_requested_by(&exact("approvers: [bea]"), nobody.clone());
        scene.answer_as(Approver::new("bea"), scene.approval());
        assert_eq!(scene.resume().ignored[0].code, "unknown_requester", "{nobody:?}");
    }
    // I6. A response under one comparison does not count under the other.
    let mut scene = scene_requested_by(&exact("approvers: [bea]"), Some("ana".into()));
    scene.answer_as(Approver::new("bea"), scene.approval());
    scene.rules = approval("approvers: [bea]");
    assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
}

/// A principal is not a role, and a role is not a principal.
#[test]
fn i3_roles_and_principals_are_distinct() {
    let plain = Approver::new;
    for (entry, by, counts) in [
        ("finance", plain("bea").with_role("finance"), false),
        ("finance", plain("finance"), true),
        ("role:finance", plain("bea").with_role("finance"), true),
        ("role:finance", plain("finance"), false),
        ("role:finance", plain("role:finance"), false),
        ("role:finance", plain("bea").with_role("role:finance"), false),
        ("role:finance", plain("bea").with_role("Finance"), false),
        ("role:role:finance", plain("bea").with_role("role:finance"), true),
    ] {
        let mut scene = scene_requested_by(&approval(&format!("approvers: ['{entry}']")), Some("ana".into()));
        scene.answer_as(by.clone(), scene.approval());
        let expected = if counts { "executed" } else { "suspended" };
        assert_eq!(scene.outcome().outcome.name(), expected, "{entry} {by:?}");
    }
}

/// Roles of the requester, or claimed by the response itself, do not count.
#[test]
fn i3_roles_come_only_from_the_verified_approver() {
    let mut scene = Scene::new(&approval("approvers: ['role:lead']"));
    scene.context = json!({ "principal": "ana", "roles": ["lead"] });
    scene.ask(refund());
    let signed = scene.signed(Approver::new("bea"), scene.approval());
    let with_role =
        ResponsePart { answered_by: Some(Approver::new("bea").with_role("lead")), ..signed.clone() };
    for answer in [signed, with_role] {
        scene.answer(answer);
        let round = scene.resume();
        assert_eq!(round.outcomes[0].outcome.name(), "suspended");
        assert_eq!(scene.tool.count(), 0);
    }
}

/// Names with unusual characters.
fn name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("ana"),
        Just("Ana"),
        Just("ANA"),
        Just("\u{ff21}na"),
        Just("bob"),
        Just("Bob"),
        Just("stra\u{df}e"),
        Just("STRASSE"),
        Just("e\u{301}"),
        Just("\u{e9}"),
        Just("\u{c9}"),
        Just("\u{130}"),
        Just("i"),
        Just("\u{fb01}"),
        Just("fi"),
        Just("\u{3c3}"),
        Just("\u{3c2}"),
        Just("\u{345}"),
        Just("\u{430}"),
    ];
    let noise = prop_oneof![
        3 => Just(""), 1 => Just(" "), 1 => Just("\u{a0}"), 1 => Just("\u{200b}"), 1 => Just("\u{ad}"), 1 => Just("\u{feff}"),
        1 => Just("\u{202e}"), 1 => Just("\u{3000}"), 1 => Just("\u{fe0f}"), 1 => Just("\n"), 1 => Just("\u{115f}"),
    ];
    proptest::collection::vec((noise.clone(), piece, noise), 0..3)
        .prop_map(|pieces| pieces.into_iter().map(|(a, b, c)| format!("{a}{b}{c}")).collect())
}

/// Independent check of whether two names certainly denote one person: equal in lower case without invisible characters.
fn are_certainly_equal(a: &str, b: &str) -> bool {
    let plain = |name: &str| {
        let seen = name.chars().filter(|c| !"\u{200b}\u{ad}\u{feff}\u{202e}\u{fe0f}\u{115f}".contains(*c));
        seen.collect::<String>().trim().to_lowercase()
    };
    plain(a) == plain(b)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// I3. Two responses of one person never count as two toward a quorum, and nobody approves their own request.
    #[test]
    fn i3_no_spelling_counts_twice_or_approves_its_own_request(first in name(), second in name(), requester in name()) {
        let mut scene = scene_requested_by(&approval("quorum: 2"), Some(requester.as_str().into()));
        let request = scene.request();
        let keys = scene.keys();
        let question = callgate::approval::BoundRequest::open(&request, &keys).unwrap();
        let answers = [&first, &second].map(|name| scene.signed(Approver::new(name.as_str()), scene.approval()));
        let token = request.approval_token.clone().unwrap();
        let (standing, ignored) = count_answers(&question, &token, &answers, &keys, &|_| false);
        let approved = matches!(standing, Tally::Approved { .. });
        if are_certainly_equal(&first, &second) {
            prop_assert!(!approved, "{first:?} {second:?} for {requester:?}");
        }
        for (place, name) in [&first, &second].into_iter().enumerate() {
            if are_certainly_equal(name, &requester) || requester.trim().is_empty() {
                prop_assert!(ignored.iter().any(|ignored| ignored.index == place), "{name:?} for {requester:?}");
            }
        }
        answers.into_iter().for_each(|answer| scene.answer(answer));
        let round = scene.resume();
        prop_assert_eq!(round.outcomes[0].outcome.name() == "executed", approved);
    }
}
