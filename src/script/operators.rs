//! The operators, all of them strict: none guesses what a value of the wrong type was meant to be.

use std::cmp::Ordering;

use super::equality::{compare, equal, position};
use super::number::Number;
use super::value::{Kind, Val};
use super::work::{Fault, Work};

/// An operator's work: its operands in, its value out.
pub(super) type Operator = for<'r> fn(&Work, &Val<'r>, &Val<'r>) -> Result<Val<'r>, Fault>;

/// Every operator with two operands, by its symbol. There are no others.
pub(super) const BINARY: &[(&str, Operator)] = &[
    ("==", |work, a, b| Ok(Val::Boolean(equal(work, a, b)?))),
    ("!=", |work, a, b| Ok(Val::Boolean(!equal(work, a, b)?))),
    ("<", |_, a, b| Ok(Val::Boolean(compare(a, b)? == Ordering::Less))),
    ("<=", |_, a, b| Ok(Val::Boolean(compare(a, b)? != Ordering::Greater))),
    (">", |_, a, b| Ok(Val::Boolean(compare(a, b)? == Ordering::Greater))),
    (">=", |_, a, b| Ok(Val::Boolean(compare(a, b)? != Ordering::Less))),
    ("in", is_in),
    ("!in", |work, a, b| not(&is_in(work, a, b)?)),
    ("+", add),
    ("-", |_, a, b| reckon("-", a, b, i64::checked_sub, |a, b| a - b)),
    ("*", |_, a, b| reckon("*", a, b, i64::checked_mul, |a, b| a * b)),
    ("/", |_, a, b| divide(a, b)),
    ("%", |_, a, b| remainder(a, b)),
];

/// The operator of this symbol.
pub(super) fn operator(symbol: &str) -> Option<Operator> {
    BINARY.iter().find(|(known, _)| *known == symbol).map(|(_, operator)| *operator)
}

pub(super) fn not<'r>(value: &Val<'_>) -> Result<Val<'r>, Fault> {
    match value.kind()? {
        Kind::Boolean(value) => Ok(Val::Boolean(!value)),
        other => Err(format!("`!` is for booleans, this is of type {}", other.json_type()).into()),
    }
}

pub(super) fn negate<'r>(value: &Val<'_>) -> Result<Val<'r>, Fault> {
    match value.kind()? {
        Kind::Number(Number::Whole(value)) => match value.checked_neg() {
            Some(value) => Ok(Val::Number(Number::Whole(value))),
            None => Err(format!("-({value}) is too large for a number").into()),
        },
        Kind::Number(Number::Decimal(value)) => Ok(Val::Number(Number::of_float(-value)?)),
        other => Err(format!("`-` is for numbers, this is of type {}", other.json_type()).into()),
    }
}

/// `x in list`. An object is refused: there, an object instead of a list would quietly answer `false`.
fn is_in<'r>(work: &Work, wanted: &Val<'r>, container: &Val<'r>) -> Result<Val<'r>, Fault> {
    match container.kind()? {
        Kind::List(list) => Ok(Val::Boolean(position(work, list, wanted)?.is_some())),
        Kind::Object(_) => Err(
            "`in` looks for an element of an array, this is an object: `has(object, key)` looks for a key"
                .into(),
        ),
        Kind::Text(_) => Err(
            "`in` looks for an element of an array, this is a string: `contains(text, part)` looks into one"
                .into(),
        ),
        other => {
            Err(format!("`in` looks for an element of an array, this is of type {}", other.json_type())
                .into())
        }
    }
}

/// `"key" in input`, of a member of the call document that is always an object.
pub(super) fn is_in_member<'r>(work: &Work, wanted: &Val<'r>, member: &Val<'r>) -> Result<Val<'r>, Fault> {
    match (wanted.kind()?, member.kind()?) {
        (Kind::Text(key), Kind::Object(object)) => Ok(Val::Boolean(object.get(key).is_some())),
        _ => is_in(work, wanted, member),
    }
}

/// The sum of two numbers, or two strings joined.
pub(super) fn add<'r>(work: &Work, a: &Val<'r>, b: &Val<'r>) -> Result<Val<'r>, Fault> {
    if let (Kind::Text(a), Kind::Text(b)) = (a.kind()?, b.kind()?) {
        work.text(a.len().saturating_add(b.len()))?;
        return Ok(Val::Text([a, b].concat().into()));
    }
    reckon("+", a, b, i64::checked_add, |a, b| a + b)
}

/// Exact where the result is a whole number, so that 7 / 2 is 3.5 whichever way the 7 is spelled.
fn divide<'r>(a: &Val<'_>, b: &Val<'_>) -> Result<Val<'r>, Fault> {
    let (a, b) = numbers("/", a, b)?;
    if b.to_float() == Ok(0.0) {
        return Err("division by zero".into());
    }
    if let (Number::Whole(a), Number::Whole(b)) = (a, b)
        && a.checked_rem(b) == Some(0)
    {
        return Ok(Val::Number(Number::Whole(a / b)));
    }
    Ok(Val::Number(Number::of_float(a.to_float()? / b.to_float()?)?))
}

fn remainder<'r>(a: &Val<'_>, b: &Val<'_>) -> Result<Val<'r>, Fault> {
    if numbers("%", a, b)?.1.to_float() == Ok(0.0) {
        return Err("division by zero".into());
    }
    reckon("%", a, b, i64::checked_rem, |a, b| a % b)
}

fn reckon<'r>(
    symbol: &str,
    a: &Val<'_>,
    b: &Val<'_>,
    whole: fn(i64, i64) -> Option<i64>,
    decimal: fn(f64, f64) -> f64,
) -> Result<Val<'r>, Fault> {
    Ok(Val::Number(match numbers(symbol, a, b)? {
        (Number::Whole(a), Number::Whole(b)) => {
            Number::Whole(whole(a, b).ok_or_else(|| format!("{a} {symbol} {b} is too large for a number"))?)
        }
        (a, b) => Number::of_float(decimal(a.to_float()?, b.to_float()?))?,
    }))
}

fn numbers(symbol: &str, a: &Val<'_>, b: &Val<'_>) -> Result<(Number, Number), Fault> {
    match (a.kind()?, b.kind()?) {
        (Kind::Number(a), Kind::Number(b)) => Ok((a, b)),
        (a, b) => Err(format!(
            "`{symbol}` is for numbers, these are of type {} and {}",
            a.json_type(),
            b.json_type()
        )
        .into()),
    }
}
