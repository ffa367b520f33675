//! What policies, scripts, hooks and approvers make of a redacted argument is redacted in arguments, messages, errors and audit entries.

use std::time::Duration;

use callgate::explain::render;
use callgate::json::{Value, json};
use callgate::lifecycle::{BeforeAction, ToolHooks};
use callgate::message::ResponsePart;
use callgate::{Outcome, ToolError};

use super::drive;
use crate::approvals::scene::Scene;
use crate::fixtures::{Tool, call, noon, rules, run};

const PIN: &str = "Kx4-9301-QzT";

/// Expressions over the argument, each with what must not be shown of it.
const COMPUTED: [(&str, &str); 8] = [
    ("input.pin", PIN),
    ("slice(input.pin, 0, 8)", "Kx4-9301"),
    ("replace(input.pin, \"-\", \"\")", "Kx49301QzT"),
    ("to_upper(input.pin)", "KX4-9301-QZT"),
    ("split(input.pin, \"-\")[1]", "9301"),
    ("\"pin \" + replace(input.pin, \"-\", \"/\")", "Kx4/9301/QzT"),
    ("to_text(to_number(slice(input.pin, 4, 8)) * 10)", "93010"),
    ("join(split(input.pin, \"-\"), \"+\")", "9301+QzT"),
];

/// Redacts the argument, and shows the arguments wherever policies can.
fn policies(own: &str) -> String {
    format!(
        "policies: [ {{ id: hide, match: '*', redact: {{ in: [input], patterns: ['Kx4.*'] }} }}, {own}, \
         {{ id: log, match: '*', audit: {{ fields: [$.input, input.note] }} }}, \
         {{ id: limit, match: limited, rate_limit: {{ limit: 1, per: 1h, count: attempts, key: $.input.note, message: '{{{{ input.note }}}} {{{{ input }}}}' }} }}, \
         {{ id: keep, match: '*', fact: {{ name: note, value: $.input.note }} }}, \
         {{ id: ask, match: asked, approval: {{ message: '{{{{ input.note }}}} {{{{ input }}}}' }} }}, \
         {{ id: no, match: denied, deny: {{ message: '{{{{ input.note }}}} {{{{ input }}}} {{{{ session.facts }}}}' }} }} ]"
    )
}

fn transform(expression: &str) -> String {
    let template = Value::from(format!("{{{{ {expression} }}}}"));
    format!(
        "{{ id: note, match: '*', transform: {{ input: [{{ path: $.input.note, template: {template} }}] }} }}"
    )
}

fn text(outcome: &Outcome) -> String {
    callgate::json::to_string(outcome).unwrap()
}

/// The outcomes of a call of each tool; the tool fails with its arguments in the error, or returns them.
fn outcomes(rules_text: &str, hooks: &[ToolHooks]) -> Vec<Outcome> {
    let clock = noon();
    let engine = rules(rules_text).clock(clock.clone()).build();
    let mut session = engine.session();
    for hook in hooks {
        session = session.with_middleware(hook.clone());
    }
    let input = json!({ "pin": PIN, "own": "abc" });
    let calls = ["run", "limited", "limited", "asked", "denied"].map(|tool| call(tool, input.clone()));
    let tool = Tool::counting(&clock);
    let mut outcomes = run(&clock, &mut session, &tool, &calls);
    let error = tool.inputs().first().map(ToString::to_string).unwrap_or_default();
    let failing =
        Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new(format!("invalid: {error}"))))]);
    outcomes.extend(run(&clock, &mut session, &failing, &calls[..1]));
    outcomes
}

#[test]
fn i10_arguments_computed_by_a_transform_are_redacted() {
    for (expression, part) in COMPUTED {
        let outcomes = outcomes(&policies(&transform(expression)), &[]);
        let kinds: Vec<_> = outcomes.iter().map(|outcome| outcome.outcome.name()).collect();
        assert_eq!(kinds, ["executed", "executed", "denied", "suspended", "denied", "failed"]);
        for outcome in outcomes {
            let shown = text(&outcome);
            assert!(!shown.contains(part), "{expression}: {shown}");
            assert_eq!(outcome.input["own"], json!("abc"), "{expression}");
        }
    }
}

#[test]
fn what_a_transform_makes_of_other_arguments_is_shown() {
    for (steps, note) in [
        ("{ path: $.input.note, template: '{{ input.own }} of {{ tool }}' }", "abc of run"),
        ("{ path: $.input.note, template: 'for {{ input.pin }}' }", "for [redacted]"),
        ("{ path: $.input.note, set: fixed }", "fixed"),
    ] {
        let own = format!("{{ id: note, match: '*', transform: {{ input: [{steps}] }} }}");
        assert_eq!(outcomes(&policies(&own), &[])[0].input["note"], json!(note));
    }
}

