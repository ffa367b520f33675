//! Ids of JSON-RPC requests.

use std::fmt;

use callgate::json::Value;

/// The id of a request: a string or an integer, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(String);

impl RequestId {
    /// Creates a string id.
    pub fn from_text(text: &str) -> Self {
        Self(Value::from(text).to_string())
    }

    /// Reads an id from the value of a member. Returns `None` if it is not a valid id.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(_) => Some(Self(value.to_string())),
            // Parsers may read an exponent or a fraction as different numbers, and return `-0` as `0`.
            Value::Number(number) => {
                let text = number.text();
                let digits = text.strip_prefix('-').unwrap_or(&text);
                let is_complete = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= 18;
                let is_complete = is_complete && *text != *"-0";
                is_complete.then(|| Self(text.to_string()))
            }
            _ => None,
        }
    }

    /// The id as a JSON value.
    pub fn to_json(&self) -> Value {
        // It was created from valid JSON.
        self.0.parse().unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
