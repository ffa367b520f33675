//! Lint: regular expressions with large repetition counts, which are slow to compile and to match.

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use callgate::diagnostic::{COSTLY_REGEX, Diagnostics};
use callgate::source::{YamlNode, YamlValue};

pub(super) static LINT: Lint = Lint { code: &COSTLY_REGEX, needs: RequiredInput::Nothing, check };

/// Maximum product of nested repetition counts that is not reported.
const MAX_REPETITIONS: u64 = 1000;

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for written in &checked.policies {
        collect(written, written.node, false, found);
    }
}

fn collect(written: &PolicySource<'_>, node: &YamlNode, regex: bool, found: &mut Diagnostics) {
    match &node.value {
        YamlValue::String(text) if regex || text.text.starts_with('/') => {
            let times = max_repetitions(&text.text);
            if times > MAX_REPETITIONS {
                let message = format!(
                    "this regular expression repeats up to {times} times, which needs much memory and may be slow"
                );
                let help = "repeat without a count (`+`, `*`) and limit the length with `length:`";
                found.push(written.diagnostic(&COSTLY_REGEX, node.span, message).with_help(help));
            }
        }
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect(written, item, regex, found)),
        YamlValue::Mapping(entries) => {
            for entry in entries {
                let regex = ["matches", "pattern", "patterns"].contains(&entry.key.as_str());
                collect(written, &entry.value, regex, found);
            }
        }
        _ => {}
    }
}

/// Returns the largest product of nested repetition counts.
fn max_repetitions(pattern: &str) -> u64 {
    // The largest product in each open group, innermost last.
    let mut open: Vec<u64> = vec![1];
    let (mut last, mut in_class) = (1, false);
    let mut rest = pattern.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '\\' => {
                let named = rest.next().is_some_and(|(_, c)| matches!(c, 'p' | 'P' | 'x' | 'u' | 'U'));
                // The braces of `\p{Greek}` and `\x{1F600}` are not counts.
                let behind = rest.as_str();
                if named
                    && behind.starts_with('{')
                    && let Some(end) = behind.find('}')
                {
                    rest.nth(behind.get(..end).unwrap_or_default().chars().count());
                }
                last = 1;
            }
            '[' => (in_class, last) = (true, 1),
            ']' => in_class = false,
            _ if in_class => {}
            '(' => open.push(1),
            ')' => {
                last = open.pop().unwrap_or(1);
                if open.is_empty() {
                    open.push(1);
                }
                raise_group_maximum(&mut open, last);
            }
            '{' => {
                let count = pattern
                    .get(at + 1..)
                    .and_then(|rest| rest.split_once('}'))
                    .and_then(|(count, _)| repetition_bound(count));
                if let Some(count) = count {
                    last = last.saturating_mul(count);
                    raise_group_maximum(&mut open, last);
                }
            }
            ',' | '0'..='9' | '}' | '?' | '*' | '+' => {}
            _ => last = 1,
        }
    }
    open.into_iter().max().unwrap_or(1)
}

fn raise_group_maximum(open: &mut [u64], times: u64) {
    if let Some(group) = open.last_mut() {
        *group = (*group).max(times);
    }
}

/// Returns the larger number of `{3}`, `{3,}` or `{3,5}`.
fn repetition_bound(count: &str) -> Option<u64> {
    let (min, max) = count.split_once(',').unwrap_or((count, count));
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match max.trim() {
        "" => number(min),
        _ => number(max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_repetitions_multiply() {
        for (pattern, times) in [
            ("a{3}b{4}", 4),
            ("(a{30}b){40}", 1200),
            ("((a{2}){3}){4,5}", 30),
            (r"\p{Greek}{7}", 7),
            (r"[{9}]\{9}", 1),
            ("x{5,}", 5),
            ("a+b*", 1),
            (r"(\d{4} ){3}", 12),
        ] {
            assert_eq!(max_repetitions(pattern), times, "{pattern}");
        }
    }
}
