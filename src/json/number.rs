//! `Number`: a JSON number with its text and its exact decimal value, both computed when it is parsed.
//!
//! Equality, order and hash are those of the decimal value: `1`, `1.0` and `10e-1` are equal, 2^53 and 2^53+1 are not. Comparing
//! neither reads text nor allocates.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use super::decimal::{Decimal, Exponent};
use super::number_text::{ScannedNumber, Text};

/// A JSON number that keeps its source text.
#[derive(Clone)]
pub struct Number(Repr);

#[derive(Clone)]
enum Repr {
    /// `coefficient / 10^scale`, written without an exponent and with `scale` digits after the point. Never a negative zero.
    Plain { coefficient: i64, scale: u8 },
    /// Any other number.
    Exact(Box<Exact>),
}

#[derive(Clone)]
struct Exact {
    text: Box<str>,
    negative: bool,
    /// Without leading and trailing zeros; empty for zero.
    digits: Box<str>,
    /// The value is `0.digits × 10^magnitude`.
    magnitude: Exponent,
}

/// The text is not a JSON number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON number")]
pub struct InvalidNumber;

impl Number {
    /// Creates the number that was scanned from exactly this text.
    pub(super) fn from_scanned(text: &str, scanned: &ScannedNumber<'_>) -> Self {
        match scanned.plain() {
            Some((coefficient, scale)) => Self(Repr::Plain { coefficient, scale }),
            None => Self(Repr::Exact(Box::new(Exact {
                text: text.into(),
                negative: scanned.negative,
                digits: scanned.digits().into(),
                magnitude: scanned.magnitude(),
            }))),
        }
    }

    /// The shortest number that is read as this float, as `serde_json` writes it. Returns `None` for infinity and NaN.
    pub fn from_f64(value: f64) -> Option<Self> {
        // Libraries differ in the choice between two decimals that are equally short and equally near.
        serde_json::Number::from_f64(value)?.to_string().parse().ok()
    }

    /// Creates the number `±digits × 10^exponent`. Returns `None` if `digits` holds anything but ASCII digits. It is written without an
    /// exponent if that takes at most 40 digits.
    pub fn from_parts(negative: bool, digits: &str, exponent: i64) -> Option<Self> {
        const LONGEST: usize = 40;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = digits.trim_start_matches('0');
        let sign = if negative && !digits.is_empty() { "-" } else { "" };
        let places = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
        let is_short = digits.len().saturating_add(places) <= LONGEST;
        let text = match exponent {
            _ if digits.is_empty() => "0".to_owned(),
            0 => format!("{sign}{digits}"),
            1.. if is_short => format!("{sign}{digits}{}", "0".repeat(places)),
            ..0 if is_short => {
                let padded = format!("{digits:0>width$}", width = places + 1);
                let (whole, fraction) = padded.split_at_checked(padded.len() - places)?;
                format!("{sign}{whole}.{fraction}")
            }
            _ => format!("{sign}{digits}e{exponent}"),
        };
        text.parse().ok()
    }

