//! The arguments of functions: any type but the wanted one is an error.

use crate::json::JsonType;
use crate::script::exact_number::NumberView;
use crate::script::fuel::EvalError;
use crate::script::value::{ArrayView, ObjectView, ScriptValue, ValueKind};

pub(super) fn expect_string<'v>(name: &str, value: &'v ScriptValue<'_>) -> Result<&'v str, EvalError> {
    match value.kind() {
        ValueKind::String(text) => Ok(text),
        other => Err(wrong_type(name, "a string", other.json_type())),
    }
}

pub(super) fn expect_array<'v, 'r>(
    name: &str,
    value: &'v ScriptValue<'r>,
) -> Result<ArrayView<'v, 'r>, EvalError> {
    match value.kind() {
        ValueKind::Array(list) => Ok(list),
        other => Err(wrong_type(name, "an array", other.json_type())),
    }
}

pub(super) fn expect_object<'v, 'r>(
    name: &str,
    value: &'v ScriptValue<'r>,
) -> Result<ObjectView<'v, 'r>, EvalError> {
    match value.kind() {
        ValueKind::Object(object) => Ok(object),
        other => Err(wrong_type(name, "an object", other.json_type())),
    }
}

pub(super) fn wrong_type(name: &str, wanted: &str, found: JsonType) -> EvalError {
    format!("`{name}` takes {wanted}, this is of type {found}").into()
}

pub(super) fn expect_whole_number(name: &str, value: &ScriptValue<'_>) -> Result<i64, EvalError> {
    match value.kind() {
        ValueKind::Number(number) => whole_number(name, number),
        other => Err(wrong_type(name, "whole numbers", other.json_type())),
    }
}

pub(super) fn whole_number(name: &str, number: NumberView<'_>) -> Result<i64, EvalError> {
    number.to_i64().ok_or_else(|| format!("`{name}` takes a whole number of at most 19 digits").into())
}
