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