    /// The exact decimal value.
    pub fn decimal(&self) -> Decimal<'_> {
        match &self.0 {
            Repr::Plain { coefficient, scale } => Decimal::from_plain(*coefficient, *scale),
            Repr::Exact(exact) => Decimal::from_digits(exact.negative, &exact.digits, &exact.magnitude),
        }
    }

    /// The source text of the number.
    pub fn text(&self) -> Text<'_> {
        match &self.0 {
            Repr::Plain { coefficient, scale } => Text::from_plain(*coefficient, *scale),
            Repr::Exact(exact) => Text::from_str(&exact.text),
        }
    }

    /// The value as an `i64`. Returns `None` if it does not fit, or is written with a point or an exponent.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_integer()
    }

    /// The value as a `u64`. Returns `None` if it does not fit, or is written with a point or an exponent.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_integer()
    }

    /// The value as an `i128`. Returns `None` if it does not fit, or is written with a point or an exponent.
    pub fn as_i128(&self) -> Option<i128> {
        self.as_integer()
    }

    /// The value as a `u128`. Returns `None` if it does not fit, or is written with a point or an exponent.
    pub fn as_u128(&self) -> Option<u128> {
        self.as_integer()
    }

    fn as_integer<I: FromStr + TryFrom<i64>>(&self) -> Option<I> {
        match &self.0 {
            Repr::Plain { coefficient, scale: 0 } => I::try_from(*coefficient).ok(),
            Repr::Plain { .. } => None,
            // Fails for a text with a point or an exponent.
            Repr::Exact(exact) => exact.text.parse().ok(),
        }
    }

    /// The nearest float. Returns `None` if that is infinite.
    pub fn as_f64(&self) -> Option<f64> {
        let float = match &self.0 {
            Repr::Plain { coefficient, scale: 0 } => *coefficient as f64,
            _ => self.text().parse().ok()?,
        };
        Some(float).filter(|float| float.is_finite())
    }

    /// The float whose shortest decimal notation has this value. Returns `None` if there is none.
    pub fn as_exact_f64(&self) -> Option<f64> {
        self.as_f64().filter(|float| Self::from_f64(*float).is_some_and(|number| number == *self))
    }

    /// Whether [`as_i64`](Self::as_i64) returns a value.
    pub fn is_i64(&self) -> bool {
        self.as_i64().is_some()
    }

    /// Whether [`as_u64`](Self::as_u64) returns a value.
    pub fn is_u64(&self) -> bool {
        self.as_u64().is_some()
    }

    /// Whether the number is written with a point or an exponent.
    pub fn is_f64(&self) -> bool {
        match &self.0 {
            Repr::Plain { scale, .. } => *scale > 0,
            Repr::Exact(exact) => exact.text.contains(['.', 'e', 'E']),
        }
    }

    /// Whether the value has no fraction, however it is written.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Repr::Plain { scale: 0, .. } => true,
            _ => self.decimal().is_integer(),
        }
    }

    /// The value times ten to the power of `places`, rounded up to a whole number and saturated at `u64::MAX`. Returns `None` for
    /// a negative value.
    pub fn scaled_ceil(&self, places: u32) -> Option<u64> {
        self.decimal().scaled_ceil(places)
    }

    /// The canonical text of this value: `-123e-2` for -1.23, `0` for every zero.
    pub fn canonical(&self) -> String {
        self.decimal().canonical()
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Plain { coefficient: a, scale: 0 }, Repr::Plain { coefficient: b, scale: 0 }) => a.cmp(b),
            (
                Repr::Plain { coefficient: a, scale: a_scale },
                Repr::Plain { coefficient: b, scale: b_scale },
            ) => {
                // At most 19 digits and 18 zeros: below 10^38.
                let aligned = |coefficient: i64, scale: u8| i128::from(coefficient) * power_of_ten(scale);
                aligned(*a, *b_scale).cmp(&aligned(*b, *a_scale))
            }
            _ => self.decimal().cmp(&other.decimal()),
        }
    }
}

fn power_of_ten(exponent: u8) -> i128 {
    10_i128.saturating_pow(u32::from(exponent))
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.decimal().hash(state);
    }
}

impl FromStr for Number {
    type Err = InvalidNumber;

    fn from_str(text: &str) -> Result<Self, InvalidNumber> {
        let scanned = ScannedNumber::read(text).filter(|scanned| scanned.length == text.len());
        Ok(Self::from_scanned(text, &scanned.ok_or(InvalidNumber)?))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({self})")
    }
}

macro_rules! from_integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Number {
            fn from(value: $integer) -> Self {
                match i64::try_from(value) {
                    Ok(coefficient) => Self(Repr::Plain { coefficient, scale: 0 }),
                    Err(_) => Self::from_integer_text(&value.to_string()),
                }
            }
        }
    )*};
}

from_integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

impl Number {
    /// Creates a number from the text of an integer without leading zeros.
    fn from_integer_text(text: &str) -> Self {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        Self(Repr::Exact(Box::new(Exact {
            text: text.into(),
            negative,
            digits: digits.trim_end_matches('0').into(),
            magnitude: Exponent::from_len(digits.len()),
        })))
    }
}

#[cfg(test)]
mod tests {
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
            "", "-", "+1", "01", "-01", "1.", ".5", "1.e5", "1e", "1e+", "1e1.5", "0x1", "NaN", "Infinity",
            "1 ", " 1", "1_0", "--1", "1e5x", "٣",
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
            assert_eq!(written.canonical(), canonical, "{text}");
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
            let (made, read) = (Number::from(value), number(&value.to_string()));
            assert_eq!(made, read);
            assert_eq!((made.to_string(), made.canonical()), (read.to_string(), read.canonical()));
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
            let made =
                Number::from_parts(decimal.is_negative(), decimal.digits(), decimal.exponent().unwrap());
            assert_eq!(made.unwrap(), number(text));
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
}
