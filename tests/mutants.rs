//! Mutation testing: each mutation of a small bundle with a test case that misses it and one that catches it.

use callgate::policy;
use callgate_policy_tests::SuiteReport;
use callgate_policy_tests::mutation::{self, MUTATIONS, MutationReport};

/// A mutation, part of the changed line, a policy, a case that misses the mutation, and a case that is needed in addition to catch
/// it.
const CHANGES: &[(&str, &str, &str, &str, &str)] = &[
    (
        "policy-removed",
        "",
        "{ id: p, match: t, label: { add: [x] } }",
        "{ call: { tool: t }, expect: executed }",
        "{ call: { tool: t }, expect: { policies: p } }",
    ),
    (
        "shadow-enforced",
        "mode: enforce",
        "{ id: p, mode: shadow, match: t, deny: {} }",
        "{ call: { tool: u }, expect: executed }",
        "{ call: { tool: t }, expect: executed }",
    ),
    (
        "test-removed",
        "where: [ { path: $.input.a, eq: 1 } ]",
        "{ id: p, match: { tool: t, where: [ { path: $.input.a, eq: 1 }, { path: $.input.b, eq: 1 } ] }, deny: {} }",
        "{ call: { tool: t, input: { a: 1, b: 1 } }, expect: denied }",
        "{ call: { tool: t, input: { a: 1, b: 2 } }, expect: executed }",
    ),
    (
        "test-removed",
        "where: { expr: \"true\" }",
        "{ id: p, match: { where: { path: $.input.a, eq: 1 } }, deny: {} }",
        "{ call: { tool: t, input: { a: 1 } }, expect: denied }",
        "{ call: { tool: t, input: { a: 2 } }, expect: executed }",
    ),
    (
        "quantifier",
        "every: {",
        "{ id: p, match: { tool: t, where: { any_of: { path: \"$.input.a[*]\", gt: 5 } } }, deny: {} }",
        "{ call: { tool: t, input: { a: [6, 7] } }, expect: denied }",
        "{ call: { tool: t, input: { a: [6, 1] } }, expect: denied }",
    ),
    (
        "quantifier",
        "any_of: {",
        "{ id: p, match: { tool: t, where: { none: { path: \"$.input.a[*]\", gt: 5 } } }, deny: {} }",
        "{ call: { tool: u, input: { a: [1] } }, expect: executed }",
        "{ call: { tool: t, input: { a: [1] } }, expect: denied }",
    ),
    (
        "operator",
        "gte: 5",
        "{ id: p, match: { tool: t, where: { any_of: { path: \"$.input.a[*]\", as: row, all: [ { path: $row.n, gt: 5 } ] } } }, deny: {} }",
        "{ call: { tool: t, input: { a: [ { n: 6 } ] } }, expect: denied }",
        "{ call: { tool: t, input: { a: [ { n: 5 } ] } }, expect: executed }",
    ),
    (
        "operator",
        "gte: 100",
        "{ id: p, match: { where: { path: $.input.a, gt: 100 } }, deny: {} }",
        "{ call: { tool: t, input: { a: 101 } }, expect: denied }",
        "{ call: { tool: t, input: { a: 100 } }, expect: executed }",
    ),
    (
        "operator",
        "ne: x",
        "{ id: p, match: { tool: t, where: { path: $.input.a, eq: x } }, deny: {} }",
        "{ call: { tool: u, input: { a: x } }, expect: executed }",
        "{ call: { tool: t, input: { a: x } }, expect: denied }",
    ),
    (
        "operator",
        "not_in: [x, y]",
        "{ id: p, match: { tool: t, where: { path: $.input.a, in: [x, y] } }, deny: {} }",
        "{ call: { tool: u }, expect: executed }",
        "{ call: { tool: t, input: { a: x } }, expect: denied }",
    ),
    (
        "operator",
        "exists: false",
        "{ id: p, match: { tool: t, where: { path: $.input.a, exists: true } }, deny: {} }",
        "{ call: { tool: u }, expect: executed }",
        "{ call: { tool: t, input: { a: 1 } }, expect: denied }",
    ),
    (
        "negation",
        "where: { all: [ { path: $.input.a, eq: 1 } ] }",
        "{ id: p, match: { tool: t, where: { not: { path: $.input.a, eq: 1 } } }, deny: {} }",
        "{ call: { tool: u }, expect: executed }",
        "{ call: { tool: t, input: { a: 2 } }, expect: denied }",
    ),
    (
        "quantifier",
        "all: [",
        "{ id: p, match: { where: { any: [ { path: $.input.a, eq: 1 }, { path: $.input.b, eq: 1 } ] } }, deny: {} }",
        "{ call: { tool: t, input: { a: 1, b: 1 } }, expect: denied }",
        "{ call: { tool: t, input: { a: 1, b: 2 } }, expect: denied }",
    ),
    (
        "quantifier",
        "each: every",
        "{ id: p, match: { where: { path: \"$.input.a[*]\", each: any, eq: 1 } }, deny: {} }",
        "{ call: { tool: t, input: { a: [1] } }, expect: denied }",
        "{ call: { tool: t, input: { a: [1, 2] } }, expect: denied }",
    ),
    (
        "absence",
        "absent: no_match",
        "{ id: p, match: { where: { path: $.input.a, eq: 1, absent: match } }, deny: {} }",
        "{ call: { tool: t, input: { a: 1 } }, expect: denied }",
        "{ call: { tool: t }, expect: denied }",
    ),
    (
        "threshold",
        "gt: 101",
        "{ id: p, match: { where: { path: $.input.a, gt: 100 } }, deny: {} }",
        "{ call: { tool: t, input: { a: 102 } }, expect: denied }",
        "{ call: { tool: t, input: { a: 101 } }, expect: denied }",
    ),
    (
        "threshold",
        "lte: 4",
        "{ id: p, match: { where: { path: $.input.a, length: { lte: 5 } } }, deny: {} }",
        "{ call: { tool: t, input: { a: four } }, expect: denied }",
        "{ call: { tool: t, input: { a: fives } }, expect: denied }",
    ),
    (
        "expression",
        "||",
        "{ id: p, match: { where: { expr: \"input.a == 1 && input.b == 1\" } }, deny: {} }",
        "{ call: { tool: t, input: { a: 1, b: 1 } }, expect: denied }",
        "{ call: { tool: t, input: { a: 1, b: 2 } }, expect: executed }",
    ),
    (
        "expression",
        "?@ != 1",
        "{ id: p, match: { tool: t, where: { path: \"$.input.a[?@ == 1]\", exists: true } }, deny: {} }",
        "{ call: { tool: u }, expect: executed }",
        "{ call: { tool: t, input: { a: [1] } }, expect: denied }",
    ),
    (
        "expression",
        "a >= 1",
        "{ id: p, match: t, around: { script: \"if input.a > 1 { return 0; } next(input)\" } }",
        "{ call: { tool: t, input: { a: 2 } }, expect: { runs: 0 } }",
        "{ call: { tool: t, input: { a: 1 } }, expect: { runs: 1 } }",
    ),
    (
        "pattern",
        "match: \"*\"",
        "{ id: p, match: t, deny: {} }",
        "{ call: { tool: t }, expect: denied }",
        "{ call: { tool: u }, expect: executed }",
    ),
    (
        "pattern",
        "match: \"t_\"",
        "{ id: p, match: \"t_*\", deny: {} }",
        "{ call: { tool: t_ }, expect: denied }",
        "{ call: { tool: t_a }, expect: denied }",
    ),
    (
        "anchor",
        "match: \"/t/\"",
        "{ id: p, match: \"/^t/\", deny: {} }",
        "{ call: { tool: t }, expect: denied }",
        "{ call: { tool: at }, expect: executed }",
    ),
    (
        "anchor",
        "matches: \"(?i)^no\"",
        "{ id: p, match: { where: { path: $.input.a, matches: \"(?i)^no$\" } }, deny: {} }",
        "{ call: { tool: t, input: { a: NO } }, expect: denied }",
        "{ call: { tool: t, input: { a: node } }, expect: executed }",
    ),
    (
        "item-removed",
        "match: [t]",
        "{ id: p, match: [t, u], deny: {} }",
        "{ call: { tool: t }, expect: denied }",
        "{ call: { tool: u }, expect: denied }",
    ),
    (
        "item-removed",
        "in: [x]",
        "{ id: p, match: { where: { path: $.input.a, in: [x, y] } }, deny: {} }",
        "{ call: { tool: t, input: { a: x } }, expect: denied }",
        "{ call: { tool: t, input: { a: y } }, expect: denied }",
    ),
    (
        "item-removed",
        "detect: [us_ssn]",
        "{ id: p, redact: { in: [output], detect: [email, us_ssn] } }",
        "{ call: { tool: t, returns: 536-90-4399 }, expect: { output: \"[us_ssn]\" } }",
        "{ call: { tool: t, returns: a@example.com }, expect: { output: \"[email]\" } }",
    ),
    (
        "item-removed",
        "input: [ { path: $.input.b, trim: true } ]",
        "{ id: p, match: t, transform: { input: [ { path: $.input.a, trim: true }, { path: $.input.b, trim: true } ] } }",
        "{ call: { tool: t, input: { b: \" b\" } }, expect: { input: { b: b } } }",
        "{ call: { tool: t, input: { a: \" a\" } }, expect: { input: { a: a } } }",
    ),
    (
        "item-removed",
        "add: [x]",
        "{ id: p, match: t, label: { add: [x, y] } }",
        "{ call: { tool: t }, expect: { where: { path: \"$.session.labels[?@ == 'x']\", exists: true } } }",
        "{ call: { tool: t }, expect: { where: { path: \"$.session.labels[?@ == 'y']\", exists: true } } }",
    ),
    (
        "item-removed",
        "values: [input.b]",
        "{ id: p, match: t, require: { values: [input.a, input.b] } }",
        "{ call: { tool: t }, expect: denied }",
        "{ call: { tool: t, input: { b: 1 } }, expect: denied }",
    ),
    (
        "expression",
        "where: input.a >= 1",
        "{ id: p, match: { tool: t, where: input.a > 1 }, deny: {} }",
        "{ call: { tool: t, input: { a: 2 } }, expect: denied }",
        "{ call: { tool: t, input: { a: 1 } }, expect: executed }",
    ),
    (
        "operator",
        "as: word",
        "{ id: p, match: { tool: t, where: { path: $.input.a, mentioned_in: { path: $.context.b }, as: email } }, deny: {} }",
        "{ call: { tool: t, input: { a: a@example.com }, context: { b: to a@example.com } }, expect: denied }",
        "{ call: { tool: t, input: { a: a@example.com }, context: { b: mailto:a@example.com } }, expect: denied }",
    ),
    (
        "limit",
        "limit: 2",
        "{ id: p, rate_limit: { limit: 1, per: run } }",
        "{ call: { tool: t }, expect: executed }",
        "{ steps: [ { tool: t, expect: executed }, { tool: t, expect: denied } ] }",
    ),
    (
        "limit",
        "attempts: 3",
        "{ id: p, match: t, retry: { attempts: 2, idempotent: true } }",
        "{ call: { tool: t, returns: 1 }, expect: { runs: 1 } }",
        "{ call: { tool: t, fails: no }, expect: { runs: 2 } }",
    ),
    (
        "duration",
        "ttl: 30s",
        "{ id: p, match: t, cache: { ttl: 1m } }",
        "{ steps: [ { tool: t, expect: executed }, { wait: 61s }, { tool: t, expect: { runs: 1 } } ] }",
        "{ steps: [ { tool: t, returns: 1, expect: executed }, { wait: 59s }, { tool: t, expect: cached } ] }",
    ),
    (
        "duration",
        "within: 2d",
        "{ id: p, match: { tool: t, where: { path: $.input.at, within: 24h } }, deny: {} }",
        "{ clock: 2026-03-02T00:00:00Z, call: { tool: t, input: { at: \"2026-03-01T23:00:00Z\" } }, expect: denied }",
        "{ clock: 2026-03-02T00:00:00Z, call: { tool: t, input: { at: \"2026-02-28T23:00:00Z\" } }, expect: executed }",
    ),
    (
        "duration",
        "older_than: 12h",
        "{ id: p, match: { tool: t, where: { path: $.input.at, older_than: 24h } }, deny: {} }",
        "{ clock: 2026-03-02T00:00:00Z, call: { tool: t, input: { at: \"2026-02-20T23:00:00Z\" } }, expect: denied }",
        "{ clock: 2026-03-02T00:00:00Z, call: { tool: t, input: { at: \"2026-03-01T11:00:00Z\" } }, expect: executed }",
    ),
    (
        "limit",
        "max: 1",
        "{ id: p, match: t, fact: { name: seen, collect: result, max: 2 } }",
        "{ call: { tool: t, returns: 1 }, expect: { where: { path: \"$.session.facts.seen[0]\", eq: 1 } } }",
        "{ call: { tool: t, returns: [1, 2] }, expect: { where: { path: \"$.session.facts.seen[1]\", eq: 2 } } }",
    ),
    (
        "choice",
        "on_full: undecided",
        "{ id: p, match: t, fact: { name: seen, collect: result, max: 1, on_full: drop_oldest } }",
        "{ call: { tool: t, returns: 1 }, expect: { where: { path: \"$.session.facts.seen[0]\", eq: 1 } } }",
        "{ call: { tool: t, returns: [1, 2] }, expect: { where: { path: \"$.session.facts.seen[0]\", eq: 2 } } }",
    ),
    (
        "duration",
        "timeout: 2m",
        "{ id: p, timeout: 1m }",
        "{ call: { tool: t, takes: 3m }, expect: failed }",
        "{ call: { tool: t, takes: 61s }, expect: failed }",
    ),
    (
        "choice",
        "on_exceed: deny",
        "{ id: p, rate_limit: { limit: 1, per: run, on_exceed: halt } }",
        "{ call: { tool: t }, expect: executed }",
        "{ steps: [ { tool: t, expect: executed }, { tool: t, expect: halted } ] }",
    ),
    (
        "choice",
        "on_exceed: approval",
        "{ id: p, rate_limit: { limit: 1, per: 1h, on_exceed: deny } }",
        "{ call: { tool: t }, expect: executed }",
        "{ steps: [ { tool: t, expect: executed }, { tool: t, expect: denied } ] }",
    ),
    (
        "duration",
        "expires: 30m",
        "{ id: p, rate_limit: { limit: 1, per: 2h, on_exceed: approval, approval: { expires: 1h } } }",
        "{ steps: [ { tool: t }, { tool: t, expect: suspended } ] }",
        "{ steps: [ { tool: t }, { tool: t, id: second, expect: suspended }, { wait: 45m }, { approve: second, expect: executed } ] }",
    ),
    (
        "duration",
        "expires: 2h",
        "{ id: p, match: t, approval: { expires: 1h } }",
        "{ steps: [ { tool: t, id: a, expect: suspended }, { wait: 50m }, { approve: a, expect: executed } ] }",
        "{ steps: [ { tool: t, id: a, expect: suspended }, { wait: 70m }, { approve: a, expect: denied } ] }",
    ),
    (
        "limit",
        "quorum: 1",
        "{ id: p, match: t, approval: { quorum: 2 } }",
        "{ context: { principal: ana }, steps: [ { tool: t, id: a, expect: suspended }, { approve: a, by: kim }, { approve: a, by: max, expect: executed } ] }",
        "{ context: { principal: ana }, steps: [ { tool: t, id: a, expect: suspended }, { approve: a, by: kim, expect: suspended } ] }",
    ),
    (
        "item-removed",
        "approvers: [max]",
        "{ id: p, match: t, approval: { approvers: [kim, max] } }",
        "{ context: { principal: ana }, steps: [ { tool: t, id: a, expect: suspended }, { approve: a, by: max, expect: executed } ] }",
        "{ context: { principal: ana }, steps: [ { tool: t, id: a, expect: suspended }, { approve: a, by: kim, expect: executed } ] }",
    ),
    (
        "key-removed",
        "approval: { quorum: 1 }",
        "{ id: p, match: t, approval: { quorum: 1, approvers: [kim] } }",
        "{ context: { principal: ana }, steps: [ { tool: t, id: a, expect: suspended }, { approve: a, by: kim, expect: executed } ] }",
        "{ context: { principal: ana }, steps: [ { tool: t, id: a, expect: suspended }, { approve: a, by: max, expect: suspended } ] }",
    ),
    (
        "item-removed",
        "edits: [$.input.b]",
        "{ id: p, match: t, approval: { edits: [$.input.a, $.input.b] } }",
        "{ steps: [ { tool: t, id: x, input: { a: 1, b: 1 }, expect: suspended }, { edit: x, input: { a: 1, b: 2 }, expect: executed } ] }",
        "{ steps: [ { tool: t, id: x, input: { a: 1, b: 1 }, expect: suspended }, { edit: x, input: { a: 2, b: 1 }, expect: executed } ] }",
    ),
    (
        "duration",
        "for: 16h",
        "{ id: p, match: t, approval: { remember: { scope: arguments, for: 8h } } }",
        "{ context: { principal: ana }, steps: [ { tool: t, id: a, expect: suspended }, { approve: a, by: kim, expect: executed }, { wait: 7h }, { tool: t, expect: executed } ] }",
        "{ context: { principal: ana }, steps: [ { tool: t, id: a, expect: suspended }, { approve: a, by: kim, expect: executed }, { wait: 9h }, { tool: t, expect: suspended } ] }",
    ),
    (
        "choice",
        "present: all",
        "{ id: p, match: t, approval: { present: first } }",
        "{ steps: [ { tool: t, expect: suspended } ] }",
        "{ steps: [ { round: [ { tool: t, expect: suspended }, { tool: t, input: { b: 1 }, expect: denied } ] } ] }",
    ),
    (
        "expression",
        "input.a >= 5",
        "{ id: p, match: t, approval: { script: 'input.a > 5' } }",
        "{ call: { tool: t, input: { a: 6 } }, expect: suspended }",
        "{ call: { tool: t, input: { a: 5 } }, expect: executed }",
    ),
    (
        "expression",
        "input.a >= 5",
        "{ id: p, match: t, deny: { script: 'input.a > 5' } }",
        "{ call: { tool: t, input: { a: 6 } }, expect: denied }",
        "{ call: { tool: t, input: { a: 5 } }, expect: executed }",
    ),
    (
        "key-removed",
        "eq: Ana }",
        "{ id: p, match: { tool: t, where: { path: $.input.a, eq: Ana, ignore_case: true } }, deny: {} }",
        "{ call: { tool: t, input: { a: Ana } }, expect: denied }",
        "{ call: { tool: t, input: { a: ANA } }, expect: denied }",
    ),
    (
        "key-removed",
        "eq: paypal }",
        "{ id: p, match: { tool: t, where: { path: $.input.a, eq: paypal, confusables: fold } }, deny: {} }",
        "{ call: { tool: t, input: { a: paypal } }, expect: denied }",
        "{ call: { tool: t, input: { a: \"p\\u0430ypal\" } }, expect: denied }",
    ),
    (
        "threshold",
        "from: \"07:59\"",
        "{ id: p, match: { tool: t, where: { path: $.input.at, during: { from: \"08:00\", zone: UTC } } }, deny: {} }",
        "{ call: { tool: t, input: { at: 2026-01-05T08:00:00Z } }, expect: denied }",
        "{ call: { tool: t, input: { at: 2026-01-05T07:59:30Z } }, expect: executed }",
    ),
    (
        "item-removed",
        "days: [tue]",
        "{ id: p, match: { tool: t, where: { path: $.input.at, during: { days: [mon, tue], zone: UTC } } }, deny: {} }",
        "{ call: { tool: t, input: { at: 2026-01-06T08:00:00Z } }, expect: denied }",
        "{ call: { tool: t, input: { at: 2026-01-05T08:00:00Z } }, expect: denied }",
    ),
    (
        "key-removed",
        "per: run }",
        "{ id: p, rate_limit: { limit: 1, per: run, key: $.input.a } }",
        "{ call: { tool: t, input: { a: 1 } }, expect: executed }",
        "{ steps: [ { tool: t, input: { a: 1 }, expect: executed }, { tool: t, input: { a: 2 }, expect: executed } ] }",
    ),
];

