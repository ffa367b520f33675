//! Writes one JSON object on one line, member by member, without building it first.

use std::fmt::Write as _;

use callgate::Amount;
use callgate::json::{self, Value};
use jiff::Timestamp;

/// A JSON object under construction.
pub(crate) struct JsonLine {
    text: String,
    is_first: bool,
}

impl JsonLine {
    /// An object without members.
    pub(crate) fn new() -> Self {
        Self { text: String::with_capacity(512).tap("{"), is_first: true }
    }

    fn key(&mut self, name: &str) -> &mut String {
        if !std::mem::take(&mut self.is_first) {
            self.text.push(',');
        }
        // Member names are ours, and need no escapes.
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
        &mut self.text
    }

    /// Adds a string.
    pub(crate) fn string(&mut self, name: &str, value: &str) {
        let text = self.key(name);
        // Writing to a string cannot fail.
        let _ = json::write_string(value, text);
    }

    /// Adds a string, if there is one.
    pub(crate) fn optional_string(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(name, value);
        }
    }

    /// Adds strings, if there are any.
    pub(crate) fn strings<'s>(&mut self, name: &str, values: impl IntoIterator<Item = &'s str>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        let text = self.key(name);
        text.push('[');
        for (index, value) in values.enumerate() {
            if index > 0 {
                text.push(',');
            }
            let _ = json::write_string(value, text);
        }
        text.push(']');
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, name: &str, value: u64) {
        let _ = write!(self.key(name), "{value}");
    }

    /// Adds an amount, as a decimal number.
    pub(crate) fn amount(&mut self, name: &str, value: Amount) {
        let _ = write!(self.key(name), "{value}");
    }

    /// Adds `true`, or nothing for `false`.
    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.key(name).push_str("true");
        }
    }

    /// Adds a Boolean.
    pub(crate) fn boolean(&mut self, name: &str, value: bool) {
        self.key(name).push_str(if value { "true" } else { "false" });
    }

    /// Adds a time, in RFC 3339 with microseconds.
    pub(crate) fn time(&mut self, name: &str, time: Timestamp) {
        let _ = write!(self.key(name), "\"{time:.6}\"");
    }

    /// Adds a JSON value.
    pub(crate) fn value(&mut self, name: &str, value: &Value) {
        let _ = write!(self.key(name), "{value}");
    }

    /// Adds a nested object.
    pub(crate) fn object(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        let text = std::mem::take(self.key(name));
        self.text = Self::nested(text, write);
    }

    /// Adds an array of objects.
    pub(crate) fn objects<T>(&mut self, name: &str, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        let mut text = std::mem::take(self.key(name)).tap("[");
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text = Self::nested(text, |line| write(line, item));
        }
        self.text = text.tap("]");
    }

    /// Appends an object to the text.
    fn nested(text: String, write: impl FnOnce(&mut Self)) -> String {
        let mut inner = Self { text: text.tap("{"), is_first: true };
        write(&mut inner);
        inner.finish()
    }

    /// The complete object.
    pub(crate) fn finish(self) -> String {
        self.text.tap("}")
    }
}

/// Appends to a string that is passed on.
trait Tap {
    fn tap(self, text: &str) -> Self;
}

impl Tap for String {
    fn tap(mut self, text: &str) -> Self {
        self.push_str(text);
        self
    }
}
