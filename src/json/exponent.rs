//! `Exponent`: a power of ten of any size, parsed from the text of a number, and its borrowed, ordered form `Magnitude`.

use std::cmp::Ordering;

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
    pub(super) fn as_magnitude(&self) -> Magnitude<'_> {
        match self {
            Self::Small(exponent) => Magnitude::Small(*exponent),
            Self::Huge { negative, digits } => Magnitude::Huge { negative: *negative, digits },
        }
    }
}

/// An [`Exponent`], borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Magnitude<'a> {
    Small(i64),
    Huge { negative: bool, digits: &'a str },
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

/// Adds a shift to decimal digits whose value is larger than the shift.
pub(super) fn add_shift(digits: &str, shift: i64) -> String {
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
