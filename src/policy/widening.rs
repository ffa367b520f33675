//! Comparison of two bundles: what the new one may allow that the old one did not. It is conservative: every change counts that is
//! not certain to restrict.

mod strictness;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::{CompiledPolicies, Mode, Policy, Unmatched};
use crate::call::Phase;
use crate::json::Value;
use crate::middleware::PolicyKind;
use crate::rules_schema::Polarity;
use strictness::{ComparisonContext, less_strict_members};

/// A change by which new rules may allow more than old ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Widening {
    /// The policy concerned; `None` for a setting of the whole bundle.
    pub policy: Option<String>,
    /// The change, in one line.
    pub change: String,
    /// What may happen now and could not happen before.
    pub consequence: &'static str,
}

impl fmt::Display for Widening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.change, self.consequence)
    }
}

/// Returns every change by which `new` may allow a call that `old` stopped, suspended or answered, show data of a call or a stream
/// that `old` redacted, or omit what `old` recorded. Empty only if no call, result or stream is treated less strictly in the same
/// session.
///
/// Policies are compared by id and by what they do. Descriptions don't count, and neither do changes that are certain to restrict: a
/// lower limit, one more detector, a matcher that covers the old one.
pub fn find_widenings(old: &CompiledPolicies, new: &CompiledPolicies) -> Vec<Widening> {
    let mut found = compare_settings(old, new);
    let (old_ones, new_ones) = (by_id(old), by_id(new));
    let off: HashSet<&str> = new.disabled_ids().iter().map(String::as_str).collect();
    let around = ComparisonContext {
        messages_matter: new.policies().iter().any(|policy| matches!(policy.kind, PolicyKind::Around(_))),
        approval_permits: old.defaults().unmatched == Unmatched::Deny,
    };
    for policy in old.policies().iter().filter(|policy| is_enforced(policy)) {
        let next = new_ones.get(policy.id.as_str()).copied();
        found.extend(compare_existing(policy, next, off.contains(policy.id.as_str()), (old, new), around));
    }
    for policy in new.policies().iter().filter(|policy| is_enforced(policy)) {
        if !old_ones.get(policy.id.as_str()).is_some_and(|before| is_enforced(before)) {
            found.extend(compare_added(policy, old, new));
        }
    }
    let is_in_both =
        |id: &str| [&old_ones, &new_ones].iter().all(|ones| ones.get(id).is_some_and(|one| is_enforced(one)));
    let (before, after) = (ordered_run_policies(old, is_in_both), ordered_run_policies(new, is_in_both));
    found.extend(find_moved(before, after));
    for phase in [Phase::Normalise, Phase::Gate, Phase::Execute, Phase::Settle] {
        found.extend(find_moved(
            ordered_policies(old, phase, is_in_both),
            ordered_policies(new, phase, is_in_both),
        ));
    }
    found
}

/// Reports the first policy whose position in the evaluation order changed.
fn find_moved(before: Vec<(&Policy, usize)>, after: Vec<(&Policy, usize)>) -> Option<Widening> {
    let before: HashMap<&str, usize> =
        before.into_iter().map(|(policy, position)| (policy.id.as_str(), position)).collect();
    let mut after = after.into_iter();
    let moved =
        after.find(|(policy, position)| before.get(policy.id.as_str()).is_some_and(|was| was != position));
    moved.map(|(policy, _)| {
        new_widening(
            policy,
            "moved in the evaluation order",
            "it and the policies around it may see and return other values",
        )
    })
}

fn compare_settings(old: &CompiledPolicies, new: &CompiledPolicies) -> Vec<Widening> {
    let (before, after) = (old.defaults(), new.defaults());
    let (reload_before, reload_after) = (old.reload_settings(), new.reload_settings());
    let mut found = Vec::new();
    let mut add = |change: &str, allows| {
        found.push(Widening { policy: None, change: change.to_owned(), consequence: allows })
    };
    if after.unmatched < before.unmatched {
        let change = match (before.unmatched, after.unmatched) {
            (Unmatched::Deny, Unmatched::Approval) => "`defaults.unmatched` was `deny` and is `approval`",
            (Unmatched::Deny, _) => "`defaults.unmatched` was `deny` and is `allow`",
            _ => "`defaults.unmatched` was `approval` and is `allow`",
        };
        add(change, "calls that no policy permits may run");
    }
    if after.unmatched_methods < before.unmatched_methods {
        add(
            "`defaults.unmatched_methods` is less strict",
            "requests by methods that no policy permits may pass",
        );
    }
    if before.absent_matches && !after.absent_matches {
        add(
            "`defaults.absent` was `match` and is `no_match`",
            "calls without a field that a test reads may run",
        );
    }
    if after.argument_check() < before.argument_check() {
        add("`defaults.arguments` checks less", "arguments that were rejected may reach tools");
    }
    if after.principals != before.principals {
        add(
            "`defaults.principals` compares principals differently",
            "principals that were equal may be different now, or the other way round",
        );
    }
    if old.results().declarations() != new.results().declarations() {
        add("`results` is changed", "labels, facts and changes of results may be different");
    }
    if reload_before.require_tests && !reload_after.require_tests {
        add("`reload.tests` was `require` and is `ignore`", "rules whose tests fail may become active");
    }
    if reload_before.confirm_widening && !reload_after.confirm_widening {
        add(
            "`reload.widening` was `confirm` and is `accept`",
            "rules that allow more may become active at once",
        );
    }
    found
}

