//! Maximum match length of a regular expression: how much of a stream must be held back for it.

use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The maximum extent of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchExtent {
    /// At most this many bytes.
    Bytes(usize),
    /// Up to the next white space.
    Word,
    /// Up to the end of the line.
    Line,
}

impl MatchExtent {
    /// The maximum length in bytes that counts as bounded.
    pub const MAX_BYTES: usize = 512;

    /// Returns the maximum extent of a pattern's matches. Returns `None` if a match can span any number of lines.
    pub fn from_pattern(pattern: &Regex) -> Option<Self> {
        let hir = regex_syntax::parse(pattern.as_str()).ok()?;
        match hir.properties().maximum_len() {
            Some(bytes) if bytes <= Self::MAX_BYTES => Some(Self::Bytes(bytes)),
            _ if !can_match(&hir, b"\t\n\x0b\x0c\r ") => Some(Self::Word),
            _ if !can_match(&hir, b"\n") => Some(Self::Line),
            _ => None,
        }
    }
}

/// Whether a match can contain one of these characters. Recursion is bounded, because the nesting of patterns is limited.
fn can_match(hir: &Hir, characters: &[u8]) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.iter().any(|byte| characters.contains(byte)),
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .any(|range| characters.iter().any(|c| (range.start()..=range.end()).contains(&char::from(*c)))),
        HirKind::Class(Class::Bytes(class)) => class
            .ranges()
            .iter()
            .any(|range| characters.iter().any(|c| (range.start()..=range.end()).contains(c))),
        HirKind::Repetition(repetition) => can_match(&repetition.sub, characters),
        HirKind::Capture(capture) => can_match(&capture.sub, characters),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().any(|part| can_match(part, characters))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_the_extent_from_the_pattern() {
        for (pattern, reach) in [
            ("CASE-[0-9]{4}", Some(MatchExtent::Bytes(9))),
            (r"CASE-\d+", Some(MatchExtent::Word)),
            (r"\S+@example\.com", Some(MatchExtent::Word)),
            ("secret: .*", Some(MatchExtent::Line)),
            (r"top[ \t]+secret", Some(MatchExtent::Line)),
            (r"top\s+secret", None),
            ("(?s)BEGIN.*END", None),
            ("[^x]+x", None),
            (r"top\s{1,3}secret", Some(MatchExtent::Bytes(18))),
        ] {
            assert_eq!(MatchExtent::from_pattern(&Regex::new(pattern).unwrap()), reach, "{pattern}");
        }
    }
}
