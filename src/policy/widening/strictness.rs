//! Strictness comparison of two versions of a policy by their source, kind by kind. A change that is not listed here as restricting
//! counts as one that may allow more.

use std::time::Duration;

use crate::durations;
use crate::json::{Map, Value};
use crate::middleware::PolicyKind;
use crate::policy::Policy;
use crate::rules_schema::Polarity;

/// Facts about the bundles that affect the comparison.
#[derive(Clone, Copy)]
pub(super) struct ComparisonContext {
    /// Whether the message of a denial can make a difference, because a script may read it.
    pub(super) messages_matter: bool,
    /// Whether an `approval` policy permits calls that nothing else permits.
    pub(super) approval_permits: bool,
}

/// Returns the members of a policy that may allow more than before; empty if the policy is certain to be at least as strict.
pub(super) fn less_strict_members(
    before: &Policy,
    after: &Policy,
    around: ComparisonContext,
) -> Vec<&'static str> {
    let (Some(source_before), Some(source_after)) = (before.source(), after.source()) else {
        return vec!["match", after.kind.definition().name];
    };
    let (older, newer) = ((before, &source_before), (after, &source_after));
    let mut looser = Vec::new();
    let matchers_are_equal = || are_equal(source_before.get("match"), source_after.get("match"));
    let matcher_is_fine = match &after.kind {
        PolicyKind::Approval(_) if around.approval_permits => matchers_are_equal(),
        PolicyKind::Allow(_) => covers(older, newer),
        kind if kind.definition().polarity == Polarity::Restricting => covers(newer, older),
        _ => matchers_are_equal(),
    };
    // A `halt` that loses its conditions no longer applies to the run, but to calls.
    if !matcher_is_fine || before.applies_to_run && !after.applies_to_run {
        looser.push("match");
    }
    let kind = after.kind.definition().name;
    let (was, is) = (source_before.get(kind), source_after.get(kind));
    looser.extend(less_strict_settings(&after.kind, was, is, around));
    if before.definitions != after.definitions {
        looser.push("the definitions it names");
    }
    if looser.is_empty() && only_files_differ(before, after) {
        looser.push("the files it references");
    }
    looser
}

fn are_equal(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b,
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn only_files_differ(before: &Policy, after: &Policy) -> bool {
    before.behaviour_digest != after.behaviour_digest && before.source_text == after.source_text
}

/// Whether `wide` is certain to match every call that `narrow` matches.
fn covers((wide, wide_source): (&Policy, &Value), (narrow, narrow_source): (&Policy, &Value)) -> bool {
    let given = conditions(narrow_source);
    wide.matcher.covers_names_of(&narrow.matcher)
        && conditions(wide_source).iter().all(|wanted| given.iter().any(|given| implies(given, wanted)))
}

fn conditions(source: &Value) -> Vec<&Value> {
    list_items(source.get("match").and_then(|matcher| matcher.get("where")))
}

/// Returns the items of a list, or a single value that is written without a list.
fn list_items(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    }
}

/// Whether every call for which `given` holds or is undecided is also one for which `wanted` holds or is undecided.
fn implies(given: &Value, wanted: &Value) -> bool {
    if given == wanted {
        return true;
    }
    let (Some(given), Some(wanted)) = (given.as_object(), wanted.as_object()) else { return false };
    // A test with `each: none` holds for more calls the fewer values pass.
    let is_test = given.contains_key("path") && given.get("each").and_then(Value::as_str) != Some("none");
    is_test
        && given.len() == wanted.len()
        && given.iter().all(|(key, operand)| match wanted.get(key) {
            Some(wanted) => operand_implies(key, operand, wanted),
            None => {
                inclusive_or_exclusive(key).filter(|other| !given.contains_key(other)).is_some_and(|other| {
                    wanted.get(other).is_some_and(|wanted| bound_implies(key, operand, wanted))
                })
            }
        })
}

/// Whether a value that passes an operator with the operand `given` also passes it with `wanted`.
fn operand_implies(operator: &str, given: &Value, wanted: &Value) -> bool {
    given == wanted
        || match operator {
            "gt" | "gte" => at_most(Some(wanted), Some(given)),
            "lt" | "lte" => at_most(Some(given), Some(wanted)),
            "in" => is_subset(given, wanted),
            "not_in" => is_subset(wanted, given),
            _ => false,
        }
}

/// The other operator for the same bound: `gte` for `gt`.
fn inclusive_or_exclusive(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "gt" => "gte",
        "gte" => "gt",
        "lt" => "lte",
        "lte" => "lt",
        _ => return None,
    })
}

/// Whether a value that passes `operator` with the operand `given` also passes the other operator for that bound with `wanted`.
fn bound_implies(operator: &str, given: &Value, wanted: &Value) -> bool {
    let (given_value, wanted_value) = (Some(given), Some(wanted));
    match operator {
        "gt" => at_most(wanted_value, given_value),
        "gte" => at_most(wanted_value, given_value) && given != wanted,
        "lt" => at_most(given_value, wanted_value),
        "lte" => at_most(given_value, wanted_value) && given != wanted,
        _ => false,
    }
}

/// Whether both are numbers and the first is not greater.
fn at_most(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => a <= b,
        _ => false,
    }
}

/// Whether both are lists, only of strings or only of numbers, and `large` has all of `small`. In mixed lists, whether a test is
/// undecided depends on the types in the list.
fn is_subset(small: &Value, large: &Value) -> bool {
    let (Some(small), Some(large)) = (small.as_array(), large.as_array()) else { return false };
    let both = || small.iter().chain(large);
    (both().all(Value::is_string) || both().all(Value::is_number))
        && small.iter().all(|item| large.iter().any(|other| item == other))
}

