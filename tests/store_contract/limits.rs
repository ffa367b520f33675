//! The limit algorithms, by tables of steps.

use super::*;

/// The second, the cost, and the answer: `Ok`, the seconds to wait, or `None` for never.
type Step = (u64, u64, Result<(), Option<u64>>);

/// Runs the steps against one limit.
fn run_steps(new: &New, allowance: Allowance, steps: &[Step]) {
    let store = new();
    for (now, cost, expected) in steps {
        let answer = acquire_one(&*store, seconds(*now), take("k", allowance, *cost));
        assert_eq!(answer, expected.map_err(|wait| wait.map(seconds)), "{cost} at {now} s of {allowance:?}");
    }
}

pub fn gcra_admits_its_burst_and_then_refills(new: &New) {
    run_steps(
        new,
        gcra(6, 60, 3),
        &[
            (0, 3, Ok(())),
            (0, 1, Err(Some(10))),
            (9, 1, Err(Some(1))),
            (10, 1, Ok(())),
            (10, 2, Err(Some(20))),
            (30, 2, Ok(())),
            (1000, 3, Ok(())),
            (1000, 3, Err(Some(30))),
        ],
    );
}

pub fn fixed_windows_follow_the_epoch(new: &New) {
    run_steps(
        new,
        fixed(3, 60),
        &[
            (50, 2, Ok(())),
            (59, 2, Err(Some(1))),
            (59, 1, Ok(())),
            (60, 3, Ok(())),
            (61, 1, Err(Some(59))),
            (600, 3, Ok(())),
        ],
    );
}

pub fn sliding_window_counts_each_take_for_its_duration(new: &New) {
    run_steps(
        new,
        sliding(3, 60),
        &[
            (0, 1, Ok(())),
            (0, 1, Ok(())),
            (30, 1, Ok(())),
            (40, 1, Err(Some(20))),
            (40, 3, Err(Some(50))),
            (60, 2, Ok(())),
            (60, 1, Err(Some(30))),
        ],
    );
}

pub fn total_resets_after_long_inactivity(new: &New) {
    run_steps(
        new,
        total(3, 3600),
        &[
            (0, 1, Ok(())),
            (3000, 1, Ok(())),
            (6000, 1, Ok(())),
            (6000, 1, Err(Some(3600))),
            (9000, 1, Err(Some(600))),
            (9600, 3, Ok(())),
        ],
    );
}

pub fn zero_cost_is_always_admitted(new: &New) {
    for allowance in [gcra(0, 60, 0), fixed(0, 60), sliding(0, 60), total(0, 60)] {
        run_steps(new, allowance, &[(0, 0, Ok(())), (0, 1, Err(None)), (0, 0, Ok(()))]);
    }
    for allowance in [gcra(1, 60, 1), fixed(1, 60), sliding(1, 60), total(1, 60)] {
        run_steps(new, allowance, &[(0, 1, Ok(())), (0, 0, Ok(())), (0, 1, Err(Some(60))), (60, 1, Ok(()))]);
    }
}

pub fn cost_above_the_limit_is_never_admitted(new: &New) {
    for allowance in [gcra(60, 60, 2), fixed(2, 60), sliding(2, 60), total(2, 60)] {
        run_steps(new, allowance, &[(0, 3, Err(None)), (0, 2, Ok(())), (1, 3, Err(None))]);
    }
    run_steps(new, gcra(0, 60, 2), &[(0, 2, Ok(())), (100_000, 1, Err(None))]);
}

pub fn batch_acquires_all_or_nothing(new: &New) {
    let store = new();
    let batch = [take("a", fixed(5, 60), 2), take("b", sliding(3, 60), 2), take("c", gcra(3, 60, 3), 2)];
    assert_eq!(acquire(&*store, seconds(0), &batch), []);
    let refusals = acquire(&*store, seconds(0), &batch);
    let named: Vec<_> = refusals.iter().map(|refusal| (refusal.index, refusal.retry_after)).collect();
    assert_eq!(named, [(1, Some(seconds(60))), (2, Some(seconds(20)))]);
    assert_eq!(
        acquire_one(&*store, seconds(0), take("a", fixed(5, 60), 3)),
        Ok(()),
        "the rejected batch acquired nothing of it"
    );
}

pub fn duplicate_key_in_a_batch_counts_twice(new: &New) {
    for allowance in [gcra(4, 60, 4), fixed(4, 60), sliding(4, 60), total(4, 60)] {
        let store = new();
        let twice = [take("k", allowance, 2), take("k", allowance, 1)];
        assert_eq!(acquire(&*store, seconds(0), &twice), [], "{allowance:?}");
        let refusals = acquire(&*store, seconds(0), &twice);
        assert_eq!(refusals.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [0, 1], "{allowance:?}");
        let wait = refusals.iter().filter_map(|refusal| refusal.retry_after).max().unwrap();
        let before = wait - Duration::from_micros(1);
        assert_ne!(acquire(&*store, before, &twice), [], "{allowance:?}");
        assert_eq!(acquire(&*store, wait, &twice), [], "{allowance:?}");
        assert_eq!(
            acquire(&*store, wait + seconds(600), &[take("k", allowance, 3), take("k", allowance, 2)]).len(),
            1
        );
    }
    let store = new();
    let twice = [take("k", Allowance::Slots { max: 3 }, 0), take("k", Allowance::Slots { max: 3 }, 0)];
    assert_eq!(acquire(&*store, seconds(0), &twice), []);
    assert_eq!(acquire(&*store, seconds(0), &twice), [LimitRefusal { index: 1, retry_after: None }]);
}

