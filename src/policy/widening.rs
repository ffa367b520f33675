//! What a bundle may allow that the one before it did not. When in doubt it counts: only what certainly tightens is passed
//! over.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::{Chains, Mode, Policy, Unmatched};
use crate::authoring::Polarity;
use crate::call::Phase;
use crate::middleware::Kind;

/// One way in which new rules may allow more than old ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widening {
    /// The policy concerned; none where it is something that holds for the whole bundle.
    pub policy: Option<String>,
    /// What has changed, in one line.
    pub what: String,
}

impl fmt::Display for Widening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Every way in which `new` may allow a call that `old` stopped, asked about or answered, show of it what `old` hid, or
/// leave out what `old` recorded. Empty only if no call with the same session fares better.
///
/// Policies are compared by their ids and by what they do; descriptions don't count.
pub fn widenings(old: &Chains, new: &Chains) -> Vec<Widening> {
    let mut found: Vec<Widening> = bundle_wide(old, new)
        .into_iter()
        .map(|what| Widening { policy: None, what: what.to_owned() })
        .collect();
    let (old_ones, new_ones) = (by_id(old), by_id(new));
    let off: HashSet<&str> = new.off().iter().map(String::as_str).collect();
    for policy in old.policies().iter().filter(|policy| acts(policy)) {
        let next = new_ones.get(policy.id.as_str()).copied();
        found.extend(of_one_that_was(policy, next, off.contains(policy.id.as_str())));
    }
    for policy in new.policies().iter().filter(|policy| acts(policy)) {
        if !old_ones.get(policy.id.as_str()).is_some_and(|before| acts(before)) {
            found.extend(of_one_that_came(policy, old, new));
        }
    }
    let kept = |id: &str| [&old_ones, &new_ones].iter().all(|ones| ones.get(id).is_some_and(|one| acts(one)));
    let (before, after) = (places_of_run(old, kept), places_of_run(new, kept));
    let before: HashMap<&str, usize> =
        before.into_iter().map(|(policy, place)| (policy.id.as_str(), place)).collect();
    let moved = after
        .into_iter()
        .find(|(policy, place)| before.get(policy.id.as_str()).is_some_and(|was| was != place));
    found.extend(moved.map(|(policy, _)| of(policy, "acts earlier or later among the others")));
    for phase in [Phase::Normalise, Phase::Gate, Phase::Execute, Phase::Settle] {
        let places = |chains| places(chains, phase, kept);
        let before: HashMap<&str, usize> =
            places(old).into_iter().map(|(policy, place)| (policy.id.as_str(), place)).collect();
        let moved = places(new)
            .into_iter()
            .find(|(policy, place)| before.get(policy.id.as_str()).is_some_and(|before| before != place));
        found.extend(moved.map(|(policy, _)| of(policy, "acts earlier or later among the others")));
    }
    found
}

fn bundle_wide(old: &Chains, new: &Chains) -> Vec<&'static str> {
    let mut found = Vec::new();
    let (before, after) = (old.defaults(), new.defaults());
    if after.unmatched < before.unmatched {
        found.push(match (before.unmatched, after.unmatched) {
            (Unmatched::Deny, Unmatched::Approval) => "`defaults.unmatched` was `deny` and is `approval`",
            (Unmatched::Deny, _) => "`defaults.unmatched` was `deny` and is `allow`",
            _ => "`defaults.unmatched` was `approval` and is `allow`",
        });
    }
    if before.absent_matches && !after.absent_matches {
        found.push("`defaults.absent` was `match` and is `no_match`");
    }
    if after.argument_check() < before.argument_check() {
        found.push("`defaults.arguments` asks for less");
    }
    if old.reload().require_tests && !new.reload().require_tests {
        found.push("`reload.tests` was `require` and is `ignore`");
    }
    if old.reload().confirm_widening && !new.reload().confirm_widening {
        found.push("`reload.widening` was `confirm` and is `accept`");
    }
    found
}

fn acts(policy: &Policy) -> bool {
    policy.mode == Mode::Enforce
}

fn by_id(chains: &Chains) -> HashMap<&str, &Policy> {
    chains.policies().iter().map(|policy| (policy.id.as_str(), policy)).collect()
}

fn of(policy: &Policy, what: &str) -> Widening {
    Widening {
        policy: Some(policy.id.clone()),
        what: format!("`{}` ({}) {what}", policy.id, policy.kind.entry().name),
    }
}

/// Of a policy that acted: whether its change, or that it no longer acts, may widen.
fn of_one_that_was(policy: &Policy, next: Option<&Policy>, off: bool) -> Option<Widening> {
    match next {
        Some(next) if acts(next) => {
            let (before, after) = (policy.kind.entry().name, next.kind.entry().name);
            (policy.behaviour != next.behaviour).then(|| match before == after {
                true => of(next, "is changed"),
                false => of(next, &format!("was {before} before")),
            })
        }
        _ if matches!(policy.kind, Kind::Allow(_)) => None,
        Some(_) => Some(of(policy, "changes nothing any more: its mode is `shadow`")),
        None if off => Some(of(policy, "is off")),
        None => Some(of(policy, "is gone")),
    }
}

/// Of a policy that did not act before: whether it may widen.
fn of_one_that_came(policy: &Policy, old: &Chains, new: &Chains) -> Option<Widening> {
    match &policy.kind {
        // It vouches for what it asks about, which nothing did before.
        Kind::Approval(_) if old.defaults().unmatched == Unmatched::Deny => {
            Some(of(policy, "lets a person permit what `defaults.unmatched` denied"))
        }
        Kind::Audit(_) => None,
        Kind::Model(model) if !model.only_tightens() => {
            Some(of(policy, "says otherwise what the model is called with"))
        }
        kind if kind.entry().polarity == Polarity::Restricting => {
            // What it hides in a result, a label, a fact or another redaction may look for.
            let reader =
                kind.acts_in(Phase::Settle).then(|| new.policies().iter().find(|other| reads(policy, other)));
            reader.flatten().map(|reader| of(policy, &format!("hides what `{}` may look for", reader.id)))
        }
        _ => Some(of(policy, "acts now, and did not before")),
    }
}

