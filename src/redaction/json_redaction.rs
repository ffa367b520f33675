//! Redaction of JSON values: every string, key and number, including JSON text inside strings.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Redactor;
use super::detector_input::JsonKeys;
use crate::json::{self, MAX_DEPTH, Map, Number, Value};

/// The value is nested too deeply to be redacted: withhold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the value is nested deeper than {MAX_DEPTH} levels and can't be redacted: withhold it, or return a flatter one"
)]
pub struct NestingError;

/// How many levels of JSON text inside strings are parsed; deeper ones are redacted as plain text.
const MAX_EMBEDDED_JSON: usize = 4;

impl Redactor {
    /// Redacts a value in place. Returns whether anything changed.
    ///
    /// Keys are redacted like values (`~2` keeps two keys apart that become equal). A number with a match becomes a
    /// string. A string that contains a JSON object or array is redacted inside and stays JSON. A detector or pattern sees
    /// one string, key or number at a time, and the keys above it.
    ///
    /// # Errors
    /// Returns [`NestingError`] if the value is nested deeper than [`MAX_DEPTH`]; the value is then unchanged.
    pub fn redact_value(&self, value: &mut Value) -> Result<bool, NestingError> {
        if json::is_deeper_than(value, MAX_DEPTH) {
            return Err(NestingError);
        }
        Ok(self.redact_node(value, JsonKeys::default(), Nesting { depth: 0, embedded: 0 }))
    }

    fn redact_node(&self, value: &mut Value, keys: JsonKeys<'_>, nesting: Nesting) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => match self.redact_number(number, keys) {
                Some(redacted) => {
                    *value = Value::String(redacted);
                    true
                }
                None => false,
            },
            Value::String(text) => match self.redact_string(text, keys, nesting) {
                Some(redacted) => {
                    *text = redacted;
                    true
                }
                None => false,
            },
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |changed, item| self.redact_node(item, keys, nesting.deeper()) | changed),
            Value::Object(map) => self.redact_object(map, keys, nesting),
        }
    }

    fn redact_object(&self, map: &mut Map, keys: JsonKeys<'_>, nesting: Nesting) -> bool {
        let named = sibling_name(map);
        let mut changed = false;
        for (key, item) in map.iter_mut() {
            let name = named.as_deref().filter(|_| key == "value").unwrap_or(key);
            changed |= self.redact_node(item, keys.child(name), nesting.deeper());
        }
        if map.keys().any(|key| matches!(self.redact_text(key), Cow::Owned(_))) {
            let mut counts: HashMap<String, usize> = HashMap::new();
            let entries: Vec<_> = std::mem::take(map).into_iter().collect();
            for (key, item) in entries {
                let mut redacted = self.redact_text(&key).into_owned();
                while map.contains_key(&redacted) {
                    let count = counts.entry(redacted.clone()).or_insert(1);
                    *count += 1;
                    redacted = format!("{redacted}~{count}");
                }
                map.insert(redacted, item);
            }
            changed = true;
        }
        changed
    }

    fn redact_number(&self, number: &Number, keys: JsonKeys<'_>) -> Option<String> {
        let written = number.text();
        if let Cow::Owned(redacted) = self.redact_text_under(&written, keys) {
            return Some(redacted);
        }
        // `4.111111111111111e15` is a card number too.
        let plain = plain_integer(number).filter(|plain| **plain != *written)?;
        match self.redact_text_under(&plain, keys) {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        }
    }

    fn redact_string(&self, text: &str, keys: JsonKeys<'_>, nesting: Nesting) -> Option<String> {
        if let Some(mut inner) = parse_embedded_json(text, nesting) {
            let pretty = text.trim().contains('\n');
            let changed =
                self.redact_node(&mut inner, keys, Nesting { embedded: nesting.embedded + 1, ..nesting });
            return changed.then(|| if pretty { format!("{inner:#}") } else { inner.to_string() });
        }
        match self.redact_text_under(text, keys) {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        }
    }
}

/// A position in a value: its nesting depth, and the number of JSON texts in strings around it.
#[derive(Clone, Copy)]
struct Nesting {
    depth: usize,
    embedded: usize,
}

impl Nesting {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

/// Parses a string that contains a JSON object or array. Returns `None` for one with a duplicate key, which is redacted as
/// plain text, because parsing would lose a value.
fn parse_embedded_json(text: &str, nesting: Nesting) -> Option<Value> {
    // Some programs write a byte order mark first.
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if nesting.embedded >= MAX_EMBEDDED_JSON || !text.starts_with(['{', '[']) {
        return None;
    }
    let value = json::parse(text).ok()?;
    (!json::is_deeper_than(&value, MAX_DEPTH.saturating_sub(nesting.depth))).then_some(value)
}

/// Returns the name of the value in `{"name": "PASSWORD", "value": "…"}`.
fn sibling_name(map: &Map) -> Option<String> {
    map.get("value")?;
    let names = ["name", "key", "type", "field", "label", "header"];
    names.into_iter().find_map(|name| map.get(name)?.as_str()).map(str::to_owned)
}

/// Returns an integer of at most forty digits without point and exponent.
fn plain_integer(number: &Number) -> Option<String> {
    let canonical = number.canonical_text();
    let (digits, exponent) = canonical.split_once('e').unwrap_or((&canonical, "0"));
    let zeros = exponent.parse::<usize>().ok().filter(|zeros| zeros + digits.len() <= 40)?;
    Some(format!("{digits}{}", "0".repeat(zeros)))
}
