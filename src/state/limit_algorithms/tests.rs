use proptest::prelude::*;

use super::*;

const PER: Duration = Duration::from_micros(10);

fn gcra(limit: u64, burst: u64) -> Allowance {
    Allowance::Gcra { limit: Amount::from_millionths(limit), per: PER, burst: Amount::from_millionths(burst) }
}

fn fixed(limit: u64) -> Allowance {
    Allowance::FixedWindow { limit: Amount::from_millionths(limit), per: PER }
}

fn sliding(limit: u64) -> Allowance {
    Allowance::SlidingWindow { limit: Amount::from_millionths(limit), per: PER }
}

fn total(limit: u64) -> Allowance {
    Allowance::Total { limit: Amount::from_millionths(limit), keep: PER }
}

/// Acquires the amount if it is admitted.
fn take(spent: &mut LimitUsage, allowance: &Allowance, now: Micros, cost: u64) -> LimitAnswer {
    let answer = spent.peek(allowance, now, u128::from(cost));
    if answer == LimitAnswer::Admitted {
        spent.acquire(now, cost);
    }
    answer
}

#[test]
fn only_reported_waits_are_rounded_up() {
    // 3 in 10 µs: what is refilled in 3.33 µs is available after 4, and an earlier check loses nothing.
    let allowance = gcra(3, 3);
    let mut spent = LimitUsage::new(&allowance, 0);
    assert_eq!(take(&mut spent, &allowance, 0, 3), LimitAnswer::Admitted);
    for (now, answer) in [
        (0, LimitAnswer::After(4)),
        (3, LimitAnswer::After(1)),
        (4, LimitAnswer::Admitted),
        (5, LimitAnswer::After(2)),
        (7, LimitAnswer::Admitted),
        (9, LimitAnswer::After(1)),
        (10, LimitAnswer::Admitted),
    ] {
        assert_eq!(take(&mut spent, &allowance, now, 1), answer, "{now}");
    }
}

#[test]
fn windows_before_the_epoch_have_full_length() {
    let allowance = fixed(1);
    let mut spent = LimitUsage::new(&allowance, -11);
    for (now, answer) in [
        (-11, LimitAnswer::Admitted),
        (-11, LimitAnswer::After(1)),
        (-10, LimitAnswer::Admitted),
        (-1, LimitAnswer::After(1)),
        (0, LimitAnswer::Admitted),
        (9, LimitAnswer::After(1)),
    ] {
        assert_eq!(take(&mut spent, &allowance, now, 1), answer, "{now}");
    }
}

#[test]
fn adding_a_duration_to_a_time_adds_its_microseconds() {
    for start in [Timestamp::UNIX_EPOCH, Timestamp::MIN, "1969-12-31T23:59:59.9999995Z".parse().unwrap()] {
        let later = start.checked_add(Duration::from_micros(7)).unwrap();
        assert_eq!(since_epoch(later), since_epoch(start) + 7, "{start}");
    }
    assert!(since_epoch(Timestamp::MIN) > -(1 << 59) && since_epoch(Timestamp::MAX) < 1 << 59);
}

#[test]
fn durations_are_rounded_up_and_never_zero() {
    for (span, expected) in [
        (Duration::ZERO, 1),
        (Duration::from_nanos(1), 1),
        (Duration::from_nanos(1001), 2),
        (Duration::from_secs(1), 1_000_000),
        (Duration::MAX, 1 << 61),
    ] {
        assert_eq!(micros(span), expected, "{span:?}");
    }
}

#[test]
fn a_limit_is_reset_when_its_full_amount_is_available_again() {
    for allowance in [gcra(3, 6), fixed(6), sliding(6), total(6)] {
        let mut spent = LimitUsage::new(&allowance, 0);
        assert_eq!(take(&mut spent, &allowance, 0, 2), LimitAnswer::Admitted);
        assert_eq!(take(&mut spent, &allowance, 5, 4), LimitAnswer::Admitted);
        let reset_at = spent.reset_at(&allowance).unwrap();
        assert_eq!(spent.peek(&allowance, reset_at, 6), LimitAnswer::Admitted, "{allowance:?}");
    }
    for (allowance, cost) in [(gcra(0, 6), 1), (Allowance::Slots { max: 1 }, 1)] {
        let mut spent = LimitUsage::new(&allowance, 0);
        assert_eq!(take(&mut spent, &allowance, 0, cost), LimitAnswer::Admitted);
        assert_eq!(spent.reset_at(&allowance), None, "{allowance:?}");
    }
}

