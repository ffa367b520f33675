//! The library without its features: what it can't check it rejects, and names the feature.

#![cfg(not(any(feature = "json-schema", feature = "scripts", feature = "snippets")))]

use callgate::json::{Value, json};
use callgate::{Effect, Engine, SessionState, ToolCall, ToolDescriptor, engine, tools};

const SCHEMA_RULES: [&str; 3] = [
    "policies:\n  - id: fits\n    match: pay\n    validate: { schema: { type: object } }\n",
    "policies:\n  - id: fits\n    match: pay\n    validate: { schema: { file: pay.json } }\n",
    "policies:\n  - id: ask\n    match: pay\n    approval: { message: Pay?, edits: { schema: { type: object } } }\n",
];

#[test]
fn rules_with_a_json_schema_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("pay.json"), "{}").unwrap();
    for rules in SCHEMA_RULES {
        std::fs::write(directory.path().join("rules.yaml"), rules).unwrap();
        let error = Engine::from_paths(&[directory.path().into()]).unwrap_err().to_string();
        assert!(error.contains("can't check JSON Schemas"), "{error}");
        assert!(error.contains("rules.yaml:4:"), "{error}");
        assert!(error.contains("cargo add callgate --features json-schema"), "{error}");
    }
}

/// Rules with code, and what the code is.
const CODE_RULES: [(&str, &str); 8] = [
    (
        "policies:\n  - id: p\n    match: { tool: pay, where: { expr: input.amount > 100 } }\n    deny: {}\n",
        "expressions",
    ),
    (
        "policies:\n  - id: p\n    match: pay\n    deny: { message: \"{{ input.amount + 1 }} is too much\" }\n",
        "expressions",
    ),
    (
        "policies:\n  - id: p\n    match: pay\n    approval: { message: \"Pay {{ to_upper(input.name) }}?\" }\n",
        "expressions",
    ),
    (
        "policies:\n  - id: p\n    match: pay\n    cache: { ttl: 1m, key: { expr: input.name } }\n",
        "expressions",
    ),
    ("let: { payee: input.recipient }\npolicies: []\n", "expressions"),
    ("policies:\n  - id: p\n    match: pay\n    deny: { script: \"return 1;\" }\n", "scripts"),
    ("policies:\n  - id: p\n    match: pay\n    around: { script: next(input) }\n", "scripts"),
    ("functions: \"fn fee(amount) { amount }\"\npolicies: []\n", "functions"),
];

#[test]
fn rules_with_expressions_or_scripts_are_rejected() {
    for (rules, code) in CODE_RULES {
        let error = engine::load_text(rules).unwrap_err().to_string();
        assert!(error.contains(&format!("this build of Callgate has no {code}")), "{rules}{error}");
        assert!(error.contains("cargo add callgate --features scripts"), "{rules}{error}");
    }
}

#[test]
fn placeholders_with_paths_are_filled_in() {
    let rules =
        "policies:\n  - id: p\n    match: pay\n    deny: { message: \"{{ input.amount }} is too much\" }\n";
    let engine = Engine::from_text(rules).unwrap();
    let call = ToolCall::new("c1", "pay", json!({ "amount": 900 }));
    assert_eq!(engine.decide(&call, &SessionState::default()).reason().message, "900 is too much");
}

#[test]
fn list_of_tools_with_a_json_schema_is_rejected() {
    let error = tools::parse_list(r#"[{ "name": "read" }, { "name": "pay", "input_schema": {} }]"#);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("the tool `pay` has an `input_schema`"), "{error}");
    assert!(error.contains(r#"features = ["json-schema"]"#), "{error}");
    assert_eq!(tools::parse_list(r#"[{ "name": "read" }]"#).unwrap().len(), 1);
}

fn pay(input_schema: Option<Value>) -> ToolDescriptor {
    ToolDescriptor {
        name: "pay".to_owned(),
        description: None,
        input_schema,
        output_schema: None,
        annotations: None,
        server: None,
        once: false,
        idempotent: false,
    }
}

/// Also if no policy reads its arguments, and if the rules check none.
#[test]
fn calls_of_a_tool_with_a_json_schema_are_invalid() {
    let call = ToolCall::new("c1", "pay", json!({ "amount": 1 }));
    let effect = |rules: &str, schema| {
        let engine = Engine::builder(engine::load_text(rules).unwrap()).tools([pay(schema)]).build();
        let decision = engine.decide(&call, &SessionState::default());
        (decision.effect(), decision.reason().code, decision.reason().message)
    };
    for rules in ["policies: []", "{ defaults: { arguments: unchecked }, policies: [] }"] {
        let (invalid, code, message) = effect(rules, Some(json!({ "type": "object" })));
        assert_eq!((invalid, code.as_str()), (Effect::Invalid, "schema_unavailable"));
        assert!(message.starts_with("the tool `pay` has a schema"), "{message}");
        assert!(message.contains(r#"features = ["json-schema"]"#), "{message}");
        assert_eq!(effect(rules, None).0, Effect::Run);
    }
}

#[test]
fn error_of_rules_has_position_code_message_and_fix() {
    let error = Engine::from_text("policies:\n  - id: a\n    match: b\n    dney: {}\n").unwrap_err();
    let expected = "error[CG201]: unknown key `dney` in `policies`\n --> rules.yaml:4:5\n  = note: in policy `a`\n  \
                    = help: did you mean `deny`?\n";
    assert_eq!(error.to_string(), expected);
}
