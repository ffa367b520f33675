//! How the texts of each tool are read, as a bundle declares it under `results`.

use std::collections::HashMap;

use super::ResultFormat;
use crate::call::{ResultProblem, method_name};
use crate::name_pattern::NamePattern;

/// The declared formats of a bundle. The name of a tool counts before patterns that match it.
#[derive(Clone, Debug, Default)]
pub struct ResultFormats {
    by_name: HashMap<String, ResultFormat>,
    by_pattern: Vec<(NamePattern, ResultFormat)>,
}

impl ResultFormats {
    /// Adds a declaration. Returns `false`, and adds nothing, if the same tool name or the same pattern has another format already.
    pub fn add(&mut self, pattern: NamePattern, format: ResultFormat) -> bool {
        match pattern {
            NamePattern::Nothing => true,
            NamePattern::Exact(name) => *self.by_name.entry(name).or_insert(format) == format,
            pattern => {
                let is_same =
                    |(known, _): &&(NamePattern, ResultFormat)| known.as_regex() == pattern.as_regex();
                match self.by_pattern.iter().find(is_same) {
                    Some((_, known)) => *known == format,
                    None => {
                        self.by_pattern.push((pattern, format));
                        true
                    }
                }
            }
        }
    }

    /// Whether a declaration other than the default `auto` applies to a tool.
    pub fn declares(&self, tool: &str) -> bool {
        self.format_of(tool) != Ok(ResultFormat::Auto)
    }

    /// The format for a tool.
    ///
    /// # Errors
    /// Two patterns match the tool and have different formats.
    pub fn format_of(&self, tool: &str) -> Result<ResultFormat, ResultProblem> {
        if method_name(tool).is_some() {
            return Ok(ResultFormat::Auto);
        }
        if let Some(format) = self.by_name.get(tool) {
            return Ok(*format);
        }
        let mut formats = self.by_pattern.iter().filter(|(pattern, _)| pattern.matches(tool));
        let Some((_, format)) = formats.next() else { return Ok(ResultFormat::Auto) };
        match formats.all(|(_, other)| other == format) {
            true => Ok(*format),
            false => Err(ResultProblem::ConflictingFormats),
        }
    }

    /// Every declaration, sorted, for comparison.
    pub fn declarations(&self) -> Vec<(String, ResultFormat)> {
        let names = self.by_name.iter().map(|(name, format)| (format!("={name}"), *format));
        let patterns = self.by_pattern.iter();
        let patterns = patterns.map(|(pattern, format)| (pattern.as_regex().unwrap_or_default(), *format));
        let mut all: Vec<_> = names.chain(patterns).collect();
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_before_patterns_and_patterns_must_agree() {
        let mut formats = ResultFormats::default();
        for (pattern, format) in [
            ("get_*", ResultFormat::Json),
            ("*_page", ResultFormat::Text),
            ("get_page", ResultFormat::Yaml),
            ("get_o*", ResultFormat::Json),
        ] {
            assert!(formats.add(NamePattern::parse(pattern).unwrap(), format));
        }
        assert_eq!(formats.format_of("get_order"), Ok(ResultFormat::Json));
        assert_eq!(formats.format_of("get_page"), Ok(ResultFormat::Yaml));
        assert_eq!(formats.format_of("open_page"), Ok(ResultFormat::Text));
        assert_eq!(formats.format_of("get_web_page"), Err(ResultProblem::ConflictingFormats));
        assert_eq!(formats.format_of("pay"), Ok(ResultFormat::Auto));
        assert!(!formats.add(NamePattern::parse("get_*").unwrap(), ResultFormat::Text));
        assert!(!formats.add(NamePattern::parse("get_page").unwrap(), ResultFormat::Json));
    }
}
