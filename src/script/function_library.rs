//! Implementations of the functions in the table.

use std::borrow::Cow;

use super::equality::{compare, equal, find_position};
use super::exact_number::{DIGITS, ExactNumber, NumberView, Rounding};
use super::fuel::{EvalError, Fuel};
use super::operators::add;
use super::value::{ArrayView, MemberMap, ObjectView, ScriptValue, ValueKind, key_to_value, resolve_index};
use crate::json::JsonType;

/// The maximum number of parts that `split` returns.
const MAX_PIECES: usize = 1_000;

type FunctionResult<'r> = Result<ScriptValue<'r>, EvalError>;

fn expect_string<'v>(name: &str, value: &'v ScriptValue<'_>) -> Result<&'v str, EvalError> {
    match value.kind() {
        ValueKind::String(text) => Ok(text),
        other => Err(wrong_type(name, "a string", other.json_type())),
    }
}

fn expect_array<'v, 'r>(name: &str, value: &'v ScriptValue<'r>) -> Result<ArrayView<'v, 'r>, EvalError> {
    match value.kind() {
        ValueKind::Array(list) => Ok(list),
        other => Err(wrong_type(name, "an array", other.json_type())),
    }
}

fn expect_object<'v, 'r>(name: &str, value: &'v ScriptValue<'r>) -> Result<ObjectView<'v, 'r>, EvalError> {
    match value.kind() {
        ValueKind::Object(object) => Ok(object),
        other => Err(wrong_type(name, "an object", other.json_type())),
    }
}

fn wrong_type(name: &str, wanted: &str, found: JsonType) -> EvalError {
    format!("`{name}` takes {wanted}, this is of type {found}").into()
}

pub(super) fn abs<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    match value.kind() {
        ValueKind::Number(number) => Ok(ScriptValue::Number(number.exact()?.abs())),
        other => Err(wrong_type("abs", "a number", other.json_type())),
    }
}

pub(super) fn at<'r>(_: &Fuel, container: &ScriptValue<'r>, index: &ScriptValue<'r>) -> FunctionResult<'r> {
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

pub(super) fn contains<'r>(
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

pub(super) fn starts_with<'r>(
    _: &Fuel,
    whole: &ScriptValue<'r>,
    start: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(
        expect_string("starts_with", whole)?.starts_with(expect_string("starts_with", start)?),
    ))
}

pub(super) fn ends_with<'r>(_: &Fuel, whole: &ScriptValue<'r>, end: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(expect_string("ends_with", whole)?.ends_with(expect_string("ends_with", end)?)))
}

pub(super) fn has<'r>(_: &Fuel, value: &ScriptValue<'r>, key: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(expect_object("has", value)?.get(expect_string("has", key)?).is_some()))
}

pub(super) fn index_of<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    wanted: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let index = find_position(work, expect_array("index_of", value)?, wanted)?;
    Ok(index.map_or(ScriptValue::Number(ExactNumber::from(-1)), ScriptValue::whole))
}

pub(super) fn count<'r>(
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

pub(super) fn indices<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    ScriptValue::list(work, (0..expect_array("indices", value)?.len()).map(ScriptValue::whole).collect())
}

pub(super) fn is_null<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(value.json_type() == JsonType::Null))
}

pub(super) fn type_of<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Borrowed(value.json_type().name()))
}

pub(super) fn keys<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    ScriptValue::list(
        work,
        expect_object("keys", value)?.sorted_keys().into_iter().map(key_to_value).collect(),
    )
}

pub(super) fn values<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let object = expect_object("values", value)?;
    ScriptValue::list(work, object.sorted_keys().iter().filter_map(|key| object.get(key)).collect())
}

pub(super) fn is_empty<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(length_of("is_empty", value)? == 0))
}

pub(super) fn len<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
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

pub(super) fn max<'r>(_: &Fuel, a: &ScriptValue<'r>, b: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(if compare(a, b)?.is_ge() { a.clone() } else { b.clone() })
}

pub(super) fn min<'r>(_: &Fuel, a: &ScriptValue<'r>, b: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(if compare(a, b)?.is_le() { a.clone() } else { b.clone() })
}

pub(super) fn split<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    separator: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let (whole, separator) = (expect_string("split", value)?, expect_string("split", separator)?);
    if separator.is_empty() {
        return Err("`split` takes a separator of at least one character".into());
    }
    let pieces: Vec<ScriptValue<'r>> = match value.as_borrowed_str() {
        Some(whole) => whole.split(separator).take(MAX_PIECES + 1).map(ScriptValue::Borrowed).collect(),
        None => {
            let pieces = whole.split(separator).take(MAX_PIECES + 1);
            pieces.map(|piece| ScriptValue::text(work, piece)).collect::<Result<_, _>>()?
        }
    };
    if pieces.len() > MAX_PIECES {
        return Err(format!("`split` returns more than {MAX_PIECES} parts").into());
    }
    ScriptValue::list(work, pieces)
}

