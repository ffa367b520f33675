//! Decimal arithmetic of expressions and scripts, compared with exact fractions.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate::call::{CallView, SessionState, ToolCall};
use callgate::json::{Value, json};
use callgate::script::{Answer, AroundScript, Expression, Journal, ReplayResult, ScriptEffect};
use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;

fn value(text: &str, input: Value) -> Result<Value, String> {
    let expression =
        Expression::compile(text).map_err(|error| format!("does not compile: {}", error.message))?;
    let (call, session) = (ToolCall::new("c1", "pay", input), SessionState::default());
    expression.value(&CallView::new(&call, &session)).map_err(|error| error.message)
}

fn input(members: &[(&str, &str)]) -> Value {
    let members: Vec<String> = members.iter().map(|(key, number)| format!("\"{key}\":{number}")).collect();
    callgate::json::parse(&format!("{{{}}}", members.join(","))).unwrap()
}

fn script(text: &str, input: Value) -> String {
    let around = AroundScript::compile(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let (call, session) = (ToolCall::new("c1", "pay", input), SessionState::default());
    let call = around.begin(&call, None, &session).unwrap();
    match around.replay(&call, &Journal::new(&call)) {
        ReplayResult::Completed { output, .. } => output.to_string(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn decimals_are_exact() {
    for text in [
        "1.15 * 100 >= 115",
        "1.15 * 100 == 115",
        "0.1 + 0.2 == 0.3",
        "100.1 - 100 == 0.1",
        "80.35 - 60.2 == 20.15",
        "3 * 0.1 == 0.3 && 0.3 / 3 == 0.1",
        "sum([0.1, 0.2, 0.3]) == 0.6",
        "1.1 % 0.1 == 0 && -7 % 3 == -1 && 7.5 % -2 == 1.5",
        "9223372036854775807 + 1 == 9223372036854775808",
        "-9223372036854775808 - 1 == -9223372036854775809",
        "9007199254740993 + 0.5 > 9007199254740993",
        "99999999999999999999 > 9999999999999999999",
        "1e308 * 10 > 1e308",
        "2 ** 10 == 1024 && 1.1 ** 2 == 1.21 && 0 ** 0 == 1 && 10 ** 100 == 1e100 && 2 ** 112 > 5e33",
        "1 / 3 == 0.3333333333333333333333333333333333",
        "2 / 3 == 0.6666666666666666666666666666666667",
        "0x10 == 16 && 0o17 == 15 && 0b11 == 3 && 1_000.5 == 1000.5 && 0xFFFF_FFFF == 4294967295",
        "-1.5 == 0 - 1.5 && - 1.5 == -(1.5) && abs(-0.7) == 0.7",
        "round(2.5) == 3 && round(-2.5) == -3 && round(2.4999999999999999999) == 2",
        "round(1.005, 2) == 1.01 && round(1.004, 2) == 1 && round(12, 2) == 12",
        "floor(-1.1) == -2 && ceil(-1.1) == -1 && floor(1.19, 1) == 1.1 && ceil(1.11, 1) == 1.2",
        "round(1e-300) == 0 && ceil(1e-300) == 1 && floor(-1e-300) == -1 && round(1e300, 34) == 1e300",
        "min(0.1, 0.10000000000000000001) == 0.1 && max(1e-30, 2e-30) == 2e-30",
        "0.1 != 0.1000000000000000000000000000000000000000000000000000001",
        "input.items.map(|x| x * 1.1).sum() == 6.6",
        "input.items[4 / 2] == 3 && at(input.items, 2.0) == 3",
    ] {
        assert_eq!(value(text, json!({"items": [1, 2, 3]})), Ok(json!(true)), "{text}");
    }
}

#[test]
fn inexact_results_are_errors() {
    for (text, expected) in [
        ("1e33 + 0.1 > 0", "more than 34 significant digits"),
        ("1e34 * 1.0000000000000000000000000000000001 > 0", "more than 34"),
        ("(1 / 3) * (1 / 3) > 0", "more than 34"),
        ("1e6144 * 10 > 0", "out of range"),
        ("1e-6144 * 0.1 > 0", "out of range"),
        ("1e-6144 / 10 > 0", "too large or too small"),
        ("2 ** 113 > 0", "more than 34"),
        ("2 ** -1 > 0", "write `1 / x ** n`"),
        ("2 ** 0.5 > 0", "whole number of at least 0"),
        ("1 ** 1e30 > 0", "whole number of at least 0"),
        ("1.1 ** 9223372036854775807 > 0", "more than 34"),
        ("1 / 0 > 0", "division by zero"),
        ("1 % 0.0 > 0", "division by zero"),
        ("12345678901234567890123456789012345 + 0 > 0", "it can be compared, but not used in arithmetic"),
        ("-(1 + 1e7000) > 0", "not used in arithmetic"),
        ("round(1, 35) > 0", "0 to 34 digits"),
        ("round(1, -1) > 0", "0 to 34 digits"),
        ("at([1, 2], 0.5) > 0", "a whole number"),
    ] {
        let error = value(text, json!({})).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn numbers_of_any_size_are_compared_exactly() {
    let numbers = [
        "-1e999999999",
        "-12345678901234567890123456789012345678901",
        "-1e-999999999",
        "0",
        "1e-999999999",
        "0.1000000000000000000000000000000000",
        "0.1000000000000000000000000000000000000000001",
        "1",
        "12345678901234567890123456789012345678901",
        "12345678901234567890123456789012345678902",
        "1e6144",
        "1e6145",
        "1e999999999",
        "1e99999999999999999999999999",
    ];
    for (i, a) in numbers.iter().enumerate() {
        for (j, b) in numbers.iter().enumerate() {
            let input = input(&[("a", a), ("b", b)]);
            assert_eq!(value("input.a < input.b", input.clone()), Ok(json!(i < j)), "{a} {b}");
            assert_eq!(value("input.a == input.b", input.clone()), Ok(json!(i == j)), "{a} {b}");
            // A literal is the same number.
            assert_eq!(value(&format!("input.a < {b}"), input), Ok(json!(i < j)), "{a} {b}");
        }
    }
}

#[test]
fn huge_exponents_are_evaluated_quickly() {
    let started = Instant::now();
    for text in [
        "input.a + input.b > 0",
        "input.a * input.b > 0",
        "input.a / input.b > 0",
        "input.a % input.b > 0",
        "input.b % input.a > 0",
        "input.a ** 1000000 > 0",
        "input.c + input.d > 0",
        "input.c % input.d >= 0",
        "input.d % input.c >= 0",
        "input.c % 7 >= 0",
        "7 % input.d >= 0",
        "input.c / input.d > 0",
        "input.c - input.c == 0",
        "round(input.d, 34) >= 0 && floor(input.c) > 0",
        "1e999999999 > 1e999999998",
        "input.c ** 9000000000000000000 > 0",
        "(1 / 3) ** 9000000000000000000 > 0",
    ] {
        let input = input(&[
            ("a", "1e999999999"),
            ("b", "1e-999999999999999999999"),
            ("c", "7.777777777777777777777777777777777e6144"),
            ("d", "3.333333333333333333333333333333333e-6111"),
        ]);
        let _ = value(text, input);
    }
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[test]
fn numbers_passed_to_tools_are_written_exactly() {
    for (text, written) in [
        ("input.price", "1.10"),
        ("1.10", "1.10"),
        ("-0.50", "-0.50"),
        ("1_000.50", "1000.50"),
        ("1e5", "1e5"),
        ("1.5E3", "1.5e3"),
        ("007", "7"),
        ("0xff", "255"),
        (
            "12345678901234567890123456789012345678901234567890",
            "12345678901234567890123456789012345678901234567890",
        ),
        ("input.price + 0", "1.1"),
        ("input.price * 10", "11"),
        ("0.1 + 0.2", "0.3"),
        ("0 - 0.5", "-0.5"),
        ("1 / 8", "0.125"),
        ("10 / 3", "3.333333333333333333333333333333333"),
        ("1e20 * 1e10", "1000000000000000000000000000000"),
        ("1e30 * 1.5", "1500000000000000000000000000000"),
        ("1e40 * 1.5", "1.5e40"),
        ("1e80 * 1.5", "1.5e80"),
        ("1e80 * 1", "1e80"),
        ("1 / 1e20", "0.00000000000000000001"),
        ("-1.25 / 1e80", "-1.25e-80"),
        ("to_text(1 / 4) + to_text(2.50)", "\"0.252.50\""),
        ("`${input.price * 3} EUR`", "\"3.3 EUR\""),
        ("to_number(\"1.10\") + 1", "2.1"),
        ("let n = 1.1; n += 2.2; n", "3.3"),
        ("let n = 2; n **= 3; n", "8"),
        ("sort([0.3, 0.1 + 0.1, 0.1])", "[0.1,0.2,0.3]"),
        ("#{ amount: input.price, tax: round(input.price * 0.19, 2) }", "{\"amount\":1.10,\"tax\":0.21}"),
        ("range(0, 4 / 2)", "[0,1]"),
    ] {
        assert_eq!(script(text, input(&[("price", "1.10")])), written, "{text}");
    }
}

/// A replay computes the same numbers as the first run, also if the journal was stored as JSON in between.
#[test]
fn replays_compute_the_same_numbers() {
    let around = AroundScript::compile(
        "let a = input.price * 3 / 7; let out = next(#{ amount: a, half: a / 2 }); out.n + round(a, 10)",
    )
    .unwrap();
    let (call, session) = (ToolCall::new("c1", "pay", input(&[("price", "1.10")])), SessionState::default());
    let call = around.begin(&call, None, &session).unwrap();
    let mut journal = Journal::new(&call);
    let ReplayResult::Effect(effect @ ScriptEffect::Next { .. }) = around.replay(&call, &journal) else {
        panic!()
    };
    let ScriptEffect::Next { input: given, .. } = &effect else { panic!() };
    let numbers =
        "{\"amount\":0.4714285714285714285714285714285714,\"half\":0.2357142857142857142857142857142857}";
    assert_eq!(given.to_string(), numbers);
    journal.push(effect, Answer::Value(Arc::new(input(&[("n", "1.10")]))));
    for _ in 0..2 {
        match around.replay(&call, &journal) {
            ReplayResult::Completed { output, .. } => assert_eq!(output.to_string(), "1.5714285714"),
            other => panic!("{other:?}"),
        }
    }
}

/// Rhai names closures by their source with numbers as floats.
#[test]
fn closures_reject_numbers_that_round_to_one_float() {
    for text in [
        "[1].all(|x| x > 0.1) && [1].all(|x| x > 0.10000000000000000000001)",
        "[1].all(|x| x < 1e400) && [1].all(|x| x < 1e500)",
        "[1].all(|x| x < 9007199254740993.0) && [1].all(|x| x < 9007199254740992.0)",
    ] {
        let error = value(text, json!({})).expect_err(text);
        assert!(error.contains("too close together"), "{text}: {error}");
    }
    let text = "[1.05].all(|x| x > 1.0) && ![1.05].all(|x| x > 1.1) && [1.05].all(|x| x > 1.00)";
    assert_eq!(value(text, json!({})), Ok(json!(true)));
}

/// Numbers as JSON writes them: at most 40 digits, with and without points and exponents.
fn decimal() -> impl Strategy<Value = String> {
    let digits = prop_oneof![4 => 1_usize..8, 2 => 8_usize..36, 1 => 36_usize..41];
    let exponent = prop_oneof![4 => Just(0_i32), 2 => -9_i32..9, 1 => -40_i32..40, 1 => -200_i32..200];
    (any::<bool>(), digits, any::<u64>(), exponent, 0_usize..6).prop_map(
        |(negative, digits, seed, exponent, point)| {
            let mut state = seed;
            let mut text: String = (0..digits)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    // Many zeros and nines, for carries and trailing zeros.
                    char::from(b'0' + [0, 0, 9, 9, 1, 2, 4, 5, 6, 8][(state >> 33) as usize % 10])
                })
                .collect();
            let whole = text.trim_start_matches('0').to_owned();
            text = if whole.is_empty() { "0".to_owned() } else { whole };
            if point > 0 && point < text.len() {
                text.insert(point, '.');
            }
            let exponent = if exponent == 0 { String::new() } else { format!("e{exponent}") };
            format!("{}{text}{exponent}", if negative { "-" } else { "" })
        },
    )
}

fn fraction(text: &str) -> BigRational {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: BigInt = format!("{whole}{decimals}").parse().unwrap();
    let exponent: i32 = exponent.parse::<i32>().unwrap() - decimals.len() as i32;
    let power = BigInt::from(10).pow(exponent.unsigned_abs());
    if exponent < 0 { BigRational::new(digits, power) } else { BigRational::from(digits * power) }
}

/// Returns whether a fraction is a decimal that expressions can calculate with.
fn fits(fraction: &BigRational) -> bool {
    let Some(power) =
        (0..600_u32).find(|power| (BigInt::from(10).pow(*power) % fraction.denom()) == BigInt::ZERO)
    else {
        return false;
    };
    let scaled = (fraction * BigRational::from(BigInt::from(10).pow(power))).to_integer().to_string();
    let digits = scaled.trim_start_matches('-');
    let magnitude = digits.len() as i64 - 1 - i64::from(power);
    digits.trim_end_matches('0').len() <= 34 && magnitude.abs() <= 6144
}

/// Rounds to 34 digits, half to even.
fn rounded(fraction: &BigRational) -> BigRational {
    let ten = BigRational::from(BigInt::from(10));
    let mut scale = BigRational::from(BigInt::from(1));
    let least = BigRational::from(BigInt::from(10).pow(33));
    let absolute = if *fraction < BigRational::from(BigInt::ZERO) { -fraction } else { fraction.clone() };
    while &absolute * &scale < least {
        scale *= &ten;
    }
    while &absolute * &scale >= &least * &ten {
        scale /= &ten;
    }
    let scaled = fraction * &scale;
    let floor = scaled.floor().to_integer();
    let rest = scaled - BigRational::from(floor.clone());
    let up = match rest.cmp(&BigRational::new(BigInt::from(1), BigInt::from(2))) {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal => &floor % 2 != BigInt::ZERO,
    };
    BigRational::from(if up { floor + 1 } else { floor }) / scale
}

fn small(text: &str) -> bool {
    let exponent = text.split_once('e').map_or(0, |(_, exponent)| exponent.parse::<i32>().unwrap().abs());
    exponent < 100
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn operators_agree_with_exact_fractions(a in decimal(), b in decimal()) {
        let (x, y) = (fraction(&a), fraction(&b));
        let known = fits(&x) && fits(&y);
        let zero = BigRational::from(BigInt::ZERO);
        let ordering = x.cmp(&y);
        for (symbol, holds) in [("<", ordering.is_lt()), ("==", ordering.is_eq()), (">=", ordering.is_ge())] {
            let text = format!("input.a {symbol} input.b");
            prop_assert_eq!(value(&text, input(&[("a", &a), ("b", &b)])), Ok(json!(holds)), "{} {} {}", a, symbol, b);
        }
        let mut expected = vec![("+", Some(&x + &y)), ("-", Some(&x - &y)), ("*", Some(&x * &y))];
        if y != zero && small(&a) && small(&b) {
            expected.push(("/", Some(&x / &y).filter(|_| known).map(|quotient| if quotient == zero { quotient } else { rounded(&quotient) })));
            expected.push(("%", Some(&x - BigRational::from((&x / &y).trunc().to_integer()) * &y)));
        }
        for (symbol, expected) in expected {
            let expected = expected.filter(|result| known && fits(result));
            for text in [format!("input.a {symbol} input.b"), format!("({a}) {symbol} ({b})")] {
                let result = value(&text, input(&[("a", &a), ("b", &b)]));
                match (&expected, &result) {
                    (Some(expected), Ok(Value::Number(result))) => prop_assert_eq!(&fraction(&result.text()), expected, "{}", text),
                    (None, Err(_)) => {}
                    _ => prop_assert!(false, "{text} ({a}, {b}) gives {result:?}, expected {expected:?}"),
                }
            }
        }
    }

    #[test]
    fn literals_keep_their_exact_value(a in decimal()) {
        let given = value(&format!("[{a}, input.a]"), input(&[("a", &a)])).unwrap();
        prop_assert_eq!(fraction(&given[0].to_string()), fraction(&a));
        prop_assert!(given[0] == given[1]);
    }

    #[test]
    fn sums_of_cents_are_whole_cents(cents in prop::collection::vec(0_u64..10_000_000, 0..60)) {
        let euros: Vec<String> = cents.iter().map(|cents| format!("{}.{:02}", cents / 100, cents % 100)).collect();
        let total: u64 = cents.iter().sum();
        let input = callgate::json::parse(&format!("{{\"items\":[{}],\"total\":{}.{:02}}}", euros.join(","), total / 100, total % 100)).unwrap();
        prop_assert_eq!(value("sum(input.items) == input.total", input.clone()), Ok(json!(true)));
        prop_assert_eq!(value("input.items.map(|x| x * 100).all(|x| x % 1 == 0)", input), Ok(json!(true)));
    }
}