pub fn duplicate_key_with_different_allowances_is_an_error(new: &New) {
    let store = new();
    let batch = [take("k", fixed(5, 60), 1), take("k", fixed(6, 60), 1)];
    assert!(run(store.acquire(at(seconds(0)), &batch)).is_err());
    assert_eq!(acquire_one(&*store, seconds(0), take("k", fixed(5, 60), 5)), Ok(()), "nothing was acquired");
}

pub fn changed_limits_keep_the_usage(new: &New) {
    let answers = |before: Allowance, taken: u64, after: Allowance, now: u64, cost: u64| {
        let store = new();
        assert_eq!(acquire_one(&*store, seconds(0), take("k", before, taken)), Ok(()));
        acquire_one(&*store, seconds(now), take("k", after, cost))
            .map_err(|wait| wait.map(|wait| wait.as_secs()))
    };
    for (before, taken, after, now, cost, expected) in [
        // Higher and lower limits.
        (fixed(4, 60), 4, fixed(5, 60), 1, 1, Ok(())),
        (fixed(4, 60), 4, fixed(5, 60), 1, 2, Err(Some(59))),
        (fixed(4, 60), 4, fixed(2, 60), 1, 1, Err(Some(59))),
        (sliding(4, 60), 4, sliding(2, 60), 1, 1, Err(Some(59))),
        (total(4, 60), 4, total(2, 60), 1, 1, Err(Some(59))),
        // Longer and shorter windows. Usage outside the shorter window may be lost.
        (fixed(4, 60), 4, fixed(4, 3600), 59, 1, Err(Some(3541))),
        (fixed(4, 3600), 4, fixed(4, 60), 61, 4, Ok(())),
        (sliding(4, 60), 4, sliding(4, 3600), 59, 1, Err(Some(3541))),
        (sliding(4, 3600), 4, sliding(4, 60), 59, 1, Err(Some(1))),
        (total(4, 60), 4, total(4, 3600), 59, 1, Err(Some(3541))),
        // The bucket keeps its level, up to its new size, and refills at the new rate.
        (gcra(4, 60, 4), 4, gcra(4, 240, 4), 0, 1, Err(Some(60))),
        (gcra(4, 60, 4), 4, gcra(12, 60, 4), 0, 1, Err(Some(5))),
        (gcra(4, 60, 4), 4, gcra(4, 60, 6), 0, 2, Ok(())),
        (gcra(1000, 60, 1000), 1000, gcra(1, 60, 2), 0, 1, Err(Some(60))),
    ] {
        let answer = answers(before, taken, after, now, cost);
        assert_eq!(answer, expected, "{taken} of {before:?}, then {cost} of {after:?}");
    }
}

pub fn changed_algorithm_resets_the_usage(new: &New) {
    let store = new();
    let slots = Allowance::Slots { max: 1 };
    for allowance in [gcra(2, 60, 2), fixed(2, 60), sliding(2, 60), total(2, 60), slots, gcra(2, 60, 2)] {
        assert_eq!(acquire_one(&*store, seconds(0), take("k", allowance, 2)), Ok(()), "{allowance:?}");
        assert!(acquire_one(&*store, seconds(0), take("k", allowance, 2)).is_err(), "{allowance:?}");
    }
}

pub fn keys_are_independent(new: &New) {
    let store = new();
    for key in ["a", "b", ""] {
        assert_eq!(acquire_one(&*store, seconds(0), take(key, fixed(1, 60), 1)), Ok(()), "{key:?}");
    }
}

const KNOWN: fn(u64) -> RealCost = |cost| RealCost::Known(Amount::from_whole(cost));

/// An estimate of 1 at 0 s that costs 9: each limit allows 3 at once.
pub fn overshoot_is_debt_until_it_has_flowed_back(new: &New) {
    for (allowance, refused, admitted) in [
        // One flows back each 10 s: with a level of 9, one fits after 70 s.
        (gcra(6, 60, 3), Some(70), 70),
        (fixed(3, 60), Some(60), 60),
        (sliding(3, 60), Some(60), 60),
        (total(3, 3600), Some(3600), 3600),
    ] {
        let store = new();
        assert_eq!(acquire_one(&*store, seconds(0), take("k", allowance, 1)), Ok(()));
        correct(&*store, seconds(0), seconds(0), take("k", allowance, 1), KNOWN(9));
        let answer = acquire_one(&*store, seconds(0), take("k", allowance, 1));
        assert_eq!(answer, Err(refused.map(seconds)), "{allowance:?}");
        let early = acquire_one(&*store, seconds(admitted - 1), take("k", allowance, 1));
        assert_eq!(early, Err(Some(seconds(1))), "{allowance:?}");
        assert_eq!(acquire_one(&*store, seconds(admitted), take("k", allowance, 1)), Ok(()), "{allowance:?}");
    }
}

