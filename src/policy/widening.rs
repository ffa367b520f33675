//! Comparison of two bundles: what the new one may allow that the old one did not. It is conservative: every change counts that is
//! not certain to restrict.

mod strictness;

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::{CompiledPolicies, Mode, Policy, Unmatched};
use crate::call::Phase;
use crate::json::Value;
use crate::middleware::Kind;
use crate::rules_schema::Polarity;
use strictness::{Around, less_strict_members};

/// A change by which new rules may allow more than old ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widening {
    /// The policy concerned; `None` for a setting of the whole bundle.
    pub policy: Option<String>,
    /// The change, in one line.
    pub what: String,
    /// What may happen now and could not happen before.
    pub allows: &'static str,
}

impl fmt::Display for Widening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.allows)
    }
}

/// Returns every change by which `new` may allow a call that `old` stopped, suspended or answered, show data of a call or a stream
/// that `old` redacted, or omit what `old` recorded. Empty only if no call, result or stream is treated less strictly in the same
/// session.
///
/// Policies are compared by id and by what they do. Descriptions don't count, and neither do changes that are certain to restrict: a
/// lower limit, one more detector, a matcher that covers the old one.
pub fn widenings(old: &CompiledPolicies, new: &CompiledPolicies) -> Vec<Widening> {
    let mut found = compare_settings(old, new);
    let (old_ones, new_ones) = (by_id(old), by_id(new));
    let off: HashSet<&str> = new.off().iter().map(String::as_str).collect();
    let around = Around {
        messages_matter: new.policies().iter().any(|policy| matches!(policy.kind, Kind::Around(_))),
        approval_permits: old.defaults().unmatched == Unmatched::Deny,
    };
    for policy in old.policies().iter().filter(|policy| acts(policy)) {
        let next = new_ones.get(policy.id.as_str()).copied();
        found.extend(compare_existing(policy, next, off.contains(policy.id.as_str()), (old, new), around));
    }
    for policy in new.policies().iter().filter(|policy| acts(policy)) {
        if !old_ones.get(policy.id.as_str()).is_some_and(|before| acts(before)) {
            found.extend(compare_added(policy, old, new));
        }
    }
    let kept = |id: &str| [&old_ones, &new_ones].iter().all(|ones| ones.get(id).is_some_and(|one| acts(one)));
    let (before, after) = (ordered_run_policies(old, kept), ordered_run_policies(new, kept));
    found.extend(moved(before, after));
    for phase in [Phase::Normalise, Phase::Gate, Phase::Execute, Phase::Settle] {
        found.extend(moved(places(old, phase, kept), places(new, phase, kept)));
    }
    found
}

/// Reports the first policy whose position in the evaluation order changed.
fn moved(before: Vec<(&Policy, usize)>, after: Vec<(&Policy, usize)>) -> Option<Widening> {
    let before: HashMap<&str, usize> =
        before.into_iter().map(|(policy, place)| (policy.id.as_str(), place)).collect();
    let mut after = after.into_iter();
    let moved = after.find(|(policy, place)| before.get(policy.id.as_str()).is_some_and(|was| was != place));
    moved.map(|(policy, _)| {
        of(
            policy,
            "moved in the evaluation order",
            "it and the policies around it may see and return other values",
        )
    })
}

