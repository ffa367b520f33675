//! Branch coverage of policy tests: the report lists what no case covers, and the shipped bundles are fully covered.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use callgate::policy::{self, LoadedBundle};
use callgate_policy_tests::{Coverage, CoverageReport, LoadedSuite, UncountedReason, render};

use crate::recorded_calls::project;

fn run(mut built: LoadedBundle, mut loaded: LoadedSuite) -> CoverageReport {
    let chains = Arc::new(built.policies.take().unwrap_or_else(|| panic!("{:?}", built.diagnostics)));
    loaded.check_against(&chains);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let coverage = Arc::new(Coverage::new(&chains, &built.files));
    let report = loaded.suite.run_with_coverage(&chains, &coverage, &mut |_| {});
    assert!(report.passed(), "{}", render::text(&report, false));
    coverage.report(&built.sources)
}

/// Returns the coverage of rules by cases, which are given without their names.
fn covered(rules: &str, cases: &[&str]) -> CoverageReport {
    let mut text = "cases:\n".to_owned();
    for (number, case) in cases.iter().enumerate() {
        text.push_str(&format!("  - {{ name: case {number}, {case} }}\n"));
    }
    if cases.is_empty() {
        text.push_str("  - { name: nothing of it, call: { tool: nothing_of_it }, expect: { runs: 1 } }\n");
    }
    run(
        policy::build_texts([("rules.yaml", rules)]),
        callgate_policy_tests::load_texts([("rules.test.yaml", text)]),
    )
}

/// Lists what is not covered: for each place its type and source, and the sides that no case covers.
fn missing(report: &CoverageReport) -> Vec<String> {
    let lines = report
        .points()
        .filter_map(|place| Some(format!("{} {}: {}", place.what, place.text, place.missing()?)));
    lines.collect()
}

/// Rules, then cases in order, each with what is still missing after it.
type Scenario<'s> = (&'s str, &'s [(&'s str, &'s [&'s str])]);