fn mutated(rules: &[(&str, &str)], tests: &str) -> Result<MutationReport, SuiteReport> {
    let built = policy::build_texts(rules.iter().copied());
    assert!(built.policies.is_some(), "{rules:?}\n{:?}", built.diagnostics);
    let loaded = callgate_policy_tests::load_texts([("rules.test.yaml", tests)]);
    assert!(!loaded.diagnostics.has_errors(), "{tests}\n{:?}", loaded.diagnostics);
    mutation::mutate(&built, &loaded.suite, None, &mut |_, _| {})
}

/// Returns whether a mutant survives the cases.
fn survives(mutation: &str, after: &str, rules: &str, cases: &[&str]) -> bool {
    let cases: Vec<String> = (1..)
        .zip(cases)
        .map(|(number, case)| case.replacen('{', &format!("{{ name: '{number}',"), 1))
        .collect();
    let tests = format!("cases:\n  - {}\n", cases.join("\n  - "));
    let mutated = mutated(&[("rules.yaml", rules)], &tests).unwrap_or_else(|report| {
        panic!(
            "the cases fail over the rules as they are\n{rules}\n{}",
            callgate_policy_tests::render::text(&report, false)
        )
    });
    assert_eq!(mutated.changes, mutated.noticed + mutated.survived + mutated.accepted + mutated.invalid);
    mutated.survivors.iter().any(|survivor| {
        survivor.mutation == mutation && survivor.after.as_deref().unwrap_or_default().contains(after)
    })
}

