//! Amounts and periods of all sizes, with corrections, beside the store in memory. The model recounts only small ones.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::limit_model::{any_allowance, config};
use super::*;

/// What one step does with the limit.
#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire,
    /// Corrects the last acquisition to this many units.
    Correct(Option<u64>),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Acquire),
        1 => prop::option::of(0..8_u64).prop_map(Step::Correct),
    ]
}

/// Units of amounts, in millionths: whole, fractional, and around the numbers that floating-point numbers hold exactly.
const UNITS: [u64; 8] =
    [1, 999_999, 1_000_000, 1_500_000, 1_000_000_000, 750_599_937_895_083, 1_000_000_000_000_000, 1 << 59];
/// Units of periods and waits, in microseconds.
const PERIODS: [u64; 4] = [1, 1_000, 60_000_000, 3_600_000_000];

fn scaled(allowance: Allowance, unit: u64, period: u64) -> Allowance {
    let amount = |amount: Amount| Amount::from_millionths(amount.millionths() * unit);
    let time = |time: Duration| time * u32::try_from(period).unwrap();
    match allowance {
        Allowance::Gcra { limit, per, burst } => {
            Allowance::Gcra { limit: amount(limit), per: time(per), burst: amount(burst) }
        }
        Allowance::FixedWindow { limit, per } => {
            Allowance::FixedWindow { limit: amount(limit), per: time(per) }
        }
        Allowance::SlidingWindow { limit, per } => {
            Allowance::SlidingWindow { limit: amount(limit), per: time(per) }
        }
        Allowance::Total { limit, keep } => Allowance::Total { limit: amount(limit), keep: time(keep) },
        other @ Allowance::Slots { .. } => other,
    }
}

pub fn amounts_of_all_sizes_are_answered_as_in_memory(new: &New) {
    let steps = prop::collection::vec((0..30_u64, 0..8_u64, any::<bool>(), any_step()), 1..40);
    let sizes = (prop::sample::select(&UNITS), prop::sample::select(&PERIODS));
    let property = |((unit, period), allowance, steps): ((u64, u64), Allowance, Vec<_>)| {
        let (store, memory) = (new(), MemoryStore::default());
        let (mut now, mut last) = (0, None);
        for (wait, cost, is_odd, step) in steps {
            // Off the beginning of a period, too.
            now += wait * period + u64::from(is_odd);
            let time = Duration::from_micros(now);
            let one = LimitAcquisition {
                key: "k".to_owned(),
                account: Account::NOBODY,
                allowance: scaled(allowance, unit, period),
                cost: Amount::from_millionths(cost * unit + u64::from(is_odd)),
            };
            match (step, last.take()) {
                (Step::Correct(units), Some((acquired_at, one))) => {
                    let cost = units.map(|units| RealCost::Known(Amount::from_millionths(units * unit)));
                    let cost = cost.unwrap_or(RealCost::Unknown);
                    let correction = LimitCorrection { acquisition: one, acquired_at: at(acquired_at), cost };
                    for store in [&*store, &memory] {
                        run(store.correct(at(time), std::slice::from_ref(&correction))).unwrap();
                    }
                }
                _ => {
                    let answer = acquire_one(&*store, time, one.clone());
                    prop_assert_eq!(answer, acquire_one(&memory, time, one.clone()), "{:?} at {}", one, now);
                    last = answer.is_ok().then_some((time, one));
                }
            }
        }
        Ok(())
    };
    TestRunner::new(config(300)).run(&(sizes, any_allowance(1..25_u64), steps), property).unwrap();
}
