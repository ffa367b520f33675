//! Values in an expression, and the one strict way to compare them: a comparison across JSON types is an error, for an
//! answer of `false` would let a call slip past a `deny`.

use std::cmp::Ordering;

use rhai::{Array, Dynamic, DynamicReadLock, ImmutableString, Map};

use crate::json::JsonType;

/// What a value of the engine is in terms of JSON.
pub(super) enum Kind<'a> {
    Null,
    Boolean(bool),
    Number(Number),
    Text(DynamicReadLock<'a, ImmutableString>),
    List(DynamicReadLock<'a, Array>),
    Object(DynamicReadLock<'a, Map>),
}

/// A number: whole where its value is a whole number that fits, however it was spelled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Whole(i64),
    Decimal(f64),
}

/// Every whole number below this has a float of its own.
pub(super) const EXACT_FLOATS: f64 = 9_007_199_254_740_992.0;

impl<'a> Kind<'a> {
    /// The kind of a value. Errors: what JSON has no type for, such as the single character that Rhai yields for an
    /// index into a text.
    pub(super) fn of(value: &'a Dynamic) -> Result<Self, String> {
        if value.is_unit() {
            return Ok(Self::Null);
        }
        if let Ok(value) = value.as_bool() {
            return Ok(Self::Boolean(value));
        }
        if let Ok(value) = value.as_int() {
            return Ok(Self::Number(Number::Whole(value)));
        }
        if let Ok(value) = value.as_float() {
            return Ok(Self::Number(Number::Decimal(value)));
        }
        if let Some(value) = value.read_lock::<ImmutableString>() {
            return Ok(Self::Text(value));
        }
        if let Some(value) = value.read_lock::<Array>() {
            return Ok(Self::List(value));
        }
        if let Some(value) = value.read_lock::<Map>() {
            return Ok(Self::Object(value));
        }
        Err(if value.is_char() {
            "an index reads from arrays, this is a string".to_owned()
        } else {
            "a closure is no value here".to_owned()
        })
    }

    pub(super) fn json_type(&self) -> JsonType {
        match self {
            Self::Null => JsonType::Null,
            Self::Boolean(_) => JsonType::Boolean,
            Self::Number(_) => JsonType::Number,
            Self::Text(_) => JsonType::String,
            Self::List(_) => JsonType::Array,
            Self::Object(_) => JsonType::Object,
        }
    }
}

impl Number {
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

    pub(super) fn into_dynamic(self) -> Dynamic {
        match self {
            Self::Whole(value) => Dynamic::from_int(value),
            Self::Decimal(value) => Dynamic::from_float(value),
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

/// Whether two values are equal. Errors: different types, here or at the same place inside of both.
pub(super) fn equal(a: &Dynamic, b: &Dynamic) -> Result<bool, String> {
    match (Kind::of(a)?, Kind::of(b)?) {
        (Kind::Null, Kind::Null) => Ok(true),
        (Kind::Boolean(a), Kind::Boolean(b)) => Ok(a == b),
        (Kind::Number(a), Kind::Number(b)) => Ok(a.compare(b)?.is_eq()),
        (Kind::Text(a), Kind::Text(b)) => Ok(*a == *b),
        (Kind::List(a), Kind::List(b)) => {
            // Every pair is compared, so that a difference does not hide a wrong type behind it.
            let mut same = a.len() == b.len();
            for (a, b) in a.iter().zip(b.iter()) {
                same &= equal(a, b)?;
            }
            Ok(same)
        }
        (Kind::Object(a), Kind::Object(b)) => {
            let mut same = a.len() == b.len();
            for (key, a) in a.iter() {
                match b.get(key) {
                    Some(b) => same &= equal(a, b)?,
                    None => same = false,
                }
            }
            Ok(same)
        }
        (a, b) => Err(different(&a, &b)),
    }
}

/// Orders two numbers by value or two strings by their characters. Errors: any other pair.
pub(super) fn compare(a: &Dynamic, b: &Dynamic) -> Result<Ordering, String> {
    match (Kind::of(a)?, Kind::of(b)?) {
        (Kind::Number(a), Kind::Number(b)) => a.compare(b),
        (Kind::Text(a), Kind::Text(b)) => Ok(a.as_str().cmp(b.as_str())),
        (a, b) if a.json_type() == b.json_type() => {
            Err(format!("only numbers and strings have an order, these are of type {}", a.json_type()))
        }
        (a, b) => Err(different(&a, &b)),
    }
}

/// Whether a list has an element equal to `wanted`. Errors: an element of another type than `wanted`, wherever it is.
pub(super) fn position(list: &Array, wanted: &Dynamic) -> Result<Option<usize>, String> {
    let mut found = None;
    for (index, item) in list.iter().enumerate() {
        if equal(item, wanted)? && found.is_none() {
            found = Some(index);
        }
    }
    Ok(found)
}

fn different(a: &Kind<'_>, b: &Kind<'_>) -> String {
    let (a, b) = (a.json_type(), b.json_type());
    let hint = if a == JsonType::Null || b == JsonType::Null { ": `is_null(x)` tests for null" } else { "" };
    format!("values of different types are compared, {a} and {b}{hint}")
}