/// An estimate of 3 at 0 s, which is all there is, costs 1. Later, less of it still counts.
pub fn refunds_give_back_what_still_counts(new: &New) {
    for (allowance, corrected_at, left) in [
        (gcra(6, 60, 3), 0, 2),
        // After 20 s two have flowed back, and of the estimate one still counts: together all is free again, and no more than that.
        (gcra(6, 60, 3), 20, 3),
        (fixed(3, 60), 0, 2),
        (fixed(3, 60), 59, 2),
        (fixed(3, 60), 60, 3),
        (sliding(3, 60), 59, 2),
        (sliding(3, 60), 60, 3),
        (total(3, 3600), 60, 2),
    ] {
        let store = new();
        assert_eq!(acquire_one(&*store, seconds(0), take("k", allowance, 3)), Ok(()));
        correct(&*store, seconds(corrected_at), seconds(0), take("k", allowance, 3), KNOWN(1));
        let at = seconds(corrected_at);
        assert!(acquire_one(&*store, at, take("k", allowance, left + 1)).is_err(), "{allowance:?}");
        assert_eq!(acquire_one(&*store, at, take("k", allowance, left)), Ok(()), "{allowance:?}");
    }
    // What others have acquired since is not refunded.
    for (allowance, later) in [(gcra(6, 60, 3), 30), (fixed(3, 60), 60), (sliding(3, 60), 60)] {
        let store = new();
        assert_eq!(acquire_one(&*store, seconds(0), take("k", allowance, 3)), Ok(()));
        assert_eq!(acquire_one(&*store, seconds(later), take("k", allowance, 3)), Ok(()));
        correct(&*store, seconds(later), seconds(0), take("k", allowance, 3), KNOWN(0));
        assert!(acquire_one(&*store, seconds(later), take("k", allowance, 1)).is_err(), "{allowance:?}");
    }
}

pub fn unknown_cost_takes_all_that_is_left(new: &New) {
    for (allowance, wait) in [
        (gcra(6, 60, 3), Some(10)),
        (fixed(3, 60), Some(60)),
        (sliding(3, 60), Some(60)),
        (total(3, 3600), Some(3600)),
    ] {
        let store = new();
        assert_eq!(acquire_one(&*store, seconds(0), take("k", allowance, 1)), Ok(()));
        correct(&*store, seconds(0), seconds(0), take("k", allowance, 1), RealCost::Unknown);
        let answer = acquire_one(&*store, seconds(0), take("k", allowance, 1));
        assert_eq!(answer, Err(wait.map(seconds)), "{allowance:?}");
        // Once more it takes nothing: there is no debt.
        correct(&*store, seconds(0), seconds(0), take("k", allowance, 1), RealCost::Unknown);
        let answer = acquire_one(&*store, seconds(0), take("k", allowance, 1));
        assert_eq!(answer, Err(wait.map(seconds)), "{allowance:?}");
    }
}

/// The call took so long that its estimate has flowed back, and the limit is not tracked any more.
/// What seemed to cost nothing is charged all the same.
pub fn estimate_of_zero_is_corrected(new: &New) {
    let store = new();
    let spent = |cost| take("k", total(10, 3600), cost);
    acquire_one(&*store, seconds(0), spent(0)).unwrap();
    correct(&*store, seconds(1), seconds(0), spent(0), RealCost::Known(Amount::from_whole(9)));
    assert!(acquire_one(&*store, seconds(2), spent(2)).is_err());
    acquire_one(&*store, seconds(2), spent(1)).unwrap();
}

pub fn corrections_survive_the_removal_of_the_limit(new: &New) {
    for allowance in [gcra(6, 60, 3), fixed(3, 60), sliding(3, 60), total(3, 60)] {
        let store = new();
        assert_eq!(acquire_one(&*store, seconds(0), take("k", allowance, 1)), Ok(()));
        for other in 0..9 {
            assert_eq!(acquire_one(&*store, seconds(600), take(&format!("o{other}"), allowance, 1)), Ok(()));
        }
        correct(&*store, seconds(600), seconds(0), take("k", allowance, 1), KNOWN(9));
        assert!(acquire_one(&*store, seconds(600), take("k", allowance, 1)).is_err(), "{allowance:?}");
        correct(&*store, seconds(600), seconds(0), take("l", allowance, 1), KNOWN(0));
        assert_eq!(acquire_one(&*store, seconds(600), take("l", allowance, 3)), Ok(()), "{allowance:?}");
    }
}
