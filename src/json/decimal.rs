//! A number's exact decimal value, compared and hashed without conversion to a float and without allocation.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde_json::Number;

/// The exact value of a JSON number: `0.d₁d₂d₃… × 10^exponent`, borrowed from the number's own text.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits after the point, without leading zeros where `whole` is empty, and without trailing zeros.
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// The value of a JSON number.
    pub fn of(number: &'a Number) -> Self {
        Self::parse(number.as_str())
    }

    /// Reads the text of a JSON number. Text that is none gives some value, never a panic.
    fn parse(text: &'a str) -> Self {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = whole.trim_start_matches('0');
        let mut fraction = fraction.trim_end_matches('0');
        let mut shift = whole.len() as i64;
        if whole.is_empty() {
            let significant = fraction.trim_start_matches('0');
            shift = -((fraction.len() - significant.len()) as i64);
            fraction = significant;
        }
        if whole.is_empty() && fraction.is_empty() {
            return Self { negative: false, whole: "", fraction: "", exponent: 0 };
        }
        Self { negative, whole, fraction, exponent: shift.saturating_add(exponent_of(exponent)) }
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// The significant digits, without trailing zeros.
    fn digits(&self) -> impl Iterator<Item = u8> + 'a {
        let whole = if self.fraction.is_empty() { self.whole.trim_end_matches('0') } else { self.whole };
        whole.bytes().chain(self.fraction.bytes())
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        self.exponent.cmp(&other.exponent).then_with(|| self.digits().cmp(other.digits()))
    }

    /// Whether the value has no fraction.
    pub fn is_integer(&self) -> bool {
        self.exponent >= self.digits().count() as i64 || self.is_zero()
    }

    /// The value as `coefficient × 10^exponent`. Returns `None` if it has more than 38 significant digits.
    pub fn coefficient(&self) -> Option<(i128, i64)> {
        let (mut coefficient, mut digits) = (0_i128, 0_i64);
        for digit in self.digits() {
            coefficient = coefficient.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
            digits += 1;
        }
        Some((if self.negative { -coefficient } else { coefficient }, self.exponent.saturating_sub(digits)))
    }

    /// The value times ten to the power of `places`, rounded up to a whole number; the largest one there is, if it is larger.
    /// Nothing for a negative value.
    pub fn scaled_up(&self, places: u32) -> Option<u64> {
        if self.is_zero() {
            return Some(0);
        }
        if self.negative {
            return None;
        }
        let places = self.exponent.saturating_add(i64::from(places));
        let mut scaled: u64 = 0;
        let mut taken: i64 = 0;
        for digit in self.digits() {
            if taken >= places {
                // Digits end in no zero, so something is left over.
                return Some(scaled.saturating_add(1));
            }
            scaled = scaled.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            taken += 1;
        }
        while taken < places && scaled < u64::MAX {
            scaled = scaled.saturating_mul(10);
            taken += 1;
        }
        Some(scaled)
    }

    /// The one canonical text of this value: `-123e-2` for -1.23, `0` for every zero.
    pub fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let digits: Vec<u8> = self.digits().collect();
        let exponent = self.exponent.saturating_sub(digits.len() as i64);
        let sign = if self.negative { "-" } else { "" };
        let digits = String::from_utf8_lossy(&digits).into_owned();
        if exponent == 0 { format!("{sign}{digits}") } else { format!("{sign}{digits}e{exponent}") }
    }
}

/// An exponent, saturated: what does not fit 62 bits is larger or smaller than anything that does.
fn exponent_of(text: &str) -> i64 {
    const BOUND: i64 = i64::MAX / 2;
    match text.parse::<i64>() {
        Ok(exponent) => exponent.clamp(-BOUND, BOUND),
        Err(_) if text.starts_with('-') => -BOUND,
        Err(_) => BOUND,
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
        self.exponent.hash(state);
        for digit in self.digits() {
            state.write_u8(digit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("12e3", Some(12_000_000_000)),
            ("1e400", Some(u64::MAX)),
            ("99999999999999999999", Some(u64::MAX)),
            ("-1", None),
            ("-1e-9", None),
        ] {
            assert_eq!(Decimal::parse(text).scaled_up(6), scaled, "{text}");
        }
    }

    #[test]
    fn orders_by_exact_value() {
        let ascending = [
            "-1e400",
            "-10",
            "-9.5",
            "-1e-5",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000000001",
            "1",
            "9.99",
            "10",
            "9007199254740992",
            "9007199254740993",
            "1e99999999999999999999",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(Decimal::parse(a).cmp(&Decimal::parse(b)), i.cmp(&j), "{a} against {b}");
            }
        }
    }

    #[test]
    fn one_value_has_one_canonical_text() {
        for (text, canonical) in [
            ("1", "1"),
            ("1.0", "1"),
            ("10e-1", "1"),
            ("100", "1e2"),
            ("1E2", "1e2"),
            ("-0.0", "0"),
            ("0e5", "0"),
            ("1.230", "123e-2"),
            ("0.00120", "12e-4"),
            ("-12.5", "-125e-1"),
            ("1000.5", "10005e-1"),
        ] {
            assert_eq!(Decimal::parse(text).canonical(), canonical, "{text}");
        }
    }
}