#[test]
fn each_mutation_is_caught_only_by_its_own_case() {
    for (mutation, after, policy, passing, noticing) in CHANGES {
        let rules = format!("policies:\n  - {policy}\n");
        assert!(survives(mutation, after, &rules, &[passing]), "{mutation} `{after}` is caught by {passing}");
        assert!(
            !survives(mutation, after, &rules, &[passing, noticing]),
            "{mutation} `{after}` survives {noticing}"
        );
    }
}

#[test]
fn defaults_are_mutated() {
    let rules = "defaults: { unmatched: deny }\npolicies:\n  - { id: p, match: t, allow: {} }\n";
    let (passing, noticing) =
        ("{ call: { tool: t }, expect: executed }", "{ call: { tool: u }, expect: denied }");
    assert!(survives("default", "unmatched: allow", rules, &[passing]));
    assert!(!survives("default", "unmatched: allow", rules, &[passing, noticing]));
    let rules = "defaults: { absent: match }\npolicies:\n  - { id: p, match: { where: { path: $.input.a, eq: 1 } }, deny: {} }\n";
    let (passing, noticing) =
        ("{ call: { tool: t, input: { a: 1 } }, expect: denied }", "{ call: { tool: t }, expect: denied }");
    assert!(survives("default", "absent: no_match", rules, &[passing]));
    assert!(!survives("default", "absent: no_match", rules, &[passing, noticing]));
}

