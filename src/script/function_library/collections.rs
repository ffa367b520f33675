//! Functions on arrays, objects, and values of several types.

use std::borrow::Cow;
use std::collections::HashSet;

use super::FunctionResult;
use super::arguments::{
    expect_array, expect_object, expect_string, expect_whole_number, whole_number, wrong_type,
};
use crate::json::JsonType;
use crate::script::equality::{compare, equal, find_position};
use crate::script::exact_number::ExactNumber;
use crate::script::fuel::{EvalError, Fuel};
use crate::script::operators::add;
use crate::script::value::{MemberMap, ObjectView, ScriptValue, ValueKind, key_to_value, resolve_index};

pub(in crate::script) fn at<'r>(
    _: &Fuel,
    container: &ScriptValue<'r>,
    index: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    match (container.kind(), index.kind()) {
        (ValueKind::Array(list), ValueKind::Number(index)) => {
            let index = whole_number("at", index)?;
            usize::try_from(index).ok().and_then(|index| list.get(index)).ok_or_else(|| {
                EvalError::Absent(format!("the array has {} elements, none at {index}", list.len()))
            })
        }
        (ValueKind::Object(object), ValueKind::String(key)) => {
            object.get(key).ok_or_else(|| EvalError::Absent(format!("the object has no key `{key}`")))
        }
        (container, index) => Err(format!(
            "`at` takes an array and a whole number, or an object and a string, these are of type {} and {}",
            container.json_type(),
            index.json_type()
        )
        .into()),
    }
}

pub(in crate::script) fn contains<'r>(
    work: &Fuel,
    whole: &ScriptValue<'r>,
    part: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    match whole.kind() {
        ValueKind::String(whole) => {
            Ok(ScriptValue::Boolean(whole.contains(expect_string("contains", part)?)))
        }
        ValueKind::Array(list) => Ok(ScriptValue::Boolean(find_position(work, list, part)?.is_some())),
        other => Err(wrong_type("contains", "a string or an array", other.json_type())),
    }
}

pub(in crate::script) fn has<'r>(
    _: &Fuel,
    value: &ScriptValue<'r>,
    key: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(expect_object("has", value)?.get(expect_string("has", key)?).is_some()))
}

pub(in crate::script) fn index_of<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    wanted: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let index = find_position(work, expect_array("index_of", value)?, wanted)?;
    Ok(index.map_or(ScriptValue::Number(ExactNumber::from(-1)), ScriptValue::whole))
}

pub(in crate::script) fn count<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    wanted: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let mut count = 0;
    for item in expect_array("count", value)?.iter() {
        count += usize::from(equal(work, &item, wanted)?);
    }
    Ok(ScriptValue::whole(count))
}

pub(in crate::script) fn indices<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    ScriptValue::list(work, (0..expect_array("indices", value)?.len()).map(ScriptValue::whole).collect())
}

pub(in crate::script) fn is_null<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(value.json_type() == JsonType::Null))
}

pub(in crate::script) fn type_of<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Borrowed(value.json_type().name()))
}

pub(in crate::script) fn keys<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    ScriptValue::list(
        work,
        expect_object("keys", value)?.sorted_keys().into_iter().map(key_to_value).collect(),
    )
}

pub(in crate::script) fn values<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let object = expect_object("values", value)?;
    ScriptValue::list(work, object.sorted_keys().iter().filter_map(|key| object.get(key)).collect())
}

pub(in crate::script) fn is_empty<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(length_of("is_empty", value)? == 0))
}

pub(in crate::script) fn len<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::whole(length_of("len", value)?))
}

fn length_of(name: &str, value: &ScriptValue<'_>) -> Result<usize, EvalError> {
    match value.kind() {
        ValueKind::String(text) => Ok(text.chars().count()),
        ValueKind::Array(list) => Ok(list.len()),
        ValueKind::Object(object) => Ok(object.len()),
        other => Err(wrong_type(name, "a string, an array or an object", other.json_type())),
    }
}

pub(in crate::script) fn sum<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let ValueKind::Array(list) = value.kind() else {
        return Err("`sum` takes an array of numbers".into());
    };
    list.iter().try_fold(ScriptValue::whole(0), |total, item| {
        work.spend_step()?;
        add(work, &total, &item)
    })
}

