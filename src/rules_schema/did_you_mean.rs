//! Did-you-mean suggestions for unknown words.

use crate::diagnostic;

/// Words of other policy languages and of everyday English, with the word of this language.
const SYNONYMS: [(&str, &str); 99] = [
    ("=", "eq"),
    ("==", "eq"),
    ("is", "eq"),
    ("equals", "eq"),
    ("equal", "eq"),
    ("equal_to", "eq"),
    ("value", "eq"),
    ("!=", "ne"),
    ("not", "ne"),
    ("not_equals", "ne"),
    ("not_equal", "ne"),
    ("neq", "ne"),
    (">", "gt"),
    ("greater_than", "gt"),
    ("more_than", "gt"),
    ("above", "gt"),
    (">=", "gte"),
    ("ge", "gte"),
    ("min", "gte"),
    ("at_least", "gte"),
    ("<", "lt"),
    ("less_than", "lt"),
    ("below", "lt"),
    ("<=", "lte"),
    ("le", "lte"),
    ("max", "lte"),
    ("at_most", "lte"),
    ("one_of", "in"),
    ("nin", "not_in"),
    ("has", "contains"),
    ("includes", "contains"),
    ("prefix", "starts_with"),
    ("suffix", "ends_with"),
    ("regex", "matches"),
    ("regexp", "matches"),
    ("pattern", "matches"),
    ("like", "matches"),
    ("present", "exists"),
    ("len", "length"),
    ("size", "length"),
    ("under", "inside"),
    ("and", "all"),
    ("or", "any"),
    ("condition", "expr"),
    ("script", "expr"),
    ("field", "path"),
    ("quantifier", "each"),
    ("some", "any"),
    ("all", "every"),
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("float", "number"),
    ("bool", "boolean"),
    ("list", "array"),
    ("dict", "object"),
    ("map", "object"),
    ("none", "null"),
    ("name", "id"),
    ("name", "tool"),
    ("when", "match"),
    ("if", "match"),
    ("conditions", "where"),
    ("rules", "policies"),
    ("version", "callgate"),
    ("reason", "message"),
    ("text", "message"),
    ("block", "deny"),
    ("forbid", "deny"),
    ("reject", "deny"),
    ("denied", "deny"),
    ("deny", "denied"),
    ("blocked", "denied"),
    ("allow", "executed"),
    ("allowed", "executed"),
    ("approval", "suspended"),
    ("asked", "suspended"),
    ("error", "failed"),
    ("permit", "allow"),
    ("allowed", "allow"),
    ("stop", "halt"),
    ("confirm", "approval"),
    ("ask", "approval"),
    ("approve", "approval"),
    ("mask", "redact"),
    ("log", "audit"),
    ("dry-run", "shadow"),
    ("dry_run", "shadow"),
    ("monitor", "shadow"),
    ("disabled", "off"),
    ("enabled", "enforce"),
    ("result", "output"),
    ("arguments", "input"),
    ("args", "input"),
    ("params", "input"),
    ("parameters", "input"),
    ("ctx", "context"),
    ("lower", "lowercase"),
    ("upper", "uppercase"),
];

/// Returns the one of the `known` words that `word`, an unknown one, probably stands for.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let elsewhere = SYNONYMS.iter().filter(|(synonym, _)| synonym.eq_ignore_ascii_case(word));
    elsewhere
        .filter_map(|(_, meant)| known.clone().find(|candidate| candidate == meant))
        .next()
        .or_else(|| diagnostic::closest_match(word, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_by_spelling_and_by_synonym() {
        let operators = ["path", "eq", "gt", "gte", "starts_with", "any", "all", "not"];
        for (word, expected) in [
            ("gte_", Some("gte")),
            ("startsWith", Some("starts_with")),
            ("greater_than", Some("gt")),
            ("OR", Some("any")),
            ("regex", None),
            ("elsewhere", None),
        ] {
            assert_eq!(did_you_mean(word, operators.into_iter()), expected, "{word}");
        }
    }
}