fn compare_settings(old: &CompiledPolicies, new: &CompiledPolicies) -> Vec<Widening> {
    let (before, after) = (old.defaults(), new.defaults());
    let (reload_before, reload_after) = (old.reload(), new.reload());
    let mut found = Vec::new();
    let mut add = |what: &str, allows| found.push(Widening { policy: None, what: what.to_owned(), allows });
    if after.unmatched < before.unmatched {
        let what = match (before.unmatched, after.unmatched) {
            (Unmatched::Deny, Unmatched::Approval) => "`defaults.unmatched` was `deny` and is `approval`",
            (Unmatched::Deny, _) => "`defaults.unmatched` was `deny` and is `allow`",
            _ => "`defaults.unmatched` was `approval` and is `allow`",
        };
        add(what, "calls that no policy permits may run");
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

fn acts(policy: &Policy) -> bool {
    policy.mode == Mode::Enforce
}

fn by_id(chains: &CompiledPolicies) -> HashMap<&str, &Policy> {
    chains.policies().iter().map(|policy| (policy.id.as_str(), policy)).collect()
}

fn of(policy: &Policy, what: &str, allows: &'static str) -> Widening {
    let what = format!("`{}` ({}) {what}", policy.id, policy.kind.entry().name);
    Widening { policy: Some(policy.id.clone()), what, allows }
}

/// Returns whether a change of a policy that was enforced, or its removal, may allow more.
fn compare_existing(
    policy: &Policy,
    next: Option<&Policy>,
    off: bool,
    (old, new): (&CompiledPolicies, &CompiledPolicies),
    around: Around,
) -> Option<Widening> {
    let allows = without(&policy.kind);
    match next {
        Some(next) if acts(next) => {
            let (before, after) = (policy.kind.entry().name, next.kind.entry().name);
            match policy.kind {
                Kind::Allow(_) if before != after => return compare_added(next, old, new),
                _ if before != after => return Some(of(next, &format!("was {before} before"), allows)),
                _ => {}
            }
            if policy.behaviour == next.behaviour {
                return None;
            }
            let looser = less_strict_members(policy, next, around);
            if looser.is_empty() {
                // By redacting more it can hide what other policies look for.
                return blinded(next, new).map(|other| changed_text_widening(next, other));
            }
            let members: Vec<String> = looser.iter().map(|member| format!("`{member}`")).collect();
            Some(of(next, &format!("is changed ({})", members.join(", ")), allows))
        }
        _ if matches!(policy.kind, Kind::Allow(_)) => None,
        Some(_) => Some(of(policy, "is no longer enforced: its mode is `shadow`", allows)),
        None if off => Some(of(policy, "is no longer enforced: its mode is `off`", allows)),
        None => Some(of(policy, "was removed", allows)),
    }
}

/// Returns what may happen without a policy of a kind, or with a less strict one.
fn without(kind: &Kind) -> &'static str {
    match kind {
        Kind::Deny(_) => "calls that it denied may run",
        Kind::Allow(_) => "calls that no policy permitted may run",
        Kind::Halt(_) => "runs that it halted may continue",
        Kind::Validate(_) => "arguments that it rejected may reach the tool",
        Kind::RateLimit(_) => "more calls may run than it permitted",
        Kind::Concurrency(_) => "more calls may run at the same time",
        Kind::Approval(_) => "calls may run without the approval that it required",
        Kind::Respond(_) => "calls that it answered may reach the tool, or get another result",
        Kind::Cache(_) => "calls that it answered may reach the tool, or get the result of another call",
        Kind::Around(_) => "its script may call the tool differently and return other results",
        Kind::Retry(_) => "the tool may be called more often, or not retried",
        Kind::Timeout(_) => "calls may take longer",
        Kind::Transform(_) => "arguments and results that it changed may be different",
        Kind::Recover(_) => "the model may get other error messages",
        Kind::Redact(_) => "data that it redacted may be shown and recorded",
        Kind::Label(_) => {
            "sessions may lack the label, or get it, so that policies that read it decide differently"
        }
        Kind::Fact(_) => "policies that read the fact may decide differently",
        Kind::Audit(_) => "what it recorded may no longer be recorded",
        Kind::Model(_) => {
            "the model may be called with settings that it changed or bounded, and with tools that it hid"
        }
        Kind::Budget(_) => "more may be used than it permitted",
        Kind::Stream(_) => "content that it removed from streams may be shown",
    }
}

/// Returns whether a policy that was not enforced before may allow more.
fn compare_added(policy: &Policy, old: &CompiledPolicies, new: &CompiledPolicies) -> Option<Widening> {
    match &policy.kind {
        // It permits the calls that a person approves, which nothing permitted before.
        Kind::Approval(_) if old.defaults().unmatched == Unmatched::Deny => Some(of(
            policy,
            "lets approvers permit calls that `defaults.unmatched` denied",
            "calls that no policy permitted may run",
        )),
        Kind::Audit(_) => None,
        Kind::Model(model) if !model.only_restricts() => {
            Some(of(policy, "changes what the model is called with", without(&policy.kind)))
        }
        Kind::Stream(_) | Kind::Redact(_) => {
            blinded(policy, new).map(|other| changed_text_widening(policy, other))
        }
        kind if kind.entry().polarity == Polarity::Restricting => None,
        kind => Some(of(policy, "is newly enforced", without(kind))),
    }
}

fn changed_text_widening(policy: &Policy, other: &Policy) -> Widening {
    let what = format!("changes the text that `{}` inspects", other.id);
    of(policy, &what, without(&other.kind))
}

/// Returns a policy that may miss what it looks for because `policy` removes something from results or streams: a later policy, or
/// an earlier one if the remaining pieces can join to what that one would have found.
fn blinded<'n>(policy: &Policy, new: &'n CompiledPolicies) -> Option<&'n Policy> {
    let written = policy.written.get(policy.kind.entry().name);
    let masks =
        |value: &Value| matches!(value.get("with").and_then(Value::as_str), None | Some("mask" | "hash"));
    let masks = written.is_some_and(|value| {
        value.as_object().is_some_and(|_| masks(value))
            && value.get("drop").is_none()
            && value.get("replace").is_none()
    });
    let mut passed = false;
    new.policies().iter().find(|other| {
        if other.id == policy.id {
            passed = true;
            return false;
        }
        let looks = acts(other)
            && match (&policy.kind, &other.kind) {
                (Kind::Stream(one), Kind::Stream(other)) => {
                    one.text && other.text || one.reasoning && other.reasoning
                }
                (Kind::Redact(_), Kind::Redact(_)) => true,
                // Labels and facts are evaluated after all redactions.
                (Kind::Redact(one), Kind::Fact(_)) => one.output,
                (Kind::Redact(one), Kind::Label(_)) => one.output && reads_result(other),
                _ => false,
            };
        let after = passed || !matches!(other.kind, Kind::Stream(_) | Kind::Redact(_));
        looks && (after || !masks)
    })
}