pub(in crate::script) fn merge<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    other: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let (first, other) = (expect_object("merge", value)?, expect_object("merge", other)?);
    let mut members = MemberMap::new();
    for object in [first, other] {
        match object {
            ObjectView::Json(json) => {
                members.extend(
                    json.iter().map(|(key, member)| (Cow::from(key.as_str()), ScriptValue::Json(member))),
                );
            }
            ObjectView::Created(created) => {
                members.extend(created.iter().map(|(key, member)| (key.clone(), member.clone())))
            }
        }
    }
    ScriptValue::object(work, members)
}

pub(in crate::script) fn slice<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    from: &ScriptValue<'r>,
    to: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let (from, to) = (expect_whole_number("slice", from)?, expect_whole_number("slice", to)?);
    let bounds = |len: usize| {
        let offset = |index: i64| match usize::try_from(index) {
            Ok(index) => index.min(len),
            Err(_) => resolve_index(index, len).unwrap_or(0),
        };
        (offset(from), offset(to).saturating_sub(offset(from)))
    };
    match value.kind() {
        ValueKind::String(text) => {
            let (start, length) = bounds(text.chars().count());
            ScriptValue::text(work, &text.chars().skip(start).take(length).collect::<String>())
        }
        ValueKind::Array(list) => {
            let (start, length) = bounds(list.len());
            ScriptValue::list(work, list.iter().skip(start).take(length).collect())
        }
        other => Err(wrong_type("slice", "a string or an array", other.json_type())),
    }
}

pub(in crate::script) fn sort<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let mut items: Vec<ScriptValue<'r>> = expect_array("sort", value)?.iter().collect();
    work.spend_values(items.len())?;
    // Each adjacent pair is compared first, so that the sort itself cannot fail.
    for pair in items.windows(2) {
        if let [a, b] = pair {
            work.spend_step()?;
            compare(a, b)?;
        }
    }
    items.sort_by(|a, b| compare(a, b).unwrap_or(std::cmp::Ordering::Equal));
    ScriptValue::list(work, items)
}

pub(in crate::script) fn first<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let first = expect_array("first", value)?.get(0);
    first.ok_or_else(|| EvalError::Absent("the array has no first element".to_owned()))
}

pub(in crate::script) fn last<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let items = expect_array("last", value)?;
    let last = items.len().checked_sub(1).and_then(|last| items.get(last));
    last.ok_or_else(|| EvalError::Absent("the array has no last element".to_owned()))
}

pub(in crate::script) fn reverse<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let mut items: Vec<ScriptValue<'r>> = expect_array("reverse", value)?.iter().collect();
    items.reverse();
    ScriptValue::list(work, items)
}

/// The pairs of the elements of two arrays.
///
/// # Errors
/// The arrays have different lengths: pairing only some elements would leave out the others.
pub(in crate::script) fn zip<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    other: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let (first, second) = (expect_array("zip", value)?, expect_array("zip", other)?);
    if first.len() != second.len() {
        let (first, second) = (first.len(), second.len());
        return Err(format!("`zip` takes two arrays of one length, these have {first} and {second}").into());
    }
    let pairs = first.iter().zip(second.iter()).map(|(a, b)| ScriptValue::list(work, vec![a, b]));
    ScriptValue::list(work, pairs.collect::<Result<_, _>>()?)
}

/// The elements of an array without repetitions.
///
/// # Errors
/// Two elements have different types.
pub(in crate::script) fn unique<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let items = expect_array("unique", value)?;
    let mut strings = HashSet::new();
    let mut kept: Vec<ScriptValue<'r>> = Vec::new();
    for item in items.iter() {
        work.spend_step()?;
        // Strings by hash, because arrays of them are long. One beside another type is an error, as in every comparison.
        let is_known = match (item.kind(), kept.first().map(ScriptValue::json_type)) {
            (ValueKind::String(text), None | Some(JsonType::String)) => {
                work.spend_scan(text.len())?;
                !strings.insert(text.to_owned())
            }
            _ => contains_equal(work, &kept, &item)?,
        };
        if !is_known {
            kept.push(item);
        }
    }
    ScriptValue::list(work, kept)
}

/// Compares a value with every element, so that an equal one does not hide a wrong type after it.
fn contains_equal(
    work: &Fuel,
    items: &[ScriptValue<'_>],
    wanted: &ScriptValue<'_>,
) -> Result<bool, EvalError> {
    let mut found = false;
    for item in items {
        found |= equal(work, item, wanted)?;
    }
    Ok(found)
}
