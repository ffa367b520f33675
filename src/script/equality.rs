//! Strict comparison of values: comparing different JSON types is an error, because a result of `false` would let a call bypass a
//! `deny`.

use std::cmp::Ordering;

use super::fuel::{EvalError, Fuel};
use super::value::{ArrayView, MAX_NESTING, ScriptValue, ValueKind, nesting_error};
use crate::json::{JsonType, MAX_DEPTH, Value};

/// The cost of comparing an element of a stored array with a string or a number, in scanned bytes.
const SCANNED_FOR_ELEMENT: usize = 8;

/// Whether two values are equal.
///
/// # Errors
/// The values, or two of their members or elements at the same path, have different types.
pub(super) fn equal(work: &Fuel, a: &ScriptValue<'_>, b: &ScriptValue<'_>) -> Result<bool, EvalError> {
    equal_below(work, a, b, 0)
}

fn equal_below(
    work: &Fuel,
    a: &ScriptValue<'_>,
    b: &ScriptValue<'_>,
    depth: usize,
) -> Result<bool, EvalError> {
    work.spend_step()?;
    if depth > MAX_DEPTH + MAX_NESTING {
        return Err(nesting_error());
    }
    match (a.kind(), b.kind()) {
        (ValueKind::Null, ValueKind::Null) => Ok(true),
        (ValueKind::Boolean(a), ValueKind::Boolean(b)) => Ok(a == b),
        (ValueKind::Number(a), ValueKind::Number(b)) => Ok(a.compare(b).is_eq()),
        (ValueKind::String(a), ValueKind::String(b)) => {
            work.spend_scan(if a.len() == b.len() { a.len() } else { 0 })?;
            Ok(a == b)
        }
        (ValueKind::Time(a), ValueKind::Time(b)) if let Some(order) = a.compare(b) => Ok(order.is_eq()),
        (ValueKind::Array(a), ValueKind::Array(b)) => {
            // Every pair is compared, so that a difference does not hide a wrong type after it.
            let mut same = a.len() == b.len();
            for (a, b) in a.iter().zip(b.iter()) {
                same &= equal_below(work, &a, &b, depth + 1)?;
            }
            Ok(same)
        }
        (ValueKind::Object(a), ValueKind::Object(b)) => {
            let mut same = a.len() == b.len();
            for key in a.sorted_keys() {
                match (a.get(&key), b.get(&key)) {
                    (Some(a), Some(b)) => same &= equal_below(work, &a, &b, depth + 1)?,
                    _ => same = false,
                }
            }
            Ok(same)
        }
        (a, b) => Err(type_mismatch_message(&a, &b).into()),
    }
}

/// Orders two numbers by value or two strings by their characters.
///
/// # Errors
/// Any other pair of types.
pub(super) fn compare(a: &ScriptValue<'_>, b: &ScriptValue<'_>) -> Result<Ordering, EvalError> {
    match (a.kind(), b.kind()) {
        (ValueKind::Number(a), ValueKind::Number(b)) => Ok(a.compare(b)),
        (ValueKind::String(a), ValueKind::String(b)) => Ok(a.cmp(b)),
        (ValueKind::Time(a), ValueKind::Time(b)) if let Some(order) = a.compare(b) => Ok(order),
        (a, b) if a.type_name() == b.type_name() => Err(format!(
            "only numbers, strings, times and durations can be ordered, these are of type {}",
            a.type_name()
        )
        .into()),
        (a, b) => Err(type_mismatch_message(&a, &b).into()),
    }
}

/// The index of the first element that equals `wanted`.
///
/// # Errors
/// Any element has another type than `wanted`.
pub(super) fn find_position(
    work: &Fuel,
    list: ArrayView<'_, '_>,
    wanted: &ScriptValue<'_>,
) -> Result<Option<usize>, EvalError> {
    if let ArrayView::Json(items) = list
        && let ValueKind::String(_) | ValueKind::Number(_) = wanted.kind()
    {
        return find_scalar(work, items, wanted);
    }
    let mut found = None;
    for (index, item) in list.iter().enumerate() {
        if equal(work, &item, wanted)? && found.is_none() {
            found = Some(index);
        }
    }
    Ok(found)
}

/// The index of the first element that equals a string or a number. A set of 100,000 values is searched for the cost of 3,000 steps.
fn find_scalar(work: &Fuel, items: &[Value], wanted: &ScriptValue<'_>) -> Result<Option<usize>, EvalError> {
    work.spend_scan(items.len().saturating_mul(SCANNED_FOR_ELEMENT))?;
    let mut found = None;
    for (index, item) in items.iter().enumerate() {
        let item = ScriptValue::Json(item);
        let is_equal = match (item.kind(), wanted.kind()) {
            (ValueKind::Number(a), ValueKind::Number(b)) => a.compare(b).is_eq(),
            (ValueKind::String(a), ValueKind::String(b)) => {
                if a.len() == b.len() && a.len() > SCANNED_FOR_ELEMENT {
                    work.spend_scan(a.len())?;
                }
                a == b
            }
            (a, b) => return Err(type_mismatch_message(&a, &b).into()),
        };
        if is_equal && found.is_none() {
            found = Some(index);
        }
    }
    Ok(found)
}

fn type_mismatch_message(a: &ValueKind<'_, '_>, b: &ValueKind<'_, '_>) -> String {
    let hint = if a.json_type() == JsonType::Null || b.json_type() == JsonType::Null {
        ": `is_null(x)` tests for null"
    } else if a.is_time() || b.is_time() {
        ": `time(x)` reads a text as a time, `duration(x)` as a duration"
    } else {
        ""
    };
    let (a, b) = (a.type_name(), b.type_name());
    format!("cannot compare values of different types, {a} and {b}{hint}")
}
