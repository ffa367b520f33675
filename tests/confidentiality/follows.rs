//! Redaction follows values: through results and through messages of the host's code.

use callgate::json::{Value, json};
use callgate::lifecycle::{BeforeAction, HookCall, ToolHooks};
use callgate::{Outcome, ToolCall};

use crate::fixtures::{Tool, call, noon, rules, run};

const PIN: &str = "483920175";

fn outcomes(policies: &str, output: Value, hooks: Option<ToolHooks>, calls: &[ToolCall]) -> Vec<Outcome> {
    let clock = noon();
    let tool = Tool::scripted(&clock, [(std::time::Duration::ZERO, Ok(output))]);
    let engine = rules(&format!("policies: [ {policies} ]")).clock(clock.clone());
    let engine = hooks.into_iter().fold(engine, |engine, hooks| engine.middleware(hooks)).build();
    run(&clock, &mut engine.session(), &tool, calls)
}

/// A pattern for a whole value does not match inside a string, and a detector may find a value only by its key.
#[test]
fn i10_redacted_result_values_stay_redacted_in_script_results() {
    let result = json!({ "pin": PIN, "owner": { "password": "correct horse battery" } });
    for redact in [
        "patterns: [ '^\\d{9}$', '^correct horse battery$' ]",
        "patterns: [ '^\\d{9}$', '^correct.*' ], with: hash",
    ] {
        for script in [
            "let out = next(input); throw `bad: ${out.pin}, ${out.owner.password}`;",
            "let out = next(input); audit(#{ said: `got ${out}` }); out",
            "let out = next(input); audit(#{ said: `got ${out}` }); `made of ${out.pin} and ${out.owner}`",
            "let out = next(input); throw #{ message: `${out}`, kind: `${out.pin}` };",
        ] {
            let policies = format!(
                r#"{{ id: hide, match: give, redact: {{ in: [output], {redact} }} }},
                   {{ id: own, match: give, around: {{ script: "{script}" }} }},
                   {{ id: log, match: give, audit: {{ fields: [$.output, $.error] }} }}"#
            );
            let outcome = outcomes(&policies, result.clone(), None, &[call("give", json!({}))]).remove(0);
            let shown = callgate::json::to_string(&outcome).unwrap();
            assert!(!shown.contains(PIN) && !shown.contains("horse"), "{script}: {shown}");
            assert!(shown.contains("[redacted"), "{script}: {shown}");
        }
    }
}

/// If a result is passed on unchanged, only the matches of the policy are redacted, not every string that repeats them.
#[test]
fn unchanged_result_is_redacted_only_where_the_policy_matches() {
    let policies = "{ id: hide, match: give, redact: { in: [output], patterns: [ '^admin$' ] } }";
    let around = r#", { id: pass, match: give, around: { script: "let out = next(input); out" } }"#;
    for policies in [policies.to_owned(), format!("{policies}{around}")] {
        let result = json!({ "user": "admin", "group": "admins" });
        let outcome = outcomes(&policies, result, None, &[call("give", json!({}))]).remove(0);
        assert_eq!(outcome.output, Some(json!({ "user": "[redacted]", "group": "admins" })));
    }
}

/// Later calls report why the session was halted, even if no policy redacts those calls.
#[test]
fn i10_halt_reason_contains_nothing_redacted() {
    let policies = format!("{{ id: hide, match: give, redact: {{ patterns: ['{PIN}'] }} }}");
    let hooks = ToolHooks::new("guard").before(|call: &HookCall<'_>| match call.input.get("pin") {
        Some(pin) => BeforeAction::Halt(format!("never {pin}")),
        None => BeforeAction::Continue,
    });
    let calls = [call("give", json!({ "pin": PIN })), call("tell", json!({}))];
    for outcome in outcomes(&policies, json!(1), Some(hooks), &calls) {
        assert_eq!(outcome.outcome.name(), "halted");
        let shown = callgate::json::to_string(&outcome).unwrap();
        assert!(!shown.contains(PIN) && shown.contains("never"), "{shown}");
    }
}

