//! Expiry of approval requests, with clocks that jump.

use callgate::host::Clock;
use callgate::json::json;
use callgate::message::ResponsePart;
use jiff::{SignedDuration, Timestamp};

use super::scene::{REFUNDS, Scene};
use crate::fixtures::kind_and_code;

const DAY: i64 = 24 * 3600;

fn after(start: Timestamp, seconds: i64) -> Timestamp {
    start + SignedDuration::from_secs(seconds)
}

/// I3. An approval counts until the request expires, exclusively, even if it was given in time.
#[test]
fn i3_request_expires_exactly_at_its_expiry_time() {
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
            assert_eq!(kind_and_code(&scene.outcome()), outcome, "{what}");
            assert_eq!(scene.tool.count(), usize::from(outcome.0 == "executed"), "{what}");
            let told = if outcome.0 == "denied" { "expired" } else { "" };
            assert!(scene.results().iter().all(|result| result.output.text().contains(told)), "{what}");
        }
    }
}

#[test]
fn denial_never_expires() {
    let mut scene = Scene::refund(250);
    scene.deny(Some("no"));
    scene.clock.set(after(scene.clock.now(), 2 * DAY));
    assert_eq!(kind_and_code(&scene.outcome()), ("denied", "approval_denied"));
}

#[test]
fn request_without_expiry_never_expires() {
    let mut scene = Scene::asked(&REFUNDS.replace(", expires: 24h", ""), json!({ "amount": 250 }));
    assert_eq!(scene.request().expires_at, None);
    scene.clock.set(after(scene.clock.now(), 1000 * DAY));
    assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
    scene.approve();
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
}

/// I3. While the clock is before the time of the request, its response is neither applied nor lost.
#[test]
fn i3_clock_set_back_runs_nothing() {
    for (back, outcome) in [
        (3600, ("suspended", "approval_required")),
        (61, ("suspended", "approval_required")),
        // Small clock skew between machines is tolerated.
        (60, ("executed", "approved")),
        (1, ("executed", "approved")),
    ] {
        let mut scene = Scene::refund(250);
        let asked = scene.clock.now();
        scene.approve();
        scene.clock.set(after(asked, -back));
        assert_eq!(kind_and_code(&scene.outcome()), outcome, "{back}");
        scene.clock.set(asked);
        if outcome.0 == "suspended" {
            assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
        }
        assert_eq!(scene.tool.count(), 1);
    }
}

/// I4. A request that expired by a fast clock stays expired after the clock is corrected.
#[test]
fn i4_expired_request_stays_expired_after_clock_correction() {
    for mut scene in Scene::with_both_stores(REFUNDS) {
        scene.ask(json!({ "amount": 250 }));
        let (asked, before) = (scene.clock.now(), scene.history.clone());
        scene.approve();
        scene.clock.set(after(asked, 300 * DAY));
        assert_eq!(kind_and_code(&scene.outcome()), ("denied", "approval_expired"));
        scene.clock.set(asked);
        assert!(scene.resume().outcomes.is_empty());
        // Nor does an older history revive it.
        scene.history = before;
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("denied", "approval_expired"));
        assert_eq!(scene.tool.count(), 0);
    }
}

/// A later expiry time that a client writes into its history is rejected.
#[test]
fn i3_client_cannot_extend_the_expiry_of_a_request() {
    let scene = Scene::refund(250);
    for expires in [None, Some("2099-01-01T00:00:00Z".to_owned()), Some("never".to_owned())] {
        let lasting = super::scene::with_request(&scene.history, |request| {
            request.expires_at = expires.clone();
        });
        let mut tried = Scene { history: lasting, ..Scene::new(REFUNDS) };
        tried.answer(ResponsePart { approved: true, ..tried.approval() });
        let round = tried.resume();
        assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"));
        assert_eq!((round.ignored.len(), tried.tool.count()), (1, 0));
    }
}
