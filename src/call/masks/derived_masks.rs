//! Masks of parts of redacted strings: what an expression computes from a redacted value, such as its first characters.
//!
//! A value depends on what is redacted if the same expression gives another value for the redacted call. If it is a part of a redacted string
//! then, or has one in any form, it is redacted, too; so is each number, if a number is redacted.

use super::secret_parts::SecretParts;
use super::{FULLY_REDACTED, Masks};
use crate::json::Value;
use crate::work_limit;

/// Shorter strings and numbers are not masked: they occur everywhere.
const MIN_STRING: usize = 2;
const MIN_NUMBER: usize = 3;
/// How many letters and digits of a redacted string make a value a part of it.
const MIN_PART: usize = 3;
/// Bytes compared per work unit.
const COMPARED_PER_UNIT: u64 = 16;

impl Masks {
    /// The masks of what was computed from the masked strings: `real` from the call, `shown` in the same way from the redacted call.
    pub fn derived(&self, real: &Value, shown: Option<&Value>) -> Self {
        let mut derived = Self::new();
        if !self.masks.is_empty() {
            let strings = self.masks.keys().map(|raw| raw.to_lowercase()).collect();
            let redacted = RedactedStrings { strings, parts: SecretParts::new(&self.masks, MIN_PART).ok() };
            self.collect_derived(real, shown, &redacted, &mut derived);
        }
        derived
    }

    fn collect_derived(
        &self,
        real: &Value,
        shown: Option<&Value>,
        redacted: &RedactedStrings,
        derived: &mut Self,
    ) {
        match (real, shown) {
            (real, Some(shown)) if real == shown => {}
            (Value::Array(items), Some(Value::Array(shown))) if items.len() == shown.len() => {
                for (item, shown) in items.iter().zip(shown) {
                    self.collect_derived(item, Some(shown), redacted, derived);
                }
            }
            (Value::Array(items), _) => {
                items.iter().for_each(|item| self.collect_derived(item, None, redacted, derived));
            }
            (Value::Object(members), shown) => {
                for (key, member) in members {
                    let counterpart = shown.and_then(|shown| shown.get(key.as_str()));
                    if counterpart.is_none() {
                        self.add_derived(key, MIN_STRING, redacted, derived);
                    }
                    self.collect_derived(member, counterpart, redacted, derived);
                }
            }
            (Value::String(text), _) => self.add_derived(text, MIN_STRING, redacted, derived),
            (Value::Number(number), _) => {
                self.add_derived(&number.to_string(), MIN_NUMBER, redacted, derived);
            }
            (Value::Null | Value::Bool(_), _) => {}
        }
    }

    /// Adds a string that is a part of a redacted one, or contains one.
    fn add_derived(&self, text: &str, min: usize, redacted: &RedactedStrings, derived: &mut Self) {
        if text.chars().count() >= min && !self.masks.contains_key(text) && redacted.are_in(text) {
            derived.add(text, FULLY_REDACTED.to_owned());
        }
    }
}

/// The redacted strings in lower case, and their parts; `None` if there are too many to search for.
struct RedactedStrings {
    strings: Vec<String>,
    parts: Option<SecretParts>,
}

impl RedactedStrings {
    /// Whether a text is a part of one of them, or has such a part. So is every text if there is too much to search.
    fn are_in(&self, text: &str) -> bool {
        let Some(parts) = &self.parts else { return true };
        let lower = text.to_lowercase();
        let is_related = |raw: &String| {
            let is_exceeded = work_limit::spend_for(raw.len() + lower.len(), COMPARED_PER_UNIT).is_err();
            is_exceeded
                || raw.contains(&lower)
                || raw.chars().count() >= MIN_STRING && lower.contains(raw.as_str())
        };
        parts.occur_in(text) || self.strings.iter().any(is_related)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn parts_of_redacted_strings_are_masked_where_they_depend_on_them() {
        let mut masks = Masks::new();
        masks.add_changes(&json!({"pin": "4711-Ab"}), &json!({"pin": "[pin]"}));
        let real = json!({"first": "471", "upper": "4711-AB", "number": 4711, "parts": ["4711", "Ab"], "own": "ab", "long": "pin 4711-ab!"});
        let shown = json!({"first": "[pi", "upper": "[PIN]", "number": 0, "parts": ["[pin]"], "own": "ab", "long": "pin [pin]!"});
        let mut value = real.clone();
        masks.derived(&real, Some(&shown)).value(&mut value);
        let hidden = FULLY_REDACTED;
        let expected = json!({"first": hidden, "upper": hidden, "number": hidden, "parts": [hidden, hidden], "long": hidden});
        for (key, expected) in expected.as_object().unwrap() {
            assert_eq!(value.get(key.as_str()), Some(expected), "{key}");
        }
        for form in ["id 9", "1-1-7-4", "id 4711a"] {
            let is_masked = !masks.derived(&json!(form), Some(&json!("id"))).is_empty();
            assert_eq!(is_masked, form != "id 9", "{form}");
        }
        // What does not depend on a redacted value, or has nothing of it, stays.
        assert!(masks.derived(&json!("471"), Some(&json!("471"))).is_empty());
        assert!(
            masks.derived(&json!(["internal", 7, true]), Some(&json!(["external", 5, false]))).is_empty()
        );
        assert!(!masks.derived(&json!("471"), None).is_empty());
    }
}
