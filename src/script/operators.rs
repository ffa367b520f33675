//! The operators, all of them strict: none converts a value of the wrong type.

use std::cmp::Ordering;

use super::equality::{compare, equal, find_position};
use super::exact_number::ExactNumber;
use super::fuel::{EvalError, Fuel};
use super::value::{ScriptValue, ValueKind};

/// The implementation of an operator: operands → value.
pub(super) type OperatorFn =
    for<'r> fn(&Fuel, &ScriptValue<'r>, &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError>;

/// Every binary operator, by its symbol.
pub(super) const BINARY_OPERATORS: &[(&str, OperatorFn)] = &[
    ("==", |work, a, b| Ok(ScriptValue::Boolean(equal(work, a, b)?))),
    ("!=", |work, a, b| Ok(ScriptValue::Boolean(!equal(work, a, b)?))),
    ("<", |_, a, b| Ok(ScriptValue::Boolean(compare(a, b)? == Ordering::Less))),
    ("<=", |_, a, b| Ok(ScriptValue::Boolean(compare(a, b)? != Ordering::Greater))),
    (">", |_, a, b| Ok(ScriptValue::Boolean(compare(a, b)? == Ordering::Greater))),
    (">=", |_, a, b| Ok(ScriptValue::Boolean(compare(a, b)? != Ordering::Less))),
    ("in", is_in),
    ("!in", |work, a, b| not(&is_in(work, a, b)?)),
    ("+", add),
    ("-", |_, a, b| calculate("-", a, b, ExactNumber::minus)),
    ("*", |_, a, b| calculate("*", a, b, ExactNumber::times)),
    ("/", |_, a, b| calculate("/", a, b, ExactNumber::divided_by)),
    ("%", |_, a, b| calculate("%", a, b, ExactNumber::remainder)),
    ("**", |_, a, b| calculate("**", a, b, ExactNumber::power)),
];

/// The operator with this symbol.
pub(super) fn find_operator(symbol: &str) -> Option<OperatorFn> {
    BINARY_OPERATORS.iter().find(|(known, _)| *known == symbol).map(|(_, operator)| *operator)
}

pub(super) fn not<'r>(value: &ScriptValue<'_>) -> Result<ScriptValue<'r>, EvalError> {
    match value.kind() {
        ValueKind::Boolean(value) => Ok(ScriptValue::Boolean(!value)),
        other => Err(format!("`!` takes a boolean, this is of type {}", other.json_type()).into()),
    }
}

pub(super) fn negate<'r>(value: &ScriptValue<'_>) -> Result<ScriptValue<'r>, EvalError> {
    match value.kind() {
        ValueKind::Number(number) => Ok(ScriptValue::Number(number.exact()?.negate())),
        other => Err(format!("`-` takes a number, this is of type {}", other.json_type()).into()),
    }
}

/// `x in list`. An object is an error: if an object came instead of a list, the result would silently be `false`.
fn is_in<'r>(
    work: &Fuel,
    wanted: &ScriptValue<'r>,
    container: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, EvalError> {
    match container.kind() {
        ValueKind::Array(list) => Ok(ScriptValue::Boolean(find_position(work, list, wanted)?.is_some())),
        ValueKind::Object(_) => Err(
            "`in` looks for an element of an array, this is an object: use `has(object, key)` to look for a key"
                .into(),
        ),
        ValueKind::String(_) => Err(
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
    work: &Fuel,
    wanted: &ScriptValue<'r>,
    member: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, EvalError> {
    match (wanted.kind(), member.kind()) {
        (ValueKind::String(key), ValueKind::Object(object)) => {
            Ok(ScriptValue::Boolean(object.get(key).is_some()))
        }
        _ => is_in(work, wanted, member),
    }
}

/// The sum of two numbers, or two strings joined.
pub(super) fn add<'r>(
    work: &Fuel,
    a: &ScriptValue<'r>,
    b: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, EvalError> {
    if let (ValueKind::String(a), ValueKind::String(b)) = (a.kind(), b.kind()) {
        work.spend_string(a.len().saturating_add(b.len()))?;
        return Ok(ScriptValue::String([a, b].concat().into()));
    }
    calculate("+", a, b, ExactNumber::plus)
}

fn calculate<'r>(
    symbol: &str,
    a: &ScriptValue<'_>,
    b: &ScriptValue<'_>,
    operation: fn(ExactNumber, ExactNumber) -> Result<ExactNumber, String>,
) -> Result<ScriptValue<'r>, EvalError> {
    match (a.kind(), b.kind()) {
        (ValueKind::Number(a), ValueKind::Number(b)) => {
            Ok(ScriptValue::Number(operation(a.exact()?, b.exact()?)?))
        }
        (a, b) => Err(format!(
            "`{symbol}` takes two numbers, these are of type {} and {}",
            a.json_type(),
            b.json_type()
        )
        .into()),
    }
}
