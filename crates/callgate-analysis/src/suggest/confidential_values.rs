//! Which names and values of recordings a draft may contain: none that a detector recognizes as personal or secret, and none of an
//! argument that is named like a secret.

use callgate::json::{Map, Value};
use callgate::redaction::{Detector, RedactionStyle, Redactor};

/// Words in names of arguments whose values are secret.
const SECRET_WORDS: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "credential",
    "authorization",
    "cookie",
    "pin",
    "cvv",
    "cvc",
    "otp",
    "ssn",
    "privatekey",
];

/// Decides what a draft may contain.
#[derive(Debug)]
pub(super) struct ConfidentialValues {
    redactor: Redactor,
}

impl ConfidentialValues {
    pub(super) fn new() -> Self {
        // Addresses of machines are what rules about hosts are made of.
        let detectors = Detector::ALL
            .into_iter()
            .filter(|detector| !matches!(detector, Detector::IpAddress | Detector::MacAddress));
        Self { redactor: Redactor::new(detectors.collect(), Vec::new(), RedactionStyle::Mask) }
    }

    /// Whether a value, or the name that it has, is confidential.
    pub(super) fn has_confidential(&self, name: &str, value: &Value) -> bool {
        let mut document = Map::new();
        document.insert(name, value.clone());
        is_secret_name(name) || self.redactor.redact_value(&mut Value::Object(document)) != Ok(false)
    }

    /// Whether a name itself is confidential.
    pub(super) fn is_confidential_name(&self, name: &str) -> bool {
        self.redactor.has_match(name)
    }
}

/// Whether an argument is named like a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let mut words = vec![String::new()];
    let mut last_is_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || last_is_lower && c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        last_is_lower = c.is_lowercase();
    }
    let joined = words.concat();
    SECRET_WORDS.iter().any(|secret| match secret.len() {
        // A short word also occurs within longer ones.
        ..=3 => words.iter().any(|word| word == secret),
        _ => joined.contains(secret),
    })
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    #[test]
    fn secrets_are_recognized_by_name_and_by_value() {
        for name in
            ["password", "api_key", "apiKey", "X-Auth-Token", "card_pin", "clientSecret", "DB_PASSWORD"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["shipping", "opinion", "path", "recipient", "keyboard", "pinned"] {
            assert!(!is_secret_name(name), "{name}");
        }
        let values = ConfidentialValues::new();
        assert!(values.has_confidential("note", &json!("4111 1111 1111 1111")));
        assert!(values.has_confidential("to", &json!("ana@example.com")));
        assert!(!values.has_confidential("currency", &json!("EUR")));
    }
}
