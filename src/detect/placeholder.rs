//! What stands where a secret was or will be: variables, templates, labels and masks.
//!
//! The whole text must be one. A text that only begins as one is a secret with a sign before it.

use std::sync::LazyLock;

use regex::Regex;

use super::subject::pattern;

/// Whether a text is a word that stands for a secret to come, or has no secret in it any more.
pub(super) fn is_placeholder(text: &str) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:null|none|nil|true|false|undefined|empty|required|optional|string|redacted|hidden|your[ _-].*|x{3,}|\.{2,})$",
        )
    });
    text.is_empty() || WORD.is_match(text) || is_blanked(text)
}

/// Whether a text is a variable, a template, a label such as redaction leaves, or what masking left: stars for at least half of it.
pub(super) fn is_blanked(text: &str) -> bool {
    static BLANKED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
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

/// Whether a text is the digest in a label of a redaction.
pub(super) fn is_digest(text: &str) -> bool {
    static DIGEST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^hmac-[0-9a-f]{12}$"));
    DIGEST.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_placeholder_is_one() {
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
