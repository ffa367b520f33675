//! The operators of an expression, all of them strict: none guesses what a value of the wrong type was meant to be.

use std::cmp::Ordering;

use rhai::Dynamic;

use super::value::{Kind, Number, compare, equal, position};

/// An operator's work: its operands in, its value out.
pub(super) type Operator = fn(&Dynamic, &Dynamic) -> Result<Dynamic, String>;

/// Text that an expression puts together is no longer than this, in bytes.
const MAX_JOINED: usize = 64 << 10;

/// On an object: it is a member of the call document that is always an object, so that `"key" in input` is safe.
pub(super) const ALWAYS_OBJECT: i32 = 1;

/// Every operator with two operands, by its symbol. The engine has no others.
pub(super) const BINARY: &[(&str, Operator)] = &[
    ("==", |a, b| Ok(equal(a, b)?.into())),
    ("!=", |a, b| Ok((!equal(a, b)?).into())),
    ("<", |a, b| Ok((compare(a, b)? == Ordering::Less).into())),
    ("<=", |a, b| Ok((compare(a, b)? != Ordering::Greater).into())),
    (">", |a, b| Ok((compare(a, b)? == Ordering::Greater).into())),
    (">=", |a, b| Ok((compare(a, b)? != Ordering::Less).into())),
    ("in", |a, b| Ok(is_in(a, b)?.into())),
    ("!in", |a, b| Ok((!is_in(a, b)?).into())),
    ("+", add),
    ("-", |a, b| reckon("-", a, b, i64::checked_sub, |a, b| a - b)),
    ("*", |a, b| reckon("*", a, b, i64::checked_mul, |a, b| a * b)),
    ("/", divide),
    ("%", remainder),
];

/// `!x`
pub(super) fn not(value: &Dynamic) -> Result<Dynamic, String> {
    match Kind::of(value)? {
        Kind::Boolean(value) => Ok((!value).into()),
        other => Err(format!("`!` is for booleans, this is of type {}", other.json_type())),
    }
}

/// `-x`
pub(super) fn negate(value: &Dynamic) -> Result<Dynamic, String> {
    reckon("-", &Dynamic::from_int(0), value, i64::checked_sub, |a, b| a - b)
}

/// `x in list`, or `"key" in input`. An object at any other place is refused: there, an object instead of a list would
/// quietly answer `false`.
fn is_in(wanted: &Dynamic, container: &Dynamic) -> Result<bool, String> {
    match (Kind::of(wanted)?, Kind::of(container)?) {
        (_, Kind::List(list)) => Ok(position(&list, wanted)?.is_some()),
        (Kind::Text(key), Kind::Object(object)) if container.tag() == ALWAYS_OBJECT => {
            Ok(object.contains_key(key.as_str()))
        }
        (_, Kind::Object(_)) => Err(
            "`in` looks for an element of an array, this is an object: `has(object, key)` looks for a key"
                .to_owned(),
        ),
        (_, Kind::Text(_)) => Err(
            "`in` looks for an element of an array, this is a string: `contains(text, part)` looks into one"
                .to_owned(),
        ),
        (_, other) => {
            Err(format!("`in` looks for an element of an array, this is of type {}", other.json_type()))
        }
    }
}

/// The sum of two numbers, or two strings joined.
pub(super) fn add(a: &Dynamic, b: &Dynamic) -> Result<Dynamic, String> {
    if let (Kind::Text(a), Kind::Text(b)) = (Kind::of(a)?, Kind::of(b)?) {
        if a.len() + b.len() > MAX_JOINED {
            return Err(format!("the expression joins more than {MAX_JOINED} bytes of text"));
        }
        return Ok(format!("{}{}", a.as_str(), b.as_str()).into());
    }
    reckon("+", a, b, i64::checked_add, |a, b| a + b)
}

/// Exact where the result is a whole number, so that 7 / 2 is 3.5 whichever way the 7 is spelled.
fn divide(a: &Dynamic, b: &Dynamic) -> Result<Dynamic, String> {
    let (a, b) = numbers("/", a, b)?;
    if b.to_float() == Ok(0.0) {
        return Err("division by zero".to_owned());
    }
    if let (Number::Whole(a), Number::Whole(b)) = (a, b)
        && a.checked_rem(b) == Some(0)
    {
        return Ok(Dynamic::from_int(a / b));
    }
    Ok(Number::of_float(a.to_float()? / b.to_float()?)?.into_dynamic())
}

fn remainder(a: &Dynamic, b: &Dynamic) -> Result<Dynamic, String> {
    if numbers("%", a, b)?.1.to_float() == Ok(0.0) {
        return Err("division by zero".to_owned());
    }
    reckon("%", a, b, i64::checked_rem, |a, b| a % b)
}

fn reckon(
    symbol: &str,
    a: &Dynamic,
    b: &Dynamic,
    whole: fn(i64, i64) -> Option<i64>,
    decimal: fn(f64, f64) -> f64,
) -> Result<Dynamic, String> {
    match numbers(symbol, a, b)? {
        (Number::Whole(a), Number::Whole(b)) => {
            let result = whole(a, b).ok_or_else(|| format!("{a} {symbol} {b} is too large for a number"))?;
            Ok(Dynamic::from_int(result))
        }
        (a, b) => Ok(Number::of_float(decimal(a.to_float()?, b.to_float()?))?.into_dynamic()),
    }
}

fn numbers(symbol: &str, a: &Dynamic, b: &Dynamic) -> Result<(Number, Number), String> {
    match (Kind::of(a)?, Kind::of(b)?) {
        (Kind::Number(a), Kind::Number(b)) => Ok((a, b)),
        (a, b) => Err(format!(
            "`{symbol}` is for numbers, these are of type {} and {}",
            a.json_type(),
            b.json_type()
        )),
    }
}
