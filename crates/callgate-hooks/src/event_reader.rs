//! Reads the members of an event: each must have its type; a missing or wrong one is an error, never a default.

use callgate::json::{Map, Value};

use crate::event_error::EventError;

/// The members of an event, or of an object in it.
#[derive(Clone, Copy)]
pub(crate) struct EventReader<'e>(&'e Map);

impl<'e> EventReader<'e> {
    pub(crate) fn new(event: &'e Value) -> Result<Self, EventError> {
        event.as_object().map(Self).ok_or(EventError::NotAnObject)
    }

    /// A member that is not null.
    pub(crate) fn get(self, name: &str) -> Option<&'e Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A string that is not empty.
    pub(crate) fn string(self, name: &str) -> Result<&'e str, EventError> {
        let text = self.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        text.ok_or_else(|| EventError::Member(name.to_owned(), "a string that is not empty"))
    }

    /// A string, which may be empty.
    pub(crate) fn text(self, name: &str) -> Result<&'e str, EventError> {
        self.get(name).and_then(Value::as_str).ok_or_else(|| EventError::Member(name.to_owned(), "a string"))
    }

    /// A string that may be missing or null.
    pub(crate) fn optional_string(self, name: &str) -> Result<Option<String>, EventError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str().to_owned())),
            Some(_) => Err(EventError::Member(name.to_owned(), "a string")),
        }
    }

    /// An object.
    pub(crate) fn object(self, name: &str) -> Result<Self, EventError> {
        self.get(name)
            .and_then(Value::as_object)
            .map(Self)
            .ok_or_else(|| EventError::Member(name.to_owned(), "an object"))
    }

    /// The first of an array of strings. `None` if there is none.
    pub(crate) fn first_string(self, name: &str) -> Result<Option<String>, EventError> {
        let wrong = || EventError::Member(name.to_owned(), "an array of strings");
        match self.get(name) {
            None => Ok(None),
            Some(value) => {
                let items = value.as_array().ok_or_else(wrong)?;
                let first = items.first().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong));
                first.transpose()
            }
        }
    }

    /// A copy of the members.
    pub(crate) fn to_value(self) -> Value {
        Value::Object(self.0.clone())
    }
}