/// Whether the conditions of a policy may read the result.
fn reads_result(policy: &Policy) -> bool {
    let text = policy.written.get("match").map(Value::to_string).unwrap_or_default();
    ["output", "error", "result"].iter().any(|member| text.contains(member))
}

/// Returns the policies whose order in a phase matters, each with the number of earlier policies that change what later ones see. In
/// gate the strictest decision wins in any order, and only for answers the first policy wins; checks that only reject can be
/// swapped with each other.
fn places(chains: &CompiledPolicies, phase: Phase, kept: impl Fn(&str) -> bool) -> Vec<(&Policy, usize)> {
    let gate = phase == Phase::Gate;
    let ordered = |policy: &&Policy| match policy.kind {
        Kind::Audit(_) | Kind::Allow(_) => false,
        _ => !gate || policy.kind.entry().polarity != Polarity::Restricting,
    };
    let mut before = 0;
    let policies = chains.policies().iter().filter(|policy| policy.kind.is_active_in(phase));
    policies
        .filter(|policy| kept(&policy.id) && ordered(policy))
        .map(|policy| {
            let place = before;
            let only_refuses =
                phase != Phase::Settle && policy.kind.entry().polarity == Polarity::Restricting;
            before += usize::from(!only_refuses);
            (policy, place)
        })
        .collect()
}

