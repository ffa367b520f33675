//! Redaction masks of a call: redacted string → its replacement. They redact a value wherever it occurs again.

mod derived_masks;
mod secret_parts;
mod written_texts;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::json::{self, Key, Map, Value};
use crate::string_search::{OverlappingSearch, StringSearch};
use crate::work_limit;

/// A shorter string is only masked where it is a whole value: as a part of other strings it would be found everywhere.
const MIN_SUBSTRING: usize = 4;
/// How many levels of JSON inside JSON strings are parsed.
const MAX_JSON_NESTING: usize = 4;
/// Bytes of text searched per work unit, and work units per byte of the masked strings.
const BYTES_PER_UNIT: u64 = 4;
const UNITS_PER_MASKED_BYTE: usize = 4;
/// How often replacements are searched for further masked strings.
const MAX_REPLACEMENT_DEPTH: usize = 4;
/// Replaces a string that could not be searched.
const FULLY_REDACTED: &str = "[redacted]";

/// Redacted strings with their replacements. Masks are only ever added.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    masks: BTreeMap<String, String>,
    /// Finds the longest match, built on first use; `None` if there are too many masks to search for.
    searcher: OnceLock<Option<StringSearch>>,
}

impl PartialEq for Masks {
    fn eq(&self, other: &Self) -> bool {
        self.masks == other.masks
    }
}

impl Masks {
    /// No masks.
    pub const fn new() -> Self {
        Self { masks: BTreeMap::new(), searcher: OnceLock::new() }
    }

    /// Reads the masks that [`to_json`](Self::to_json) wrote.
    pub(super) fn from_map(masks: BTreeMap<String, String>) -> Self {
        Self { masks, searcher: OnceLock::new() }
    }

    pub(crate) fn to_json(&self) -> Value {
        self.masks.iter().map(|(raw, redacted)| (raw.clone(), Value::from(redacted.as_str()))).collect()
    }

    /// Reads the masks that [`to_json`](Self::to_json) wrote. Returns `None` if it is something else.
    pub(crate) fn from_json(json: &Value) -> Option<Self> {
        let masks = json
            .as_object()?
            .iter()
            .map(|(raw, redacted)| Some((raw.to_string(), redacted.as_str()?.to_owned())));
        Some(Self::from_map(masks.collect::<Option<_>>()?))
    }

    /// Whether there are no masks.
    pub fn is_empty(&self) -> bool {
        self.masks.is_empty()
    }

    /// Adds what redaction changed: every string, number and key in `raw` that differs in `redacted`.
    pub fn add_changes(&mut self, raw: &Value, redacted: &Value) {
        self.collect_changes(raw, redacted, 0);
    }

    fn collect_changes(&mut self, raw: &Value, redacted: &Value, written: usize) {
        match (raw, redacted) {
            (Value::Array(raw), Value::Array(redacted)) => {
                raw.iter()
                    .zip(redacted)
                    .for_each(|(raw, redacted)| self.collect_changes(raw, redacted, written));
            }
            (Value::Object(raw), Value::Object(redacted)) => {
                for ((key, raw), (redacted_key, redacted)) in raw.iter().zip(redacted) {
                    self.add_difference(key, redacted_key);
                    self.collect_changes(raw, redacted, written);
                }
            }
            (Value::Number(number), Value::String(redacted)) => {
                self.insert(&number.to_string(), redacted.clone())
            }
            (Value::String(raw), Value::String(redacted)) if raw != redacted => {
                match (parse_embedded_json(raw, written), parse_embedded_json(redacted, written)) {
                    (Some(raw), Some(redacted)) => self.collect_changes(&raw, &redacted, written + 1),
                    _ => self.add_difference(raw, redacted),
                }
            }
            _ => {}
        }
    }

