//! Rounds bounds outwards, to two significant digits: 447.2 → 450. A bound in round numbers is what a person would write, and it
//! reveals no single value.

use callgate::json::Number;

/// Where a bound moves to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Up,
    Down,
}

/// Whole numbers below this are not rounded.
const EXACT_BELOW: f64 = 100.0;

/// The nearest number with two significant digits that is not smaller, or not larger. Returns the number itself if it cannot be computed.
pub(super) fn round(number: &Number, rounding: Rounding) -> Number {
    rounded(number, rounding).unwrap_or_else(|| number.clone())
}

fn rounded(number: &Number, rounding: Rounding) -> Option<Number> {
    let value = number.as_f64().filter(|value| value.is_finite())?;
    if value == 0.0 || value.fract() == 0.0 && value.abs() < EXACT_BELOW {
        return None;
    }
    let is_negative = value < 0.0;
    let is_away = is_negative == (rounding == Rounding::Down);
    let exponent = value.abs().log10().floor() as i32 - 1;
    let scaled = value.abs() / 10_f64.powi(exponent);
    let near = if is_away { scaled.ceil() } else { scaled.floor() } as i64;
    // The floating-point quotient may be off by one.
    let candidates = if is_away { [near, near + 1] } else { [near, near - 1] };
    candidates.into_iter().find_map(|digits| {
        let candidate = from_digits(is_negative, digits, exponent)?;
        let is_outside = match rounding {
            Rounding::Up => candidate >= *number,
            Rounding::Down => candidate <= *number,
        };
        is_outside.then_some(candidate)
    })
}

fn from_digits(is_negative: bool, mut digits: i64, mut exponent: i32) -> Option<Number> {
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
        exponent += 1;
    }
    Number::from_parts(is_negative, &digits.to_string(), exponent.into())
}

/// The next of 1, 2, 3, 5, 8, 10, 15, 20, 30, 50, … that is not smaller.
pub(super) fn round_count(count: u64) -> u64 {
    if count <= 8 {
        return [0, 1, 2, 3, 5, 8].into_iter().find(|step| *step >= count).unwrap_or(count);
    }
    let mut scale: u64 = 10;
    loop {
        for step in [10, 15, 20, 30, 50, 80] {
            let candidate = scale.saturating_mul(step) / 10;
            if candidate >= count {
                return candidate;
            }
        }
        let Some(next) = scale.checked_mul(10) else { return count };
        scale = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_outwards() {
        let number = |text: &str| text.parse::<Number>().unwrap();
        for (value, up, down) in [
            ("447.2", "450", "440"),
            ("9000", "9000", "9000"),
            ("9001", "9100", "9000"),
            ("19.99", "20", "19"),
            ("0.123", "0.13", "0.12"),
            ("-447.2", "-440", "-450"),
            ("7", "7", "7"),
            ("0", "0", "0"),
            ("123456789012345678901", "130000000000000000000", "120000000000000000000"),
        ] {
            assert_eq!(round(&number(value), Rounding::Up), number(up), "{value} up");
            assert_eq!(round(&number(value), Rounding::Down), number(down), "{value} down");
        }
        for (count, rounded) in [(0, 0), (4, 5), (8, 8), (9, 10), (11, 15), (101, 150), (1_000, 1_000)] {
            assert_eq!(round_count(count), rounded);
        }
    }
}
