//! Principals as keys of limits, budgets and caches, in every spelling and of every type.

use callgate::json::{Value, json};
use callgate::{ToolCall, engine};

use crate::fixtures::{Tool, kind_and_code, policy, rules};

/// Spellings of one principal.
const ANA: [&str; 5] = ["ana", "Ana", "ana\u{a0}", "\u{ff21}NA", "a\u{200b}na"];

/// Contexts without a principal, and contexts with an invalid one.
fn values() -> (Vec<Value>, Vec<Value>) {
    let nobody = vec![
        json!({}),
        json!({ "principal": null }),
        json!({ "principal": "" }),
        json!({ "principal": " \u{ad}" }),
    ];
    let invalid = [
        json!(42),
        json!(true),
        json!([]),
        json!(["ana"]),
        json!({}),
        json!({ "id": "ana" }),
        json!("a\u{0}na"),
    ];
    (nobody, invalid.map(|principal| json!({ "principal": principal })).to_vec())
}

fn of(principal: &str) -> Value {
    json!({ "principal": principal })
}

fn search(context: &Value) -> ToolCall {
    ToolCall::new("", "search", json!({ "q": 1 })).with_context(context.clone())
}

/// The outcomes of calls with these contexts, in sequence.
fn outcomes(rules: &str, contexts: impl IntoIterator<Item = Value>) -> Vec<(&'static str, String)> {
    let (engine, clock) = policy(rules);
    let tool = Tool::counting(&clock);
    let outcome = |context: Value| {
        let outcome = clock.block_on(engine.session().execute(search(&context), &tool));
        (kind_and_code(&outcome).0, outcome.reason.code)
    };
    contexts.into_iter().map(outcome).collect()
}

fn kinds(outcomes: &[(&'static str, String)]) -> Vec<&'static str> {
    outcomes.iter().map(|(kind, _)| *kind).collect()
}

#[test]
fn limits_count_all_spellings_of_a_principal_as_one() {
    for key in [
        "$.context.principal",
        "'$.context[\"principal\"]'",
        "'$.context[\"tenant\", \"principal\"]'",
        "'$.context.*'",
        "$.context",
        "[$.tool, $.context.principal]",
    ] {
        let limit = format!("rate_limit: {{ limit: 4, per: 1h, key: {key} }}");
        let ended = outcomes(&limit, ANA.map(of).into_iter().chain([of("bob")]));
        assert_eq!(
            kinds(&ended),
            ["executed", "executed", "executed", "executed", "denied", "executed"],
            "{key}"
        );
    }
}

#[test]
fn i8_limits_deny_an_invalid_principal() {
    let (nobody, invalid) = values();
    for key in ["$.context.principal", "'$.context.*'", "$.context"] {
        let limit = format!("rate_limit: {{ limit: 50, per: 1h, key: {key} }}");
        for (context, (kind, code)) in invalid.iter().zip(outcomes(&limit, invalid.clone())) {
            assert_eq!((kind, code.as_str()), ("denied", "undecided"), "{key} {context}");
        }
        // All anonymous callers share one count.
        let few = format!("rate_limit: {{ limit: 3, per: 1h, key: {key} }}");
        assert_eq!(
            kinds(&outcomes(&few, nobody.clone())),
            ["executed", "executed", "executed", "denied"],
            "{key}"
        );
    }
}

#[test]
fn budgets_count_all_spellings_of_a_principal_as_one() {
    let budget = |context: Value| {
        let (engine, clock) = policy("budget: { calls: 4, per: principal, on_exceed: deny }");
        let tool = Tool::counting(&clock);
        move |again: Option<Value>| {
            let context = again.unwrap_or_else(|| context.clone());
            let mut session = engine.session().with_context(context.clone());
            clock.block_on(session.execute(search(&context), &tool)).outcome.name()
        }
    };
    let run = budget(of("ana"));
    assert_eq!(
        ANA.map(|name| run(Some(of(name)))),
        ["executed", "executed", "executed", "executed", "denied"]
    );
    assert_eq!(run(Some(of("bob"))), "executed");
    let (nobody, invalid) = values();
    for context in nobody.into_iter().chain(invalid) {
        assert_eq!(budget(context.clone())(None), "denied", "{context}");
    }
}

#[test]
fn caches_share_results_between_all_spellings_of_a_principal() {
    for cache in [
        "cache: { ttl: 1h }",
        "cache: { ttl: 1h, scope: principal }",
        "cache: { ttl: 1h, scope: shared, key: $.context.principal }",
        "around: { script: 'cache_get(\"k\") ?? { let out = next(input); cache_set(\"k\", out, \"1h\"); out }' }",
    ] {
        let ended = outcomes(cache, ANA.map(of).into_iter().chain([of("bob"), of("\u{430}na")]));
        let kept = if cache.starts_with("around") { "answered" } else { "cached" };
        assert_eq!(kinds(&ended), ["executed", kept, kept, kept, kept, "executed", "executed"], "{cache}");
        // An invalid principal shares with no one.
        let (nobody, invalid) = values();
        let twice = invalid.into_iter().flat_map(|context| [context.clone(), context]);
        assert!(kinds(&outcomes(cache, twice)).iter().all(|kind| *kind == "executed"), "{cache}");
        let kinds = kinds(&outcomes(cache, nobody));
        let own = if cache.contains("scope: principal") { "executed" } else { kept };
        assert_eq!(kinds, ["executed", own, own, own], "{cache}");
    }
}

#[test]
fn keys_are_exact_if_so_configured() {
    for (policy, other) in [
        ("rate_limit: { limit: 1, per: 1h, key: $.context.principal }", "executed"),
        ("cache: { ttl: 1h }", "executed"),
        ("cache: { ttl: 1h, key: $.context.principal }", "executed"),
    ] {
        let clock = crate::fixtures::noon();
        let text = format!("defaults: {{ principals: exact }}\npolicies: [ {{ id: p, {policy} }} ]");
        let engine = rules(&text).clock(clock.clone()).build();
        let tool = Tool::counting(&clock);
        for name in ["Ana", "ana"] {
            let outcome = clock.block_on(engine.session().execute(search(&of(name)), &tool));
            assert_eq!(outcome.outcome.name(), other, "{policy} {name}");
        }
    }
    assert!(engine::load_text("defaults: { principals: loose }\npolicies: []").is_err());
}

/// Entries from one comparison mode are not used under the other.
#[test]
fn reload_that_changes_the_comparison_clears_caches() {
    let clock = crate::fixtures::noon();
    let text = |principals: &str| {
        format!("defaults: {{ principals: {principals} }}\npolicies: [ {{ id: p, cache: {{ ttl: 1h }} }} ]")
    };
    let engine = rules(&text("canonical")).clock(clock.clone()).build();
    let tool = Tool::counting(&clock);
    let run = |name: &str| clock.block_on(engine.session().execute(search(&of(name)), &tool)).outcome.name();
    assert_eq!((run("Ana"), run("ana")), ("executed", "cached"));
    engine.replace(engine::load_text(&text("exact")).unwrap());
    assert_eq!((run("ana"), run("Ana"), run("ana")), ("executed", "executed", "cached"));
}