#[test]
fn definitions_are_mutated() {
    // The mutation, part of the changed line, the definitions with a policy, a case that misses it, and one that catches it.
    for (mutation, after, rules, passing, noticing) in [
        (
            "expression",
            "large: input.a >= 9",
            "let: { large: input.a > 9 }\npolicies: [ { id: p, match: { tool: t, where: large }, deny: {} } ]\n",
            "{ call: { tool: t, input: { a: 10 } }, expect: denied }",
            "{ call: { tool: t, input: { a: 9 } }, expect: executed }",
        ),
        (
            "threshold",
            "gt: 10",
            "let: { large: { path: $.input.a, gt: 9 } }\npolicies: [ { id: p, match: { tool: t, where: large }, deny: {} } ]\n",
            "{ call: { tool: t, input: { a: 11 } }, expect: denied }",
            "{ call: { tool: t, input: { a: 10 } }, expect: denied }",
        ),
        (
            "test-removed",
            "both: [input.a == 1]",
            "let: { both: [input.a == 1, input.b == 1] }\npolicies: [ { id: p, match: { tool: t, where: both }, deny: {} } ]\n",
            "{ call: { tool: t, input: { a: 1, b: 1 } }, expect: denied }",
            "{ call: { tool: t, input: { a: 1, b: 2 } }, expect: executed }",
        ),
        (
            "operator",
            "ne: 1",
            "defaults: { let: { one: { path: $.input.a, eq: 1 } } }\npolicies: [ { id: p, match: { tool: t, where: one }, deny: {} } ]\n",
            "{ call: { tool: u }, expect: executed }",
            "{ call: { tool: t, input: { a: 1 } }, expect: denied }",
        ),
        (
            "expression",
            "a >= 9",
            "functions: 'fn large(a) { a > 9 }'\npolicies: [ { id: p, match: { tool: t, where: large(input.a) }, deny: {} } ]\n",
            "{ call: { tool: t, input: { a: 10 } }, expect: denied }",
            "{ call: { tool: t, input: { a: 9 } }, expect: executed }",
        ),
        (
            "item-removed",
            "moving: [t]",
            "groups: { moving: [t, u] }\npolicies: [ { id: p, match: '@moving', deny: {} } ]\n",
            "{ call: { tool: t }, expect: denied }",
            "{ call: { tool: u }, expect: denied }",
        ),
    ] {
        assert!(survives(mutation, after, rules, &[passing]), "{mutation} `{after}` is caught by {passing}");
        assert!(
            !survives(mutation, after, rules, &[passing, noticing]),
            "{mutation} `{after}` survives {noticing}"
        );
    }
}

