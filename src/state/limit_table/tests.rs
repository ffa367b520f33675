use proptest::prelude::*;

use super::*;
use crate::host::Amount;

/// Capacity for this many keys of one account, whose share is a third.
fn room_for(keys: usize) -> LimitTable {
    LimitTable::new(3 * keys)
}

const PER: Duration = Duration::from_micros(100);

fn gcra(limit: u64) -> Allowance {
    let limit = Amount::from_millionths(limit);
    Allowance::Gcra { limit, per: PER, burst: limit }
}

fn sliding(limit: u64) -> Allowance {
    Allowance::SlidingWindow { limit: Amount::from_millionths(limit), per: PER }
}

fn one(key: impl ToString, allowance: Allowance) -> LimitAcquisition {
    LimitAcquisition {
        key: key.to_string(),
        account: Account::NOBODY,
        allowance,
        cost: Amount::from_millionths(1),
    }
}

/// The shares and the due times match the keys.
fn assert_in_step(limits: &LimitTable) {
    let size: usize = limits.keys.values().map(|tracked| tracked.usage.size()).sum();
    assert_eq!(limits.shares.used(), size);
    assert!(limits.shares.used() <= limits.shares.capacity());
    for tracked in limits.keys.values() {
        assert_eq!(tracked.charges.iter().map(|(_, held)| held).sum::<usize>(), tracked.usage.size());
    }
    let due: BTreeSet<_> =
        limits.keys.iter().filter_map(|(key, tracked)| Some((tracked.due?, Arc::clone(key)))).collect();
    assert_eq!(limits.due, due);
    for (key, tracked) in &limits.keys {
        let reset_at = tracked.usage.reset_at(&tracked.allowance);
        assert!(reset_at.is_none() || tracked.due.is_some(), "`{key}` would never leave");
    }
}

#[test]
fn a_full_store_admits_a_new_limit_after_another_one_is_reset() {
    let mut limits = room_for(2);
    assert_eq!(limits.acquire(0, &[one("a", gcra(1)), one("b", gcra(2))]), Ok(Vec::new()));
    assert!(limits.acquire(49, &[one("c", gcra(1))]).is_err(), "all are in use");
    assert_eq!(limits.acquire(49, &[one("b", gcra(2))]), Ok(Vec::new()), "a tracked one is counted on");
    assert_eq!(limits.acquire(49, &[one("a", gcra(1))]).unwrap().len(), 1, "and refused");
    assert_eq!(limits.acquire(100, &[one("c", gcra(1))]), Ok(Vec::new()));
    assert_in_step(&limits);
}

#[test]
fn a_batch_without_room_acquires_nothing() {
    let mut limits = room_for(2);
    let batch = [one("a", gcra(1)), one("b", gcra(1)), one("c", gcra(1))];
    assert!(limits.acquire(0, &batch).is_err());
    assert_eq!(limits.acquire(0, &batch[..2]), Ok(Vec::new()));
    assert_eq!(
        limits.acquire(0, &[LimitAcquisition { cost: Amount::ZERO, ..one("c", gcra(1)) }]),
        Ok(Vec::new())
    );
}

#[test]
fn a_key_removed_by_its_own_batch_needs_room_again() {
    let keys = |keys: std::ops::Range<usize>| keys.map(|key| one(key, gcra(1))).collect::<Vec<_>>();
    let mut limits = room_for(DUE_CHECKS + 2);
    assert_eq!(limits.acquire(0, &keys(0..DUE_CHECKS + 2)), Ok(Vec::new()));
    assert!(limits.acquire(100, &keys(DUE_CHECKS..2 * DUE_CHECKS + 3)).is_err());
    assert_in_step(&limits);
    assert_eq!(limits.acquire(100, &keys(0..DUE_CHECKS + 2)), Ok(Vec::new()));
    assert_in_step(&limits);
}

#[test]
fn each_logged_time_of_a_sliding_window_takes_room() {
    let mut limits = room_for(3);
    for now in [0, 1, 1, 2] {
        assert_eq!(limits.acquire(now, &[one("a", sliding(9))]), Ok(Vec::new()));
    }
    assert!(limits.acquire(3, &[one("a", sliding(9))]).is_err());
    assert!(limits.acquire(3, &[one("b", gcra(9))]).is_err());
    assert_eq!(limits.acquire(100, &[one("a", sliding(9))]), Ok(Vec::new()));
    assert_in_step(&limits);
}

#[test]
fn limits_that_are_used_once_are_removed() {
    let mut limits = room_for(1_000);
    for key in 0..20_000 {
        assert_eq!(limits.acquire(key, &[one(key, gcra(1))]), Ok(Vec::new()));
        assert!(limits.keys.len() <= 101);
    }
    assert_in_step(&limits);
}

#[test]
fn a_released_slot_leaves_nothing_behind() {
    let slots = Allowance::Slots { max: 1 };
    let mut limits = room_for(1);
    for key in 0..10 {
        assert_eq!(limits.acquire(0, &[one(key, slots)]), Ok(Vec::new()));
        limits.release(&key.to_string());
    }
    assert!(limits.keys.is_empty() && limits.due.is_empty() && limits.shares.used() == 0);
}

