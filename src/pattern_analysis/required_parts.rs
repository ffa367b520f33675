//! Texts that are part of what a regular expression matches, so that a search for them finds every text that it may match.

use regex_syntax::hir::literal::{ExtractKind, Extractor};

/// The shortest part that is worth a search.
const MIN_PART_BYTES: usize = 3;

/// Texts of which each match of a regular expression has one. Returns `None` if there are none that are worth a search, or too many.
pub fn required_parts(regex: &str) -> Option<Vec<String>> {
    let parsed = regex_syntax::parse(regex).ok()?;
    [ExtractKind::Prefix, ExtractKind::Suffix].into_iter().find_map(|kind| {
        // Texts end before a class of characters, because there is a text for each combination of these.
        let found = Extractor::new().kind(kind).limit_class(1).extract(&parsed);
        let texts =
            found.literals()?.iter().map(|literal| String::from_utf8(literal.as_bytes().to_vec()).ok());
        let texts = texts.collect::<Option<Vec<String>>>()?;
        texts.iter().all(|text| text.len() >= MIN_PART_BYTES).then_some(texts)
    })
}

#[cfg(test)]
mod tests {
    use super::required_parts;

    #[test]
    fn each_match_of_a_regular_expression_has_one_of_its_parts() {
        let parts = |regex| required_parts(regex).map(|parts| parts.join(" "));
        assert_eq!(parts("^order-[0-9]+$").as_deref(), Some("order-"));
        assert_eq!(parts("refund|invoice").as_deref(), Some("refund invoice"));
        assert_eq!(parts(r"\d+ EUR$").as_deref(), Some(" EUR"));
        for open in ["", "a?", "[a-z]+", "(?i)order", "order|.*", "ab", "(", r"\bx"] {
            assert_eq!(parts(open), None, "{open}");
        }
    }
}