/// Returns the policies of the run whose order matters, each with the number of earlier policies that change what it bounds.
fn ordered_run_policies(chains: &CompiledPolicies, kept: impl Fn(&str) -> bool) -> Vec<(&Policy, usize)> {
    let (mut models, mut streams) = (0, 0);
    let mut places = Vec::new();
    for policy in chains.policies().iter().filter(|policy| kept(&policy.id)) {
        match &policy.kind {
            Kind::Model(model) => {
                places.push((policy, models));
                models += usize::from(!model.only_restricts());
            }
            Kind::Stream(_) => {
                places.push((policy, streams));
                streams += 1;
            }
            _ => {}
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::build_texts;

    fn chains(texts: &[&str]) -> CompiledPolicies {
        let built =
            build_texts(texts.iter().enumerate().map(|(place, text)| (format!("{place}.yaml"), *text)));
        built.chains.unwrap_or_else(|| panic!("{:?}", built.diagnostics))
    }

    fn found(old: &str, new: &str) -> Vec<String> {
        widenings(&chains(&[old]), &chains(&[new])).into_iter().map(|widening| widening.what).collect()
    }

    fn rules(policies: &str) -> String {
        format!("policies: [ {policies} ]")
    }

    #[test]
    fn reports_removal_of_restricting_policies() {
        for kind in [
            "deny: {}",
            "halt: {}",
            "rate_limit: { limit: 1, per: 1m }",
            "concurrency: { max: 1 }",
            "approval: {}",
            "validate: { schema: {} }",
            "timeout: 5s",
            "redact: { detect: email }",
        ] {
            let name = kind.split(':').next().unwrap();
            let acting = rules(&format!("{{ id: a, match: t, {kind} }}"));
            let shadow = rules(&format!("{{ id: a, mode: shadow, match: t, {kind} }}"));
            let off = rules(&format!("{{ id: a, mode: off, match: t, {kind} }}"));
            let wider = rules(&format!("{{ id: a, match: [t, u], {kind} }}"));
            let described = rules(&format!("{{ id: a, description: New, match: t, {kind} }}"));
            for (old, new, expected) in [
                (&acting, &rules(""), Some("was removed")),
                (&acting, &shadow, Some("is no longer enforced: its mode is `shadow`")),
                (&acting, &off, Some("is no longer enforced: its mode is `off`")),
                (&acting, &wider, None),
                (&wider, &acting, Some("is changed (`match`)")),
                (&acting, &described, None),
                (&acting, &acting, None),
                (&rules(""), &acting, None),
                (&shadow, &acting, None),
                (&off, &acting, None),
                (&shadow, &off, None),
                (&off, &rules(""), None),
            ] {
                let expected: Vec<String> =
                    expected.map(|what| format!("`a` ({name}) {what}")).into_iter().collect();
                assert_eq!(found(old, new), expected, "{old} → {new}");
            }
        }
    }

    #[test]
    fn reports_removal_and_change_of_run_policies() {
        for (strict, loose, member) in [
            ("budget: { calls: 5 }", "budget: { calls: 6 }", "calls"),
            ("budget: { calls: 5, per: conversation }", "budget: { calls: 5, per: run }", "other members"),
            ("model: { tools: { hide: [a, b] } }", "model: { tools: { hide: a } }", "tools"),
            ("model: { temperature: { max: 0.5 } }", "model: { temperature: { max: 0.6 } }", "temperature"),
            ("stream: { redact: [email, us_ssn] }", "stream: { redact: email }", "redact"),
        ] {
            let with = |kind: &str| rules(&format!("{{ id: a, {kind} }}"));
            let of = |id: &str| format!("`a` ({}) {id}", strict.split(':').next().unwrap());
            let changed = of(&format!("is changed (`{member}`)"));
            assert_eq!(found(&with(strict), &with(loose)), [changed], "{strict}");
            assert_eq!(found(&with(strict), &rules("")), [of("was removed")], "{strict}");
            assert_eq!(found(&rules(""), &with(strict)), [""; 0], "{strict}");
        }
    }

    /// Pairs of a policy and a change that is certain to restrict; the opposite change may allow more.
    const TIGHTER: &[(&str, &str)] = &[
        ("match: t, deny: {}", "match: [t, u], deny: {}"),
        ("match: t, deny: {}", "match: '*', deny: {}"),
        ("match: refund_all, deny: {}", "match: 'refund_*', deny: {}"),
        ("match: { tool: t, server: s }, deny: {}", "match: t, deny: {}"),
        ("match: { tool: t, where: { path: $.input.a, gt: 100 } }, deny: {}", "match: t, deny: {}"),
        (
            "match: { tool: t, where: { path: $.input.a, gt: 100 } }, deny: {}",
            "match: { tool: t, where: { path: $.input.a, gt: 50.5 } }, deny: {}",
        ),
        (
            "match: { tool: t, where: { path: $.input.a, lte: 1 } }, halt: {}",
            "match: { tool: t, where: { path: $.input.a, lte: 2 } }, halt: {}",
        ),
        (
            "match: { tool: t, where: { path: $.input.a, in: [x] } }, deny: {}",
            "match: { tool: t, where: { path: $.input.a, in: [x, y] } }, deny: {}",
        ),
        (
            "match: { tool: t, where: { path: $.input.a, not_in: [1, 2] } }, deny: {}",
            "match: { tool: t, where: { path: $.input.a, not_in: [1] } }, deny: {}",
        ),
        (
            "match: { tool: t, where: [ { path: $.input.a, eq: 1 }, { path: $.input.b, eq: 1 } ] }, approval: {}",
            "match: { tool: t, where: { path: $.input.b, eq: 1 } }, approval: {}",
        ),
        ("match: [t, u], allow: {}", "match: t, allow: {}"),
        (
            "match: { tool: t, where: { path: $.input.a, lt: 9 } }, allow: {}",
            "match: { tool: t, where: { path: $.input.a, lt: 8 } }, allow: {}",
        ),
        ("match: t, rate_limit: { limit: 5, per: 1m }", "match: t, rate_limit: { limit: 4, per: 1m }"),
        (
            "match: t, rate_limit: { limit: 5, per: 1m, burst: 3 }",
            "match: t, rate_limit: { limit: 5, per: 1m, burst: 2 }",
        ),
        ("match: t, concurrency: { max: 3 }", "match: t, concurrency: { max: 2 }"),
        ("match: t, approval: {}", "match: t, approval: { quorum: 2, approvers: [ana, bob] }"),
        ("match: t, approval: { approvers: [ana, bob] }", "match: t, approval: { approvers: [ana] }"),
        ("match: t, approval: { expires: 2h }", "match: t, approval: { expires: 30m }"),
        ("match: t, approval: { edits: [$.input.a] }", "match: t, approval: {}"),
        ("match: t, approval: { remember: { scope: arguments, for: 8h } }", "match: t, approval: {}"),
        ("match: t, timeout: 10s", "match: t, timeout: 5s"),
        (
            "match: t, redact: { detect: email }",
            "match: t, redact: { detect: [email, phone], patterns: ['C-[0-9]'] }",
        ),
        ("match: t, redact: { in: output, detect: email }", "match: t, redact: { detect: email }"),
        ("stream: { redact: email }", "stream: { redact: [phone, email] }"),
        ("stream: { in: text, redact: email }", "stream: { in: [text, reasoning], redact: email }"),
        ("budget: { calls: 5 }", "budget: { calls: 4, tokens: 100 }"),
        (
            "model: { max_tokens: { max: 100 } }",
            "model: { max_tokens: { max: 50 }, temperature: { max: 1 } }",
        ),
        ("model: { tools: { show: [a, b] } }", "model: { tools: { show: a, hide: b } }"),
    ];

    #[test]
    fn ignores_changes_that_only_restrict_and_reports_the_opposite() {
        for (loose, tight) in TIGHTER {
            let with = |policy: &str| rules(&format!("{{ id: a, {policy} }}"));
            assert_eq!(found(&with(loose), &with(tight)), [""; 0], "{loose} → {tight}");
            assert_eq!(found(&with(tight), &with(loose)).len(), 1, "{tight} → {loose}");
        }
        for (one, other) in [
            ("match: t, deny: { message: No. }", "match: t, deny: { message: Never., code: never }"),
            ("match: t, halt: { message: No. }", "match: t, halt: {}"),
            ("priority: 1, match: t, deny: {}", "priority: 2, match: t, deny: {}"),
            ("match: t, allow: {}", "match: t, deny: {}"),
        ] {
            let with = |policy: &str| rules(&format!("{{ id: a, {policy} }}"));
            assert_eq!(found(&with(one), &with(other)), [""; 0], "{one} → {other}");
        }
    }

    #[test]
    fn reports_changes_that_are_not_certain_to_restrict() {
        for (one, other) in [
            // A string is undecided against numbers, and differs from every item of a mixed list.
            (
                "match: { tool: t, where: { path: $.input.a, in: [1] } }, deny: {}",
                "match: { tool: t, where: { path: $.input.a, in: [1, x] } }, deny: {}",
            ),
            (
                "match: { tool: t, where: { path: '$.input.a[*]', each: none, gt: 5 } }, deny: {}",
                "match: { tool: t, where: { path: '$.input.a[*]', each: none, gt: 4 } }, deny: {}",
            ),
            (
                "match: { tool: t, where: { not: { path: $.input.a, gt: 5 } } }, deny: {}",
                "match: { tool: t, where: { not: { path: $.input.a, gt: 4 } } }, deny: {}",
            ),
            ("match: t, approval: { message: Pay? }", "match: t, approval: { message: Look? }"),
            ("match: t, redact: { detect: email }", "match: t, redact: { detect: email, in: input }"),
            (
                "match: t, redact: { detect: email, with: remove }",
                "match: t, redact: { detect: [email, phone], with: remove }",
            ),
            ("match: t, validate: { schema: {} }", "match: t, validate: { schema: { maxProperties: 1 } }"),
            // Before, the run is halted at any point; after, only when it makes a call.
            ("match: { where: { path: $.context.a, eq: 1 } }, halt: {}", "match: '*', halt: {}"),
        ] {
            let with = |policy: &str| rules(&format!("{{ id: a, {policy} }}"));
            assert_eq!(found(&with(one), &with(other)).len(), 1, "{one} → {other}");
        }
        let script = "{ id: script, match: t, around: { script: next(input) } }";
        let deny = |message: &str| {
            rules(&format!("{{ id: a, match: t, deny: {{ message: {message} }} }}, {script}"))
        };
        assert_eq!(found(&deny("no"), &deny("never")).len(), 1, "a script may read the message");
    }

    #[test]
    fn reports_stream_policies_that_hide_text_from_others() {
        let hide = "{ id: hide, stream: { redact: payment_card } }";
        for (id, new, found_any) in [
            (
                "inserts",
                "{ id: a, priority: 1, stream: { replace: { pattern: '[0-9]', with: '$0-x' } } }",
                true,
            ),
            (
                "inserts later",
                "{ id: a, priority: -1, stream: { replace: { pattern: '[0-9]', with: '$0-x' } } }",
                true,
            ),
            ("drops", "{ id: a, priority: 1, stream: { drop: card } }", true),
            ("masks before", "{ id: a, priority: 1, stream: { redact: email } }", true),
            ("masks after", "{ id: a, priority: -1, stream: { redact: email } }", false),
            ("elsewhere", "{ id: a, priority: 1, stream: { in: reasoning, drop: card } }", false),
            ("shadow", "{ id: a, priority: 1, mode: shadow, stream: { drop: card } }", false),
        ] {
            let hide = hide.replace("stream: {", "stream: { in: text,");
            let widenings = found(&rules(&hide), &rules(&format!("{hide}, {new}")));
            assert_eq!(!widenings.is_empty(), found_any, "{id}: {widenings:?}");
        }
        let alone = "{ id: a, stream: { replace: { pattern: a, with: b } } }";
        assert_eq!(found(&rules(""), &rules(alone)), [""; 0]);
    }

    #[test]
    fn message_names_what_is_newly_allowed() {
        let with = |policy: &str| chains(&[&rules(&format!("{{ id: a, {policy} }}"))]);
        let (five, six) = (
            with("match: t, rate_limit: { limit: 5, per: 1m }"),
            with("match: t, rate_limit: { limit: 6, per: 1m }"),
        );
        let said: Vec<String> = widenings(&five, &six).iter().map(ToString::to_string).collect();
        assert_eq!(said, ["`a` (rate_limit) is changed (`limit`): more calls may run than it permitted"]);
    }

    #[test]
    fn reports_new_and_moved_model_policies_that_set_values() {
        let bound = "{ id: bound, model: { temperature: { max: 0.5 } } }";
        for kind in ["temperature: { set: 1 }", "system_prompts: { append: Hi. }", "metadata: { a: 1 }"] {
            let says = format!("{{ id: says, model: {{ {kind} }} }}");
            assert_eq!(found(&rules(bound), &rules(&format!("{bound}, {says}"))).len(), 1, "{kind}");
            let orders = [format!("{says}, {bound}"), format!("{bound}, {says}")];
            assert_eq!(found(&rules(&orders[0]), &rules(&orders[1])).len(), 1, "{kind}");
        }
        let hide = "{ id: hide, model: { tools: { hide: a } } }";
        assert!(found(&rules(&format!("{bound}, {hide}")), &rules(&format!("{hide}, {bound}"))).is_empty());
    }

    #[test]
    fn reports_new_permitting_and_forming_policies() {
        for kind in [
            "allow: {}",
            "respond: { output: 1 }",
            "cache: { ttl: 1m }",
            "around: { script: next(input) }",
            "retry: { attempts: 2 }",
            "recover: {}",
            "transform: { input: [ { path: $.input.a, set: 1 } ] }",
            "label: { add: [x] }",
            "fact: { name: x }",
        ] {
            let acting = rules(&format!("{{ id: a, match: t, {kind} }}"));
            for mode in ["shadow", "off"] {
                let sleeping = rules(&format!("{{ id: a, mode: {mode}, match: t, {kind} }}"));
                assert_eq!(found(&sleeping, &acting).len(), 1, "{kind}");
            }
            assert_eq!(found(&rules(""), &acting).len(), 1, "{kind}");
            // Only the removal of an `allow` is certain to permit nothing: without a `respond`, for example, a call reaches its
            // tool.
            assert_eq!(found(&acting, &rules("")).is_empty(), kind.starts_with("allow"), "{kind}");
        }
        let audit = rules("{ id: a, match: t, audit: {} }");
        assert_eq!((found(&rules(""), &audit).len(), found(&audit, &rules("")).len()), (0, 1));
    }

    #[test]
    fn reports_another_kind_with_the_same_id() {
        let (deny, allow) = ("{ id: a, match: t, deny: {} }", "{ id: a, match: t, allow: {} }");
        assert_eq!(found(&rules(deny), &rules(allow)), ["`a` (allow) was deny before"]);
    }

    #[test]
    fn reports_new_approval_where_unmatched_calls_are_denied() {
        let with = |unmatched: &str, policies: &str| {
            format!("{{ defaults: {{ unmatched: {unmatched} }}, policies: [ {policies} ] }}")
        };
        let ask = "{ id: ask, match: t, approval: {} }";
        let expected = "`ask` (approval) lets approvers permit calls that `defaults.unmatched` denied";
        assert_eq!(found(&with("deny", ""), &with("deny", ask)), [expected]);
        assert!(found(&with("approval", ""), &with("approval", ask)).is_empty());
    }

    #[test]
    fn reports_less_strict_defaults_and_reload_settings() {
        let with = |settings: &str| format!("{{ {settings}, policies: [] }}");
        for (strict, loose) in [
            ("defaults: { unmatched: deny }", "defaults: { unmatched: approval }"),
            ("defaults: { unmatched: deny }", "defaults: {}"),
            ("defaults: { unmatched: approval }", "defaults: { unmatched: allow }"),
            ("defaults: { absent: match }", "defaults: { absent: no_match }"),
            ("defaults: {}", "defaults: { arguments: unchecked }"),
            ("defaults: { arguments: valid }", "defaults: {}"),
            ("reload: { tests: require }", "reload: { tests: ignore }"),
            ("reload: { widening: confirm }", "reload: {}"),
        ] {
            assert_eq!(found(&with(strict), &with(loose)).len(), 1, "{strict}");
            assert_eq!(found(&with(loose), &with(strict)).len(), 0, "{strict}");
        }
    }

    #[test]
    fn reports_only_order_changes_that_matter() {
        let order = |first: &str, second: &str| {
            let (first, second) = (rules(first), rules(second));
            widenings(&chains(&[&first, &second]), &chains(&[&second, &first])).len()
        };
        let policy = |id: &str, kind: &str| format!("{{ id: {id}, match: t, {kind} }}");
        let set = policy("set", "transform: { input: [ { path: $.input.a, set: 1 } ] }");
        let clamp = policy("clamp", "transform: { input: [ { path: $.input.a, clamp: { max: 1 } } ] }");
        let fits = policy("fits", "validate: { schema: {} }");
        let small = policy("small", "validate: { schema: { maxProperties: 3 } }");
        let yes = policy("yes", "respond: { output: yes }");
        let no = policy("no", "respond: { output: no }");
        let deny = policy("deny", "deny: {}");
        let halt = policy("halt", "halt: {}");
        let fact = policy("fact", "fact: { name: x }");
        let other = policy("other", "fact: { name: x, value: $.input }");
        for (first, second) in [(&set, &clamp), (&set, &fits), (&fits, &set), (&yes, &no), (&fact, &other)] {
            assert_eq!(order(first, second), 1, "{first} {second}");
        }
        for (first, second) in [(&fits, &small), (&deny, &halt), (&deny, &set), (&yes, &deny), (&set, &fact)]
        {
            assert_eq!(order(first, second), 0, "{first} {second}");
        }
    }

    #[test]
    fn reports_redactions_that_hide_text_from_others() {
        let hide = "{ id: hide, redact: { detect: email } }";
        let mark = "{ id: mark, match: { where: { path: $.output, contains: '@' } }, label: { add: [x] } }";
        let expected = "`hide` (redact) changes the text that `mark` inspects";
        assert_eq!(found(&rules(mark), &rules(&format!("{hide}, {mark}"))), [expected]);
        let always = "{ id: mark, label: { add: [x] } }";
        assert_eq!(found(&rules(always), &rules(&format!("{hide}, {always}"))), [""; 0]);
    }
}
