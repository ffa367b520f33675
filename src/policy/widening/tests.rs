use super::*;
use crate::policy::build_texts;

fn chains(texts: &[&str]) -> CompiledPolicies {
    let built = build_texts(texts.iter().enumerate().map(|(index, text)| (format!("{index}.yaml"), *text)));
    built.policies.unwrap_or_else(|| panic!("{:?}", built.diagnostics))
}

fn found(old: &str, new: &str) -> Vec<String> {
    find_widenings(&chains(&[old]), &chains(&[new])).into_iter().map(|widening| widening.change).collect()
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
                expected.map(|change| format!("`a` ({name}) {change}")).into_iter().collect();
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
    ("model: { max_tokens: { max: 100 } }", "model: { max_tokens: { max: 50 }, temperature: { max: 1 } }"),
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
    let deny =
        |message: &str| rules(&format!("{{ id: a, match: t, deny: {{ message: {message} }} }}, {script}"));
    assert_eq!(found(&deny("no"), &deny("never")).len(), 1, "a script may read the message");
}

#[test]
fn reports_stream_policies_that_hide_text_from_others() {
    let hide = "{ id: hide, stream: { redact: payment_card } }";
    for (id, new, found_any) in [
        ("inserts", "{ id: a, priority: 1, stream: { replace: { pattern: '[0-9]', with: '$0-x' } } }", true),
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
    let messages: Vec<String> = find_widenings(&five, &six).iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["`a` (rate_limit) is changed (`limit`): more calls may run than it permitted"]);
}

#[test]
fn reports_new_and_moved_model_policies_that_set_values() {
    let bound = "{ id: bound, model: { temperature: { max: 0.5 } } }";
    for kind in ["temperature: { set: 1 }", "system_prompts: { append: Hi. }", "metadata: { a: 1 }"] {
        let setting = format!("{{ id: says, model: {{ {kind} }} }}");
        assert_eq!(found(&rules(bound), &rules(&format!("{bound}, {setting}"))).len(), 1, "{kind}");
        let orders = [format!("{setting}, {bound}"), format!("{bound}, {setting}")];
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
        find_widenings(&chains(&[&first, &second]), &chains(&[&second, &first])).len()
    };
    let policy = |id: &str, kind: &str| format!("{{ id: {id}, match: t, {kind} }}");
    let set = policy("set", "transform: { input: [ { path: $.input.a, set: 1 } ] }");
    let clamp = policy("clamp", "transform: { input: [ { path: $.input.a, clamp: { max: 1 } } ] }");
    let validate = policy("fits", "validate: { schema: {} }");
    let small = policy("small", "validate: { schema: { maxProperties: 3 } }");
    let yes = policy("yes", "respond: { output: yes }");
    let no = policy("no", "respond: { output: no }");
    let deny = policy("deny", "deny: {}");
    let halt = policy("halt", "halt: {}");
    let fact = policy("fact", "fact: { name: x }");
    let other = policy("other", "fact: { name: x, value: $.input }");
    for (first, second) in
        [(&set, &clamp), (&set, &validate), (&validate, &set), (&yes, &no), (&fact, &other)]
    {
        assert_eq!(order(first, second), 1, "{first} {second}");
    }
    for (first, second) in [(&validate, &small), (&deny, &halt), (&deny, &set), (&yes, &deny), (&set, &fact)]
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

#[test]
fn bound_may_become_inclusive_or_exclusive_if_the_policy_still_covers_the_old_values() {
    let deny = |test: &str| {
        rules(&format!("{{ id: a, match: {{ tool: t, where: {{ path: $.input.n, {test} }} }}, deny: {{}} }}"))
    };
    for (narrow, wide) in [
        ("gt: 5", "gte: 5"),
        ("gte: 6", "gt: 5"),
        ("lt: 5", "lte: 5.0"),
        ("lte: 4.9", "lt: 5"),
        ("gt: 5, lte: 8", "gte: 5, lt: 9"),
    ] {
        assert_eq!(found(&deny(narrow), &deny(wide)), Vec::<String>::new(), "{narrow} → {wide}");
        assert_eq!(
            found(&deny(wide), &deny(narrow)),
            ["`a` (deny) is changed (`match`)"],
            "{wide} → {narrow}"
        );
    }
    for (old, new) in
        [("gt: 5", "lte: 5"), ("gte: 5", "gt: 5.0"), ("gt: b", "gte: b"), ("gt: 5, gte: 5", "gt: 5, lt: 9")]
    {
        assert_eq!(found(&deny(old), &deny(new)), ["`a` (deny) is changed (`match`)"], "{old} → {new}");
    }
}