/// Errors often repeat arguments as JSON, with line ends and quotes escaped.
#[test]
fn i10_argument_repeated_as_json_in_an_error_is_redacted() {
    let key = "first \"line\"\nsecond line";
    let clock = noon();
    let input = json!({ "key": key });
    let error = callgate::ToolError::new(format!("invalid: {input}"));
    let tool = Tool::scripted(&clock, [(std::time::Duration::ZERO, Err(error))]);
    let rules = rules(
        "policies: [ { id: hide, match: give, redact: { in: [input], patterns: ['(?s)^first.*line$'] } }, \
         { id: log, match: give, audit: { fields: [$.error] } } ]",
    );
    let mut session = rules.clock(clock.clone()).build().session();
    let outcome = run(&clock, &mut session, &tool, &[call("give", input)]).remove(0);
    let shown = json!(r#"invalid: {"key":"[redacted]"}"#);
    assert_eq!(json!(outcome.reason.message), shown);
    assert_eq!(outcome.audit[0].fields.get("$.error"), Some(&shown));
}

/// The outputs of two equal calls, of which a cache answers the second one, and how often the tool ran.
fn outputs_of_two(policies: &str, output: &Value, contexts: [Value; 2]) -> (Vec<String>, usize) {
    let clock = noon();
    let answers = (0..2).map(|_| (std::time::Duration::ZERO, Ok(output.clone())));
    let tool = Tool::scripted(&clock, answers);
    let engine = rules(&format!("policies: [ {policies} ]")).clock(clock.clone()).build();
    let calls = contexts.map(|context| call("give", json!({})).with_context(context));
    let outcomes = run(&clock, &mut engine.session(), &tool, &calls);
    (
        outcomes.iter().map(|outcome| callgate::json::to_string(&outcome.output).unwrap()).collect(),
        tool.count(),
    )
}

const SECRET: &str = "{ id: hide, match: { tool: give, where: 'context.role != \"admin\"' }, redact: { in: [output], patterns: [ '^\\d{9}$' ] } }";

/// A cache outside of a script returns what the script made; a script keeps what it made in the cache itself.
#[test]
fn i10_what_a_script_made_of_a_result_is_redacted_when_a_cache_returns_it() {
    let result = json!({ "pin": PIN });
    let made =
        "{ id: own, match: give, around: { script: 'let out = next(input); `the pin is ${out.pin}`' } }";
    let cached = "{ id: cache, match: give, cache: { ttl: 1h } }";
    let kept = "{ id: keep, match: give, around: { script: 'let known = cache_get(1); if type_of(known) == \"string\" { return known; } \
                let out = next(input); let text = `the pin is ${out.pin}`; cache_set(1, text, \"1h\"); text' } }";
    // A second script passes on what the cache returned, in other words.
    let outer = "{ id: outer, priority: 9, match: give, around: { script: 'let out = next(input); `again: ${out}`' } }";
    for policies in [format!("{cached}, {made}"), kept.to_owned(), format!("{outer}, {cached}, {made}")] {
        for contexts in [
            [json!({ "role": "user" }), json!({ "role": "user" })],
            [json!({ "role": "admin" }), json!({ "role": "user" })],
        ] {
            let shows_first = contexts[0]["role"] == "admin";
            let (outputs, runs) = outputs_of_two(&format!("{SECRET}, {policies}"), &result, contexts);
            assert_eq!(runs, 1, "{policies}");
            assert_eq!(outputs[0].contains(PIN), shows_first, "{policies}: {outputs:?}");
            assert!(outputs[1].contains("the pin is [redacted]"), "{policies}: {outputs:?}");
        }
    }
}

/// What a cache returns is redacted as the first result is, and no more.
#[test]
fn unchanged_result_from_a_cache_is_redacted_only_where_the_policy_matches() {
    let hide = "{ id: hide, match: give, redact: { in: [output], patterns: [ '^admin$' ] } }";
    let cache = "{ id: cache, match: give, cache: { ttl: 1h } }";
    let pass = "{ id: pass, match: give, around: { script: 'let out = next(input); out' } }";
    let result = json!({ "user": "admin", "group": "admins" });
    for policies in [format!("{hide}, {cache}"), format!("{hide}, {cache}, {pass}")] {
        let (outputs, runs) = outputs_of_two(&policies, &result, [json!({}), json!({})]);
        assert_eq!((runs, &outputs[0]), (1, &outputs[1]));
        assert_eq!(outputs[1], r#"{"user":"[redacted]","group":"admins"}"#);
    }
}

/// Nobody knows what a policy that was added later redacts in a text of a script. A counter has no text, and goes on.
#[test]
fn i10_policy_that_is_added_later_does_not_show_what_a_script_made_before() {
    let own = r#"{ id: count, priority: 5, match: give, around: { script: 'let out = next(input); let n = cache_get("n"); if type_of(n) != "number" { n = 0; } cache_set("n", n + 1, "1h"); [n, out]' } },
                 { id: cache, match: give, cache: { ttl: 1h } },
                 { id: own, match: give, around: { script: 'let out = next(input); `the pin is ${out.pin}`' } }"#;
    let clock = noon();
    let answers = (0..3).map(|_| (std::time::Duration::ZERO, Ok(json!({ "pin": PIN }))));
    let tool = Tool::scripted(&clock, answers);
    let engine = rules(&format!("policies: [ {own} ]")).clock(clock.clone()).build();
    let mut session = engine.session();
    let calls = [call("give", json!({})), call("give", json!({}))];
    for outcome in run(&clock, &mut session, &tool, &calls) {
        assert!(outcome.output.unwrap().to_string().contains(PIN));
    }
    assert_eq!(tool.count(), 1);
    let stricter = callgate::load_text(&format!("policies: [ {own}, {SECRET} ]")).unwrap();
    engine.replace(stricter);
    let outcome =
        run(&clock, &mut session, &tool, &[call("give", json!({})).with_context(json!({ "role": "user" }))])
            .remove(0);
    assert_eq!(outcome.output, Some(json!([2, "the pin is [redacted]"])));
    assert_eq!(tool.count(), 2);
}
