//! Arguments of calls: read from JSON text or a JSON value, and wrapped for dialects that accept only objects.

use crate::json::{self, Map, Value};

/// The member that wraps arguments that are not an object, in dialects that accept only objects. When read back they are
/// unwrapped, and no tool accepts them.
const ARGUMENTS: &str = "callgate:arguments";

/// Parses arguments from JSON text. An empty string and `null` mean no arguments: `{}`. Text that is not JSON, has a
/// duplicate key or is nested too deeply is a string, which no tool accepts.
pub(super) fn parse(text: &str) -> Value {
    match json::parse(text) {
        Ok(Value::Null) => Map::new().into(),
        Ok(arguments) => arguments,
        Err(_) if text.is_empty() => Map::new().into(),
        Err(_) => text.into(),
    }
}

/// Reads arguments from a JSON value. Models omit empty arguments, or send `null` or an empty string: this becomes `{}`,
/// for policies, approvals and the tool alike. Any other string stays a string, which no tool accepts.
pub(super) fn read(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => Map::new().into(),
        Some(Value::String(text)) if text.is_empty() => Map::new().into(),
        Some(other) => other.clone(),
    }
}

/// Wraps arguments that are not an object, for dialects that accept only objects.
pub(super) fn wrap(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        other => Map::from_iter([(ARGUMENTS.to_owned(), other.clone())]).into(),
    }
}

/// Unwraps such arguments; missing arguments are `{}`. Only a value that is not an object is unwrapped, so wrapping can't
/// make arguments acceptable.
pub(super) fn unwrap(input: Option<&Value>) -> Value {
    let boxed =
        input.and_then(Value::as_object).filter(|map| map.len() == 1).and_then(|map| map.get(ARGUMENTS));
    match boxed.filter(|inner| !inner.is_object()) {
        Some(inner) => inner.clone(),
        None => read(input),
    }
}