    /// Adds a changed string, and the part of it that differs.
    fn add_difference(&mut self, raw: &str, redacted: &str) {
        if raw == redacted {
            return;
        }
        let same = |(a, b): &(char, char)| a == b;
        let before: usize =
            raw.chars().zip(redacted.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
        let (raw_rest, redacted_rest) =
            (raw.get(before..).unwrap_or_default(), redacted.get(before..).unwrap_or_default());
        let ends = raw_rest.chars().rev().zip(redacted_rest.chars().rev());
        let after: usize = ends.take_while(same).map(|(c, _)| c.len_utf8()).sum();
        let differs = |text: &str| text.get(..text.len().saturating_sub(after)).map(str::to_owned);
        self.add(raw, redacted.to_owned());
        if let (Some(part), Some(redacted)) = (differs(raw_rest), differs(redacted_rest))
            && part.len() >= MIN_SUBSTRING
        {
            self.add(&part, redacted);
        }
    }

    /// Adds a string, also in its JSON escaped form: errors often repeat arguments so.
    fn add(&mut self, raw: &str, redacted: String) {
        let written = |text: &str| Value::from(text).to_string();
        let escaped = written(raw);
        let escaped = escaped.get(1..escaped.len() - 1).unwrap_or_default();
        if escaped != raw {
            let redacted = written(&redacted);
            self.insert(escaped, redacted.get(1..redacted.len() - 1).unwrap_or_default().to_owned());
        }
        self.insert(raw, redacted);
    }

    /// The first mask of a string stays.
    fn insert(&mut self, raw: &str, redacted: String) {
        if !raw.is_empty() && !self.masks.contains_key(raw) {
            self.masks.insert(raw.to_owned(), redacted);
            self.searcher = OnceLock::new();
        }
    }

    /// Adds all masks of another set.
    pub fn merge(&mut self, other: &Self) {
        other.masks.iter().for_each(|(raw, redacted)| self.insert(raw, redacted.clone()));
    }

    /// The masks that match something in this value.
    pub fn matching(&self, value: &Value) -> Self {
        let mut found = Self::new();
        if !self.is_empty() {
            // A mask that is part of another one is found in it, too.
            let raws = self.substrings();
            match self.spend_for_search(&raws).and_then(|()| OverlappingSearch::new(&raws)) {
                Some(search) => self.collect_matches(value, &search, &raws, &mut found),
                None => found.merge(self),
            }
        }
        found
    }

    fn collect_matches(&self, value: &Value, search: &OverlappingSearch, raws: &[&str], found: &mut Self) {
        let mut text = |text: &str| {
            if let Some(redacted) = self.masks.get(text) {
                found.add(text, redacted.clone());
            }
            for index in search.indices(text) {
                if let Some((raw, redacted)) = raws.get(index).and_then(|raw| self.masks.get_key_value(*raw))
                {
                    found.add(raw, redacted.clone());
                }
            }
        };
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => text(&number.to_string()),
            Value::String(string) => text(string),
            Value::Array(items) => {
                items.iter().for_each(|item| self.collect_matches(item, search, raws, found))
            }
            Value::Object(map) => {
                map.keys().for_each(|key| text(key));
                map.values().for_each(|item| self.collect_matches(item, search, raws, found));
            }
        }
    }

    /// Spends the work of preparing a search. Returns `None` if it exceeds the work limit.
    fn spend_for_search(&self, raws: &[&str]) -> Option<()> {
        let bytes: usize = raws.iter().map(|raw| raw.len()).sum();
        work_limit::spend(bytes.saturating_mul(UNITS_PER_MASKED_BYTE) as u64).ok()
    }

    /// The masked strings that may be substrings of others.
    fn substrings(&self) -> Vec<&str> {
        self.masks.keys().map(String::as_str).filter(|raw| raw.len() >= MIN_SUBSTRING).collect()
    }

    /// Masks a string; borrowed if nothing matches. A string that can't be searched, because there is too much to search for, is
    /// redacted as a whole.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_empty() { Cow::Borrowed(text) } else { self.mask_text(text, "", MAX_REPLACEMENT_DEPTH) }
    }

    /// Masks a string that is the replacement of `replaced`, or of nothing.
    fn mask_text<'t>(&self, text: &'t str, replaced: &str, depth: usize) -> Cow<'t, str> {
        let search = self.searcher.get_or_init(|| {
            let raws = self.substrings();
            self.spend_for_search(&raws)?;
            StringSearch::new(&raws)
        });
        match search {
            Some(search) if work_limit::spend_for(text.len(), BYTES_PER_UNIT).is_ok() => {
                let mut rest = 0;
                let mut masked = String::new();
                for part in search.ranges(text) {
                    let raw = text.get(part.clone()).unwrap_or_default();
                    if raw == replaced {
                        continue;
                    }
                    masked.push_str(text.get(rest..part.start).unwrap_or_default());
                    masked.push_str(&self.replacement(raw, depth));
                    rest = part.end;
                }
                match rest {
                    0 => Cow::Borrowed(text),
                    _ => Cow::Owned(masked + text.get(rest..).unwrap_or_default()),
                }
            }
            _ => Cow::Borrowed(FULLY_REDACTED),
        }
    }

    /// The replacement of a masked string. If only a part of that is redacted, the rest may contain other masked strings.
    fn replacement(&self, raw: &str, depth: usize) -> Cow<'_, str> {
        match (self.masks.get(raw), depth.checked_sub(1)) {
            (Some(redacted), Some(depth)) => self.mask_text(redacted, raw, depth),
            (_, None) | (None, _) => Cow::Borrowed(FULLY_REDACTED),
        }
    }

    /// Masks a string that is a whole value. Returns `None` if nothing matches.
    fn mask_whole(&self, text: &str) -> Option<String> {
        if self.masks.contains_key(text) {
            return Some(self.replacement(text, MAX_REPLACEMENT_DEPTH).into_owned());
        }
        let masked = self.text(text);
        (masked != text).then(|| masked.into_owned())
    }

    /// Masks a value: strings, numbers and keys.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if let Some(redacted) = self.mask_whole(&number.to_string()) {
                    *value = redacted.into();
                }
            }
            Value::String(text) => {
                if let Some(redacted) = self.mask_whole(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|item| self.value(item));
                if map.keys().any(|key| self.mask_whole(key).is_some()) {
                    *map = self.mask_keys(std::mem::take(map));
                }
            }
        }
    }

    /// Masks keys.
    fn mask_keys(&self, map: Map) -> Map {
        rename_keys(map, |key| self.mask_whole(key))
    }
}

