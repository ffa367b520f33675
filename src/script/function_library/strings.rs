//! Functions on strings.

use super::FunctionResult;
use super::arguments::{expect_array, expect_string, expect_whole_number, wrong_type};
use crate::json::JsonType;
use crate::script::fuel::Fuel;
use crate::script::value::{ScriptValue, ValueKind, resolve_index};

/// The maximum number of parts that `split` returns.
const MAX_PIECES: usize = 1_000;

pub(in crate::script) fn starts_with<'r>(
    _: &Fuel,
    whole: &ScriptValue<'r>,
    start: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(
        expect_string("starts_with", whole)?.starts_with(expect_string("starts_with", start)?),
    ))
}

pub(in crate::script) fn ends_with<'r>(
    _: &Fuel,
    whole: &ScriptValue<'r>,
    end: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(expect_string("ends_with", whole)?.ends_with(expect_string("ends_with", end)?)))
}

pub(in crate::script) fn split<'r>(
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

pub(in crate::script) fn to_lower<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    ScriptValue::text(work, &expect_string("to_lower", value)?.to_lowercase())
}

pub(in crate::script) fn to_upper<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    ScriptValue::text(work, &expect_string("to_upper", value)?.to_uppercase())
}

pub(in crate::script) fn trim<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    match value.as_borrowed_str() {
        Some(text) => Ok(ScriptValue::Borrowed(text.trim())),
        None => ScriptValue::text(work, expect_string("trim", value)?.trim()),
    }
}

pub(in crate::script) fn join<'r>(
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

pub(in crate::script) fn replace<'r>(
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

pub(in crate::script) fn to_text<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    match value.json_type() {
        JsonType::String => Ok(value.clone()),
        _ => ScriptValue::text(work, &value.to_json(work)?.to_string()),
    }
}

/// The text of a scalar. In an expression, a value of any type would let a call hide one behind another: `[5]` is not `"5"`.
pub(in crate::script) fn scalar_to_text<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    match value.json_type() {
        JsonType::String | JsonType::Number | JsonType::Boolean => to_text(work, value),
        other => Err(wrong_type("to_text", "a string, a number or a boolean", other)),
    }
}

pub(in crate::script) fn chars<'r>(work: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let text = expect_string("chars", value)?;
    work.spend_values(text.chars().count())?;
    let mut buffer = [0; 4];
    let chars = text.chars().map(|c| ScriptValue::text(work, c.encode_utf8(&mut buffer)));
    ScriptValue::list(work, chars.collect::<Result<_, _>>()?)
}

/// The characters from an index on, at most `length` of them, as in Rhai. A negative index counts from the end.
pub(in crate::script) fn sub_string<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    from: &ScriptValue<'r>,
    length: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let text = expect_string("sub_string", value)?;
    let (from, length) =
        (expect_whole_number("sub_string", from)?, expect_whole_number("sub_string", length)?);
    let size = text.chars().count();
    let start = match usize::try_from(from) {
        Ok(from) => from,
        Err(_) => resolve_index(from, size).unwrap_or(0),
    };
    let length = usize::try_from(length).unwrap_or(0);
    ScriptValue::text(work, &text.chars().skip(start).take(length).collect::<String>())
}
