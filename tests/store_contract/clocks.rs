//! Limits when the clock is set, or when callers' times are out of order.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::limit_model::{Events, Wait, admits, any_allowance, any_wait, config, millionths};
use super::*;

const HOUR: u64 = 3_600_000_000;

/// The idle time after which a limit is fully available again.
fn period(allowance: Allowance) -> Option<Duration> {
    match allowance {
        Allowance::Gcra { limit, per, burst } => {
            let full = u64::try_from(per.as_micros()).unwrap() * burst.millionths();
            (limit > Amount::ZERO).then(|| Duration::from_micros(full.div_ceil(limit.millionths())))
        }
        Allowance::FixedWindow { per, .. } | Allowance::SlidingWindow { per, .. } => Some(per),
        Allowance::Total { keep, .. } => Some(keep),
        Allowance::Slots { .. } => None,
    }
}

fn everything(allowance: Allowance) -> u64 {
    let (Allowance::Gcra { burst: most, .. }
    | Allowance::FixedWindow { limit: most, .. }
    | Allowance::SlidingWindow { limit: most, .. }
    | Allowance::Total { limit: most, .. }) = allowance
    else {
        return 0;
    };
    most.millionths()
}

pub fn clock_step_back_does_not_block_callers(new: &New) {
    let before = prop::collection::vec((any_wait(20_000_000), 1..8_u64), 1..20);
    let property = |(allowance, before): (Allowance, Vec<(Wait, u64)>)| {
        let store = new();
        let (mut now, mut told) = (5 * HOUR, 0);
        for (wait, cost) in before {
            now += wait.micros(&mut told);
            let _ = acquire_one(&*store, Duration::from_micros(now), millionths("k", allowance, cost));
        }
        let stepped = Duration::from_micros(HOUR);
        let all = millionths("k", allowance, everything(allowance));
        let Some(period) = period(allowance) else { return Ok(()) };
        match acquire_one(&*store, stepped, all.clone()) {
            Ok(()) => {}
            Err(wait) => prop_assert!(wait.is_some_and(|wait| wait <= period), "{:?} of {:?}", wait, period),
        }
        prop_assert_eq!(acquire_one(&*store, stepped + period, all), Ok(()));
        Ok(())
    };
    let allowances = any_allowance(1..25_000_000_u64);
    TestRunner::new(config(200)).run(&(allowances, before), property).unwrap();
}

pub fn clock_step_back_admits_at_most_the_limit(new: &New) {
    let steps = || prop::collection::vec((any_wait(20_000_000), 1..8_u64), 1..20);
    let property = |(allowance, rounds): (Allowance, Vec<Vec<(Wait, u64)>>)| {
        let store = new();
        let mut start = 9 * HOUR;
        for steps in rounds {
            let (mut now, mut told) = (start, 0);
            let mut since = Events::new();
            for (wait, cost) in steps {
                now += wait.micros(&mut told);
                match acquire_one(&*store, Duration::from_micros(now), millionths("k", allowance, cost)) {
                    Ok(()) => {
                        prop_assert!(admits(&since, allowance, now, cost), "{} at {}", cost, now);
                        since.push((now, cost));
                    }
                    Err(wait) => told = wait.map_or(0, |wait| u64::try_from(wait.as_micros()).unwrap()),
                }
            }
            start -= 2 * HOUR;
        }
        Ok(())
    };
    let rounds = prop::collection::vec(steps(), 1..4);
    let allowances = any_allowance(1..25_000_000_u64);
    TestRunner::new(config(200)).run(&(allowances, rounds), property).unwrap();

    for allowance in [gcra(3, 60, 3), fixed(3, 60), sliding(3, 60), total(3, 60)] {
        let store = new();
        assert_eq!(acquire_one(&*store, seconds(7230), take("k", allowance, 3)), Ok(()));
        assert!(
            acquire_one(&*store, seconds(30), take("k", allowance, 1)).is_err(),
            "{allowance:?} lost its usage"
        );
    }
}

pub fn late_callers_do_not_exceed_the_limit(new: &New) {
    for allowance in [gcra(3, 30, 3), fixed(3, 10), sliding(3, 10), total(3, 10)] {
        let store = new();
        assert_eq!(acquire_one(&*store, seconds(10), take("k", allowance, 3)), Ok(()));
        for late in [1, 999, 500, 20, 700, 0].repeat(20) {
            let now = seconds(10) - Duration::from_millis(late);
            let answer = acquire_one(&*store, now, take("k", allowance, 1));
            // The same moment as for a caller with the right time.
            assert_eq!(answer, Err(Some(seconds(20) - now)), "{late} ms late for {allowance:?}");
        }
        assert_eq!(acquire_one(&*store, seconds(20), take("k", allowance, 1)), Ok(()), "{allowance:?}");
    }
}

pub fn clock_jump_forward_frees_expired_usage(new: &New) {
    for allowance in [gcra(3, 60, 3), fixed(3, 60), sliding(3, 60), total(3, 60)] {
        let store = new();
        for years in [0, 100, 5000] {
            let now = seconds(years * 31_536_000);
            assert_eq!(acquire_one(&*store, now, take("k", allowance, 3)), Ok(()), "{allowance:?}");
        }
    }
}
