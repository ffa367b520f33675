//! The operators, all of them strict: none converts a value of the wrong type.

use std::cmp::Ordering;

use super::equality::{compare, equal, position};
use super::exact_number::Number;
use super::fuel::{Fault, Work};
use super::value::{Kind, ScriptValue};

/// The implementation of an operator: operands → value.
pub(super) type Operator =
    for<'r> fn(&Work, &ScriptValue<'r>, &ScriptValue<'r>) -> Result<ScriptValue<'r>, Fault>;

/// Every binary operator, by its symbol.
pub(super) const BINARY_OPERATORS: &[(&str, Operator)] = &[
    ("==", |work, a, b| Ok(ScriptValue::Boolean(equal(work, a, b)?))),
    ("!=", |work, a, b| Ok(ScriptValue::Boolean(!equal(work, a, b)?))),
    ("<", |_, a, b| Ok(ScriptValue::Boolean(compare(a, b)? == Ordering::Less))),
    ("<=", |_, a, b| Ok(ScriptValue::Boolean(compare(a, b)? != Ordering::Greater))),
    (">", |_, a, b| Ok(ScriptValue::Boolean(compare(a, b)? == Ordering::Greater))),
    (">=", |_, a, b| Ok(ScriptValue::Boolean(compare(a, b)? != Ordering::Less))),
    ("in", is_in),
    ("!in", |work, a, b| not(&is_in(work, a, b)?)),
    ("+", add),
    ("-", |_, a, b| calculate("-", a, b, Number::minus)),
    ("*", |_, a, b| calculate("*", a, b, Number::times)),
    ("/", |_, a, b| calculate("/", a, b, Number::divided_by)),
    ("%", |_, a, b| calculate("%", a, b, Number::remainder)),
    ("**", |_, a, b| calculate("**", a, b, Number::power)),
];

/// The operator with this symbol.
pub(super) fn operator(symbol: &str) -> Option<Operator> {
    BINARY_OPERATORS.iter().find(|(known, _)| *known == symbol).map(|(_, operator)| *operator)
}

pub(super) fn not<'r>(value: &ScriptValue<'_>) -> Result<ScriptValue<'r>, Fault> {
    match value.kind() {
        Kind::Boolean(value) => Ok(ScriptValue::Boolean(!value)),
        other => Err(format!("`!` takes a boolean, this is of type {}", other.json_type()).into()),
    }
}

pub(super) fn negate<'r>(value: &ScriptValue<'_>) -> Result<ScriptValue<'r>, Fault> {
    match value.kind() {
        Kind::Number(number) => Ok(ScriptValue::Number(number.exact()?.negated())),
        other => Err(format!("`-` takes a number, this is of type {}", other.json_type()).into()),
    }
}

/// `x in list`. An object is an error: if an object came instead of a list, the result would silently be `false`.
fn is_in<'r>(
    work: &Work,
    wanted: &ScriptValue<'r>,
    container: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, Fault> {
    match container.kind() {
        Kind::List(list) => Ok(ScriptValue::Boolean(position(work, list, wanted)?.is_some())),
        Kind::Object(_) => Err(
            "`in` looks for an element of an array, this is an object: use `has(object, key)` to look for a key"
                .into(),
        ),
        Kind::Text(_) => Err(
            "`in` looks for an element of an array, this is a string: use `contains(string, part)` to search it"
                .into(),
        ),
        other => {
            Err(format!("`in` looks for an element of an array, this is of type {}", other.json_type())
                .into())
        }
    }
}

/// `"key" in input`, of a member of the call document that is always an object.
pub(super) fn is_in_member<'r>(
    work: &Work,
    wanted: &ScriptValue<'r>,
    member: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, Fault> {
    match (wanted.kind(), member.kind()) {
        (Kind::Text(key), Kind::Object(object)) => Ok(ScriptValue::Boolean(object.get(key).is_some())),
        _ => is_in(work, wanted, member),
    }
}

/// The sum of two numbers, or two strings joined.
pub(super) fn add<'r>(
    work: &Work,
    a: &ScriptValue<'r>,
    b: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, Fault> {
    if let (Kind::Text(a), Kind::Text(b)) = (a.kind(), b.kind()) {
        work.text(a.len().saturating_add(b.len()))?;
        return Ok(ScriptValue::Text([a, b].concat().into()));
    }
    calculate("+", a, b, Number::plus)
}

fn calculate<'r>(
    symbol: &str,
    a: &ScriptValue<'_>,
    b: &ScriptValue<'_>,
    operation: fn(Number, Number) -> Result<Number, String>,
) -> Result<ScriptValue<'r>, Fault> {
    match (a.kind(), b.kind()) {
        (Kind::Number(a), Kind::Number(b)) => Ok(ScriptValue::Number(operation(a.exact()?, b.exact()?)?)),
        (a, b) => Err(format!(
            "`{symbol}` takes two numbers, these are of type {} and {}",
            a.json_type(),
            b.json_type()
        )
        .into()),
    }
}
