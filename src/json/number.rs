//! `Number`: a JSON number with its text and its exact decimal value, both computed when it is parsed.
//!
//! Equality, order and hash are those of the decimal value: `1`, `1.0` and `10e-1` are equal, 2^53 and 2^53+1 are not. Comparing
//! neither reads text nor allocates.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use super::decimal::Decimal;
use super::exponent::Exponent;
use super::number_text::{NumberText, ScannedNumber};

/// A JSON number that keeps its source text.
#[derive(Clone)]
pub struct Number(NumberRepr);

#[derive(Clone)]
enum NumberRepr {
    /// `coefficient / 10^scale`, written without an exponent and with `scale` digits after the point. Never a negative zero.
    Plain { coefficient: i64, scale: u8 },
    /// Any other number.
    Exact(Box<StoredNumber>),
}

#[derive(Clone)]
struct StoredNumber {
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
            Some((coefficient, scale)) => Self(NumberRepr::Plain { coefficient, scale }),
            None => Self(NumberRepr::Exact(Box::new(StoredNumber {
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
        let zeros = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
        let is_short = digits.len().saturating_add(zeros) <= LONGEST;
        let text = match exponent {
            _ if digits.is_empty() => "0".to_owned(),
            0 => format!("{sign}{digits}"),
            1.. if is_short => format!("{sign}{digits}{}", "0".repeat(zeros)),
            ..0 if is_short => {
                let padded = format!("{digits:0>width$}", width = zeros + 1);
                let (whole, fraction) = padded.split_at_checked(padded.len() - zeros)?;
                format!("{sign}{whole}.{fraction}")
            }
            _ => format!("{sign}{digits}e{exponent}"),
        };
        text.parse().ok()
    }

    /// The exact decimal value.
    pub fn decimal(&self) -> Decimal<'_> {
        match &self.0 {
            NumberRepr::Plain { coefficient, scale } => Decimal::from_plain(*coefficient, *scale),
            NumberRepr::Exact(exact) => Decimal::from_digits(exact.negative, &exact.digits, &exact.magnitude),
        }
    }

    /// The source text of the number.
    pub fn text(&self) -> NumberText<'_> {
        match &self.0 {
            NumberRepr::Plain { coefficient, scale } => NumberText::from_plain(*coefficient, *scale),
            NumberRepr::Exact(exact) => NumberText::from_str(&exact.text),
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
            NumberRepr::Plain { coefficient, scale: 0 } => I::try_from(*coefficient).ok(),
            NumberRepr::Plain { .. } => None,
            // Fails for a text with a point or an exponent.
            NumberRepr::Exact(exact) => exact.text.parse().ok(),
        }
    }

    /// The nearest float. Returns `None` if that is infinite.
    pub fn as_f64(&self) -> Option<f64> {
        let float = match &self.0 {
            NumberRepr::Plain { coefficient, scale: 0 } => *coefficient as f64,
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
            NumberRepr::Plain { scale, .. } => *scale > 0,
            NumberRepr::Exact(exact) => exact.text.contains(['.', 'e', 'E']),
        }
    }

    /// Whether the value has no fraction, however it is written.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            NumberRepr::Plain { scale: 0, .. } => true,
            _ => self.decimal().is_integer(),
        }
    }

    /// The value times ten to the power of `places`, rounded up to a whole number and saturated at `u64::MAX`. Returns `None` for
    /// a negative value.
    pub fn scaled_ceil(&self, places: u32) -> Option<u64> {
        self.decimal().scaled_ceil(places)
    }

    /// The canonical text of this value: `-123e-2` for -1.23, `0` for every zero.
    pub fn canonical_text(&self) -> String {
        self.decimal().canonical_text()
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (
                NumberRepr::Plain { coefficient: a, scale: 0 },
                NumberRepr::Plain { coefficient: b, scale: 0 },
            ) => a.cmp(b),
            (
                NumberRepr::Plain { coefficient: a, scale: a_scale },
                NumberRepr::Plain { coefficient: b, scale: b_scale },
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
                    Ok(coefficient) => Self(NumberRepr::Plain { coefficient, scale: 0 }),
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
        Self(NumberRepr::Exact(Box::new(StoredNumber {
            text: text.into(),
            negative,
            digits: digits.trim_end_matches('0').into(),
            magnitude: Exponent::from_len(digits.len()),
        })))
    }
}

#[cfg(test)]
mod tests;