#[test]
fn everything_counts_as_acquired_when_the_clock_steps_back() {
    for (allowance, wait) in [(gcra(3, 3), 4), (fixed(3), 8), (sliding(3), 10), (total(3), 10)] {
        let mut spent = LimitUsage::new(&allowance, 1_000_000);
        assert_eq!(take(&mut spent, &allowance, 1_000_000, 1), LimitAnswer::Admitted);
        assert_eq!(take(&mut spent, &allowance, 1_000_001, 2), LimitAnswer::Admitted);
        // What was refilled before the step stays refilled.
        let wait = if matches!(allowance, Allowance::Gcra { .. }) { wait - 1 } else { wait };
        assert_eq!(spent.peek(&allowance, 502, 1), LimitAnswer::After(wait), "{allowance:?}");
        assert_eq!(spent.peek(&allowance, 502 + wait, 1), LimitAnswer::Admitted, "{allowance:?}");
    }
}

#[test]
fn merging_a_long_log_is_stricter_and_bounded() {
    const TAKES: i64 = 150_000;
    let per = Duration::from_micros(200_000);
    let allowance = Allowance::SlidingWindow { limit: Amount::from_millionths(150_000), per };
    let mut spent = LimitUsage::new(&allowance, 0);
    for now in 0..TAKES {
        assert_eq!(take(&mut spent, &allowance, now, 1), LimitAnswer::Admitted);
        assert!(spent.size() <= 65_536);
    }
    assert_eq!(spent.peek(&allowance, TAKES, 1), LimitAnswer::After(50_007), "the first eight count as one");
    for now in (200_000..350_000).step_by(1000) {
        let free = u128::from((now - 200_000_u64) + 1);
        let now = i64::try_from(now).unwrap();
        assert_ne!(spent.peek(&allowance, now, free + 1), LimitAnswer::Admitted, "{now}");
        assert_eq!(spent.peek(&allowance, now, free.saturating_sub(8)), LimitAnswer::Admitted, "{now}");
    }
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_u64, Just(u64::MAX), (u64::MAX - 9)..u64::MAX, any::<u64>()]
}

fn any_span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0..100_u64).prop_map(Duration::from_micros),
        any::<u64>().prop_map(Duration::from_micros),
        any::<u64>().prop_map(Duration::from_nanos),
    ]
}

fn any_allowance() -> impl Strategy<Value = Allowance> {
    (0..5, any_number(), any_span(), any_number()).prop_map(|(kind, limit, per, burst)| {
        let (limit, burst) = (Amount::from_millionths(limit), Amount::from_millionths(burst));
        match kind {
            0 => Allowance::Gcra { limit, per, burst },
            1 => Allowance::FixedWindow { limit, per },
            2 => Allowance::SlidingWindow { limit, per },
            3 => Allowance::Total { limit, keep: per },
            _ => Allowance::Slots { max: u32::MAX },
        }
    })
}

/// Any time that a timestamp can represent.
fn any_time() -> impl Strategy<Value = Micros> {
    const FURTHEST: Micros = 1 << 59;
    prop_oneof![0..100_i64, Just(-FURTHEST), Just(FURTHEST), -FURTHEST..FURTHEST]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Nothing overflows, whatever the numbers, times and reloads; and every reported wait is positive.
    #[test]
    fn arithmetic_never_overflows(
        steps in prop::collection::vec((any_allowance(), any_time(), any_number(), 1..4_usize), 1..12),
    ) {
        let mut spent = LimitUsage::new(&fixed(1), 0);
        for (allowance, now, cost, times) in steps {
            for _ in 0..times {
                let answer = take(&mut spent, &allowance, now, cost);
                let reset_at = spent.reset_at(&allowance);
                match answer {
                    LimitAnswer::After(wait) => prop_assert!(wait > 0),
                    LimitAnswer::Admitted if cost > 0 => prop_assert!(reset_at.is_none_or(|reset_at| reset_at > now)),
                    LimitAnswer::Admitted | LimitAnswer::Never => {}
                }
            }
        }
    }

    /// Encoding and decoding return the same state.
    #[test]
    fn encoding_round_trips(
        steps in prop::collection::vec((any_allowance(), any_time(), any_number()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut spent = LimitUsage::new(&fixed(1), 0);
        for (allowance, now, cost) in steps {
            take(&mut spent, &allowance, now, cost);
            let written = encoding::encode(&spent, &allowance);
            let (read, by) = encoding::decode(&written).unwrap();
            prop_assert_eq!(by, allowance);
            prop_assert_eq!(format!("{read:?}"), format!("{spent:?}"));
            let cut = &written[..cut.index(written.len())];
            // Only the last times of a sliding window may be missing.
            prop_assert!(encoding::decode(cut).is_none() || matches!(read, LimitUsage::SlidingWindow(_)));
        }
    }

    /// Decoding arbitrary bytes never leads to an overflow.
    #[test]
    fn decoding_arbitrary_bytes_never_overflows(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        allowance in any_allowance(),
        now in any_time(),
    ) {
        for kind in 0..5 {
            let bytes: Vec<u8> = [1, kind].iter().chain(&bytes).copied().collect();
            if let Some((mut spent, by)) = encoding::decode(&bytes) {
                spent.reset_at(&by);
                take(&mut spent, &by, now, 1);
                take(&mut spent, &allowance, now, 1);
            }
        }
    }
}