#[test]
fn only_definitions_that_policies_use_are_mutated() {
    let rules = "defaults: { let: { large: input.a > 9 } }\nlet: { large: input.a > 99, unused: input.a == 1 }\n\
                 policies: [ { id: p, match: { tool: t, where: large }, deny: {} } ]\n";
    let tests = "cases: [ { name: none, call: { tool: u }, expect: executed } ]";
    let report = mutated(&[("rules.yaml", rules)], tests).unwrap();
    let of_lets: Vec<_> =
        report.survivors.iter().filter_map(|survivor| survivor.definition.as_deref()).collect();
    assert_eq!(of_lets, ["let large"]);
}

#[test]
fn every_mutation_has_a_case() {
    for mutation in MUTATIONS {
        let here = CHANGES.iter().any(|(name, ..)| *name == mutation.name);
        assert!(here || mutation.name == "default", "{}", mutation.name);
    }
}

const SHOP: &str = "policies:
  - id: large-refunds
    match:
      tool: &refunds
        - refund
        - refund_all
      where:
        - path: $.input.amount
          gt: 100
        - not:
            path: $.context.role
            eq: lead
    deny:
      message: >-
        Not so much.
";

const CARDS: &str = "policies:
  - id: cards
    match: { tool: [show, list] }
    redact:
      detect:
        - payment_card
        - iban
  - { id: off, mode: off, match: t, deny: {} }