fn is_enforced(policy: &Policy) -> bool {
    policy.mode == Mode::Enforce
}

fn by_id(compiled: &CompiledPolicies) -> HashMap<&str, &Policy> {
    compiled.policies().iter().map(|policy| (policy.id.as_str(), policy.as_ref())).collect()
}

fn new_widening(policy: &Policy, change: &str, allows: &'static str) -> Widening {
    let change = format!("`{}` ({}) {change}", policy.id, policy.kind.definition().name);
    Widening { policy: Some(policy.id.clone()), change, consequence: allows }
}

/// Returns whether a change of a policy that was enforced, or its removal, may allow more.
fn compare_existing(
    policy: &Policy,
    next: Option<&Policy>,
    off: bool,
    (old, new): (&CompiledPolicies, &CompiledPolicies),
    around: ComparisonContext,
) -> Option<Widening> {
    let allows = consequence_of_removal(&policy.kind);
    match next {
        Some(next) if is_enforced(next) => {
            let (before, after) = (policy.kind.definition().name, next.kind.definition().name);
            match policy.kind {
                PolicyKind::Allow(_) if before != after => return compare_added(next, old, new),
                _ if before != after => {
                    return Some(new_widening(next, &format!("was {before} before"), allows));
                }
                _ => {}
            }
            if policy.behaviour_digest == next.behaviour_digest {
                return None;
            }
            let looser = less_strict_members(policy, next, around);
            if looser.is_empty() {
                // By redacting more it can hide what other policies look for.
                return find_blinded_policy(next, new).map(|other| changed_text_widening(next, other));
            }
            let members: Vec<String> = looser.iter().map(|member| format!("`{member}`")).collect();
            Some(new_widening(next, &format!("is changed ({})", members.join(", ")), allows))
        }
        _ if matches!(policy.kind, PolicyKind::Allow(_)) => None,
        Some(_) => Some(new_widening(policy, "is no longer enforced: its mode is `shadow`", allows)),
        None if off => Some(new_widening(policy, "is no longer enforced: its mode is `off`", allows)),
        None => Some(new_widening(policy, "was removed", allows)),
    }
}

/// Returns what may happen without a policy of a kind, or with a less strict one.
fn consequence_of_removal(kind: &PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Deny(_) | PolicyKind::Require(_) => "calls that it denied may run",
        PolicyKind::Allow(_) => "calls that no policy permitted may run",
        PolicyKind::Halt(_) => "runs that it halted may continue",
        PolicyKind::Validate(_) => "arguments that it rejected may reach the tool",
        PolicyKind::RateLimit(_) => "more calls may run than it permitted",
        PolicyKind::Concurrency(_) => "more calls may run at the same time",
        PolicyKind::Approval(_) => "calls may run without the approval that it required",
        PolicyKind::Respond(_) => "calls that it answered may reach the tool, or get another result",
        PolicyKind::Cache(_) => {
            "calls that it answered may reach the tool, or get the result of another call"
        }
        PolicyKind::Around(_) => "its script may call the tool differently and return other results",
        PolicyKind::Retry(_) => "the tool may be called more often, or not retried",
        PolicyKind::Timeout(_) => "calls may take longer",
        PolicyKind::Transform(_) => "arguments and results that it changed may be different",
        PolicyKind::Recover(_) => "the model may get other error messages",
        PolicyKind::Redact(_) => "data that it redacted may be shown and recorded",
        PolicyKind::Label(_) => {
            "sessions may lack the label, or get it, so that policies that read it decide differently"
        }
        PolicyKind::Fact(_) => "policies that read the fact may decide differently",
        PolicyKind::Audit(_) => "what it recorded may no longer be recorded",
        PolicyKind::Model(_) => {
            "the model may be called with settings that it changed or bounded, and with tools that it hid"
        }
        PolicyKind::Budget(_) => "more may be used than it permitted",
        PolicyKind::Stream(_) => "content that it removed from streams may be shown",
    }
}