fn reads(policy: &Policy, other: &Policy) -> bool {
    acts(other)
        && other.id != policy.id
        && other.kind.acts_in(Phase::Settle)
        && !matches!(other.kind, Kind::Audit(_))
}

/// The policies whose order in a phase means something, each with how many stand before it that leave something else for
/// the next to see. Of those in gate the strictest wins in whatever order, and only answers come first come first served;
/// checks that only refuse can change places with each other.
fn places(chains: &Chains, phase: Phase, kept: impl Fn(&str) -> bool) -> Vec<(&Policy, usize)> {
    let gate = phase == Phase::Gate;
    let ordered = |policy: &&Policy| match policy.kind {
        Kind::Audit(_) | Kind::Allow(_) => false,
        _ => !gate || policy.kind.entry().polarity != Polarity::Restricting,
    };
    let mut before = 0;
    let policies = chains.policies().iter().filter(|policy| policy.kind.acts_in(phase));
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

/// The policies of the run whose order means something, each with how many stand before it that leave something else for it to bound.
fn places_of_run(chains: &Chains, kept: impl Fn(&str) -> bool) -> Vec<(&Policy, usize)> {
    let (mut models, mut streams) = (0, 0);
    let mut places = Vec::new();
    for policy in chains.policies().iter().filter(|policy| kept(&policy.id)) {
        match &policy.kind {
            Kind::Model(model) => {
                places.push((policy, models));
                models += usize::from(!model.only_tightens());
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

    fn chains(texts: &[&str]) -> Chains {
        let built =
            build_texts(texts.iter().enumerate().map(|(place, text)| (format!("{place}.yaml"), *text)));
        built.chains.unwrap_or_else(|| panic!("{:?}", built.diagnostics))
    }

    fn found(old: &str, new: &str) -> Vec<String> {
        widenings(&chains(&[old]), &chains(&[new])).iter().map(ToString::to_string).collect()
    }

    fn rules(policies: &str) -> String {
        format!("policies: [ {policies} ]")
    }

    #[test]
    fn what_restricts_may_come_and_may_not_go() {
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
                (&acting, &rules(""), Some("is gone")),
                (&acting, &shadow, Some("changes nothing any more: its mode is `shadow`")),
                (&acting, &off, Some("is off")),
                (&acting, &wider, Some("is changed")),
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
    fn what_bounds_a_run_may_come_and_may_not_go_or_be_changed() {
        for (strict, loose) in [
            ("budget: { calls: 5 }", "budget: { calls: 6 }"),
            ("budget: { calls: 5, per: conversation }", "budget: { calls: 5, per: run }"),
            ("model: { tools: { hide: [a, b] } }", "model: { tools: { hide: a } }"),
            ("model: { temperature: { max: 0.5 } }", "model: { temperature: { max: 0.6 } }"),
            ("stream: { redact: [email, us_ssn] }", "stream: { redact: email }"),
        ] {
            let with = |kind: &str| rules(&format!("{{ id: a, {kind} }}"));
            let of = |id: &str| format!("`a` ({}) {id}", strict.split(':').next().unwrap());
            assert_eq!(found(&with(strict), &with(loose)), [of("is changed")], "{strict}");
            assert_eq!(found(&with(strict), &rules("")), [of("is gone")], "{strict}");
            assert_eq!(found(&rules(""), &with(strict)), [""; 0], "{strict}");
        }
    }

    #[test]
    fn a_model_policy_that_sets_or_says_something_may_widen_when_it_comes_or_moves() {
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
    fn what_permits_or_forms_may_widen_when_it_comes() {
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
            // Only an `allow` that goes certainly takes nothing away that guards rely on: without its `respond` a call
            // reaches its tool.
            assert_eq!(found(&acting, &rules("")).is_empty(), kind.starts_with("allow"), "{kind}");
        }
        let audit = rules("{ id: a, match: t, audit: {} }");
        assert_eq!((found(&rules(""), &audit).len(), found(&audit, &rules("")).len()), (0, 1));
    }

    #[test]
    fn another_kind_under_the_same_id_is_a_change() {
        let (deny, allow) = ("{ id: a, match: t, deny: {} }", "{ id: a, match: t, allow: {} }");
        assert_eq!(found(&rules(deny), &rules(allow)), ["`a` (allow) was deny before"]);
    }

    #[test]
    fn an_approval_widens_where_nothing_was_permitted() {
        let with = |unmatched: &str, policies: &str| {
            format!("{{ defaults: {{ unmatched: {unmatched} }}, policies: [ {policies} ] }}")
        };
        let ask = "{ id: ask, match: t, approval: {} }";
        let expected = "`ask` (approval) lets a person permit what `defaults.unmatched` denied";
        assert_eq!(found(&with("deny", ""), &with("deny", ask)), [expected]);
        assert!(found(&with("approval", ""), &with("approval", ask)).is_empty());
    }

    #[test]
    fn looser_defaults_and_looser_reloads_widen() {
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
    fn only_an_order_that_means_something_counts() {
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
    fn a_redaction_that_comes_may_hide_what_others_look_for() {
        let (hide, mark) = ("{ id: hide, redact: { detect: email } }", "{ id: mark, label: { add: [x] } }");
        let expected = "`hide` (redact) hides what `mark` may look for";
        assert_eq!(found(&rules(mark), &rules(&format!("{hide}, {mark}"))), [expected]);
    }
}
