//! Mutations of conditions: removed and negated tests, shifted bounds.

mod shell_mutations;

use super::mutant::{entry_removal, item_removal};
use super::mutant_collector::MutantCollector;
use super::{
    ABSENCE, ANCHOR, EXPRESSION, ITEM_REMOVED, KEY_REMOVED, NEGATION, OPERATOR, QUANTIFIER, TEST_REMOVED,
    THRESHOLD, duration_mutations, expression_mutations, pattern_mutations,
};
use callgate::diagnostic::{Edit, Span};
use callgate::source::{MappingEntry, YamlNode, YamlValue};

/// Operators, each with similar and opposite ones.
const SIMILAR_OPERATORS: [(&str, &[&str]); 8] = [
    ("gt", &["gte", "lt"]),
    ("gte", &["gt", "lte"]),
    ("lt", &["lte", "gt"]),
    ("lte", &["lt", "gte"]),
    ("eq", &["ne"]),
    ("ne", &["eq"]),
    ("in", &["not_in"]),
    ("not_in", &["in"]),
];

/// Operators with a list of values.
const LIST_OPERATORS: [&str; 12] = [
    "in",
    "not_in",
    "contains_any",
    "matches",
    "starts_with",
    "ends_with",
    "type",
    "inside",
    "host",
    "domain",
    "mentioned_in",
    "detects",
];

/// Mutates the conditions below `where`, `all` (`needed`) or `any`; a single condition counts as a list of one. The maximum nesting of
/// rules files bounds the recursion of these functions.
pub(super) fn mutate_conditions(node: &YamlNode, needed: bool, collector: &mut MutantCollector<'_>) {
    let Some(items) = node.items() else { return mutate_single_condition(node, collector) };
    if let [only] = items {
        return mutate_single_condition(only, collector);
    }
    for (index, item) in items.iter().enumerate() {
        if let Some(edit) = item_removal(collector.file_text(item.span), items, index) {
            let case = match needed {
                true => format!(
                    "a case in which {} does not hold, and all conditions beside it do",
                    condition_text(item, collector)
                ),
                false => format!(
                    "a case in which {} holds, and none of the conditions beside it",
                    condition_text(item, collector)
                ),
            };
            collector.remove(TEST_REMOVED, item.span, edit, case);
        }
        mutate_condition(item, collector);
    }
}

fn mutate_single_condition(node: &YamlNode, collector: &mut MutantCollector<'_>) {
    let case = format!("a case in which {} does not hold", condition_text(node, collector));
    collector.replace(TEST_REMOVED, node.span, "{ expr: \"true\" }", case);
    mutate_condition(node, collector);
}

/// A condition in one line, truncated.
fn condition_text(node: &YamlNode, collector: &MutantCollector<'_>) -> String {
    let text = collector.span_text(node.span);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.chars().count() {
        0..=80 => format!("`{line}`"),
        _ => format!("`{}…`", line.chars().take(78).collect::<String>().trim_end()),
    }
}

pub(super) fn mutate_condition(node: &YamlNode, collector: &mut MutantCollector<'_>) {
    if node.as_str().is_some() {
        return expression_mutations::mutate_operators(node, EXPRESSION, collector);
    }
    let entries = node.entries().unwrap_or_default();
    for entry in entries {
        match entry.key.as_str() {
            "all" | "any" => mutate_group(entry, collector),
            "not" => mutate_negation(entry, collector),
            "every" | "any_of" | "none" => mutate_elements(entry, collector),
            "shell" => shell_mutations::mutate_shell(&entry.value, collector),
            "expr" => expression_mutations::mutate_operators(&entry.value, EXPRESSION, collector),
            "path" => expression_mutations::mutate_filters(&entry.value, collector),
            _ => mutate_test(node, entry, collector),
        }
    }
}

fn mutate_group(entry: &MappingEntry, collector: &mut MutantCollector<'_>) {
    let items = entry.value.items().unwrap_or_default();
    let (other, case) = match entry.key.as_str() {
        "all" => ("any", "a case in which some of these hold, and not all"),
        _ => ("all", "a case in which one of these holds, and not all"),
    };
    if items.len() > 1 {
        collector.replace(QUANTIFIER, entry.key_span, other, case);
    }
    mutate_conditions(&entry.value, entry.key == "all", collector);
}