/// Returns whether a policy that was not enforced before may allow more.
fn compare_added(policy: &Policy, old: &CompiledPolicies, new: &CompiledPolicies) -> Option<Widening> {
    match &policy.kind {
        // It permits the calls that a person approves, which nothing permitted before.
        PolicyKind::Approval(_) if old.defaults().unmatched == Unmatched::Deny => Some(new_widening(
            policy,
            "lets approvers permit calls that `defaults.unmatched` denied",
            "calls that no policy permitted may run",
        )),
        PolicyKind::Audit(_) => None,
        PolicyKind::Model(model) if !model.only_restricts() => Some(new_widening(
            policy,
            "changes what the model is called with",
            consequence_of_removal(&policy.kind),
        )),
        PolicyKind::Stream(_) | PolicyKind::Redact(_) => {
            find_blinded_policy(policy, new).map(|other| changed_text_widening(policy, other))
        }
        kind if kind.definition().polarity == Polarity::Restricting => None,
        kind => Some(new_widening(policy, "is newly enforced", consequence_of_removal(kind))),
    }
}

fn changed_text_widening(policy: &Policy, other: &Policy) -> Widening {
    let change = format!("changes the text that `{}` inspects", other.id);
    new_widening(policy, &change, consequence_of_removal(&other.kind))
}

/// Returns a policy that may miss what it looks for because `policy` removes something from results or streams: a later policy, or
/// an earlier one if the remaining pieces can join to what that one would have found.
fn find_blinded_policy<'n>(policy: &Policy, new: &'n CompiledPolicies) -> Option<&'n Policy> {
    let source = policy.source();
    let written = source.as_ref().and_then(|source| source.get(policy.kind.definition().name));
    let masks =
        |value: &Value| matches!(value.get("with").and_then(Value::as_str), None | Some("mask" | "hash"));
    let masks = written.is_some_and(|value| {
        value.as_object().is_some_and(|_| masks(value))
            && value.get("drop").is_none()
            && value.get("replace").is_none()
    });
    let mut passed = false;
    new.policies().iter().map(Arc::as_ref).find(|other| {
        if other.id == policy.id {
            passed = true;
            return false;
        }
        let looks = is_enforced(other)
            && match (&policy.kind, &other.kind) {
                (PolicyKind::Stream(one), PolicyKind::Stream(other)) => {
                    one.text && other.text || one.reasoning && other.reasoning
                }
                (PolicyKind::Redact(_), PolicyKind::Redact(_)) => true,
                // Labels and facts are evaluated after all redactions.
                (PolicyKind::Redact(one), PolicyKind::Fact(_)) => one.output,
                (PolicyKind::Redact(one), PolicyKind::Label(_)) => one.output && reads_result(other),
                _ => false,
            };
        let after = passed || !matches!(other.kind, PolicyKind::Stream(_) | PolicyKind::Redact(_));
        looks && (after || !masks)
    })
}

/// Whether the conditions of a policy may read the result.
fn reads_result(policy: &Policy) -> bool {
    let Some(source) = policy.source() else { return true };
    let text = source.get("match").map(Value::to_string).unwrap_or_default();
    ["output", "error", "result"].iter().any(|member| text.contains(member))
}

/// Returns the policies whose order in a phase matters, each with the number of earlier policies that change what later ones see. In
/// gate the strictest decision wins in any order, and only for answers the first policy wins; checks that only reject can be
/// swapped with each other.
fn ordered_policies(
    compiled: &CompiledPolicies,
    phase: Phase,
    is_in_both: impl Fn(&str) -> bool,
) -> Vec<(&Policy, usize)> {
    let gate = phase == Phase::Gate;
    let ordered = |policy: &&Policy| match policy.kind {
        PolicyKind::Audit(_) | PolicyKind::Allow(_) => false,
        _ => !gate || policy.kind.definition().polarity != Polarity::Restricting,
    };
    let mut before = 0;
    let policies =
        compiled.policies().iter().map(Arc::as_ref).filter(|policy| policy.kind.is_active_in(phase));
    policies
        .filter(|policy| is_in_both(&policy.id) && ordered(policy))
        .map(|policy| {
            let position = before;
            let only_refuses =
                phase != Phase::Settle && policy.kind.definition().polarity == Polarity::Restricting;
            before += usize::from(!only_refuses);
            (policy, position)
        })
        .collect()
}

/// Returns the policies of the run whose order matters, each with the number of earlier policies that change what it bounds.
fn ordered_run_policies(
    compiled: &CompiledPolicies,
    is_in_both: impl Fn(&str) -> bool,
) -> Vec<(&Policy, usize)> {
    let (mut models, mut streams) = (0, 0);
    let mut positions = Vec::new();
    for policy in compiled.policies().iter().filter(|policy| is_in_both(&policy.id)) {
        match &policy.kind {
            PolicyKind::Model(model) => {
                positions.push((policy.as_ref(), models));
                models += usize::from(!model.only_restricts());
            }
            PolicyKind::Stream(_) => {
                positions.push((policy, streams));
                streams += 1;
            }
            _ => {}
        }
    }
    positions
}

// Their rules have schemas.
#[cfg(test)]
#[cfg(feature = "json-schema")]
mod tests;
