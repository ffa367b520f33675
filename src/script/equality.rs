//! Strict comparison of values: comparing different JSON types is an error, because a result of `false` would let a call bypass a
//! `deny`.

use std::cmp::Ordering;

use super::fuel::{Fault, Work};
use super::value::{Kind, List, MAX_NESTING, ScriptValue, too_deep};
use crate::json::{JsonType, MAX_DEPTH};

/// Whether two values are equal.
///
/// # Errors
/// The values, or two of their members or elements at the same path, have different types.
pub(super) fn equal(work: &Work, a: &ScriptValue<'_>, b: &ScriptValue<'_>) -> Result<bool, Fault> {
    equal_below(work, a, b, 0)
}

fn equal_below(work: &Work, a: &ScriptValue<'_>, b: &ScriptValue<'_>, depth: usize) -> Result<bool, Fault> {
    work.step()?;
    if depth > MAX_DEPTH + MAX_NESTING {
        return Err(too_deep());
    }
    match (a.kind(), b.kind()) {
        (Kind::Null, Kind::Null) => Ok(true),
        (Kind::Boolean(a), Kind::Boolean(b)) => Ok(a == b),
        (Kind::Number(a), Kind::Number(b)) => Ok(a.compare(b).is_eq()),
        (Kind::Text(a), Kind::Text(b)) => {
            work.scan(if a.len() == b.len() { a.len() } else { 0 })?;
            Ok(a == b)
        }
        (Kind::List(a), Kind::List(b)) => {
            // Every pair is compared, so that a difference does not hide a wrong type after it.
            let mut same = a.len() == b.len();
            for (a, b) in a.iter().zip(b.iter()) {
                same &= equal_below(work, &a, &b, depth + 1)?;
            }
            Ok(same)
        }
        (Kind::Object(a), Kind::Object(b)) => {
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
pub(super) fn compare(a: &ScriptValue<'_>, b: &ScriptValue<'_>) -> Result<Ordering, Fault> {
    match (a.kind(), b.kind()) {
        (Kind::Number(a), Kind::Number(b)) => Ok(a.compare(b)),
        (Kind::Text(a), Kind::Text(b)) => Ok(a.cmp(b)),
        (a, b) if a.json_type() == b.json_type() => {
            Err(format!("only numbers and strings can be ordered, these are of type {}", a.json_type())
                .into())
        }
        (a, b) => Err(type_mismatch_message(&a, &b).into()),
    }
}

/// The index of the first element that equals `wanted`.
///
/// # Errors
/// Any element has another type than `wanted`.
pub(super) fn position(
    work: &Work,
    list: List<'_, '_>,
    wanted: &ScriptValue<'_>,
) -> Result<Option<usize>, Fault> {
    let mut found = None;
    for (index, item) in list.iter().enumerate() {
        if equal(work, &item, wanted)? && found.is_none() {
            found = Some(index);
        }
    }
    Ok(found)
}

fn type_mismatch_message(a: &Kind<'_, '_>, b: &Kind<'_, '_>) -> String {
    let (a, b) = (a.json_type(), b.json_type());
    let hint = if a == JsonType::Null || b == JsonType::Null { ": `is_null(x)` tests for null" } else { "" };
    format!("cannot compare values of different types, {a} and {b}{hint}")
}
