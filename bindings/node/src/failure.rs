//! Failures as JavaScript receives them: a JSON object with a stable code, which the TypeScript turns into an error of its class.

use callgate::json::{Value, json};

/// Why an operation or a constructor failed.
#[derive(Debug)]
pub struct Failure {
    json: Value,
}

impl Failure {
    /// A failure with a stable code and a message for people.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { json: json!({ "code": code, "message": message.into() }) }
    }

    /// The caller passed something else than what is declared.
    pub fn invalid_argument(message: impl std::fmt::Display) -> Self {
        Self::new("invalid_argument", message.to_string())
    }

    /// Adds a member.
    #[must_use]
    pub fn with_member(mut self, key: &str, value: Value) -> Self {
        if let Some(members) = self.json.as_object_mut() {
            members.insert(key.to_owned(), value);
        }
        self
    }

    /// The JSON object.
    pub fn into_text(self) -> String {
        self.json.to_string()
    }
}

impl From<Failure> for napi::Error {
    fn from(failure: Failure) -> Self {
        Self::from_reason(failure.into_text())
    }
}
