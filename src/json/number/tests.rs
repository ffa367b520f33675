use super::*;

fn number(text: &str) -> Number {
    text.parse().unwrap()
}

#[test]
fn a_number_takes_sixteen_bytes() {
    assert_eq!(size_of::<Number>(), 16);
}

#[test]
fn keeps_its_source_text() {
    for text in [
        "0",
        "-0",
        "0.0",
        "-0.0",
        "1",
        "-1",
        "12.50",
        "-0.05",
        "0.000000000000000001",
        "999999999999999999",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "18446744073709551616",
        "1.000000000000000000",
        "0.1234567890123456789",
        "1e5",
        "1E+05",
        "1e-0",
        "-1.5E-300",
        "1e400",
        "100000000000000000000000000000000000000.10",
        "1e99999999999999999999",
    ] {
        assert_eq!(number(text).to_string(), text);
        assert_eq!(number(text).text().len(), text.len(), "{text}");
    }
}

#[test]
fn rejects_text_that_is_not_a_json_number() {
    for text in [
        "", "-", "+1", "01", "-01", "1.", ".5", "1.e5", "1e", "1e+", "1e1.5", "0x1", "NaN", "Infinity", "1 ",
        " 1", "1_0", "--1", "1e5x", "٣",
    ] {
        assert_eq!(text.parse::<Number>(), Err(InvalidNumber), "{text}");
    }
}

#[test]
fn orders_by_exact_value() {
    let ascending = [
        "-1e99999999999999999999",
        "-1e400",
        "-9223372036854775809",
        "-9223372036854775808",
        "-10",
        "-9.5",
        "-1e-5",
        "-1e-99999999999999999999",
        "0",
        "1e-99999999999999999999",
        "1e-9223372036854775808",
        "1e-400",
        "0.1",
        "0.10000000000000000001",
        "0.11",
        "1",
        "9.99",
        "10",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "1e400",
        "1e4611686018427387903",
        "1e4611686018427387904",
        "1e4611686018427387905",
        "1e9223372036854775807",
        "1e9223372036854775808",
        "1e99999999999999999998",
        "1e99999999999999999999",
        "2e99999999999999999999",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(number(a).cmp(&number(b)), i.cmp(&j), "{a} against {b}");
        }
    }
}

#[test]
fn one_value_has_one_canonical_text_and_one_hash() {
    use std::hash::BuildHasher as _;
    let hasher = std::hash::RandomState::new();
    for (text, canonical) in [
        ("1", "1"),
        ("1.0", "1"),
        ("10e-1", "1"),
        ("100", "1e2"),
        ("1E2", "1e2"),
        ("0", "0"),
        ("-0.0", "0"),
        ("0e5", "0"),
        ("0e99999999999999999999", "0"),
        ("1.230", "123e-2"),
        ("0.00120", "12e-4"),
        ("-12.5", "-125e-1"),
        ("1000.5", "10005e-1"),
        ("1230000000000000000000", "123e19"),
        ("100e99999999999999999997", "1e99999999999999999999"),
        ("0.01e-99999999999999999998", "1e-100000000000000000000"),
        ("10e9223372036854775807", "1e9223372036854775808"),
    ] {
        let (written, same) = (number(text), number(canonical));
        assert_eq!(written.canonical_text(), canonical, "{text}");
        assert_eq!(written, same, "{text}");
        assert_eq!(hasher.hash_one(&written), hasher.hash_one(&same), "{text}");
    }
}

#[test]
fn converts_to_primitives_exactly_or_not_at_all() {
    assert_eq!(number("-0").as_i64(), Some(0));
    assert_eq!(number("1.0").as_i64(), None);
    assert_eq!(number("1e2").as_u64(), None);
    assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
    assert_eq!(number("18446744073709551615").as_i64(), None);
    assert_eq!(number("-1").as_u64(), None);
    assert_eq!(number("340282366920938463463374607431768211455").as_u128(), Some(u128::MAX));
    assert_eq!(number("12.50").as_f64(), Some(12.5));
    assert_eq!(number("1e400").as_f64(), None);
    assert_eq!(number("12.50").as_exact_f64(), Some(12.5));
    assert_eq!(number("1e22").as_exact_f64(), Some(1e22));
    assert_eq!(number("0.10000000000000000001").as_exact_f64(), None);
    assert_eq!(number("1e-400").as_exact_f64(), None);
    for (value, text) in [
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1e300, "1e+300"),
        (570_000_000_000_000.2, "570000000000000.2"),
    ] {
        assert_eq!(Number::from_f64(value).unwrap().to_string(), text);
    }
    assert!(Number::from_f64(f64::NAN).is_none() && Number::from_f64(f64::INFINITY).is_none());
}

#[test]
fn converts_integers_of_every_width_like_their_text() {
    for value in [
        i128::MIN,
        i128::from(i64::MIN) - 1,
        i128::from(i64::MIN),
        -1,
        0,
        10,
        i128::from(u64::MAX) + 1,
        i128::MAX,
    ] {
        let (converted, read) = (Number::from(value), number(&value.to_string()));
        assert_eq!(converted, read);
        assert_eq!(
            (converted.to_string(), converted.canonical_text()),
            (read.to_string(), read.canonical_text())
        );
    }
}

#[test]
fn from_parts_creates_the_number() {
    for (parts, text) in [
        ((false, "", 5), "0"),
        ((true, "000", 0), "0"),
        ((true, "125", -1), "-12.5"),
        ((false, "5", -3), "0.005"),
        ((false, "12", 3), "12000"),
        ((false, "12", 300), "12e300"),
        ((false, "0012", -300), "12e-300"),
    ] {
        let (negative, digits, exponent) = parts;
        assert_eq!(Number::from_parts(negative, digits, exponent).unwrap().to_string(), text);
    }
    assert!(Number::from_parts(false, "1.5", 0).is_none());
    for text in ["0", "-12.50", "1e400", "98765432109876543210.5"] {
        let decimal = number(text);
        let decimal = decimal.decimal();
        let created =
            Number::from_parts(decimal.is_negative(), decimal.digits(), decimal.exponent().unwrap());
        assert_eq!(created.unwrap(), number(text));
    }
}

#[test]
fn scales_exactly_and_rounds_up() {
    for (text, scaled) in [
        ("0", Some(0)),
        ("-0.0", Some(0)),
        ("1", Some(1_000_000)),
        ("0.05", Some(50_000)),
        ("49.99", Some(49_990_000)),
        ("1.0000000", Some(1_000_000)),
        ("0.0000001", Some(1)),
        ("2.0000001", Some(2_000_001)),
        ("1e-400", Some(1)),
        ("1e-99999999999999999999", Some(1)),
        ("12e3", Some(12_000_000_000)),
        ("1e400", Some(u64::MAX)),
        ("1e99999999999999999999", Some(u64::MAX)),
        ("99999999999999999999", Some(u64::MAX)),
        ("-1", None),
        ("-1e-9", None),
    ] {
        assert_eq!(number(text).scaled_ceil(6), scaled, "{text}");
    }
}

#[test]
fn is_integer_ignores_the_notation() {
    for text in ["0", "-0.0", "1.0", "10e-1", "1e400", "12.50e1", "1e99999999999999999999"] {
        assert!(number(text).is_integer(), "{text}");
    }
    for text in ["0.5", "1e-1", "12.50", "1e-99999999999999999999", "1.00000000000000000001"] {
        assert!(!number(text).is_integer(), "{text}");
    }
}
