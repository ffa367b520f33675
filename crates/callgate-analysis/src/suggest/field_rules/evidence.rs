//! What was seen, as the comment of a rule.

use crate::suggest::rare_finding::MAX_FINDINGS;
use crate::suggest::support::Support;

/// `EUR 700, USD 112`
pub(super) fn enumeration_evidence<'k, K: 'k>(
    values: impl Iterator<Item = (&'k K, &'k Support)>,
    show: impl Fn(&K) -> String,
) -> String {
    let mut values: Vec<_> = values.collect();
    values.sort_by_key(|(_, support)| std::cmp::Reverse(support.calls()));
    let more = values.len().saturating_sub(MAX_FINDINGS);
    let mut parts: Vec<String> = values
        .into_iter()
        .take(MAX_FINDINGS)
        .map(|(value, support)| format!("{} {}", show(value), support.calls()))
        .collect();
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    format!("calls: {}", parts.join(", "))
}

pub(super) fn calls_phrase(calls: u64) -> String {
    count(usize::try_from(calls).unwrap_or(usize::MAX), "call", "calls")
}

pub(super) fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
