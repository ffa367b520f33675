//! Numbers of an expression or a script: exact where they are whole, never silently rounded.

use std::cmp::Ordering;

use crate::json::{self, Value};

/// A number: whole where its value is a whole number that fits, however it was spelled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Whole(i64),
    Decimal(f64),
}

/// Every whole number below this has a float of its own.
pub(super) const EXACT_FLOATS: f64 = 9_007_199_254_740_992.0;

impl Number {
    /// A JSON number: whole numbers exactly or not at all, decimals as the nearest float. Errors: a whole number that
    /// neither an i64 nor a float is equal to, and what is too large or too small for a float.
    pub(super) fn of_json(number: &json::Number) -> Result<Self, String> {
        if let Some(whole) = number.as_i64() {
            return Ok(Self::Whole(whole));
        }
        let lost = || {
            format!("the number {} is too large or too fine to be read exactly", shortened(&number.text()))
        };
        let float: f64 = number.text().parse().map_err(|_| lost())?;
        let value = Self::of_float(float).map_err(|_| lost())?;
        let exact_needed = float.abs() >= EXACT_FLOATS || float == 0.0;
        if exact_needed && !equals_exactly(number, float) {
            return Err(lost());
        }
        Ok(value)
    }

    /// A float as a number. Errors: infinity and what is no number.
    pub(super) fn of_float(value: f64) -> Result<Self, String> {
        if !value.is_finite() {
            return Err("the result is too large for a number".to_owned());
        }
        // Exact: a whole float below 2^53 is an i64.
        let whole = value.fract() == 0.0 && value.abs() < EXACT_FLOATS;
        Ok(if whole { Self::Whole(value as i64) } else { Self::Decimal(value) })
    }

    /// This number as a float. Errors: a whole number that no float is equal to.
    pub(super) fn to_float(self) -> Result<f64, String> {
        match self {
            Self::Decimal(value) => Ok(value),
            Self::Whole(value) if (value as f64).abs() < EXACT_FLOATS => Ok(value as f64),
            Self::Whole(value) => Err(format!("{value} is too large to be reckoned with decimals")),
        }
    }

    pub(super) fn to_json(self) -> Value {
        match self {
            Self::Whole(value) => value.into(),
            // Never null: no number of ours is infinite.
            Self::Decimal(value) => value.into(),
        }
    }

    /// Orders by exact value. Errors: what is no number.
    pub(super) fn compare(self, other: Self) -> Result<Ordering, String> {
        let ordering = match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (Self::Decimal(a), Self::Decimal(b)) => a.partial_cmp(&b),
            (Self::Whole(a), Self::Decimal(b)) => whole_to_decimal(a, b),
            (Self::Decimal(a), Self::Whole(b)) => whole_to_decimal(b, a).map(Ordering::reverse),
        };
        ordering.ok_or_else(|| "not a number".to_owned())
    }
}

/// Compares without rounding the whole number to a float.
fn whole_to_decimal(whole: i64, decimal: f64) -> Option<Ordering> {
    const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;
    if decimal.is_nan() {
        return None;
    }
    if decimal >= BEYOND_I64 {
        return Some(Ordering::Less);
    }
    if decimal < -BEYOND_I64 {
        return Some(Ordering::Greater);
    }
    let floor = decimal.floor();
    Some(whole.cmp(&(floor as i64)).then(if decimal > floor { Ordering::Less } else { Ordering::Equal }))
}

fn equals_exactly(number: &json::Number, float: f64) -> bool {
    // `{:.0}` writes every digit of a float that is a whole number.
    let text = format!("{float:.0}");
    text.parse::<json::Number>().is_ok_and(|float| float == *number)
}

fn shortened(text: &str) -> String {
    if text.len() <= 24 { text.to_owned() } else { text.chars().take(20).chain("…".chars()).collect() }
}
