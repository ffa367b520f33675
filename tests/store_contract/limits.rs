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