";

const SHOP_CASES: &str = "cases:
  - name: large refunds
    call: { tool: refund, input: { amount: 250 } }
    rows:
      - expect: denied
      - { input: { amount: 5 }, expect: executed }
";

#[test]
fn surviving_mutants_match_snapshots() {
    let mutated = mutated(&[("shop.yaml", SHOP), ("cards.yaml", CARDS)], SHOP_CASES).unwrap();
    let shown = format!("{}{}\n", mutation::text(&mutated, false), mutation::summary(&mutated));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| {
        insta::assert_snapshot!("mutants", shown);
        insta::assert_snapshot!("mutants_json", mutation::json(&mutated).unwrap());
    });
}

#[test]
fn comment_with_a_reason_accepts_surviving_mutants() {
    let test = "path: $.input.a, gt: 100";
    let rules = |above_policy: &str, above_test: &str, beside: &str| {
        format!(
            "policies:\n  {above_policy}\n  - id: p\n    match:\n      tool: t\n      where:\n        {above_test}\n        - {{ {test} }} {beside}\n    deny: {{}}\n"
        )
    };
    let cases = "cases: [ { name: a, call: { tool: t, input: { a: 200 } }, expect: denied }, { name: b, call: { tool: t, input: { a: 50 } }, expect: executed }, { name: c, call: { tool: u, input: { a: 200 } }, expect: executed } ]";
    let tried = |rules: &str| mutated(&[("rules.yaml", rules)], cases).unwrap();
    let none = tried(&rules("", "", ""));
    assert_eq!((none.survived, none.accepted, none.passed()), (3, 0, false));
    let comment = "# callgate: survives threshold, operator because amounts are never near it";
    for written in [rules(comment, "", ""), rules("", comment, ""), rules("", "", comment)] {
        let accepted = tried(&written);
        assert_eq!((accepted.survived, accepted.accepted), (0, 3), "{written}");
        assert!(accepted.passed(), "{:?}", accepted.unused);
        let reasons = accepted.survivors.iter().map(|survivor| survivor.accepted.as_deref());
        assert!(reasons.eq([Some("amounts are never near it"); 3]));
    }
    let wrong = |comment: &str| {
        let mutated = tried(&rules("", comment, ""));
        assert!(!mutated.passed());
        let messages = mutated
            .unused
            .iter()
            .map(|unused| format!("{}:{} {}", unused.line, unused.column, unused.message));
        (mutated.survived, messages.collect::<Vec<_>>().join("\n"))
    };
    for (comment, survived, expected) in [
        ("# callgate: survives threshold", 3, "7:9 this comment gives no reason"),
        ("# callgate: survives because of this", 3, "7:9 this comment names no mutation"),
        (
            "# callgate: survives treshold because a",
            3,
            "7:30 unknown mutation `treshold`; did you mean `threshold`?",
        ),
        ("# callgate: survives threshold, negation because a", 1, "7:41 no `negation` survives here"),
    ] {
        let (count, message) = wrong(comment);
        assert_eq!(count, survived, "{comment}");
        assert!(message.starts_with(expected), "{comment}: {message}");
    }
}

