//! What candidate rules decide otherwise: `candidate_differs` events → counts by difference, policy and code, with examples.

use std::collections::BTreeMap;

use callgate::json::{Value, json};
use callgate_log::LogEntry;

use super::{MAX_NAMES, PolicyUse};

/// The differences of candidate rules, by their decision.
#[derive(Debug, Default)]
pub(in super::super) struct CandidateDifferences {
    by_decision: BTreeMap<CandidateDecision, PolicyUse>,
    /// Calls that the candidate did not evaluate.
    pub(in super::super) skipped: u64,
}

/// A decision of the candidate that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CandidateDecision {
    difference: String,
    /// Empty for a default.
    policy: String,
    code: String,
}

impl CandidateDecision {
    /// The decision as a name: `stricter/no-mail`; with the code if no policy decides.
    fn label(&self) -> String {
        let by = if self.policy.is_empty() { &self.code } else { &self.policy };
        format!("{}/{by}", self.difference)
    }
}

impl CandidateDifferences {
    /// Counts a call that the candidate decides otherwise.
    pub(super) fn add(&mut self, entry: &LogEntry) {
        let member = |name: &str| {
            let decision = entry.members.get("candidate").and_then(|decision| decision.get(name));
            decision.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let decision = CandidateDecision {
            difference: entry.text("difference").unwrap_or_default().to_owned(),
            policy: member("policy"),
            code: member("code"),
        };
        if self.by_decision.len() < MAX_NAMES || self.by_decision.contains_key(&decision) {
            let used = self.by_decision.entry(decision).or_default();
            used.calls += 1;
            used.add_call(entry);
        }
    }

    /// The decisions by their labels, those of most calls first.
    pub(in super::super) fn ranked(&self) -> Vec<(String, &PolicyUse)> {
        let mut found: Vec<_> = self.by_decision.iter().map(|(by, used)| (by.label(), used)).collect();
        found.sort_by_key(|(_, used)| std::cmp::Reverse(used.calls));
        found
    }

    /// The differences for programs.
    pub(super) fn document(&self) -> Value {
        let differences = self.by_decision.iter().map(|(by, used)| {
            let policy = Some(&by.policy).filter(|policy| !policy.is_empty());
            json!({
                "difference": by.difference, "policy": policy, "code": by.code, "calls": used.calls,
                "tools": used.tools.document(), "principals": used.principals.document(),
                "examples": used.example_documents(),
            })
        });
        json!({ "differences": differences.collect::<Vec<_>>(), "skipped": self.skipped })
    }
}
