//! Operands of `transform` steps: `rename`, `clamp` and `replace`.

use regex::Regex;

use super::CLAMP;
use crate::diagnostic::{Diagnostic, INVALID_OPERAND, MISSING_KEY, OUT_OF_RANGE};
use crate::json::Number;
use crate::rules_schema::PolicyReader;
use crate::source::YamlNode;

/// Reads the new name of a member.
pub(super) fn read_new_name(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<String> {
    let name = node.as_str()?;
    if name.starts_with("$.") || name.is_empty() {
        let last = name.rsplit(['.', '\'', '"', ']', '[']).find(|word| !word.is_empty()).unwrap_or("query");
        reader.report(
            Diagnostic::new(
                &INVALID_OPERAND,
                node.span,
                "`rename` needs the new name of the member, not a path",
            )
            .with_help(format!("write for example `{last}`")),
        );
        return None;
    }
    Some(name.to_owned())
}

/// Reads the bounds of `clamp`.
pub(super) fn read_bounds(
    node: &YamlNode,
    reader: &mut PolicyReader<'_>,
) -> Option<(Option<Number>, Option<Number>)> {
    let bound = |key| node.get(key).and_then(YamlNode::as_number).cloned();
    let (min, max) = (bound("min"), bound("max"));
    if node.entries().is_none() || ["min", "max"].iter().any(|key| CLAMP.has_misspelling_of(node, key)) {
        return None;
    }
    let empty = node.get("min").is_none() && node.get("max").is_none();
    let crossed = matches!((&min, &max), (Some(min), Some(max)) if min > max);
    if empty || crossed {
        let (code, message) = match empty {
            true => (&MISSING_KEY, "`clamp` has no bound"),
            false => (&OUT_OF_RANGE, "`min` is greater than `max`"),
        };
        reader.report(
            Diagnostic::new(code, node.span, message)
                .with_help("write `min`, `max`, or both in ascending order"),
        );
        return None;
    }
    Some((min, max))
}

/// Reads `replace`: the pattern, and the replacement, whose `$1` and `$name` must be groups of the pattern.
pub(in crate::middleware) fn read_replacement(
    node: &YamlNode,
    reader: &mut PolicyReader<'_>,
) -> Option<(Regex, String)> {
    let pattern = reader.read_regex(node.get("pattern")?)?;
    let with_node = node.get("with")?;
    let with = with_node.as_str()?;
    for name in group_references(with) {
        let known = match name.parse::<usize>() {
            Ok(number) => number < pattern.captures_len(),
            Err(_) => pattern.capture_names().flatten().any(|group| group == name),
        };
        if !known {
            let message = format!("the pattern has no group `{name}`");
            reader.report(
                Diagnostic::new(&INVALID_OPERAND, with_node.span, message).with_help(
                    "`$1` is the first group, `${1}` the same before a letter, `$$` a dollar sign",
                ),
            );
            return None;
        }
    }
    Some((pattern, with.to_owned()))
}

/// Returns the group names after `$` in a replacement. Like the `regex` crate, it reads the longest possible names.
fn group_references(with: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = with;
    while let Some((_, after)) = rest.split_once('$') {
        if let Some(after) = after.strip_prefix('$') {
            rest = after;
            continue;
        }
        let (name, after) = match after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            Some(braced) => braced,
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                after.split_at_checked(end).unwrap_or(("", after))
            }
        };
        if !name.is_empty() {
            found.push(name);
        }
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_group_names_like_the_regex_crate() {
        for (with, names) in [
            ("a", &[] as &[&str]),
            ("$1-$2", &["1", "2"]),
            ("$1a", &["1a"]),
            ("${1}a", &["1"]),
            ("$$1 $", &[]),
            ("$$$1", &["1"]),
            ("$name!", &["name"]),
        ] {
            assert_eq!(group_references(with), names, "{with}");
        }
    }
}