/// Asserts that the tests of a bundle catch every mutant, except those that a comment accepts.
fn assert_all_noticed(bundle: &str) {
    let paths = [crate::fixtures::root().join("policies").join(bundle)];
    let loaded = callgate_policy_tests::load(&paths);
    let mutated = mutation::mutate(&policy::build(&paths), &loaded.suite, None, &mut |_, _| {});
    let mutated =
        mutated.unwrap_or_else(|report| panic!("{}", callgate_policy_tests::render::text(&report, false)));
    assert!(mutated.passed() && mutated.changes > 0, "{}", mutation::text(&mutated, false));
}

#[test]
fn tests_of_small_bundles_catch_every_mutant() {
    ["starter", "pii", "recipes", "runs"].into_iter().for_each(assert_all_noticed);
}

#[test]
fn tests_of_the_retail_bundle_catch_every_mutant() {
    assert_all_noticed("retail");
}

#[test]
fn tests_of_the_filesystem_bundle_catch_every_mutant() {
    assert_all_noticed("filesystem");
}

#[test]
fn tests_of_the_git_bundle_catch_every_mutant() {
    assert_all_noticed("git");
}

#[test]
fn tests_of_the_assistant_bundle_catch_every_mutant() {
    assert_all_noticed("assistant");
}

#[test]
fn tests_of_the_email_calendar_bundle_catch_every_mutant() {
    assert_all_noticed("email-calendar");
}

