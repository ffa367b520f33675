//! Masks texts that code or a person writes, which may contain parts of redacted strings.

use std::borrow::Cow;

use super::secret_parts::{SecretParts, TextWindows};
use super::{FULLY_REDACTED, Masks, rename_keys};
use crate::json::Value;

/// How many letters and digits of a redacted string are redacted in texts that code or a person writes.
const MIN_PART: usize = 4;

impl Masks {
    /// Masks a text that code or a person made of masked strings: parts of them, too.
    pub fn written_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let masked = self.mask_whole(text).map_or(Cow::Borrowed(text), Cow::Owned);
        match SecretParts::new(&self.masks, MIN_PART) {
            Ok(parts) => parts.replace_in(&masked).map_or(masked, Cow::Owned),
            Err(_) => Cow::Borrowed(FULLY_REDACTED),
        }
    }

    /// Masks a value that code or a person made of masked strings: strings, numbers and keys, and parts of them.
    pub fn written_value(&self, value: &mut Value) {
        self.value(value);
        if self.is_empty() {
            return;
        }
        match SecretParts::new(&self.masks, MIN_PART) {
            Ok(parts) => mask_parts(value, &parts),
            Err(_) => *value = FULLY_REDACTED.into(),
        }
    }
}

impl Masks {
    /// The masks that match something in this value, or a part of which is in it. All, if that takes too much work to find.
    pub(crate) fn with_parts_in(&self, value: &Value) -> Self {
        let mut found = self.matching(value);
        match TextWindows::new(value, MIN_PART) {
            Ok(windows) => {
                let related = self.masks.iter().filter(|(raw, redacted)| windows.has_part_of(raw, redacted));
                related.for_each(|(raw, redacted)| found.insert(raw, redacted.clone()));
            }
            Err(_) => found.merge(self),
        }
        found
    }
}

/// Masks parts of redacted strings. An array may have them one character at a time.
fn mask_parts(value: &mut Value, parts: &SecretParts) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            if parts.occur_in(&number.to_string()) {
                *value = FULLY_REDACTED.into();
            }
        }
        Value::String(text) => {
            if let Some(masked) = parts.replace_in(text) {
                *text = masked;
            }
        }
        Value::Array(items) => {
            let joined: String = items.iter().filter_map(scalar_text).collect();
            let is_split =
                items.iter().all(|item| scalar_text(item).is_some_and(|text| text.len() < MIN_PART));
            if is_split && parts.occur_in(&joined) {
                items.iter_mut().for_each(|item| *item = FULLY_REDACTED.into());
            }
            items.iter_mut().for_each(|item| mask_parts(item, parts));
        }
        Value::Object(map) => {
            map.values_mut().for_each(|item| mask_parts(item, parts));
            if map.keys().any(|key| parts.occur_in(key)) {
                *map = rename_keys(std::mem::take(map), |key| parts.replace_in(key));
            }
        }
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