/// The argument itself is not there any more, or does not look like one that is redacted.
#[test]
fn i10_arguments_that_a_transform_moves_or_changes_are_redacted() {
    for steps in [
        "{ path: $.input.pin, rename: note }",
        "{ path: $.input.note, template: '{{ input.pin }}' }, { path: $.input.pin, remove: true }",
        "{ path: $.input.pin, lowercase: true }",
        "{ path: $.input.pin, replace: { pattern: 'K', with: '' } }",
        "{ path: $.input.pin, template: '{{ slice(input.pin, 4, 12) }}' }",
    ] {
        let own = format!("{{ id: note, match: '*', transform: {{ input: [{steps}] }} }}");
        for outcome in outcomes(&policies(&own), &[]) {
            let shown = text(&outcome).to_lowercase();
            assert!(!shown.contains("9301"), "{steps}: {shown}");
        }
    }
}

#[test]
fn i10_explanation_redacts_arguments_that_a_transform_computes() {
    for (expression, part) in COMPUTED {
        let clock = noon();
        let rules = policies(&transform(expression));
        let mut built = callgate::policy::build_texts([("rules.yaml", rules)]);
        let compiled = built.policies.take().unwrap_or_else(|| panic!("{:?}", built.diagnostics));
        let engine = callgate::Engine::builder(compiled.into()).clock(clock.clone()).build();
        let tool = Tool::counting(&clock);
        let mut session = engine.session();
        let (_, explanation) =
            drive(session.explain(call("denied", json!({ "pin": PIN })), &tool, &built.sources));
        let explanation = explanation.unwrap();
        for shown in [
            render::json(&explanation).unwrap(),
            render::text(&explanation, Some(&built.sources), false, true),
        ] {
            assert!(!shown.contains(part), "{expression}: {shown}");
        }
    }
}

#[test]
fn i10_what_a_script_makes_of_a_redacted_argument_is_redacted() {
    for (expression, part) in COMPUTED {
        for script in [
            format!("let changed = input; changed.note = {expression}; next(changed)"),
            format!("let note = {expression}; next(#{{ note: note, own: \"abc\" }})"),
            format!("approve(`May it run with ${{{expression}}}?`); next(input)"),
            format!(
                "audit(#{{ note: {expression}, list: [{expression}] }}); print({expression}); next(input)"
            ),
            format!("throw `bad: ${{{expression}}}`;"),
        ] {
            let own =
                format!("{{ id: wrap, match: '*', around: {{ script: {} }} }}", Value::from(script.as_str()));
            for outcome in outcomes(&policies(&own), &[]) {
                let shown = text(&outcome);
                assert!(!shown.contains(part), "{script}: {shown}");
            }
        }
    }
}

#[test]
fn i10_what_a_hook_makes_of_a_redacted_argument_is_redacted() {
    let hook = ToolHooks::new("move").before(|call| {
        let pin = call.input["pin"].as_str().unwrap_or_default().replace('-', ".");
        BeforeAction::Edit(json!({ "note": format!("pin {pin}"), "own": "abc" }))
    });
    for outcome in outcomes(&policies(&transform("to_upper(input.note)")), &[hook]) {
        let shown = text(&outcome).to_lowercase();
        assert!(!shown.contains("9301"), "{shown}");
    }
}

/// After an edit, the arguments that policies computed are given, and not computed again from the redacted one.
#[test]
fn i10_computed_arguments_stay_redacted_after_an_edit() {
    let rules = "policies:
      - { id: hide, match: refund, redact: { in: [input], patterns: ['Kx4.*'] } }
      - { id: note, match: refund, transform: { input: [{ path: $.input.note, template: '{{ replace(input.pin, \"-\", \"\") }}' }, { path: $.input.pin, remove: true }] } }
      - { id: ask, match: refund, approval: { message: 'Refund {{ input }}?', edits: [$.input.amount] } }
    ";
    let mut scene = Scene::asked(rules, json!({ "amount": 250, "pin": PIN }));
    let shown = scene.request().input.unwrap();
    assert_eq!(shown, json!({ "amount": 250, "note": "[redacted]" }));
    let given = json!({ "amount": 120, "note": "[redacted]" });
    scene.answer(ResponsePart { edited_input: Some(given.clone()), ..scene.approval() });
    let outcome = scene.outcome();
    assert!(!text(&outcome).contains("9301"), "{}", text(&outcome));
}

#[test]
fn i10_what_a_script_makes_of_a_redacted_result_is_redacted_outside_of_other_scripts() {
    let rules = "policies:
      - { id: outer, match: give, around: { script: 'let n = random(); next(input)' } }
      - { id: inner, match: give, around: { script: 'let out = next(input); `it was ${out}`' } }
      - { id: hide, match: give, redact: { in: [output], patterns: ['^\\d{9}$'] } }";
    let clock = noon();
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!({ "a": { "pin": 295_627_474 } })))]);
    let mut session = crate::fixtures::rules(rules).clock(clock.clone()).build().session();
    let outcome = clock.block_on(session.execute(call("give", json!({})), &tool));
    let shown = text(&outcome);
    assert!(shown.contains("it was") && !shown.contains("295627474"), "{shown}");
}
