//! Questions that lapse, on clocks that jump.

use callgate::host::Clock;
use callgate::json::json;
use callgate::message::ResponsePart;
use jiff::{SignedDuration, Timestamp};

use super::scene::{REFUNDS, Scene};
use crate::workshop::ended;

const DAY: i64 = 24 * 3600;

fn after(start: Timestamp, seconds: i64) -> Timestamp {
    start + SignedDuration::from_secs(seconds)
}

/// I3. A yes counts until the question lapses, and not at that moment any more, also one that was given in time.
#[test]
fn i3_a_question_lapses_at_its_moment() {
    for (seconds, answered, outcome) in [
        (DAY - 1, false, ("suspended", "approval_required")),
        (DAY - 1, true, ("executed", "approved")),
        (DAY, false, ("denied", "approval_expired")),
        (DAY, true, ("denied", "approval_expired")),
        (DAY + 1, true, ("denied", "approval_expired")),
    ] {
        for mut scene in Scene::each(REFUNDS, &json!({ "amount": 250 })) {
            if answered {
                scene.approve();
            }
            scene.clock.set(after(scene.clock.now(), seconds));
            let what = format!("{seconds} {answered}");
            assert_eq!(ended(&scene.outcome()), outcome, "{what}");
            assert_eq!(scene.tool.count(), usize::from(outcome.0 == "executed"), "{what}");
            let told = if outcome.0 == "denied" { "lapsed" } else { "" };
            assert!(scene.results().iter().all(|result| result.output.text().contains(told)), "{what}");
        }
    }
}

#[test]
fn a_no_counts_for_ever() {
    let mut scene = Scene::refund(250);
    scene.deny(Some("no"));
    scene.clock.set(after(scene.clock.now(), 2 * DAY));
    assert_eq!(ended(&scene.outcome()), ("denied", "approval_denied"));
}

#[test]
fn a_question_without_a_span_never_lapses() {
    let mut scene = Scene::asked(&REFUNDS.replace(", expires: 24h", ""), json!({ "amount": 250 }));
    assert_eq!(scene.request().expires_at, None);
    scene.clock.set(after(scene.clock.now(), 1000 * DAY));
    assert_eq!(ended(&scene.outcome()), ("suspended", "approval_required"));
    scene.approve();
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
}

/// I3. While the clock says that a question is still to be asked, its answer waits, and is not lost.
#[test]
fn i3_a_clock_that_is_set_back_lets_nothing_run() {
    for (back, outcome) in [
        (3600, ("suspended", "approval_required")),
        (61, ("suspended", "approval_required")),
        // Clocks of several machines differ by a little.
        (60, ("executed", "approved")),
        (1, ("executed", "approved")),
    ] {
        let mut scene = Scene::refund(250);
        let asked = scene.clock.now();
        scene.approve();
        scene.clock.set(after(asked, -back));
        assert_eq!(ended(&scene.outcome()), outcome, "{back}");
        scene.clock.set(asked);
        if outcome.0 == "suspended" {
            assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
        }
        assert_eq!(scene.tool.count(), 1);
    }
}

/// I4. What lapsed by a clock that ran ahead stays so when it is set right.
#[test]
fn i4_a_clock_that_jumps_ahead_and_back_does_not_revive_a_lapsed_question() {
    for mut scene in Scene::with_both_stores(REFUNDS) {
        scene.ask(json!({ "amount": 250 }));
        let (asked, before) = (scene.clock.now(), scene.history.clone());
        scene.approve();
        scene.clock.set(after(asked, 300 * DAY));
        assert_eq!(ended(&scene.outcome()), ("denied", "approval_expired"));
        scene.clock.set(asked);
        assert!(scene.resume().outcomes.is_empty());
        // Nor does a history from before.
        scene.history = before;
        scene.approve();
        assert_eq!(ended(&scene.outcome()), ("denied", "approval_expired"));
        assert_eq!(scene.tool.count(), 0);
    }
}

/// A longer life that a client writes into its history is not believed.
#[test]
fn i3_a_question_lives_no_longer_than_it_was_given() {
    let scene = Scene::refund(250);
    for expires in [None, Some("2099-01-01T00:00:00Z".to_owned()), Some("never".to_owned())] {
        let lasting = super::scene::with_request(&scene.history, |request| {
            request.expires_at = expires.clone();
        });
        let mut tried = Scene { history: lasting, ..Scene::new(REFUNDS) };
        tried.answer(ResponsePart { approved: true, ..tried.yes() });
        let round = tried.resume();
        assert_eq!(ended(&round.outcomes[0]), ("suspended", "approval_required"));
        assert_eq!((round.ignored.len(), tried.tool.count()), (1, 0));
    }
}