pub(super) fn sum<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let ValueKind::Array(list) = value.kind() else {
        return Err("`sum` takes an array of numbers".into());
    };
    list.iter().try_fold(ScriptValue::whole(0), |total, item| {
        work.spend_step()?;
        add(work, &total, &item)
    })
}

pub(super) fn to_lower<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    ScriptValue::text(work, &expect_string("to_lower", value)?.to_lowercase())
}

pub(super) fn to_upper<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    ScriptValue::text(work, &expect_string("to_upper", value)?.to_uppercase())
}

pub(super) fn trim<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    match value.as_borrowed_str() {
        Some(text) => Ok(ScriptValue::Borrowed(text.trim())),
        None => ScriptValue::text(work, expect_string("trim", value)?.trim()),
    }
}

pub(super) fn join<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    separator: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let separator = expect_string("join", separator)?;
    let mut joined = String::new();
    for (index, item) in expect_array("join", value)?.iter().enumerate() {
        work.spend_step()?;
        if index > 0 {
            joined.push_str(separator);
        }
        let ValueKind::String(piece) = item.kind() else {
            let found = item.json_type();
            return Err(format!("`join` takes an array of strings, one element is of type {found}: `to_text(x)` converts it to a string").into());
        };
        joined.push_str(piece);
        if joined.len() > work.limits.string_bytes {
            break;
        }
    }
    ScriptValue::text(work, &joined)
}

pub(super) fn merge<'r>(work: &Fuel, value: &ScriptValue<'r>, other: &ScriptValue<'r>) -> FunctionResult<'r> {
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

pub(super) fn range<'r>(work: &Fuel, from: &ScriptValue<'r>, to: &ScriptValue<'r>) -> FunctionResult<'r> {
    let (from, to) = (expect_whole_number("range", from)?, expect_whole_number("range", to)?);
    // Checked before allocation.
    let length = usize::try_from(to.saturating_sub(from).max(0)).unwrap_or(usize::MAX);
    work.spend_values(length)?;
    ScriptValue::list(work, (from..to).map(|number| ScriptValue::Number(ExactNumber::from(number))).collect())
}

pub(super) fn replace<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    part: &ScriptValue<'r>,
    with: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let (value, part, with) =
        (expect_string("replace", value)?, expect_string("replace", part)?, expect_string("replace", with)?);
    if part.is_empty() {
        return Err("`replace` takes a part of at least one character".into());
    }
    // Checked before allocation: every replacement may be longer.
    let occurrences = if with.len() > part.len() { value.matches(part).count() } else { 0 };
    let length =
        value.len().saturating_add(occurrences.saturating_mul(with.len().saturating_sub(part.len())));
    work.spend_string(length)?;
    Ok(ScriptValue::String(value.replace(part, with).into()))
}

pub(super) fn slice<'r>(
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

pub(super) fn sort<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
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

pub(super) fn to_number<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let text = expect_string("to_number", value)?;
    let number: crate::json::Number = text.parse().map_err(|_| {
        EvalError::from(format!(
            "`{}` is not a number",
            crate::safe_text::escape_controls(&crate::safe_text::truncate(text))
        ))
    })?;
    Ok(ScriptValue::Number(NumberView::from_json(&number).exact()?))
}

pub(super) fn to_text<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    match value.json_type() {
        JsonType::String => Ok(value.clone()),
        _ => ScriptValue::text(work, &value.to_json(work)?.to_string()),
    }
}

fn expect_whole_number(name: &str, value: &ScriptValue<'_>) -> Result<i64, EvalError> {
    match value.kind() {
        ValueKind::Number(number) => whole_number(name, number),
        other => Err(wrong_type(name, "whole numbers", other.json_type())),
    }
}

fn whole_number(name: &str, number: NumberView<'_>) -> Result<i64, EvalError> {
    number.to_i64().ok_or_else(|| format!("`{name}` takes a whole number of at most 19 digits").into())
}

pub(super) fn round<'r>(
    _: &Fuel,
    value: &ScriptValue<'r>,
    places: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    round_with("round", value, places, Rounding::HalfAwayFromZero)
}

pub(super) fn floor<'r>(
    _: &Fuel,
    value: &ScriptValue<'r>,
    places: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    round_with("floor", value, places, Rounding::Floor)
}

pub(super) fn ceil<'r>(
    _: &Fuel,
    value: &ScriptValue<'r>,
    places: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    round_with("ceil", value, places, Rounding::Ceiling)
}

fn round_with<'r>(
    name: &str,
    value: &ScriptValue<'r>,
    places: Option<&ScriptValue<'r>>,
    rounding: Rounding,
) -> FunctionResult<'r> {
    let ValueKind::Number(number) = value.kind() else {
        return Err(wrong_type(name, "a number", value.json_type()));
    };
    let places = match places {
        None => 0,
        Some(places) => {
            let places = u8::try_from(expect_whole_number(name, places)?)
                .ok()
                .filter(|places| usize::from(*places) <= DIGITS);
            places.ok_or_else(|| format!("`{name}` takes 0 to {DIGITS} digits after the point"))?
        }
    };
    Ok(ScriptValue::Number(number.exact()?.round(rounding, places)))
}
