//! Replacement of a custom pattern's matches by a template.

use regex::Regex;

use super::redacted_ranges::RedactedRange;
use super::redactor::{SearchScope, matches_from};
use super::stream_redactor::RedactionRule;

/// A pattern and the replacement of its matches: `$1` is the first group, `$$` a dollar sign.
#[derive(Clone, Debug)]
pub struct Replacement {
    pattern: [Regex; 1],
    template: String,
}

impl Replacement {
    /// Creates a replacement of all matches of `pattern`.
    pub fn new(pattern: Regex, with: impl Into<String>) -> Self {
        Self { pattern: [pattern], template: with.into() }
    }
}

impl RedactionRule for Replacement {
    fn find_redactions(&self, text: &str, scope: &SearchScope) -> Vec<RedactedRange> {
        let [pattern] = &self.pattern;
        matches_from(pattern, text, scope.start)
            .map(|range| {
                let mut with = String::new();
                if let Some(captures) = pattern.captures_at(text, range.start) {
                    captures.expand(&self.template, &mut with);
                }
                RedactedRange { range, replacement: with }
            })
            .collect()
    }

    fn patterns(&self) -> &[Regex] {
        &self.pattern
    }

    fn has_detectors(&self) -> bool {
        false
    }
}
