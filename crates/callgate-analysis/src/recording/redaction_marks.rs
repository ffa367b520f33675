//! Recognizes values that redaction replaced: `[email]`, `[email:hmac-…]`, `[redacted]`, `****1234`.

use callgate::call::{CallRecord, RecordedResult};
use callgate::json::Value;
use callgate::redaction::Detector;

/// Asterisks in a row that count as a masked value.
const MASK: &str = "****";

/// Whether a part of a call's arguments or of its result looks redacted.
pub(super) fn has_redacted_values(record: &CallRecord) -> bool {
    let result = match &record.recorded {
        Some(RecordedResult::Output(output)) => is_redacted(output),
        Some(RecordedResult::Error { message, .. }) => is_redacted(&Value::from(message.as_str())),
        None => false,
    };
    result || is_redacted(&record.call.input)
}

/// Whether a string in a value, or the name of a member, looks redacted.
pub(crate) fn is_redacted(value: &Value) -> bool {
    match value {
        Value::String(text) => has_mark(text),
        Value::Array(items) => items.iter().any(is_redacted),
        Value::Object(members) => members.iter().any(|(name, value)| has_mark(name) || is_redacted(value)),
        _ => false,
    }
}

fn has_mark(text: &str) -> bool {
    text.contains(MASK) || text.split('[').skip(1).any(starts_with_label)
}

/// Whether the text after a bracket is the rest of a label.
fn starts_with_label(text: &str) -> bool {
    let Some((label, _)) = text.split_once(']') else { return false };
    let name = label.split_once(":hmac-").map_or(label, |(name, _)| name);
    name == "redacted" || Detector::ALL.iter().any(|detector| detector.name() == name)
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    #[test]
    fn labels_and_masks_are_recognized() {
        for value in [
            json!("to [email]"),
            json!({ "a": ["[redacted]"] }),
            json!("[email:hmac-0123456789ab] x"),
            json!({ "[email]": 1 }),
            json!("****4242"),
        ] {
            assert!(is_redacted(&value), "{value}");
        }
        for value in [json!("[a] b]"), json!("email"), json!("[email"), json!("2 ** 3"), json!(null)] {
            assert!(!is_redacted(&value), "{value}");
        }
    }
}
