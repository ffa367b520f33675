//! Differential tests of the JSON parser against hifijson, which keeps the digits of numbers and the order of members, and serde_json.
//!
//! All accept and reject the same documents, except for duplicate keys and depth, and parse equal values.

use callgate::json::{self, Number, ParseErrorKind, Value, parse};
use hifijson::token::Lex as _;
use proptest::prelude::*;

use super::generated;

type Other = hifijson::value::Value<String, String>;

/// Parses with hifijson.
fn other(text: &str) -> Option<Other> {
    let mut lexer = hifijson::SliceLexer::new(text.as_bytes());
    let read = lexer.exactly_one(hifijson::SliceLexer::ws_peek, |next, lexer| {
        hifijson::value::parse_bounded(1_000, next, lexer)
    });
    owned(read.ok()?)
}

fn owned(value: hifijson::value::Value<&str, std::borrow::Cow<'_, str>>) -> Option<Other> {
    use hifijson::value::Value::{Array, Bool, Null, Number, Object, String};
    Some(match value {
        Null => Null,
        Bool(value) => Bool(value),
        Number((text, parts)) => Number((text.to_owned(), parts)),
        String(text) => String(text.into_owned()),
        Array(items) => Array(items.into_iter().map(owned).collect::<Option<_>>()?),
        Object(members) => Object(
            members
                .into_iter()
                .map(|(key, value)| Some((key.into_owned(), owned(value)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

/// Returns whether both are equal to the last digit, with members in the same order.
fn same(ours: &Value, other: &Other) -> bool {
    match (ours, other) {
        (Value::Null, Other::Null) => true,
        (Value::Bool(ours), Other::Bool(other)) => ours == other,
        (Value::Number(ours), Other::Number((other, _))) => *ours.text() == **other,
        (Value::String(ours), Other::String(other)) => ours == other,
        (Value::Array(ours), Other::Array(other)) => {
            ours.len() == other.len() && ours.iter().zip(other).all(|(ours, other)| same(ours, other))
        }
        (Value::Object(ours), Other::Object(other)) => {
            let pairs = ours.iter().zip(other);
            ours.len() == other.len()
                && pairs
                    .into_iter()
                    .all(|((our_key, ours), (key, other))| our_key == key && same(ours, other))
        }
        _ => false,
    }
}

/// Converts numbers to floats as serde_json does, for comparison with its values.
fn as_floats(value: &Value) -> Option<serde_json::Value> {
    Some(match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) if !number.text().starts_with("-0") => value.into(),
            (_, Some(value)) if !number.text().starts_with('-') => value.into(),
            _ => number.text().parse::<f64>().ok().filter(|float| float.is_finite())?.into(),
        },
        Value::Array(items) => items.iter().map(as_floats).collect::<Option<Vec<_>>>()?.into(),
        Value::Object(members) => serde_json::Value::Object(
            members
                .iter()
                .map(|(key, value)| Some((key.to_string(), as_floats(value)?)))
                .collect::<Option<_>>()?,
        ),
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::String(text) => text.as_str().into(),
    })
}

fn agree(text: &str) -> Result<(), TestCaseError> {
    let (ours, other) = (parse(text), other(text));
    let theirs = serde_json::from_str::<serde_json::Value>(text);
    match (&ours, &other) {
        (Ok(ours), Some(other)) => prop_assert!(same(ours, other), "{text}\n{ours}"),
        // Documents that only Callgate rejects.
        (Err(error), Some(_)) => prop_assert!(
            matches!(error.kind, ParseErrorKind::DuplicateKey(_) | ParseErrorKind::TooDeep),
            "{text}\n{error}"
        ),
        (Ok(ours), None) => prop_assert!(false, "{text}\nonly Callgate accepts it: {ours}"),
        (Err(_), None) => {}
    }
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => prop_assert!(as_floats(ours).as_ref() == Some(theirs), "{text}\n{theirs}"),
        (Err(error), Ok(_)) => {
            prop_assert!(matches!(error.kind, ParseErrorKind::DuplicateKey(_)), "{text}\n{error}")
        }
        // Numbers beyond the range of floats, and one level of nesting.
        (Ok(ours), Err(error)) => {
            prop_assert!(as_floats(ours).is_none() || json::is_deeper_than(ours, 126), "{text}\n{error}")
        }
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

/// Changes one character of a string.
fn mutated(text: &str, at: usize, change: u8, letter: char) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = at % (chars.len() + 1);
    match change % 4 {
        0 => chars.insert(at, letter),
        1 if at < chars.len() => drop(chars.remove(at)),
        2 if at < chars.len() => chars[at] = letter,
        _ => chars.truncate(at),
    }
    chars.into_iter().collect()
}

const LETTERS: [char; 40] = [
    '{', '}', '[', ']', ',', ':', '"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'u', 'd', 'D', '8', 'c', '0', '1',
    '9', '-', '+', '.', 'e', 'E', ' ', '\n', '\t', '\r', '\u{b}', '\u{0}', '\u{1f}', '\u{7f}', '\u{a0}',
    '\u{feff}', '\u{2028}', 'é', '😀',
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parsers_agree_on_valid_json(value in generated::value(), choices in prop::collection::vec(any::<u8>(), 1..40)) {
        let text = generated::spelled(&value, &choices);
        agree(&text)?;
        let read = parse(&text).unwrap();
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(read.to_string(), value.to_string());
    }

    #[test]
    fn parsers_agree_on_mutated_json(
        value in generated::value(),
        choices in prop::collection::vec(any::<u8>(), 1..40),
        changes in prop::collection::vec((any::<usize>(), any::<u8>(), prop::sample::select(&LETTERS[..])), 1..4),
    ) {
        let text = changes.into_iter().fold(generated::spelled(&value, &choices), |text, (at, change, letter)| {
            mutated(&text, at, change, letter)
        });
        agree(&text)?;
    }

    #[test]
    fn parsers_agree_on_random_characters(text in prop::collection::vec(prop::sample::select(&LETTERS[..]), 0..24)) {
        agree(&text.into_iter().collect::<String>())?;
    }

    #[test]
    fn bytes_parse_like_their_utf8_string(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let read = json::parse_bytes(&bytes);
        match std::str::from_utf8(&bytes) {
            Ok(text) => prop_assert_eq!(read, parse(text)),
            Err(_) => prop_assert_eq!(read.unwrap_err().kind, ParseErrorKind::InvalidUtf8),
        }
    }

    /// Compact and pretty output parse to the same value.
    #[test]
    fn round_trips_are_exact(value in generated::value()) {
        let text = value.to_string();
        prop_assert_eq!(parse(&text).unwrap().to_string(), text.as_str());
        prop_assert_eq!(parse(&format!("{value:#}")).unwrap().to_string(), text);
    }

    /// Order, equality and canonical form are those of exact rational numbers.
    #[test]
    fn numbers_are_ordered_by_their_exact_values(a in generated::number(), b in generated::number(), shift in 0..30_usize) {
        prop_assert_eq!(a == b, a.canonical_text() == b.canonical_text());
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a.cmp(&b), by_long_arithmetic(&a.text(), &b.text()));
        // Another notation of the same value.
        let text = a.text().to_string();
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let point = if mantissa.contains('.') { "" } else { "." };
        let other = format!("{mantissa}{point}{}e{exponent}", "0".repeat(shift + 1));
        let other: Number = other.parse().unwrap();
        prop_assert_eq!(&other, &a);
        prop_assert_eq!(other.canonical_text(), a.canonical_text());
    }
}

/// Compares decimals with exponents of up to four digits by writing out all zeros.
fn by_long_arithmetic(a: &str, b: &str) -> std::cmp::Ordering {
    fn written_out(text: &str) -> (bool, String) {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i64 = exponent.parse().unwrap();
        // The decimal point follows 10,100 digits in all numbers.
        let shift = usize::try_from(10_100 - exponent - whole.len() as i64).unwrap();
        let digits = format!("{}{whole}{fraction}", "0".repeat(shift));
        let padded = format!("{digits:0<21000}");
        (negative && padded.contains(|c| c != '0'), padded)
    }
    let (a, b) = (written_out(a), written_out(b));
    match (a.0, b.0) {
        (false, true) => std::cmp::Ordering::Greater,
        (true, false) => std::cmp::Ordering::Less,
        (false, false) => a.1.cmp(&b.1),
        (true, true) => b.1.cmp(&a.1),
    }
}
