//! Rules of redaction: a redactor with its detectors, or a pattern whose matches a template replaces.

use regex::Regex;

use super::detector_input::JsonKeys;
use super::redacted_ranges::RedactedRange;
use super::redactor::{Redactor, SearchScope, matches_from};

/// Finds the ranges to redact in a streamed text.
pub(super) trait RedactionRule: std::fmt::Debug + Send + Sync {
    /// Returns the redacted ranges in order, with their replacements.
    fn find_redactions(&self, text: &str, scope: &SearchScope) -> Vec<RedactedRange>;
    /// The custom patterns that it searches for.
    fn patterns(&self) -> &[Regex];
    /// Whether it runs detectors.
    fn has_detectors(&self) -> bool;
}

impl RedactionRule for Redactor {
    fn find_redactions(&self, text: &str, scope: &SearchScope) -> Vec<RedactedRange> {
        self.find_redactions(text, JsonKeys::default(), scope)
    }

    fn patterns(&self) -> &[Regex] {
        self.patterns()
    }

    fn has_detectors(&self) -> bool {
        self.has_detectors()
    }
}

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
