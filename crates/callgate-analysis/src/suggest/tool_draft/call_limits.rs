//! How often a tool may be called: the usual rates → limits.

use crate::suggest::number_rounding::round_count;
use crate::suggest::usage_profile::ToolProfile;

/// Calls per hour beyond which no limit is drafted.
const MAX_PER_HOUR: u64 = 1_000;

/// A limit on the number of calls.
#[derive(Clone, Debug)]
pub(in crate::suggest) struct LimitRule {
    pub(in crate::suggest) suffix: &'static str,
    pub(in crate::suggest) limit: u64,
    pub(in crate::suggest) per: &'static str,
    pub(in crate::suggest) by_principal: bool,
    pub(in crate::suggest) evidence: String,
}

/// The limits of a tool.
pub(super) fn limits(profile: &ToolProfile, required: usize) -> Vec<LimitRule> {
    let mut limits = Vec::new();
    if let Some(most) = profile.rates.per_run().usual(required) {
        limits.push(LimitRule {
            suffix: "per-run",
            limit: round_count(*most),
            per: "run",
            by_principal: false,
            evidence: format!("usual: {} in one run", calls(*most)),
        });
    }
    if let Some(most) = profile.rates.per_hour().usual(required)
        && round_count(*most) <= MAX_PER_HOUR
    {
        let by_principal = !profile.principals.unnamed.is_usual(required);
        let whose = if by_principal { " of one principal" } else { "" };
        limits.push(LimitRule {
            suffix: "per-hour",
            limit: round_count(*most),
            per: "1h",
            by_principal,
            evidence: format!("usual: {}{whose} in an hour", calls(*most)),
        });
    }
    limits
}

fn calls(number: u64) -> String {
    format!("{number} {}", if number == 1 { "call" } else { "calls" })
}
