//! What an expression computes from a redacted argument is redacted in facts and explanations.

use callgate::explain::render;
use callgate::json::{Value, json};

use super::drive;
use crate::fixtures::{Tool, call, noon, rules, run};

const PIN: &str = "Kx4-9301-QzT";

/// Expressions over the argument, each with what it must not show.
const DERIVED: [(&str, &str); 5] = [
    ("slice(input.pin, 0, 3)", "Kx4"),
    ("split(input.pin, \"-\")[2]", "QzT"),
    ("split(input.pin, \"-\")", "9301"),
    ("to_upper(input.pin)", "KX4-9301-QZT"),
    ("to_number(slice(input.pin, 4, 8))", "9301"),
];

fn policies(expression: &str) -> String {
    let expression = Value::from(expression);
    let explained = json!({ "expr": expression, "eq": { "expr": expression } });
    format!(
        "policies: [ {{ id: hide, match: give, redact: {{ in: [input], patterns: ['Kx4.*'] }} }}, \
         {{ id: keep, match: give, fact: {{ name: kept, value: {expression} }} }}, \
         {{ id: tell, match: {{ tool: tell }}, deny: {{ message: '{{{{ session.facts.kept }}}} {{{{ session.facts }}}}' }} }}, \
         {{ id: log, match: '*', audit: {{ fields: [session.facts.kept] }} }}, \
         {{ id: test, match: {{ tool: give, where: {explained} }}, allow: {{}} }} ]"
    )
}

#[test]
fn i10_facts_computed_from_a_redacted_argument_are_redacted() {
    for (expression, part) in DERIVED {
        let clock = noon();
        let engine = rules(&policies(expression)).clock(clock.clone()).build();
        let calls = [call("give", json!({ "pin": PIN, "own": "abc" })), call("tell", json!({}))];
        let outcomes = run(&clock, &mut engine.session(), &Tool::counting(&clock), &calls);
        assert_eq!(outcomes[1].outcome.name(), "denied");
        for outcome in outcomes {
            let shown = callgate::json::to_string(&outcome).unwrap();
            assert!(!shown.contains(part), "{expression}: {shown}");
        }
    }
}

#[test]
fn i10_explanation_redacts_what_is_computed_from_a_redacted_argument() {
    for (expression, part) in DERIVED {
        let clock = noon();
        let mut built = callgate::policy::build_texts([("rules.yaml", policies(expression))]);
        let compiled = built.policies.take().unwrap_or_else(|| panic!("{:?}", built.diagnostics));
        let engine = callgate::Engine::builder(compiled.into()).clock(clock.clone()).build();
        let tool = Tool::counting(&clock);
        let mut session = engine.session();
        let (outcome, explanation) =
            drive(session.explain(call("give", json!({ "pin": PIN })), &tool, &built.sources));
        assert_eq!(outcome.outcome.name(), "executed");
        let explanation = explanation.unwrap();
        let shown = [
            render::json(&explanation).unwrap(),
            render::text(&explanation, Some(&built.sources), false, true),
        ];
        for shown in shown {
            assert!(!shown.contains(part), "{expression}: {shown}");
        }
    }
}

/// What has nothing of the argument is shown, even if it depends on it.
#[test]
fn facts_without_a_part_of_the_argument_are_shown() {
    let clock = noon();
    let engine =
        rules(&policies("split(input.pin, \"-\").map(|part| \"internal\")")).clock(clock.clone()).build();
    let calls = [call("give", json!({ "pin": PIN })), call("tell", json!({}))];
    let outcomes = run(&clock, &mut engine.session(), &Tool::counting(&clock), &calls);
    assert!(outcomes[1].reason.message.contains("internal"), "{}", outcomes[1].reason.message);
}