fn less_strict_settings(
    kind: &PolicyKind,
    was: Option<&Value>,
    is: Option<&Value>,
    around: ComparisonContext,
) -> Vec<&'static str> {
    let compare =
        MemberComparison { old: was.and_then(Value::as_object), new: is.and_then(Value::as_object) };
    match kind {
        PolicyKind::Timeout(_) => {
            let shorter =
                parse_duration(is).is_some_and(|is| parse_duration(was).is_some_and(|was| is <= was));
            if are_equal(was, is) || shorter { Vec::new() } else { vec!["timeout"] }
        }
        PolicyKind::Deny(_) | PolicyKind::Halt(_) if !around.messages_matter => {
            compare.changed_members(&["message", "code"], |_| true)
        }
        PolicyKind::Require(_) => {
            compare.changed_members(&["values", "message", "code"], |member| match member {
                "values" => compare.is_superset("values"),
                _ => !around.messages_matter,
            })
        }
        PolicyKind::RateLimit(_) | PolicyKind::Concurrency(_) => {
            compare.changed_members(&["limit", "burst", "max", "message"], |member| match member {
                "message" => !around.messages_matter,
                _ => at_most(compare.after(member), compare.before(member)),
            })
        }
        PolicyKind::Budget(_) => {
            compare.changed_members(&["tokens", "cost", "calls", "iterations", "message"], |member| {
                member == "message"
                    || compare.before(member).is_none()
                    || at_most(compare.after(member), compare.before(member))
            })
        }
        PolicyKind::Approval(_) => {
            let members = ["expires", "approvers", "quorum", "answer_by_link", "edits", "remember"];
            compare.changed_members(&members, |member| {
                let (old, new) = (compare.before(member), compare.after(member));
                match member {
                    "expires" => parse_duration(new)
                        .is_some_and(|new| parse_duration(old).is_none_or(|old| new <= old)),
                    "approvers" => new.is_some_and(|new| old.is_none_or(|old| is_subset(new, old))),
                    "quorum" => new.is_some() && (old.is_none() || at_most(old, new)),
                    _ => new.is_none(),
                }
            })
        }
        // Masks and digests leave no piece of the original; other replacements can join pieces, or keep some.
        PolicyKind::Redact(_) | PolicyKind::Stream(_) => {
            let masks = matches!(compare.after("with").and_then(Value::as_str), None | Some("mask" | "hash"));
            compare.changed_members(&["detect", "redact", "patterns", "in"], |member| match member {
                // Without `in`: everywhere.
                "in" => {
                    compare.after("in").is_none()
                        || compare.before("in").is_some() && compare.is_superset("in")
                }
                _ => masks && compare.is_superset(member),
            })
        }
        PolicyKind::Model(_) => {
            compare.changed_members(&["temperature", "top_p", "max_tokens", "tools"], |member| {
                let inner = MemberComparison {
                    old: compare.before(member).and_then(Value::as_object),
                    new: compare.after(member).and_then(Value::as_object),
                };
                let looser = match member {
                    "tools" => inner.changed_members(&["show", "hide"], |list| match list {
                        "hide" => inner.is_superset("hide"),
                        _ => {
                            inner.before("show").is_none() && inner.after("show").is_some()
                                || inner.is_nonempty_subset("show")
                        }
                    }),
                    _ => inner.changed_members(&["max"], |_| {
                        inner.after("max").is_some()
                            && (inner.before("max").is_none()
                                || at_most(inner.after("max"), inner.before("max")))
                    }),
                };
                looser.is_empty()
            })
        }
        _ => {
            let name = kind.definition().name;
            if are_equal(was, is) { Vec::new() } else { vec![name] }
        }
    }
}

fn parse_duration(value: Option<&Value>) -> Option<Duration> {
    durations::parse(value?.as_str()?)
}

/// The members of a kind before and after.
struct MemberComparison<'v> {
    old: Option<&'v Map>,
    new: Option<&'v Map>,
}

impl<'v> MemberComparison<'v> {
    fn before(&self, member: &str) -> Option<&'v Value> {
        self.old?.get(member)
    }

    fn after(&self, member: &str) -> Option<&'v Value> {
        self.new?.get(member)
    }

    /// Returns the members that differ, except those in `may_tighten` for which `tightens` returns `true`.
    fn changed_members(
        &self,
        may_tighten: &[&'static str],
        tightens: impl Fn(&'static str) -> bool,
    ) -> Vec<&'static str> {
        let mut looser: Vec<&'static str> = may_tighten
            .iter()
            .filter(|member| !are_equal(self.before(member), self.after(member)))
            .filter(|member| !tightens(member))
            .copied()
            .collect();
        let members = self.old.into_iter().chain(self.new).flat_map(|members| members.keys());
        let mut others = members.filter(|key| !may_tighten.contains(&key.as_str()));
        if others.any(|key| !are_equal(self.before(key), self.after(key))) {
            looser.push("other members");
        }
        looser
    }

    /// Whether the new list has all items of the old one.
    fn is_superset(&self, member: &str) -> bool {
        let (old, new) = (list_items(self.before(member)), list_items(self.after(member)));
        old.iter().all(|item| new.iter().any(|other| item == other))
    }

    /// Whether the new list is not empty and has only items of the old one.
    fn is_nonempty_subset(&self, member: &str) -> bool {
        let (old, new) = (list_items(self.before(member)), list_items(self.after(member)));
        !new.is_empty() && new.iter().all(|item| old.iter().any(|other| item == other))
    }
}
