//! Conversions from and to `serde_json` values, whatever features it is built with.

use super::{InvalidNumber, Number, Value};

/// The `serde_json` of this build cannot represent this number exactly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number {0} has no exact value in `serde_json`")]
pub struct InexactNumber(pub String);

/// Exact: a float becomes the shortest decimal that reads back as it.
impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            // With `arbitrary_precision`, a number can hold any text, unchecked.
            serde_json::Value::Number(number) => {
                Number::try_from(&number).map_or_else(|_| Self::String(number.to_string()), Self::Number)
            }
            serde_json::Value::String(text) => Self::String(text),
            serde_json::Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(members) => {
                Self::Object(members.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
        }
    }
}

/// Exact, as for [`Value`]. Fails for a number whose text is not a number.
impl TryFrom<&serde_json::Number> for Number {
    type Error = InvalidNumber;

    fn try_from(number: &serde_json::Number) -> Result<Self, InvalidNumber> {
        match number.as_i64() {
            // Zero may have a sign.
            Some(value) if value != 0 => Ok(value.into()),
            _ => number.to_string().parse(),
        }
    }
}

impl TryFrom<&Number> for serde_json::Number {
    type Error = InexactNumber;

    fn try_from(number: &Number) -> Result<Self, InexactNumber> {
        let text = number.text();
        let is_exact =
            |converted: &Self| Number::try_from(converted).is_ok_and(|converted| converted == *number);
        let read = text.parse::<Self>().ok().filter(is_exact);
        let read = read.or_else(|| Self::from_f64(number.as_f64()?).filter(is_exact));
        read.ok_or_else(|| InexactNumber(text.chars().take(80).collect()))
    }
}

impl TryFrom<Value> for serde_json::Value {
    type Error = InexactNumber;

    fn try_from(value: Value) -> Result<Self, InexactNumber> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number((&number).try_into()?),
            Value::String(text) => Self::String(text),
            Value::Array(items) => {
                Self::Array(items.into_iter().map(Self::try_from).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let members =
                    members.into_iter().map(|(key, value)| Ok((key.into(), Self::try_from(value)?)));
                Self::Object(members.collect::<Result<_, _>>()?)
            }
        })
    }
}
