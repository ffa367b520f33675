//! The operators, all of them strict: none converts a value of the wrong type.

use std::cmp::Ordering;

use super::equality::{compare, equal, find_position};
use super::exact_number::ExactNumber;
use super::fuel::{EvalError, Fuel};
use super::value::{ScriptValue, ValueKind};
use crate::time::TimeValue;

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
    ("-", subtract),
    ("*", |_, a, b| calculate("*", a, b, ExactNumber::times)),
    ("/", |_, a, b| calculate("/", a, b, ExactNumber::divided_by)),
    ("%", |_, a, b| calculate("%", a, b, ExactNumber::remainder)),
    ("**", |_, a, b| calculate("**", a, b, ExactNumber::power)),
];

/// The operator with this symbol, and the symbol.
pub(super) fn find_operator(symbol: &str) -> Option<(&'static str, OperatorFn)> {
    BINARY_OPERATORS.iter().find(|(known, _)| *known == symbol).copied()
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

/// `x in container`: an element of an array, a key of an object, or a part of a string.
pub(super) fn is_in<'r>(
    work: &Fuel,
    wanted: &ScriptValue<'r>,
    container: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, EvalError> {
    let found = match (container.kind(), wanted.kind()) {
        (ValueKind::Array(list), _) => find_position(work, list, wanted)?.is_some(),
        (ValueKind::Object(object), ValueKind::String(key)) => object.get(key).is_some(),
        (ValueKind::String(text), ValueKind::String(part)) => text.contains(part),
        (ValueKind::Object(_), other) => {
            return Err(
                format!("a key of an object is a string, this is of type {}", other.json_type()).into()
            );
        }
        (ValueKind::String(_), other) => {
            return Err(
                format!("a part of a string is a string, this is of type {}", other.json_type()).into()
            );
        }
        (other, _) => {
            return Err(format!(
                "`in` takes an array, an object or a string on its right, this is of type {}",
                other.json_type()
            )
            .into());
        }
    };
    Ok(ScriptValue::Boolean(found))
}

/// `x in list`, where the list may come from the arguments, which the agent controls: if a string or an object came in its place, looking
/// into that could silently be `false`.
pub(super) fn is_in_argument<'r>(
    work: &Fuel,
    wanted: &ScriptValue<'r>,
    container: &ScriptValue<'r>,
) -> Result<ScriptValue<'r>, EvalError> {
    match container.kind() {
        ValueKind::Array(_) => is_in(work, wanted, container),
        other => Err(format!(
            "`in` looks for an element of an array in arguments, this is of type {}: use `contains(string, part)` or `has(object, key)`",
            other.json_type()
        )
        .into()),
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
    if let (ValueKind::Time(a), ValueKind::Time(b)) = (a.kind(), b.kind()) {
        return time_result("+", a, b, a.plus(b));
    }
    calculate("+", a, b, ExactNumber::plus)
}

/// The difference of two numbers or two times, or a time and a duration.
fn subtract<'r>(_: &Fuel, a: &ScriptValue<'r>, b: &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError> {
    if let (ValueKind::Time(a), ValueKind::Time(b)) = (a.kind(), b.kind()) {
        return time_result("-", a, b, a.minus(b));
    }
    calculate("-", a, b, ExactNumber::minus)
}

fn time_result<'r>(
    symbol: &str,
    a: TimeValue,
    b: TimeValue,
    result: Option<TimeValue>,
) -> Result<ScriptValue<'r>, EvalError> {
    result.map(ScriptValue::Time).ok_or_else(|| {
        let (a, b) = (a.type_name(), b.type_name());
        format!("`{symbol}` of a {a} and a {b} has no result: it takes a time and a duration, and `-` two times, up to the year 9999").into()
    })
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
            a.type_name(),
            b.type_name()
        )
        .into()),
    }
}