/// A quantifier is replaced by another one, and the condition on each element is mutated.
fn mutate_elements(entry: &MappingEntry, collector: &mut MutantCollector<'_>) {
    let (other, case) = match entry.key.as_str() {
        "any_of" => ("every", "a case in which some of the elements pass, and not all"),
        "every" => ("any_of", "a case in which some of the elements pass, and not all"),
        _ => ("any_of", "a case whose result depends on whether an element passes"),
    };
    let source = entry.value.get("path").or_else(|| entry.value.get("expr")).and_then(YamlNode::as_str);
    let case = match source {
        Some(source) => format!("{case}: `{source}`"),
        None => case.to_owned(),
    };
    collector.replace(QUANTIFIER, entry.key_span, other, case);
    mutate_condition(&entry.value, collector);
}

/// `not: X` becomes `all: [ X ]`.
fn mutate_negation(entry: &MappingEntry, collector: &mut MutantCollector<'_>) {
    let inner = &entry.value;
    let case = format!("a case whose result depends on {}", condition_text(inner, collector));
    let written = collector.span_text(inner.span);
    let key = Edit { span: entry.key_span, replacement: "all".to_owned() };
    let edits = if written.starts_with(['{', '*']) {
        // An anchor may precede it.
        let behind_colon = collector
            .file_text(inner.span)
            .get(entry.key_span.end()..inner.span.start())
            .and_then(|gap| gap.find(':'));
        let Some(colon) = behind_colon else { return };
        let at = |offset: usize| Span::new(inner.span.source, offset, offset);
        let open = Edit { span: at(entry.key_span.end() + colon + 1), replacement: " [".to_owned() };
        vec![key, open, Edit { span: at(inner.span.end()), replacement: " ]".to_owned() }]
    } else {
        vec![key, Edit { span: inner.span, replacement: format!("[ {} ]", inner.to_json()) }]
    };
    collector.edit(NEGATION, entry.key_span, edits, case);
    mutate_condition(inner, collector);
}

fn mutate_test(test: &YamlNode, entry: &MappingEntry, collector: &mut MutantCollector<'_>) {
    let subject = test.get("path").or_else(|| test.get("expr"));
    let path = subject.and_then(YamlNode::as_str).unwrap_or("the path").to_owned();
    let (key, value) = (entry.key.as_str(), &entry.value);
    if let Some((_, others)) = SIMILAR_OPERATORS.iter().find(|(operator, _)| *operator == key) {
        for other in others.iter() {
            let case = match (key, value.as_number()) {
                ("gt" | "gte" | "lt" | "lte", Some(bound)) if other.get(..1) == key.get(..1) => {
                    format!("a case in which `{path}` is exactly {bound}")
                }
                ("gt" | "gte" | "lt" | "lte", Some(bound)) => {
                    format!("a case in which `{path}` is not {bound}")
                }
                _ => format!("a case whose result depends on this test of `{path}`"),
            };
            collector.replace(OPERATOR, entry.key_span, *other, case);
        }
        mutate_bound(key, value, &path, collector);
    }
    match key {
        "exists" => {
            let other = if value.as_bool() == Some(true) { "false" } else { "true" };
            collector.replace(
                OPERATOR,
                value.span,
                other,
                format!("a case in which `{path}` is absent, and one in which it is present"),
            );
        }
        "each" => mutate_quantifier(value, &path, collector),
        "within" | "older_than" => {
            let text = value.as_str().unwrap_or_default();
            let case = format!(
                "a case in which `{path}` is a little less, and one in which it is a little more than {text} ago"
            );
            duration_mutations::scale_duration(value, &case, collector);
        }
        "absent" => {
            let other = if value.as_str() == Some("match") { "no_match" } else { "match" };
            collector.replace(ABSENCE, value.span, other, format!("a case in which `{path}` is absent"));
        }
        "length" => {
            let path = format!("the length of `{path}`");
            if value.as_number().is_some() {
                mutate_bound("lte", value, &path, collector);
            }
            for bound in value.entries().unwrap_or_default() {
                mutate_bound(&bound.key, &bound.value, &path, collector);
            }
        }
        "matches" => {
            for pattern in value.items().unwrap_or(std::slice::from_ref(value)) {
                pattern_mutations::remove_anchors(pattern, ANCHOR, collector);
            }
        }
        "during" => mutate_hours(value, &path, collector),
        "ignore_case" => {
            let case = format!("a case in which `{path}` differs from the test only in its letter case");
            remove_key(test, entry, case, collector);
        }
        "confusables" => {
            let case =
                format!("a case in which `{path}` has characters that only look like those of the test");
            remove_key(test, entry, case, collector);
        }
        // With a quantifier, `as` names the elements.
        "as" if test.get("mentioned_in").is_some() && value.as_str() != Some("word") => {
            let case =
                format!("a case in which `{path}` is mentioned as words, and not as this kind of token");
            collector.replace(OPERATOR, value.span, "word", case);
        }
        _ => {}
    }
    if LIST_OPERATORS.contains(&key) {
        mutate_values(value, &path, collector);
    }
}

