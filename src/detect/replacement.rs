//! What a pattern of the author's finds, replaced by what the author says.

use regex::Regex;

use super::hidden::Hidden;
use super::redactor::{Scope, matches_from};
use super::sieve::Hiding;

/// A pattern, and what takes the place of what it finds: `$1` is its first group, `$$` a dollar sign.
#[derive(Clone, Debug)]
pub struct Replacement {
    pattern: [Regex; 1],
    with: String,
}

impl Replacement {
    /// A replacement of all that `pattern` finds.
    pub fn new(pattern: Regex, with: impl Into<String>) -> Self {
        Self { pattern: [pattern], with: with.into() }
    }
}

impl Hiding for Replacement {
    fn hidden(&self, text: &str, scope: &Scope) -> Vec<Hidden> {
        let [pattern] = &self.pattern;
        matches_from(pattern, text, scope.from)
            .map(|place| {
                let mut with = String::new();
                if let Some(captures) = pattern.captures_at(text, place.start) {
                    captures.expand(&self.with, &mut with);
                }
                Hidden { place, text: with }
            })
            .collect()
    }

    fn patterns(&self) -> &[Regex] {
        &self.pattern
    }

    fn detects(&self) -> bool {
        false
    }
}
