//! Errors as values of a script: what `throw` takes and `catch` receives.

use super::fuel::{EvalError, Fuel};
use super::value::{MemberMap, ScriptValue, ValueKind};
use crate::json::JsonType;

/// The `kind` of a runtime error of the script itself.
pub(super) const SCRIPT_ERROR: &str = "script_error";

/// What can be thrown.
pub(super) const THROWN_VALUES: &str =
    "`throw` takes a string, or an object with a `message` and an optional `kind`, both strings";

/// Creates the value that `catch` receives: an object with `message` and `kind`.
pub(super) fn error_object<'r>(
    message: ScriptValue<'r>,
    kind: ScriptValue<'r>,
    work: &Fuel,
) -> Result<ScriptValue<'r>, EvalError> {
    let members = MemberMap::from_iter([("message".into(), message), ("kind".into(), kind)]);
    ScriptValue::object(work, members)
}

/// The message of an error object.
pub(super) fn error_message(error: &ScriptValue<'_>) -> Option<String> {
    let ValueKind::Object(members) = error.kind() else { return None };
    match members.get("message")?.kind() {
        ValueKind::String(text) => Some(text.to_owned()),
        _ => None,
    }
}

/// Converts the argument of `throw`, an object with `message` and `kind` or a string as message, into an error object.
pub(super) fn to_error_object<'r>(value: ScriptValue<'r>, work: &Fuel) -> Result<ScriptValue<'r>, EvalError> {
    match value.kind() {
        ValueKind::String(_) => error_object(value.clone(), ScriptValue::Borrowed(""), work),
        ValueKind::Object(object) => {
            let message = object.get("message");
            let kind = object.get("kind").unwrap_or(ScriptValue::Borrowed(""));
            let is_text = |value: &ScriptValue<'_>| value.json_type() == JsonType::String;
            match message {
                Some(message) if is_text(&message) && is_text(&kind) => {
                    let mut error = value.clone();
                    if object.get("kind").is_none()
                        && let Some(members) = error.members_mut(work)?
                    {
                        members.content.insert("kind".into(), kind);
                    }
                    Ok(error)
                }
                _ => Err(THROWN_VALUES.into()),
            }
        }
        _ => Err(THROWN_VALUES.into()),
    }
}
