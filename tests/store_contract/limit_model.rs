//! Limits against a model that stores every admitted event and recounts them each time.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

/// Admitted events: time in microseconds, and amount in millionths.
pub type Events = Vec<(u64, u64)>;

/// Whether the limit admits another `cost`.
pub fn admits(events: &Events, allowance: Allowance, now: u64, cost: u64) -> bool {
    let (now, cost) = (u128::from(now), u128::from(cost));
    let events: Vec<_> = events.iter().map(|(time, cost)| (u128::from(*time), u128::from(*cost))).collect();
    let sum = |counts: &dyn Fn(u128) -> bool| -> u128 {
        events.iter().filter(|(time, _)| counts(*time)).map(|(_, cost)| cost).sum::<u128>() + cost
    };
    let wide = |amount: Amount| u128::from(amount.millionths());
    match allowance {
        _ if cost == 0 => true,
        Allowance::Gcra { limit, per, burst } => {
            // Since any event: at most the burst and the refill since then.
            cost <= wide(burst)
                && events.iter().all(|(since, _)| {
                    let flowed = (now - since) * wide(limit);
                    sum(&|time| time >= *since) * per.as_micros() <= wide(burst) * per.as_micros() + flowed
                })
        }
        Allowance::FixedWindow { limit, per } => {
            // The start of the tests' time begins a window only if its length divides a day.
            let window = |time: u128| (time + u128::from(epoch())) / per.as_micros();
            sum(&|time| window(time) == window(now)) <= wide(limit)
        }
        Allowance::SlidingWindow { limit, per } => sum(&|time| now < time + per.as_micros()) <= wide(limit),
        Allowance::Total { limit, keep } => {
            let mut times: Vec<_> = events.iter().map(|(time, _)| *time).chain([now]).collect();
            times.sort_unstable();
            let gap = times.windows(2).rev().find(|pair| pair[1] - pair[0] >= keep.as_micros());
            let since = gap.map_or(0, |pair| pair[1]);
            sum(&|time| time >= since) <= wide(limit)
        }
        Allowance::Slots { .. } => panic!("slots are not limits over time"),
    }
}

/// The start of the tests' time, in microseconds.
fn epoch() -> u64 {
    at(Duration::ZERO).as_microsecond().unsigned_abs()
}

/// Any kind of limit over time, with numbers so small that they are often reached.
pub fn any_allowance(per: impl Strategy<Value = u64>) -> impl Strategy<Value = Allowance> {
    (0..5, 0..12_u64, per, 0..12_u64).prop_map(|(kind, limit, per, burst)| {
        let (limit, per) = (Amount::from_millionths(limit), Duration::from_micros(per));
        match kind {
            0 | 1 => Allowance::Gcra { limit, per, burst: Amount::from_millionths(burst) },
            2 => Allowance::FixedWindow { limit, per },
            3 => Allowance::SlidingWindow { limit, per },
            _ => Allowance::Total { limit, keep: per },
        }
    })
}

/// How long to wait before a take.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    Micros(u64),
    /// The `retry_after` of the last refusal, or a microsecond less.
    AsRefused {
        early: bool,
    },
}

pub fn any_wait(longest: u64) -> impl Strategy<Value = Wait> {
    prop_oneof![
        3 => (0..longest).prop_map(Wait::Micros),
        1 => any::<bool>().prop_map(|early| Wait::AsRefused { early }),
    ]
}

impl Wait {
    pub fn micros(self, told: &mut u64) -> u64 {
        match self {
            Self::Micros(micros) => micros,
            Self::AsRefused { early } => std::mem::take(told).saturating_sub(u64::from(early)),
        }
    }
}

pub fn millionths(key: &str, allowance: Allowance, cost: u64) -> LimitAcquisition {
    LimitAcquisition {
        key: key.to_owned(),
        account: Account::NOBODY,
        allowance,
        cost: Amount::from_millionths(cost),
    }
}

pub fn admits_the_same_as_the_model(new: &New) {
    let steps = prop::collection::vec((any_wait(30), 0..8_u64), 1..60);
    let property = |(allowance, steps): (Allowance, Vec<(Wait, u64)>)| {
        let store = new();
        let (mut now, mut told) = (0, 0);
        let mut events = Events::new();
        for (wait, cost) in steps {
            now += wait.micros(&mut told);
            let answer = acquire_one(&*store, Duration::from_micros(now), millionths("k", allowance, cost));
            prop_assert_eq!(answer.is_ok(), admits(&events, allowance, now, cost), "{} at {}", cost, now);
            match answer {
                Ok(()) if cost > 0 => events.push((now, cost)),
                Ok(()) => {}
                Err(None) => prop_assert!(!admits(&events, allowance, now + 1_000_000, cost)),
                Err(Some(wait)) => {
                    told = u64::try_from(wait.as_micros()).unwrap();
                    prop_assert!(admits(&events, allowance, now + told, cost), "{} after {}", cost, told);
                    prop_assert!(
                        !admits(&events, allowance, now + told - 1, cost),
                        "{} before {}",
                        cost,
                        told
                    );
                }
            }
        }
        Ok(())
    };
    TestRunner::new(config(400)).run(&(any_allowance(1..25_u64), steps), property).unwrap();
}

/// Amounts to acquire: the index of the limit, and the cost.
type Batch = Vec<(usize, u64)>;

pub fn rejected_batches_acquire_nothing(new: &New) {
    let batches =
        prop::collection::vec((0..30_u64, prop::collection::vec((0..3_usize, 0..6_u64), 1..5)), 1..40);
    let allowances = prop::collection::vec(any_allowance(1..25_u64), 3);
    let property = |(allowances, batches): (Vec<Allowance>, Vec<(u64, Batch)>)| {
        let store = new();
        let mut now = 0;
        let mut events = vec![Events::new(); 3];
        for (wait, batch) in batches {
            now += wait;
            let mut wanted = [0; 3];
            let mut expected = Vec::new();
            for (index, (limit, cost)) in batch.iter().enumerate() {
                wanted[*limit] += cost;
                if *cost > 0 && !admits(&events[*limit], allowances[*limit], now, wanted[*limit]) {
                    expected.push(index);
                }
            }
            let keys = ["a", "b", "c"];
            let batch: Vec<LimitAcquisition> = batch
                .iter()
                .map(|(limit, cost)| millionths(keys[*limit], allowances[*limit], *cost))
                .collect();
            let refusals = acquire(&*store, Duration::from_micros(now), &batch);
            prop_assert_eq!(
                refusals.iter().map(|refusal| refusal.index).collect::<Vec<_>>(),
                expected.clone()
            );
            if expected.is_empty() {
                for (events, cost) in events.iter_mut().zip(wanted) {
                    events.extend((cost > 0).then_some((now, cost)));
                }
            }
        }
        Ok(())
    };
    TestRunner::new(config(300)).run(&(allowances, batches), property).unwrap();
}

pub fn config(cases: u32) -> ProptestConfig {
    let cases = cases / CASE_DIVISOR.get();
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}
