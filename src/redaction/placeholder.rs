//! Placeholders of secrets: variables, templates, redaction labels and masks.
//!
//! The whole string must be a placeholder. A string that only begins as one may be a secret after a sign.

use std::sync::LazyLock;

use regex::Regex;

use super::detector_input::compile_pattern;

/// Whether a string is a placeholder word for a secret, or contains no secret any more.
pub(super) fn is_placeholder(text: &str) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"(?i)^(?:null|none|nil|true|false|undefined|empty|required|optional|string|redacted|hidden|your[ _-].*|x{3,}|\.{2,})$",
        )
    });
    text.is_empty() || WORD.is_match(text) || is_masked(text)
}

/// Whether a string is a variable, a template, a redaction label, or masked with stars for at least half of its length.
pub(super) fn is_masked(text: &str) -> bool {
    static BLANKED: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            &[
                r"^(?:\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|\$\{[^{}]*\}|\$\([^()]*\)|\{+[^{}]*\}+|%[A-Za-z_]+%|%[a-z]|<[^<>]*>",
                r"|\[[A-Za-z _-]+\]|\[[a-z_]+:hmac-[0-9a-f]{12}\])$",
            ]
            .concat(),
        )
    });
    let stars = text.bytes().take_while(|byte| *byte == b'*').count();
    stars > 0 && stars * 2 >= text.chars().count() || BLANKED.is_match(text)
}

/// Whether a string is the digest in a redaction label.
pub(super) fn is_digest(text: &str) -> bool {
    static DIGEST: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^hmac-[0-9a-f]{12}$"));
    DIGEST.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_whole_placeholders() {
        for text in [
            "",
            "null",
            "xxxx",
            "...",
            "your password",
            "$PASSWORD",
            "${PW}",
            "$(cat pw)",
            "{{ pw }}",
            "%PW%",
            "<pw>",
            "[email]",
            "[api_key:hmac-0123456789ab]",
            "********",
            "****1234",
        ] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in [
            "[email] hunter2",
            "[hunter2",
            "*hunter2",
            "$hunter2",
            "${PW}hunter2",
            "{hunter2",
            "%hunter2",
            "<b>hunter2",
            "$2b$10$abc",
            "[api_key:hmac-0123456789abcdef]",
            "...hunter2",
        ] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