#[test]
fn tests_of_the_payments_bundle_catch_every_mutant() {
    assert_all_noticed("payments");
}

/// Its conditions are lists of programs, for which a case each would say the list again; its policies and levels are mutated.
#[test]
fn tests_of_the_coding_agent_bundle_catch_every_mutant_of_its_policies() {
    let paths = [crate::fixtures::root().join("policies").join("coding-agent")];
    let loaded = callgate_policy_tests::load(&paths);
    let mutated = mutation::mutate(&policy::build(&paths), &loaded.suite, Some("rules.yaml"), &mut |_, _| {});
    let mutated =
        mutated.unwrap_or_else(|report| panic!("{}", callgate_policy_tests::render::text(&report, false)));
    assert!(mutated.passed() && mutated.changes > 0, "{}", mutation::text(&mutated, false));
}

#[test]
fn every_shipped_bundle_has_a_mutation_test() {
    let policies = crate::fixtures::root().join("policies");
    let here = include_str!("mutants.rs");
    for entry in std::fs::read_dir(policies).unwrap().map(Result::unwrap) {
        if !entry.path().is_dir() {
            continue;
        }
        let name = entry.file_name().into_string().unwrap();
        assert!(here.contains(&format!("\"{name}\"")), "policies/{name}");
    }
}

#[test]
fn mutation_requires_a_passing_suite() {
    let failing = "cases: [ { name: a, call: { tool: t }, expect: denied } ]";
    let report = mutated(&[("rules.yaml", "policies: []")], failing).unwrap_err();
    assert!(!report.passed());
}

#[test]
fn mutants_with_invalid_rules_are_counted_separately() {
    let cases = "cases: [ { name: a, steps: [ { tool: t, expect: executed } ] } ]";
    let mutated =
        mutated(&[("rules.yaml", "policies: [ { id: p, match: t, recover: { attempts: 1 } } ]")], cases)
            .unwrap();
    assert_eq!(mutated.invalid, 1);
    assert!(
        mutated
            .survivors
            .iter()
            .all(|survivor| survivor.after.as_deref().is_none_or(|after| !after.contains("attempts: 0")))
    );
}

#[test]
fn filter_limits_which_policies_are_mutated() {
    let built = policy::build_texts([("shop.yaml", SHOP), ("cards.yaml", CARDS)]);
    let loaded = callgate_policy_tests::load_texts([("rules.test.yaml", SHOP_CASES)]);
    let changed = |only: &str| {
        let mutated = mutation::mutate(&built, &loaded.suite, Some(only), &mut |_, _| {}).unwrap();
        let files: std::collections::BTreeSet<String> =
            mutated.survivors.iter().map(|survivor| survivor.file.clone()).collect();
        (mutated.changes > 0, files.into_iter().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(changed("LARGE"), (true, "shop.yaml".to_owned()));
    assert_eq!(changed("cards.yaml"), (true, "cards.yaml".to_owned()));
    assert_eq!(changed("elsewhere"), (false, String::new()));
}

#[test]
fn documentation_lists_every_mutation() {
    let page = include_str!("../docs/mutation.md");
    for mutation in MUTATIONS {
        let row = format!("| `{}` | {} |", mutation.name, mutation.doc);
        assert!(page.contains(&row), "docs/mutation.md lacks\n{row}");
    }
}
