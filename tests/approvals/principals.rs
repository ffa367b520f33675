//! Who is who: principals in every spelling and of every type, as requester and as approver.

use callgate::approval::{Inbox, InboxError, Standing, tally};
use callgate::json::{Value, json};
use callgate::message::{Approver, ResponsePart};
use callgate::seal::Keys;
use proptest::prelude::*;

use super::scene::{KEY, Scene};
use crate::workshop::ended;

fn approval(what: &str) -> String {
    format!("policies: [ {{ id: ask, match: refund, approval: {{ {what} }} }} ]")
}

fn exact(what: &str) -> String {
    format!("defaults: {{ principals: exact }}\n{}", approval(what))
}

fn refund() -> Value {
    json!({ "amount": 250 })
}

/// A question asked for this principal, or for none.
fn asked_for(rules: &str, principal: Option<Value>) -> Scene {
    let mut scene = Scene::new(rules);
    scene.context = match principal {
        Some(principal) => json!({ "principal": principal, "tenant": "acme" }),
        None => json!({ "tenant": "acme" }),
    };
    scene.ask(refund());
    scene
}

/// Every JSON type, and strings that name nobody.
fn nobodies() -> Vec<Option<Value>> {
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

/// I3. Whoever answers may be the one who asked, if that is not known.
#[test]
fn i3_nobody_approves_for_an_unknown_requester_where_names_count() {
    for principal in nobodies() {
        for what in ["approvers: [bea]", "quorum: 2", "approvers: ['role:lead'], quorum: 2"] {
            let mut scene = asked_for(&approval(what), principal.clone());
            for name in ["bea", "cid", "42", "null"] {
                scene.answer_as(Approver::new(name).with_role("lead"), scene.yes());
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
        // Where names do not count, a yes is a yes.
        let mut scene = asked_for(&approval("expires: 1h"), principal.clone());
        scene.approve();
        assert_eq!(ended(&scene.outcome()), ("executed", "approved"), "{principal:?}");
    }
}

/// The approver is told so, with a stable code, and the answer is not recorded.
#[test]
fn an_inbox_refuses_an_answer_to_an_unknown_requester() {
    let scene = asked_for(&approval("approvers: [bea]"), Some(json!(42)));
    let inbox = Inbox::new(scene.store.clone(), Keys::parse(KEY).unwrap(), scene.clock.clone());
    let (name, yes) = (scene.name("c1"), ResponsePart { approved: true, ..ResponsePart::default() });
    let answer = inbox.answer(&name, yes, Some(Approver::new("bea")));
    let Err(InboxError::Refused { code, why }) = scene.clock.drive(answer) else { panic!("it was taken") };
    assert_eq!(code, "unknown_requester");
    assert!(why.contains("`context.principal`"), "{why}");
    assert!(scene.clock.drive(inbox.list()).unwrap()[0].answers.is_empty());
}

#[test]
fn i3_another_spelling_is_not_another_person() {
    let spellings = ["Ana", "ana\u{a0}", " ana", "\u{ff41}na", "a\u{200b}na", "ANA", "an\u{ad}a\u{feff}"];
    for spelling in spellings {
        // As requester and approver.
        for (requester, approver) in [("ana", spelling), (spelling, "ana")] {
            let mut scene = asked_for(&approval("approvers: [ana, 'role:lead']"), Some(requester.into()));
            scene.answer_as(Approver::new(approver).with_role("lead"), scene.yes());
            let round = scene.resume();
            assert_eq!(round.ignored[0].code, "self_approval", "{requester:?} {approver:?}");
            assert_eq!((round.outcomes[0].outcome.name(), scene.tool.count()), ("suspended", 0));
        }
        // Toward a quorum.
        let mut scene = asked_for(&approval("quorum: 2"), Some("zoe".into()));
        scene.answer_as(Approver::new("ana"), scene.yes());
        scene.answer_as(Approver::new(spelling), scene.yes());
        assert_eq!((scene.outcome().outcome.name(), scene.tool.count()), ("suspended", 0), "{spelling:?}");
        // As one of those who may answer.
        let mut scene = asked_for(&approval("approvers: [ana]"), Some("zoe".into()));
        scene.answer_as(Approver::new(spelling), scene.yes());
        assert_eq!(scene.outcome().outcome.name(), "executed", "{spelling:?}");
    }
    // Letters of another script are other letters.
    let mut scene = asked_for(&approval("approvers: [ana]"), Some("zoe".into()));
    scene.answer_as(Approver::new("\u{430}na"), scene.yes());
    assert_eq!(scene.resume().ignored[0].code, "not_an_approver");
}

#[test]
fn names_are_compared_exactly_where_the_rules_say_so() {
    let mut scene = asked_for(&exact("quorum: 2"), Some("ana".into()));
    scene.answer_as(Approver::new("bob"), scene.yes());
    scene.answer_as(Approver::new("Bob"), scene.yes());
    assert_eq!(scene.outcome().outcome.name(), "executed");
    let mut scene = asked_for(&exact("approvers: [Bob]"), Some("ana".into()));
    scene.answer_as(Approver::new("bob"), scene.yes());
    assert_eq!(scene.resume().ignored[0].code, "not_an_approver");
    for nobody in nobodies() {
        let mut scene = asked_for(&exact("approvers: [bea]"), nobody.clone());
        scene.answer_as(Approver::new("bea"), scene.yes());
        assert_eq!(scene.resume().ignored[0].code, "unknown_requester", "{nobody:?}");
    }
    // I6. An answer under one comparison counts for nothing under the other.
    let mut scene = asked_for(&exact("approvers: [bea]"), Some("ana".into()));
    scene.answer_as(Approver::new("bea"), scene.yes());
    scene.rules = approval("approvers: [bea]");
    assert_eq!(ended(&scene.outcome()), ("suspended", "approval_required"));
}

/// A principal is no role, and a role is no principal.
#[test]
fn i3_roles_and_principals_are_apart() {
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
        let mut scene = asked_for(&approval(&format!("approvers: ['{entry}']")), Some("ana".into()));
        scene.answer_as(by.clone(), scene.yes());
        let expected = if counts { "executed" } else { "suspended" };
        assert_eq!(scene.outcome().outcome.name(), expected, "{entry} {by:?}");
    }
}

/// Roles of the requester, or said by the answer itself, are nobody's.
#[test]
fn i3_roles_come_from_the_verified_answerer_alone() {
    let mut scene = Scene::new(&approval("approvers: ['role:lead']"));
    scene.context = json!({ "principal": "ana", "roles": ["lead"] });
    scene.ask(refund());
    let signed = scene.signed(Approver::new("bea"), scene.yes());
    let with_role =
        ResponsePart { answered_by: Some(Approver::new("bea").with_role("lead")), ..signed.clone() };
    for answer in [signed, with_role] {
        scene.answer(answer);
        let round = scene.resume();
        assert_eq!(round.outcomes[0].outcome.name(), "suspended");
        assert_eq!(scene.tool.count(), 0);
    }
}

/// Names from ugly corners.
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

/// Whether two names are certainly one person's, without what is tested: as they read in lower case, without what is not seen.
fn read_alike(a: &str, b: &str) -> bool {
    let plain = |name: &str| {
        let seen = name.chars().filter(|c| !"\u{200b}\u{ad}\u{feff}\u{202e}\u{fe0f}\u{115f}".contains(*c));
        seen.collect::<String>().trim().to_lowercase()
    };
    plain(a) == plain(b)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// I3. No two answers of one person count toward a quorum, and nobody answers for themselves.
    #[test]
    fn i3_no_spelling_counts_twice_or_for_oneself(first in name(), second in name(), requester in name()) {
        let mut scene = asked_for(&approval("quorum: 2"), Some(requester.as_str().into()));
        let request = scene.request();
        let keys = scene.keys();
        let question = callgate::approval::Question::open(&request, &keys).unwrap();
        let answers = [&first, &second].map(|name| scene.signed(Approver::new(name.as_str()), scene.yes()));
        let token = request.approval_token.clone().unwrap();
        let (standing, ignored) = tally(&question, &token, &answers, &keys, &|_| false);
        let approved = matches!(standing, Standing::Approved { .. });
        if read_alike(&first, &second) {
            prop_assert!(!approved, "{first:?} {second:?} for {requester:?}");
        }
        for (place, name) in [&first, &second].into_iter().enumerate() {
            if read_alike(name, &requester) || requester.trim().is_empty() {
                prop_assert!(ignored.iter().any(|ignored| ignored.place == place), "{name:?} for {requester:?}");
            }
        }
        answers.into_iter().for_each(|answer| scene.answer(answer));
        let round = scene.resume();
        prop_assert_eq!(round.outcomes[0].outcome.name() == "executed", approved);
    }
}
