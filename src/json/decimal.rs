//! `Decimal`: the exact value of a number as sign, digits and exponent. Comparing and hashing do not allocate.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::exponent::{Exponent, Magnitude, add_shift};
use super::number_text::DigitBuffer;

/// The exact decimal value of a [`Number`](super::Number): `±digits × 10^exponent`.
pub struct Decimal<'a> {
    negative: bool,
    digits: SignificantDigits<'a>,
    /// The value is `0.digits × 10^magnitude`.
    magnitude: Magnitude<'a>,
}

enum SignificantDigits<'a> {
    Borrowed(&'a str),
    Buffered(DigitBuffer),
}

impl<'a> Decimal<'a> {
    pub(super) fn from_digits(negative: bool, digits: &'a str, magnitude: &'a Exponent) -> Self {
        Self {
            negative: negative && !digits.is_empty(),
            digits: SignificantDigits::Borrowed(digits),
            magnitude: magnitude.as_magnitude(),
        }
    }

    pub(super) fn from_plain(coefficient: i64, scale: u8) -> Self {
        let mut rest = coefficient.unsigned_abs();
        let mut magnitude = -i64::from(scale);
        while rest != 0 && rest.is_multiple_of(10) {
            rest /= 10;
            magnitude += 1;
        }
        let mut digits = DigitBuffer::default();
        while rest != 0 {
            digits.push_front(b'0' + (rest % 10) as u8);
            rest /= 10;
            magnitude += 1;
        }
        let magnitude = if coefficient == 0 { 0 } else { magnitude };
        Self {
            negative: coefficient < 0,
            digits: SignificantDigits::Buffered(digits),
            magnitude: Magnitude::Small(magnitude),
        }
    }

    /// Whether the value is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        self.digits().is_empty()
    }

    /// The significant digits in ASCII, without leading and trailing zeros; empty for zero.
    pub fn digits(&self) -> &str {
        match &self.digits {
            SignificantDigits::Borrowed(digits) => digits,
            SignificantDigits::Buffered(digits) => digits.as_str(),
        }
    }

    /// The power of ten by which the digits, read as an integer, are multiplied. Returns `None` beyond 2^62.
    pub fn exponent(&self) -> Option<i64> {
        match self.magnitude {
            Magnitude::Small(magnitude) => magnitude.checked_sub(self.digits().len() as i64),
            Magnitude::Huge { .. } => None,
        }
    }

    /// Whether the value has no fraction.
    pub fn is_integer(&self) -> bool {
        match self.magnitude {
            Magnitude::Small(magnitude) => magnitude >= self.digits().len() as i64,
            Magnitude::Huge { negative, .. } => !negative,
        }
    }

    /// The value as `coefficient × 10^exponent`. Returns `None` if it has more than 38 significant digits.
    pub fn coefficient(&self) -> Option<(i128, i64)> {
        if self.is_zero() {
            return Some((0, 0));
        }
        let coefficient: i128 = self.digits().parse().ok()?;
        Some((if self.negative { -coefficient } else { coefficient }, self.exponent()?))
    }

    /// The value times ten to the power of `places`, rounded up to a whole number and saturated at `u64::MAX`. Returns `None` for
    /// a negative value.
    pub fn scaled_ceil(&self, places: u32) -> Option<u64> {
        if self.negative {
            return None;
        }
        if self.is_zero() {
            return Some(0);
        }
        let places = match self.magnitude {
            Magnitude::Small(magnitude) => magnitude.saturating_add(i64::from(places)),
            Magnitude::Huge { negative: true, .. } => return Some(1),
            Magnitude::Huge { negative: false, .. } => return Some(u64::MAX),
        };
        let mut scaled: u64 = 0;
        let mut consumed: i64 = 0;
        for digit in self.digits().bytes() {
            if consumed >= places {
                // Digits do not end in zero, so there is a remainder.
                return Some(scaled.saturating_add(1));
            }
            scaled = scaled.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')));
            consumed += 1;
        }
        while consumed < places && scaled < u64::MAX {
            scaled = scaled.saturating_mul(10);
            consumed += 1;
        }
        Some(scaled)
    }

    /// The canonical text of this value: `-123e-2` for -1.23, `0` for every zero.
    pub fn canonical_text(&self) -> String {
        let digits = self.digits();
        let sign = if self.negative { "-" } else { "" };
        if digits.is_empty() {
            return "0".to_owned();
        }
        let length = digits.len() as i64;
        match self.magnitude {
            Magnitude::Small(magnitude) if magnitude == length => format!("{sign}{digits}"),
            Magnitude::Small(magnitude) => {
                format!("{sign}{digits}e{}", i128::from(magnitude) - i128::from(length))
            }
            Magnitude::Huge { negative, digits: exponent } => {
                let shift = if negative { length } else { -length };
                let minus = if negative { "-" } else { "" };
                format!("{sign}{digits}e{minus}{}", add_shift(exponent, shift))
            }
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        self.magnitude.cmp(&other.magnitude).then_with(|| self.digits().cmp(other.digits()))
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return if other.negative { Ordering::Greater } else { Ordering::Less },
            (false, true) => return if self.negative { Ordering::Less } else { Ordering::Greater },
            (false, false) => {}
        }
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal<'_> {}

impl Hash for Decimal<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.negative.hash(state);
        self.digits().hash(state);
        self.magnitude.hash(state);
    }
}
