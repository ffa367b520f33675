//! Soundness of lints: their claims hold for generated bundles and an exhaustive set of calls.

use callgate::diagnostic::render;
use callgate::json::{Value, json};
use callgate::policy;
use callgate::{Effect, Engine, SessionState, ToolCall};
use callgate_lint::{LintInputs, lint};
use proptest::prelude::*;

/// A test of `$.input.n` or `$.input.s` as one line of YAML.
fn condition() -> impl Strategy<Value = String> {
    let number = (prop::sample::select(vec!["eq", "ne", "gt", "gte", "lt", "lte"]), 0..3i32)
        .prop_map(|(operator, bound)| format!("path: $.input.n, {operator}: {bound}"));
    let numbers = (prop::sample::select(vec!["in", "not_in"]), prop::collection::vec(0..3i32, 1..3))
        .prop_map(|(operator, set)| format!("path: $.input.n, {operator}: {set:?}"));
    let text = (prop::sample::select(vec!["eq", "ne", "starts_with", "ends_with", "contains"]), "[ab]{1,2}")
        .prop_map(|(operator, text)| format!("path: $.input.s, {operator}: {text}"));
    let there = (prop::sample::select(vec!["n", "s"]), any::<bool>())
        .prop_map(|(name, there)| format!("path: $.input.{name}, exists: {there}"));
    let kind = prop::sample::select(vec!["number", "string"])
        .prop_map(|kind| format!("path: $.input.n, type: {kind}"));
    let absent = prop::sample::select(vec!["", "", "", ", absent: match"]);
    let test = (prop_oneof![6 => number, 2 => numbers, 2 => text, 1 => there, 1 => kind], absent)
        .prop_map(|(test, absent)| format!("{{ {test}{absent} }}"));
    (test, 0..8u8).prop_map(|(test, wrapped)| match wrapped {
        0 => format!("{{ not: {test} }}"),
        1 => format!("{{ any: [ {test} ] }}"),
        _ => test,
    })
}

fn bundle() -> impl Strategy<Value = String> {
    let tool = prop::sample::select(vec!["pay", "'pay*'", "'*'", "[pay, payOut]"]);
    let kind =
        prop::sample::select(vec!["deny: {}", "halt: {}", "approval: { message: Sure? }", "allow: {}"]);
    let policy = (tool, prop::collection::vec(condition(), 0..3), kind);
    prop::collection::vec(policy, 1..5).prop_map(|policies| {
        let policies: Vec<String> = policies
            .into_iter()
            .enumerate()
            .map(|(number, (tool, conditions, kind))| {
                let conditions = if conditions.is_empty() {
                    String::new()
                } else {
                    format!(", where: [ {} ]", conditions.join(", "))
                };
                format!("  - {{ id: p{number}, match: {{ tool: {tool}{conditions} }}, {kind} }}\n")
            })
            .collect();
        format!("policies:\n{}", policies.concat())
    })
}

/// All calls with a few tools and argument values, without arguments of the wrong type: these are undecided, and the lints make no
/// claim about them.
fn all_calls() -> Vec<ToolCall> {
    let numbers: Vec<Option<Value>> =
        std::iter::once(None).chain((-1..4).map(|n| Some(json!(n)))).chain([Some(json!(1.5))]).collect();
    let texts = [None, Some("a"), Some("b"), Some("ab"), Some("bb"), Some("")];
    let mut calls = Vec::new();
    for tool in ["pay", "payOut", "read"] {
        for number in &numbers {
            for text in texts {
                let mut input = callgate::json::Map::new();
                input.extend(number.clone().map(|number| ("n".to_owned(), number)));
                input.extend(text.map(|text| ("s".to_owned(), json!(text))));
                calls.push(ToolCall::new("c", tool, Value::Object(input)));
            }
        }
    }
    calls
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn shadowed_policies_decide_no_call(rules in bundle()) {
        let linted = lint(policy::build_texts([("rules.yaml", rules.as_str())]), &LintInputs::default());
        let report = render::text(&linted.diagnostics, &linted.sources, false);
        prop_assert!(linted.policies.is_some(), "{}", report);
        let shadowed: Vec<&str> = linted.diagnostics.iter()
            .filter(|diagnostic| diagnostic.code.id == "CG506")
            .filter_map(|diagnostic| diagnostic.policy.as_deref())
            .collect();
        if !shadowed.is_empty() {
            let engine = Engine::new(linted.policies.clone().unwrap());
            for call in all_calls() {
                let decision = engine.decide(&call, &SessionState::default());
                let by = decision.reason().policy;
                let decides = by.as_deref().is_some_and(|by| shadowed.contains(&by));
                prop_assert!(!decides, "{} decides {}: {:?}\n{}", by.unwrap_or_default(), call.input, decision.effect(), report);
            }
        }
    }

    #[test]
    fn policies_with_contradicting_tests_match_no_call(rules in bundle()) {
        let alone = rules.lines().nth(1).unwrap_or_default();
        let rules = format!("policies:\n{alone}\n");
        let linted = lint(policy::build_texts([("rules.yaml", rules.as_str())]), &LintInputs::default());
        let contradicts = linted.diagnostics.iter()
            .any(|diagnostic| diagnostic.code.id == "CG501" && diagnostic.message.starts_with("no value"));
        // Under `not`, a condition that is never true always matches.
        if contradicts && !rules.contains("not:") {
            let engine = Engine::new(linted.policies.clone().unwrap());
            for call in all_calls() {
                let decision = engine.decide(&call, &SessionState::default());
                prop_assert_eq!((decision.effect(), decision.reason().policy), (Effect::Run, None), "{}\n{}", call.input, rules);
            }
        }
    }

    #[test]
    fn fixes_never_loosen_rules_and_are_complete(rules in bundle()) {
        let linted = lint(policy::build_texts([("rules.yaml", rules.as_str())]), &LintInputs::default());
        let before = Engine::new(linted.policies.clone().unwrap());
        let fixed = callgate_lint::fix(linted, &LintInputs::default());
        prop_assert!(fixed.linted.diagnostics.iter().all(|diagnostic| diagnostic.fix.is_none()));
        let after = Engine::new(fixed.linted.policies.clone().unwrap());
        let session = SessionState::default();
        for call in all_calls() {
            prop_assert!(before.decide(&call, &session).effect() <= after.decide(&call, &session).effect(), "{}\n{}", call.input, rules);
        }
    }
}