#[test]
fn keys_are_removed_in_time_after_the_clock_steps_back() {
    let mut limits = room_for(1);
    assert_eq!(limits.acquire(1 << 40, &[one("a", gcra(1))]), Ok(Vec::new()));
    assert!(limits.acquire(0, &[one("b", gcra(1))]).is_err());
    assert_eq!(limits.acquire(100, &[one("b", gcra(1))]), Ok(Vec::new()));
}

fn account(name: &str) -> Account {
    Account::from_context(&crate::json::json!({ "principal": name }))
}

#[test]
fn a_caller_that_invents_keys_exhausts_only_its_own_share() {
    let of = |name: &str, key: usize| LimitAcquisition {
        account: account(name),
        ..one(format!("{name}{key}"), gcra(9))
    };
    let mut limits = LimitTable::new(90);
    let acquired = (0..1_000).take_while(|key| limits.acquire(0, &[of("hostile", *key)]).is_ok()).count();
    assert_eq!(acquired, 30);
    for key in 0..10 {
        assert_eq!(limits.acquire(0, &[of("honest", key)]), Ok(Vec::new()), "{key}");
    }
    assert_eq!(limits.acquire(0, &[of("hostile", 0)]), Ok(Vec::new()), "what is tracked is counted on");
    assert!(limits.acquire(0, &[of("hostile", 1_000)]).is_err());
    assert_in_step(&limits);
}

#[test]
fn growth_of_a_shared_window_is_charged_to_its_cause() {
    let of = |name: &str, key: &str| LimitAcquisition { account: account(name), ..one(key, sliding(1_000)) };
    let mut limits = LimitTable::new(90);
    // The hostile caller creates it, and fills its share with other keys.
    assert_eq!(limits.acquire(0, &[of("hostile", "shared")]), Ok(Vec::new()));
    let full = (0..).take_while(|key| limits.acquire(0, &[of("hostile", &key.to_string())]).is_ok()).count();
    assert_eq!(full, 29);
    assert!(limits.acquire(1, &[of("hostile", "shared")]).is_err());
    for now in 1..10 {
        assert_eq!(limits.acquire(now, &[of("honest", "shared")]), Ok(Vec::new()), "{now}");
    }
    assert_in_step(&limits);
    // What was refilled is released for the account that was charged for it.
    assert_eq!(limits.acquire(100, &[of("honest", "shared")]), Ok(Vec::new()));
    assert_eq!(limits.acquire(101, &[of("hostile", "new")]), Ok(Vec::new()));
    assert_in_step(&limits);
}

fn any_allowance() -> impl Strategy<Value = Allowance> {
    (0..6, 0..5_u64, prop_oneof![Just(PER), Just(PER * 3)]).prop_map(|(kind, number, per)| {
        let limit = Amount::from_millionths(number);
        match kind {
            0 => Allowance::Gcra { limit, per, burst: limit },
            1 => Allowance::Gcra { limit: Amount::ZERO, per, burst: limit },
            2 => Allowance::FixedWindow { limit, per },
            3 => Allowance::SlidingWindow { limit, per },
            4 => Allowance::Total { limit, keep: per },
            _ => Allowance::Slots { max: number as u32 },
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// With little capacity there are errors, but no other results than with a large one.
    #[test]
    fn limits_are_never_dropped_for_lack_of_room(
        steps in prop::collection::vec(
            (prop_oneof![9 => 0..60_i64, 1 => -5_000_000..0_i64], prop::collection::vec(0..12_usize, 1..4)),
            1..80,
        ),
        allowances in prop::collection::vec(any_allowance(), 12),
    ) {
        let (mut small, mut large) = (room_for(6), room_for(10_000));
        let mut now = 0;
        for (wait, batch) in steps {
            now += wait;
            let batch: Vec<LimitAcquisition> = batch.into_iter().map(|key| one(key, allowances[key])).collect();
            if let Ok(answer) = small.acquire(now, &batch) {
                prop_assert_eq!(large.acquire(now, &batch), Ok(answer));
            } else {
                large.advance_to(now);
            }
            assert_in_step(&small);
            assert_in_step(&large);
        }
    }

    /// Reloads that change everything keep the due times consistent.
    #[test]
    fn reloads_keep_due_times_consistent(
        steps in prop::collection::vec((0..60_i64, 0..4_usize, any_allowance(), any::<bool>()), 1..80),
    ) {
        let mut limits = room_for(8);
        let mut now = 0;
        for (wait, key, allowance, give_back) in steps {
            now += wait;
            let refused = one("refuses", gcra(0));
            let _ = limits.acquire(now, &[one(key, allowance), refused]);
            assert_in_step(&limits);
            let _ = limits.acquire(now, &[one(key, allowance)]);
            assert_in_step(&limits);
            if give_back {
                limits.release(&key.to_string());
                assert_in_step(&limits);
            }
        }
    }
}