/// Renames keys. If two keys get the same name, the second one gets a number.
fn rename_keys(map: Map, new_name: impl Fn(&str) -> Option<String>) -> Map {
    let mut renamed = Map::new();
    for (key, item) in map {
        let redacted = new_name(&key).map_or(key, Key::from);
        let mut name = redacted.clone();
        for number in 2.. {
            if !renamed.contains_key(&name) {
                break;
            }
            name = format!("{redacted}~{number}").into();
        }
        renamed.insert(name, item);
    }
    renamed
}

/// Parses a string that contains a JSON object or array.
fn parse_embedded_json(text: &str, written: usize) -> Option<Value> {
    let begins = text.trim_start().starts_with(['{', '[']);
    (written < MAX_JSON_NESTING && begins).then(|| json::parse(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn masks(raw: &Value, redacted: &Value) -> Masks {
        let mut masks = Masks::new();
        masks.add_changes(raw, redacted);
        masks
    }

    #[test]
    fn masks_redacted_values_wherever_they_occur() {
        let raw = json!({ "pin": 4711, "ana@x.org": ["say hunter22 twice"], "body": "{\"key\":\"s3cret\"}", "n": 7 });
        let redacted = json!({ "pin": "[pin]", "[email]": ["say [pw] twice"], "body": "{\"key\":\"[key]\"}", "n": "[n]" });
        let masks = masks(&raw, &redacted);
        assert_eq!(masks.text("4711, ana@x.org, hunter22, s3cret, 7"), "[pin], [email], [pw], [key], 7");
        let mut value = json!({ "ana@x.org": 4711, "n": 7, "other": 70, "is": true });
        masks.value(&mut value);
        assert_eq!(value, json!({ "[email]": "[pin]", "n": "[n]", "other": 70, "is": true }));
    }

    /// A string that is redacted only in part may contain what is redacted elsewhere as a whole value.
    #[test]
    fn masks_what_a_replacement_still_contains() {
        let raw = json!(["it was hunter22, 696910409", 696910409]);
        let masks = masks(&raw, &json!(["it was , 696910409", "[pin]"]));
        let mut value = json!({ "it was hunter22, 696910409": "so it was hunter22, 696910409" });
        masks.value(&mut value);
        assert_eq!(value, json!({ "it was , [pin]": "so it was , [pin]" }));
        let own = self::masks(&json!(["email"]), &json!(["[email]"]));
        assert_eq!(own.text("email"), "[email]");
    }

    #[test]
    fn masks_json_escaped_strings() {
        let key = "-----BEGIN\nabc\"def\n-----END";
        let masks = masks(&json!({ "key": key }), &json!({ "key": "[key]" }));
        assert_eq!(masks.text(&format!("invalid: {}", json!({ "key": key }))), r#"invalid: {"key":"[key]"}"#);
        let found = masks.matching(&json!({ "kept": key }));
        assert_eq!(found.text(&json!([key]).to_string()), r#"["[key]"]"#);
    }

    #[test]
    fn selects_masks_found_in_a_value_and_round_trips_json() {
        let masks = masks(&json!(["4711", "hunter22"]), &json!(["[pin]", "[pw]"]));
        let found = masks.matching(&json!({ "k": ["it is 4711"] }));
        assert_eq!(found.text("4711 hunter22"), "[pin] hunter22");
        let read = Masks::from_map(json::from_value(masks.to_json()).unwrap());
        assert_eq!(read, masks);
    }

    /// Arguments may contain as many masked strings as fit.
    #[test]
    fn searches_for_thousands_of_masks_at_once() {
        let raw: Value = (0..5000).map(|n| json!(format!("mail-{n}@example.org"))).collect();
        let redacted: Value = (0..5000).map(|_| json!("[email]")).collect();
        let masks = masks(&raw, &redacted);
        let mut value = raw.clone();
        masks.value(&mut value);
        assert_eq!(value, redacted);
        assert_eq!(masks.text("to mail-4999@example.org"), "to [email]");
        assert_eq!(masks.matching(&raw), masks);
    }

    #[test]
    fn applies_the_longest_mask_and_keeps_keys_distinct() {
        let masks = masks(&json!(["secret", "secret-and-more", "other!"]), &json!(["*", "**", "*"]));
        assert_eq!(masks.text("secret-and-more secret"), "** *");
        let mut value = json!({ "secret": 1, "other!": 2 });
        masks.value(&mut value);
        assert_eq!(value, json!({ "*": 1, "*~2": 2 }));
    }
}