/// Removes a key of a test, with its value.
fn remove_key(test: &YamlNode, entry: &MappingEntry, case: String, collector: &mut MutantCollector<'_>) {
    let entries = test.entries().unwrap_or_default();
    let index = entries.iter().position(|other| other.key == entry.key).unwrap_or_default();
    if let Some(edit) = entry_removal(collector.file_text(entry.key_span), entries, index) {
        let span = entry.key_span.until(entry.value.span.end());
        collector.remove(KEY_REMOVED, span, edit, case);
    }
}

/// Removes days, and begins and ends the hours a minute earlier and later.
fn mutate_hours(value: &YamlNode, path: &str, collector: &mut MutantCollector<'_>) {
    for entry in value.entries().unwrap_or_default() {
        match entry.key.as_str() {
            "days" => mutate_values(&entry.value, path, collector),
            "from" | "to" => {
                let text = entry.value.as_str().unwrap_or_default();
                for other in duration_mutations::adjacent_minutes(text).into_iter().flatten() {
                    let case = format!(
                        "a case in which `{path}` is in the minute before {text}, and one in which it is in the minute after"
                    );
                    collector.replace(THRESHOLD, entry.value.span, format!("\"{other}\""), case);
                }
            }
            _ => {}
        }
    }
}

fn mutate_quantifier(value: &YamlNode, path: &str, collector: &mut MutantCollector<'_>) {
    let other = if value.as_str() == Some("any") { "every" } else { "any" };
    let case = format!("a case in which some of `{path}` pass the test, and not all");
    collector.replace(QUANTIFIER, value.span, other, case);
}

/// Adds a bound that is one more and one that is one less, each with a value that detects it.
fn mutate_bound(operator: &str, value: &YamlNode, path: &str, collector: &mut MutantCollector<'_>) {
    let Some(bound) = value.as_number() else { return };
    let Some((less, more)) = adjacent_numbers(&bound.text()) else { return };
    let bound = bound.text();
    let telling = match operator {
        "gt" | "lte" => [(&less, &*bound), (&more, more.as_str())],
        "gte" | "lt" => [(&less, less.as_str()), (&more, &*bound)],
        _ => return,
    };
    for (other, shows) in telling {
        collector.replace(
            THRESHOLD,
            value.span,
            other,
            format!("a case in which `{path}` is {shows}").replace("``", "`"),
        );
    }
}

/// The numbers below and above a number, at its last digit: 99 and 101 for 100, 0.4 and 0.6 for 0.5. Returns `None` for other
/// spellings, such as `1e3`.
pub(super) fn adjacent_numbers(number: &str) -> Option<(String, String)> {
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let scaled: i128 = number.replacen('.', "", 1).parse().ok()?;
    let write = |scaled: i128| {
        let digits = format!("{:0>width$}", scaled.unsigned_abs(), width = decimals + 1);
        let sign = if scaled < 0 { "-" } else { "" };
        let (whole, rest) = digits.split_at_checked(digits.len() - decimals)?;
        Some(if decimals == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest}") })
    };
    Some((write(scaled.checked_sub(1)?)?, write(scaled.checked_add(1)?)?))
}

fn mutate_values(value: &YamlNode, path: &str, collector: &mut MutantCollector<'_>) {
    let YamlValue::Sequence(items) = &value.value else { return };
    for (index, item) in items.iter().enumerate() {
        if let Some(edit) = item_removal(collector.file_text(item.span), items, index) {
            let case = format!("a case in which `{path}` matches {}", condition_text(item, collector));
            collector.remove(ITEM_REMOVED, item.span, edit, case);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_by_one_in_the_last_digit() {
        for (number, less, more) in [
            ("100", "99", "101"),
            ("0", "-1", "1"),
            ("0.5", "0.4", "0.6"),
            ("1.00", "0.99", "1.01"),
            ("-0.1", "-0.2", "0.0"),
            ("9.9", "9.8", "10.0"),
        ] {
            assert_eq!(adjacent_numbers(number), Some((less.to_owned(), more.to_owned())), "{number}");
        }
        assert_eq!(adjacent_numbers("1e3"), None);
    }
}
