//! What lints claim of calls is true of the calls that there are: over small bundles and all calls of a small world.

use callgate::diagnostic::render;
use callgate::json::{Value, json};
use callgate::lint::{Beside, lint};
use callgate::policy;
use callgate::{Effect, Engine, SessionState, ToolCall};
use proptest::prelude::*;

/// One test of `$.input.n` or `$.input.s`, as YAML in one line.
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

/// All calls of a small world, those with arguments of the wrong type left out: these are undecided, and policies act by
/// what they are, which the lints' words leave open.
fn world() -> Vec<ToolCall> {
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
    fn what_is_called_shadowed_decides_no_call(rules in bundle()) {
        let linted = lint(policy::build_texts([("rules.yaml", rules.as_str())]), &Beside::default());
        let told = render::text(&linted.diagnostics, &linted.sources, false);
        prop_assert!(linted.chains.is_some(), "{}", told);
        let shadowed: Vec<&str> = linted.diagnostics.iter()
            .filter(|diagnostic| diagnostic.code.id == "CG506")
            .filter_map(|diagnostic| diagnostic.policy.as_deref())
            .collect();
        if !shadowed.is_empty() {
            let engine = Engine::new(linted.chains.clone().unwrap());
            for call in world() {
                let decision = engine.decide(&call, &SessionState::default());
                let by = decision.reason().policy;
                let decides = by.as_deref().is_some_and(|by| shadowed.contains(&by));
                prop_assert!(!decides, "{} decides {}: {:?}\n{}", by.unwrap_or_default(), call.input, decision.effect(), told);
            }
        }
    }

    #[test]
    fn no_call_matches_a_policy_whose_own_tests_contradict(rules in bundle()) {
        let alone = rules.lines().nth(1).unwrap_or_default();
        let rules = format!("policies:\n{alone}\n");
        let linted = lint(policy::build_texts([("rules.yaml", rules.as_str())]), &Beside::default());
        let contradicts = linted.diagnostics.iter()
            .any(|diagnostic| diagnostic.code.id == "CG501" && diagnostic.message.starts_with("no value"));
        // Under `not` a condition that never holds always does.
        if contradicts && !rules.contains("not:") {
            let engine = Engine::new(linted.chains.clone().unwrap());
            for call in world() {
                let decision = engine.decide(&call, &SessionState::default());
                prop_assert_eq!((decision.effect(), decision.reason().policy), (Effect::Run, None), "{}\n{}", call.input, rules);
            }
        }
    }

    #[test]
    fn fixes_loosen_nothing_and_leave_nothing_to_fix(rules in bundle()) {
        let linted = lint(policy::build_texts([("rules.yaml", rules.as_str())]), &Beside::default());
        let before = Engine::new(linted.chains.clone().unwrap());
        let fixed = callgate::lint::fix(linted, &Beside::default());
        prop_assert!(fixed.linted.diagnostics.iter().all(|diagnostic| diagnostic.fix.is_none()));
        let after = Engine::new(fixed.linted.chains.clone().unwrap());
        let session = SessionState::default();
        for call in world() {
            prop_assert!(before.decide(&call, &session).effect() <= after.decide(&call, &session).effect(), "{}\n{}", call.input, rules);
        }
    }
}
