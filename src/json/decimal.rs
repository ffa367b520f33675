//! `Decimal`: the exact value of a number as sign, digits and exponent. Comparing and hashing do not allocate.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

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

/// An [`Exponent`], borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Magnitude<'a> {
    Small(i64),
    Huge { negative: bool, digits: &'a str },
}

impl<'a> Decimal<'a> {
    pub(super) fn from_digits(negative: bool, digits: &'a str, magnitude: &'a Exponent) -> Self {
        let magnitude = match magnitude {
            Exponent::Small(magnitude) => Magnitude::Small(*magnitude),
            Exponent::Huge { negative, digits } => Magnitude::Huge { negative: *negative, digits },
        };
        Self {
            negative: negative && !digits.is_empty(),
            digits: SignificantDigits::Borrowed(digits),
            magnitude,
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

impl Ord for Magnitude<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |negative: bool| if negative { Ordering::Less } else { Ordering::Greater };
        match (*self, *other) {
            (Self::Small(a), Self::Small(b)) => a.cmp(&b),
            (Self::Huge { negative, .. }, Self::Small(_)) => sign(negative),
            (Self::Small(_), Self::Huge { negative, .. }) => sign(negative).reverse(),
            (Self::Huge { negative: a, .. }, Self::Huge { negative: b, .. }) if a != b => sign(a),
            (Self::Huge { negative, digits: a }, Self::Huge { digits: b, .. }) => {
                let by_size = a.len().cmp(&b.len()).then_with(|| a.cmp(b));
                if negative { by_size.reverse() } else { by_size }
            }
        }
    }
}

impl PartialOrd for Magnitude<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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

/// A power of ten of any size.
#[derive(Clone)]
pub(super) enum Exponent {
    /// An exponent of at most 2^62.
    Small(i64),
    /// A larger exponent, as sign and decimal digits without leading zeros.
    Huge { negative: bool, digits: Box<str> },
}

impl Exponent {
    pub(super) const ZERO: Self = Self::Small(0);
    const BOUND: u64 = 1 << 62;

    pub(super) fn from_len(length: usize) -> Self {
        Self::Small(i64::try_from(length).unwrap_or(i64::MAX))
    }

    /// Parses the exponent after `e` and adds a shift that is smaller than the length of the number's text.
    pub(super) fn parse(text: &str, shift: i64) -> Self {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let digits = digits.trim_start_matches('0');
        let shift = if negative { -shift } else { shift };
        let value = if digits.is_empty() { Some(0) } else { digits.parse::<i64>().ok() };
        let Some(value) = value else {
            // Far larger than the shift, so the sign stays.
            return Self::Huge { negative, digits: add_shift(digits, shift).into() };
        };
        let sum = i128::from(value) + i128::from(shift);
        let sum = if negative { -sum } else { sum };
        match i64::try_from(sum) {
            Ok(sum) if sum.unsigned_abs() <= Self::BOUND => Self::Small(sum),
            _ => Self::Huge { negative: sum < 0, digits: sum.unsigned_abs().to_string().into() },
        }
    }
}

/// Adds a shift to decimal digits whose value is larger than the shift.
fn add_shift(digits: &str, shift: i64) -> String {
    let mut carry = shift;
    let mut reversed: Vec<u8> = Vec::with_capacity(digits.len() + 1);
    for byte in digits.bytes().rev() {
        let sum = i64::from(byte.wrapping_sub(b'0')) + carry;
        reversed.push(b'0' + sum.rem_euclid(10) as u8);
        carry = sum.div_euclid(10);
    }
    while carry > 0 {
        reversed.push(b'0' + (carry % 10) as u8);
        carry /= 10;
    }
    let text: String = reversed.into_iter().rev().map(char::from).collect();
    text.trim_start_matches('0').to_owned()
}