fn assert_missing(scenarios: &[Scenario<'_>]) {
    for (rules, steps) in scenarios {
        for known in 1..=steps.len() {
            let cases: Vec<&str> =
                steps[..known].iter().map(|(case, _)| *case).filter(|case| !case.is_empty()).collect();
            let report = covered(rules, &cases);
            assert_eq!(missing(&report), steps[known - 1].1, "{rules}\n{cases:#?}");
            assert_eq!(report.covered == report.total, steps[known - 1].1.is_empty());
        }
    }
}

const RUN: &str = "call: { tool: pay, input: { amount: 5 } }, expect: { runs: 1 }";
const NOT_RUN: &str = "call: { tool: pay, input: { amount: 50 } }, expect: { runs: 0 }";

#[test]
fn matcher_parts_must_be_true_and_false() {
    assert_missing(&[
        // A policy and the patterns of its tools.
        (
            "policies: [ { id: p, match: [pay, \"re*\"], deny: {} } ]",
            &[
                (
                    "",
                    &[
                        "policy p: never matched",
                        "tool pay: never true",
                        "tool \"re*\": never true",
                        "kind deny: never gave the reason",
                    ],
                ),
                (
                    "call: { tool: pay }, expect: denied",
                    &["policy p: never failed to match", "tool pay: never false", "tool \"re*\": never true"],
                ),
                ("call: { tool: refund }, expect: denied", &["policy p: never failed to match"]),
                ("call: { tool: get }, expect: executed", &[]),
            ],
        ),
        // `*` matches every name, and a policy for every call never fails to match.
        ("policies: [ { id: p, match: \"*\", deny: {} } ]", &[("call: { tool: t }, expect: denied", &[])]),
        ("policies: [ { id: p, halt: {} } ]", &[("call: { tool: t }, expect: halted", &[])]),
        // The server is evaluated only if the tool matches.
        (
            "policies: [ { id: p, match: { tool: pay, server: bank }, deny: {} } ]",
            &[
                (
                    "call: { tool: pay, server: bank }, expect: denied",
                    &["policy p: never failed to match", "tool pay: never false", "server bank: never false"],
                ),
                ("call: { tool: get, server: shop }, expect: executed", &["server bank: never false"]),
                ("call: { tool: pay, server: shop }, expect: executed", &[]),
            ],
        ),
        // A test counts also if the index skips its policy.
        (
            "policies: [ { id: p, match: { where: { path: $.input.to, eq: eve } }, deny: {} } ]",
            &[
                (
                    "call: { tool: t, input: { to: eve } }, expect: denied",
                    &["policy p: never failed to match", "test { path: $.input.to, eq: eve }: never false"],
                ),
                ("call: { tool: t, input: { to: bob } }, expect: executed", &[]),
            ],
        ),
        // A test of an absent value is false unless `absent: match` is set.
        (
            "policies: [ { id: p, match: { where: { path: $.input.to, ne: bob, absent: match } }, deny: {} } ]",
            &[
                (
                    "call: { tool: t }, expect: denied",
                    &[
                        "policy p: never failed to match",
                        "test { path: $.input.to, ne: bob, absent: match }: never false",
                    ],
                ),
                ("call: { tool: t, input: { to: bob } }, expect: executed", &[]),
            ],
        ),
        // An undecided test is neither true nor false, although the policy applies.
        (
            "policies: [ { id: p, match: { where: { path: $.input.amount, gt: 9 } }, deny: {} } ]",
            &[
                (
                    "call: { tool: t, input: { amount: a lot } }, expect: denied",
                    &[
                        "policy p: never failed to match",
                        "test { path: $.input.amount, gt: 9 }: never true, never false",
                    ],
                ),
                (
                    NOT_RUN,
                    &["policy p: never failed to match", "test { path: $.input.amount, gt: 9 }: never false"],
                ),
                (RUN, &[]),
            ],
        ),
        (
            "policies: [ { id: p, match: { where: { expr: input.amount > 9 } }, deny: {} } ]",
            &[
                (
                    RUN,
                    &[
                        "policy p: never matched",
                        "expr { expr: input.amount > 9 }: never true",
                        "kind deny: never gave the reason",
                    ],
                ),
                (NOT_RUN, &[]),
            ],
        ),
    ]);
}

#[test]
fn parts_count_only_if_evaluation_reaches_them() {
    assert_missing(&[
        // `any` short-circuits after a part that is true.
        (
            "policies: [ { id: p, match: { where: { any: [ { path: $.input.a, eq: 1 }, { path: $.input.b, eq: 1 } ] } }, deny: {} } ]",
            &[
                (
                    "call: { tool: t, input: { a: 1, b: 1 } }, expect: denied",
                    &[
                        "policy p: never failed to match",
                        "any { any: [ { path: $.input.a, eq: 1 }, { path: $.input.b, eq: 1 } ] }: never false",
                        "test { path: $.input.a, eq: 1 }: never false",
                        "test { path: $.input.b, eq: 1 }: never reached",
                    ],
                ),
                (
                    "call: { tool: t, input: { a: 2, b: 2 } }, expect: executed",
                    &["test { path: $.input.b, eq: 1 }: never true"],
                ),
                ("call: { tool: t, input: { a: 2, b: 1 } }, expect: denied", &[]),
            ],
        ),
        // `all` short-circuits after a part that is false; a list is `all`, and a list of one is its only item.
        (
            "policies: [ { id: p, match: { where: [ { path: $.input.a, eq: 1 }, { path: $.input.b, eq: 1 } ] }, deny: {} } ]",
            &[
                (
                    "call: { tool: t, input: { a: 2, b: 2 } }, expect: executed",
                    &[
                        "policy p: never matched",
                        "all [ { path: $.input.a, eq: 1 }, { path: $.input.b, eq: 1 } ]: never true",
                        "test { path: $.input.a, eq: 1 }: never true",
                        "test { path: $.input.b, eq: 1 }: never reached",
                        "kind deny: never gave the reason",
                    ],
                ),
                (
                    "call: { tool: t, input: { a: 1, b: 1 } }, expect: denied",
                    &["test { path: $.input.b, eq: 1 }: never false"],
                ),
                ("call: { tool: t, input: { a: 1, b: 2 } }, expect: executed", &[]),
            ],
        ),
        (
            "policies: [ { id: p, match: { where: [ { not: { path: $.input.a, eq: 1 } } ] }, deny: {} } ]",
            &[
                (
                    "call: { tool: t, input: { a: 1 } }, expect: executed",
                    &[
                        "policy p: never matched",
                        "not { not: { path: $.input.a, eq: 1 } }: never true",
                        "test { path: $.input.a, eq: 1 }: never false",
                        "kind deny: never gave the reason",
                    ],
                ),
                ("call: { tool: t, input: { a: 2 } }, expect: denied", &[]),
            ],
        ),
        // Conditions are evaluated only if tool and server match.
        (
            "policies: [ { id: p, match: { tool: pay, where: { path: $.input.a, eq: 1 } }, deny: {} } ]",
            &[(
                "call: { tool: get, input: { a: 2 } }, expect: executed",
                &[
                    "policy p: never matched",
                    "tool pay: never true",
                    "test { path: $.input.a, eq: 1 }: never reached",
                    "kind deny: never gave the reason",
                ],
            )],
        ),
    ]);
}

#[test]
fn functions_and_arms_of_switch_must_run() {
    let functions = "functions: |\n  fn rate(kind) { switch kind { \"a\" | \"b\" => 1, 3..5 => 2, _ => 0 } }\n  fn unused() { 1 }\n";
    let rules = format!(
        "{functions}policies: [ {{ id: p, match: t, deny: {{ script: 'rate(input.k) > input.n' }} }} ]"
    );
    let function = "function rate: never ran";
    let [first, second, rest] = [r#"arm "a" | "b": never ran"#, "arm 3..5: never ran", "arm _: never ran"];
    let gives = "kind deny: never gave the reason";
    assert_missing(&[(
        &rules,
        &[
            ("", &[function, first, second, rest, "policy p: never matched", "tool t: never true", gives]),
            (
                "call: { tool: t, input: { k: b, n: 5 } }, expect: executed",
                &[second, rest, "policy p: never failed to match", "tool t: never false", gives],
            ),
            (
                "call: { tool: t, input: { k: 9, n: 5 } }, expect: executed",
                &[second, "policy p: never failed to match", "tool t: never false", gives],
            ),
            (
                "call: { tool: t, input: { k: 4, n: 1 } }, expect: denied",
                &["policy p: never failed to match", "tool t: never false"],
            ),
            ("call: { tool: u }, expect: executed", &[]),
        ],
    )]);
    // In scripts, the arms belong to their policy.
    let other = "call: { tool: u }, expect: executed";
    for (policy, first, rest) in [
        ("deny: { script: 'switch input.k { 1 => true, _ => false }' }", "denied", "executed"),
        ("around: { script: 'switch input.k { 1 => next(input), _ => 6 }' }", "executed", "answered"),
    ] {
        let rules = format!("policies: [ {{ id: p, match: t, {policy} }} ]");
        let first = format!("call: {{ tool: t, input: {{ k: 1 }} }}, expect: {first}");
        let rest = format!("call: {{ tool: t, input: {{ k: 2 }} }}, expect: {rest}");
        assert_eq!(missing(&covered(&rules, &[other, &first])), ["arm _: never ran"], "{policy}");
        assert_eq!(missing(&covered(&rules, &[other, &first, &rest])), [""; 0], "{policy}");
    }
}

#[test]
fn sets_must_be_full() {
    for bound in ["max: 2", "max: 2, on_full: drop_oldest"] {
        let rules =
            format!("policies: [ {{ id: keep, fact: {{ name: seen, collect: input.id, {bound} }} }} ]");
        let steps = |count: usize| {
            let calls: Vec<String> = (1..=count)
                .map(|id| format!("{{ tool: t, input: {{ id: {id} }}, returns: 1, expect: executed }}"))
                .collect();
            format!("steps: [ {} ]", calls.join(", "))
        };
        let full = |report: &CoverageReport| missing(report).contains(&"kind fact: never full".to_owned());
        let two = covered(&rules, &[&steps(2)]);
        assert!(full(&two), "{bound}: {:?}", missing(&two));
        assert!(!full(&covered(&rules, &[&steps(3)])), "{bound}");
    }
    // Larger sets than a case has calls are not counted.
    let large = "policies: [ { id: keep, fact: { name: seen, collect: input.id, max: 101 } } ]";
    assert!(
        covered(large, &["call: { tool: t, input: { id: 1 } }, expect: executed"])
            .points()
            .all(|point| point.what != "kind")
    );
}

#[test]
fn policy_effects_must_be_observed() {
    assert_missing(&[
        // If two policies deny, only the first gives the reason.
        (
            "policies: [ { id: first, match: t, deny: {} }, { id: second, match: [t, u], deny: {} } ]",
            &[
                (
                    "call: { tool: t }, expect: denied",
                    &[
                        "policy first: never failed to match",
                        "tool t: never false",
                        "policy second: never failed to match",
                        "tool t: never false",
                        "tool u: never true",
                        "kind deny: never gave the reason",
                    ],
                ),
                (
                    "call: { tool: v }, expect: executed",
                    &["tool u: never true", "kind deny: never gave the reason"],
                ),
                ("call: { tool: u }, expect: denied", &[]),
            ],
        ),
        (
            "policies: [ { id: p, match: t, approval: {} }, { id: q, match: t, deny: {} } ]",
            &[(
                "call: { tool: t }, expect: denied",
                &[
                    "policy p: never failed to match",
                    "tool t: never false",
                    "kind approval: never required approval",
                    "policy q: never failed to match",
                    "tool t: never false",
                ],
            )],
        ),
        (
            "policies: [ { id: p, match: \"*\", approval: {} } ]",
            &[("call: { tool: t }, expect: suspended", &[])],
        ),
        ("policies: [ { id: p, allow: {} } ]", &[("call: { tool: t }, expect: executed", &[])]),
        ("policies: [ { id: p, respond: { output: 1 } } ]", &[("call: { tool: t }, expect: answered", &[])]),
        ("policies: [ { id: p, halt: {} } ]", &[("call: { tool: t }, expect: halted", &[])]),
        (
            "policies: [ { id: p, validate: { schema: { required: [a] } } } ]",
            &[
                ("call: { tool: t, input: { a: 1 } }, expect: executed", &["kind validate: never invalid"]),
                ("call: { tool: t }, expect: invalid", &[]),
            ],
        ),
        (
            "policies: [ { id: p, rate_limit: { limit: 1, per: 1h } } ]",
            &[
                ("call: { tool: t }, expect: executed", &["kind rate_limit: never exceeded"]),
                ("steps: [ { tool: t }, { tool: t, expect: denied } ]", &[]),
            ],
        ),
        (
            "policies: [ { id: p, rate_limit: { limit: 1, per: run } } ]",
            &[
                ("call: { tool: t }, expect: executed", &["kind rate_limit: never exceeded"]),
                ("steps: [ { tool: t }, { tool: t, expect: denied } ]", &[]),
            ],
        ),
        (
            "policies: [ { id: p, rate_limit: { limit: 1, per: 1h, on_exceed: approval } } ]",
            &[
                ("call: { tool: t }, expect: executed", &["kind rate_limit: never exceeded"]),
                ("steps: [ { tool: t }, { id: u, tool: t }, { approve: u, expect: executed } ]", &[]),
            ],
        ),
        // Calls of a case never run concurrently.
        ("policies: [ { id: p, concurrency: { max: 1 } } ]", &[("call: { tool: t }, expect: executed", &[])]),
        (
            "policies: [ { id: p, cache: { ttl: 1h, scope: shared } } ]",
            &[
                (
                    "call: { tool: t, returns: 1 }, expect: executed",
                    &["kind cache: never answered from the cache"],
                ),
                ("steps: [ { tool: t, returns: 1 }, { tool: t, expect: cached } ]", &[]),
            ],
        ),
        (
            "policies: [ { id: p, match: t, around: { script: next(input) } } ]",
            &[
                (
                    "call: { tool: u }, expect: executed",
                    &["policy p: never matched", "tool t: never true", "kind around: never ran"],
                ),
                ("call: { tool: t }, expect: executed", &[]),
            ],
        ),
        (
            "policies: [ { id: p, retry: { attempts: 2, on: [timeout, \"/50./\"], idempotent: true } } ]",
            &[
                (
                    "call: { tool: t }, expect: executed",
                    &[
                        "kind retry: never retried",
                        "error timeout: never reached",
                        "error \"/50./\": never reached",
                    ],
                ),
                (
                    "call: { tool: t, fails: other }, expect: failed",
                    &[
                        "kind retry: never retried",
                        "error timeout: never true",
                        "error \"/50./\": never true",
                    ],
                ),
                (
                    "call: { tool: t, fails: { message: late, kind: timeout } }, expect: { runs: 2 }",
                    &["error \"/50./\": never true"],
                ),
                ("call: { tool: t, fails: status 503 }, expect: { runs: 2 }", &[]),
            ],
        ),
        (
            "policies: [ { id: p, timeout: 5s } ]",
            &[
                ("call: { tool: t }, expect: executed", &["kind timeout: never timed out"]),
                ("call: { tool: t, takes: 6s }, expect: failed", &[]),
            ],
        ),
        (
            "policies: [ { id: p, recover: { on: \"/found/\" } } ]",
            &[
                (
                    "call: { tool: t }, expect: executed",
                    &[
                        "policy p: never matched",
                        "kind recover: never recovered an error",
                        "error \"/found/\": never reached",
                    ],
                ),
                (
                    "call: { tool: t, fails: not found }, expect: recovered",
                    &["error \"/found/\": never false"],
                ),
                ("call: { tool: t, fails: other }, expect: failed", &[]),
            ],
        ),
        // Cases can exceed only the budgets of calls.
        (
            "policies: [ { id: p, match: { where: { path: $.session.labels, contains: x } }, budget: { calls: 1, on_exceed: deny, tokens: 5 } } ]",
            &[
                (
                    "call: { tool: t }, expect: executed",
                    &["policy p: never matched", "kind budget: never exceeded"],
                ),
                (
                    "session: { labels: [x] }, call: { tool: t }, expect: executed",
                    &["kind budget: never exceeded"],
                ),
                ("session: { labels: [x] }, steps: [ { tool: t }, { tool: t, expect: denied } ]", &[]),
            ],
        ),
        // Labels have no effect beyond their match that could be missing.
        (
            "policies: [ { id: p, match: t, label: { add: [read] } } ]",
            &[
                (
                    "call: { tool: t }, expect: executed",
                    &["policy p: never failed to match", "tool t: never false"],
                ),
                ("call: { tool: u }, expect: executed", &[]),
            ],
        ),
    ]);
}

#[test]
fn transform_steps_and_detectors_must_have_an_effect() {
    assert_missing(&[
        (
            "policies: [ { id: p, transform: { input: [ { path: $.input.a, trim: true }, { path: $.input.a, lowercase: true } ] } } ]",
            &[
                (
                    "call: { tool: t, input: { a: \" x\" } }, expect: executed",
                    &["step { path: $.input.a, lowercase: true }: never changed anything"],
                ),
                // The second step gets the output of the first.
                ("call: { tool: t, input: { a: \" X\" } }, expect: { input: { a: x } }", &[]),
            ],
        ),
        (
            "policies: [ { id: p, transform: { output: [ { path: $.output.a, remove: true } ] } } ]",
            &[
                (
                    "call: { tool: t, input: { a: 1 }, returns: { b: 1 } }, expect: executed",
                    &["step { path: $.output.a, remove: true }: never changed anything"],
                ),
                ("call: { tool: t, returns: { a: 1 } }, expect: { output: {} }", &[]),
            ],
        ),
        (
            "policies: [ { id: p, redact: { detect: [email, iban], patterns: [\"zz+\", \"k-[0-9]\"] } } ]",
            &[
                (
                    "call: { tool: t, returns: ana@example.com }, expect: executed",
                    &[
                        "detector iban: never found anything",
                        "pattern \"zz+\": never found anything",
                        "pattern \"k-[0-9]\": never found anything",
                    ],
                ),
                (
                    "call: { tool: t, input: { to: DE89 3704 0044 0532 0130 00 } }, expect: executed",
                    &["pattern \"zz+\": never found anything", "pattern \"k-[0-9]\": never found anything"],
                ),
                ("call: { tool: t, fails: no zz with k-1 }, expect: failed", &[]),
            ],
        ),
        // If only the result is searched, arguments do not count.
        (
            "policies: [ { id: p, redact: { in: output, detect: email } } ]",
            &[(
                "call: { tool: t, input: { to: ana@example.com } }, expect: executed",
                &["detector email: never found anything"],
            )],
        ),
    ]);
}

#[test]
fn default_for_unmatched_calls_must_apply_and_be_overridden() {
    for (word, outcome) in [("deny", "denied"), ("approval", "suspended")] {
        let rules =
            format!("defaults: {{ unmatched: {word} }}\npolicies: [ {{ id: p, match: t, allow: {{}} }} ]");
        let stopped = format!("call: {{ tool: u }}, expect: {outcome}");
        let report = covered(&rules, &["call: { tool: t }, expect: executed"]);
        assert_eq!(missing(&report)[0], format!("unmatched {word}: never applied"));
        let report = covered(&rules, &[&stopped]);
        assert_eq!(missing(&report)[0], format!("unmatched {word}: never overridden"));
        let report = covered(&rules, &[&stopped, "call: { tool: t }, expect: executed"]);
        assert_eq!(missing(&report), [""; 0]);
    }
    let report = covered("defaults: { unmatched: allow }\npolicies: []", &[]);
    assert_eq!((report.total, report.percent, report.reaches(100.0)), (0, 100.0, true));
}

#[test]
fn shadow_policies_count_and_untestable_policies_are_listed_separately() {
    let rules = "
policies:
  - { id: watched, mode: shadow, match: t, deny: {} }
  - { id: counted, mode: shadow, rate_limit: { limit: 1, per: 1h } }
  - { id: sleeping, mode: off, match: t, deny: {} }
  - { id: bound, budget: { tokens: 5 } }
  - { id: plain, model: { max_tokens: { max: 5 } } }
";
    let report = covered(rules, &["call: { tool: t }, expect: executed"]);
    let lacks =
        ["policy watched: never failed to match", "tool t: never false", "kind rate_limit: never exceeded"];
    assert_eq!(missing(&report), lacks);
    let modes: Vec<_> =
        report.files[0].policies.iter().map(|policy| (policy.id.as_str(), policy.mode)).collect();
    assert_eq!(modes, [("watched", "shadow"), ("counted", "shadow")]);
    let not_counted: Vec<_> =
        report.files[0].not_counted.iter().map(|one| (one.id.as_str(), one.why)).collect();
    assert_eq!(
        not_counted,
        [
            ("sleeping", UncountedReason::Off),
            ("bound", UncountedReason::OfRun),
            ("plain", UncountedReason::OfRun)
        ]
    );
    let more =
        ["call: { tool: u }, expect: executed", "steps: [ { tool: t }, { tool: t, expect: executed } ]"];
    assert_eq!(missing(&covered(rules, &more)), [""; 0]);
}

#[test]
fn percentages_are_rounded_down() {
    let rules = "policies: [ { id: p, match: { tool: t, where: { path: $.input.a, eq: 1 } }, deny: {} } ]";
    let report = covered(rules, &["call: { tool: t, input: { a: 1 } }, expect: denied"]);
    assert_eq!((report.covered, report.total, report.percent), (4, 7, 57.1));
    assert!(report.reaches(57.14) && !report.reaches(57.15));
}

/// Parses a tracefile strictly as `geninfo(1)` documents it: every line must be known, at an allowed position, with consistent counts.
/// Returns for each file the lines of the branches that were never taken.
fn parse_strictly(text: &str) -> BTreeMap<String, Vec<usize>> {
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("not a number: {text}"));
    let mut files = BTreeMap::new();
    assert!(text.ends_with("end_of_record\n"));
    for record in text.split_terminator("end_of_record\n") {
        let mut lines = record.lines();
        assert_eq!(lines.next(), Some("TN:"));
        let file = lines.next().and_then(|line| line.strip_prefix("SF:")).unwrap().to_owned();
        let (mut functions, mut calls) = (BTreeMap::new(), BTreeMap::new());
        let (mut branches, mut data) = (BTreeMap::new(), BTreeMap::new());
        let mut totals = BTreeMap::new();
        for line in lines {
            let (key, rest) = line.split_once(':').unwrap();
            let fields: Vec<&str> = rest.split(',').collect();
            let is_new = match (key, fields.as_slice()) {
                ("FN", [line, name]) => functions.insert((*name).to_owned(), number(line)).is_none(),
                ("FNDA", [times, name]) => calls.insert((*name).to_owned(), number(times)).is_none(),
                ("BRDA", [line, block, branch, taken]) => {
                    let taken = (*taken != "-").then(|| number(taken));
                    branches.insert((number(line), number(block), number(branch)), taken).is_none()
                }
                ("DA", [line, times]) => data.insert(number(line), number(times)).is_none(),
                ("FNF" | "FNH" | "BRF" | "BRH" | "LF" | "LH", [count]) => {
                    totals.insert(key.to_owned(), number(count)).is_none()
                }
                _ => panic!("not a line of a tracefile: {line}"),
            };
            assert!(is_new, "duplicate: {line}");
        }
        assert!(functions.keys().eq(calls.keys()), "functions and their calls differ");
        assert!(functions.values().all(|line| data.contains_key(line)));
        for ((line, ..), taken) in &branches {
            assert_eq!(taken.is_some(), data[line] > 0, "a dash means that the line never ran");
        }
        let counts = [
            ("FNF", functions.len()),
            ("FNH", calls.values().filter(|times| **times > 0).count()),
            ("BRF", branches.len()),
            ("BRH", branches.values().filter(|taken| taken.is_some_and(|times| times > 0)).count()),
            ("LF", data.len()),
            ("LH", data.values().filter(|times| **times > 0).count()),
        ];
        for (key, count) in counts {
            assert_eq!(totals.get(key), Some(&(count as u64)), "{key} of {file}");
        }
        let open = branches.iter().filter(|(_, taken)| taken.is_none_or(|times| times == 0));
        let open = open.map(|((line, ..), _)| *line as usize).collect();
        assert!(files.insert(file, open).is_none());
    }
    files
}

#[test]
fn lcov_tracefile_agrees_with_the_report() {
    let rules = "
defaults: { unmatched: deny }
policies:
  - id: some
    match: [pay, get]
    allow: {}
  - id: never
    match:
      tool: [refund, give]
      where:
        any:
          - { path: $.input.a, eq: 1 }
          - { path: $.input.b, eq: 1 }
    deny: {}
  - { id: hidden, redact: { detect: [email, iban] } }
";
    let report = covered(rules, &["call: { tool: pay, returns: ana@example.com }, expect: executed"]);
    let text = render::lcov(&report);
    let read = parse_strictly(&text);
    let mut lacking: Vec<usize> = Vec::new();
    for place in report.points() {
        let times = place.sides.iter().filter(|side| side.times == 0).count();
        lacking.extend(std::iter::repeat_n(place.place.line, times));
    }
    lacking.sort_unstable();
    assert_eq!(read["rules.yaml"], lacking);
    assert!(text.contains("\nFN:4,some\n") && text.contains("\nFNDA:1,some\nFNDA:0,never\n"), "{text}");
    assert!(text.contains("\nDA:12,0\n") && text.contains("\nBRDA:12,0,0,-\n"), "{text}");
    assert_eq!(render::lcov(&covered("policies: []", &[])), "");
}

#[test]
fn json_document_includes_coverage() {
    let rules = "policies: [ { id: p, match: { tool: t, where: { path: $.input.a, gt: 1 } }, deny: {} } ]";
    let cases = [
        "call: { tool: t, input: { a: 2 } }, expect: denied",
        "call: { tool: t, input: { a: x } }, expect: denied",
    ];
    let report = covered(rules, &cases);
    let document = render::json(None, Some(&report), &[]).unwrap();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/suites");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("coverage_document", document));
    assert!(
        !render::json(None, None, &[]).unwrap().contains("coverage"),
        "coverage is included only on request"
    );
}

#[test]
fn every_branch_of_the_shipped_bundles_is_covered() {
    let mut bundles: Vec<PathBuf> =
        fs::read_dir(project("policies")).unwrap().map(|entry| entry.unwrap().path()).collect();
    bundles.retain(|path| path.is_dir());
    bundles.sort();
    assert!(bundles.len() >= 5);
    let mut open = Vec::new();
    for bundle in &bundles {
        let name = bundle.file_name().unwrap().to_str().unwrap();
        let paths = [bundle.clone()];
        let loaded = callgate_policy_tests::load(&paths);
        let report = run(policy::build(&callgate_policy_tests::rules_paths(&paths)), loaded);
        assert!(report.total > 0, "{name}");
        for file in &report.files {
            let base = file.file.rsplit('/').next().unwrap();
            for place in file.points() {
                let Some(missing) = place.missing() else { continue };
                let description =
                    format!("{base} {} {}: {missing}", place.what, place.text.split(" #").next().unwrap());
                open.push(format!(
                    "{}:{}:{}: {description}",
                    file.file, place.place.line, place.place.column
                ));
            }
        }
    }
    assert_eq!(open, [""; 0], "no test covers these");
}

#[test]
fn required_values_must_be_missing_and_present() {
    let rules = "policies: [ { id: p, match: pay, require: { values: [input.order, input.note] } } ]";
    assert_missing(&[(
        rules,
        &[
            (
                "call: { tool: pay, input: { order: 1, note: null } }, expect: denied",
                &[
                    "policy p: never failed to match",
                    "tool pay: never false",
                    "value input.order: never missing",
                    "value input.note: never present",
                ],
            ),
            (
                "call: { tool: pay, input: { note: x } }, expect: denied",
                &["policy p: never failed to match", "tool pay: never false"],
            ),
            ("call: { tool: get }, expect: executed", &[]),
        ],
    )]);
}

#[test]
fn boolean_named_values_must_be_true_and_false_and_patterns_of_groups_true() {
    let rules = "{ groups: { moving: [pay, \"send_*\"], unused: [get] }, \
                 let: { large: input.amount > 9, urgent: { path: $.input.urgent, eq: true }, amount: input.amount, unused: 1 == 1 }, \
                 policies: [ { id: p, match: { tool: \"@moving\", where: [large, urgent, amount != 7] }, deny: {} } ] }";
    assert_missing(&[(
        rules,
        &[
            (
                // The first condition is false, so that the others are not evaluated.
                "call: { tool: pay, input: { amount: 5 } }, expect: executed",
                &[
                    "group \"send_*\": never true",
                    "let large: never true",
                    "let urgent: never reached",
                    "policy p: never matched",
                    "tool \"@moving\": never false",
                    "all [large, urgent, amount != 7]: never true",
                    "expr large: never true",
                    "expr urgent: never reached",
                    "expr amount != 7: never reached",
                    "kind deny: never gave the reason",
                ],
            ),
            (
                "call: { tool: send_it, input: { amount: 50, urgent: true } }, expect: denied",
                &[
                    "let urgent: never false",
                    "tool \"@moving\": never false",
                    "expr urgent: never false",
                    "expr amount != 7: never false",
                ],
            ),
        ],
    )]);
}
