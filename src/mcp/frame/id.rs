//! What a request is told by.

use std::fmt;

use crate::json::Value;

/// The id of a request: a string or a whole number, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(String);

impl Id {
    /// An id that is a text.
    pub fn text(text: &str) -> Self {
        Self(Value::from(text).to_string())
    }

    /// The id that a member holds; nothing for what is no id.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(_) => Some(Self(value.to_string())),
            // An exponent or a fraction may be another number to another reader, and `-0` comes back as `0`.
            Value::Number(number) => {
                let text = number.text();
                let digits = text.strip_prefix('-').unwrap_or(&text);
                let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= 18;
                let is_whole = is_whole && *text != *"-0";
                is_whole.then(|| Self(text.to_string()))
            }
            _ => None,
        }
    }

    /// The id as a member.
    pub fn to_json(&self) -> Value {
        // It was made from JSON.
        self.0.parse().unwrap_or_default()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
