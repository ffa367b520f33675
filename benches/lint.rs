//! Cost of linting relative to loading: linting 10,000 policies must take less than four times as long as loading them. Both
//! are measured in one run, over several forms of bundles, because only their ratio is meaningful.
//!
//! `cargo bench --bench lint`

#![expect(
    clippy::expect_used,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

use std::time::{Duration, Instant};

use callgate::ToolDescriptor;
use callgate::json::{Value, json};
use callgate::policy::build_texts;
use callgate_lint::{LintInputs, lint};

const SIZES: [usize; 3] = [100, 1_000, 10_000];
const ROUNDS: usize = 5;

/// Builds a policy of a bundle from its number.
type Form = fn(usize) -> Value;

/// Of ten policies, seven name a tool, two match a family by a glob and one by a regex.
fn mixed(number: usize) -> Value {
    let tool = match number % 10 {
        0..7 => format!("family{}.tool{}", number % 100, number % 1_000),
        7 | 8 => format!("family{}.*", number % 100),
        _ => format!("/^family{}\\.tool\\d*5$/", number % 100),
    };
    let condition = json!([{ "path": "$.input.amount", "gt": 1_000 + number }]);
    let matcher = json!({ "tool": tool, "where": condition });
    let id = format!("p{number}");
    match number % 4 {
        0 => json!({ "id": id, "match": matcher, "approval": { "message": "Pay {{ input.amount }}?" } }),
        1 => {
            json!({ "id": id, "match": matcher, "rate_limit": { "limit": 5, "per": "1m", "key": "$.context.principal" } })
        }
        _ => json!({ "id": id, "match": matcher, "deny": { "message": "not that much" } }),
    }
}

/// All policies are for one tool, each for a different value of one field.
fn one_tool_one_field(number: usize) -> Value {
    let condition = json!([{ "path": "$.input.customer", "eq": format!("customer{number}") }]);
    json!({ "id": format!("p{number}"), "match": { "tool": "refund", "where": condition }, "deny": {} })
}

/// All policies are for one tool, each with a different bound on one field: each covers half of the others.
fn one_tool_many_bounds(number: usize) -> Value {
    let condition = json!([{ "path": "$.input.amount", "gt": number }]);
    json!({ "id": format!("p{number}"), "match": { "tool": "refund", "where": condition }, "deny": {} })
}

/// Each policy has nested conditions.
fn nested(number: usize) -> Value {
    let any: Vec<Value> = (0..4)
        .map(|part| json!({ "all": [ { "path": format!("$.input.field{part}"), "gt": number }, { "path": "$.input.note", "ne": "x" } ] }))
        .collect();
    json!({ "id": format!("p{number}"), "match": { "tool": format!("tool{number}"), "where": [ { "any": any } ] }, "deny": {} })
}

fn tool(name: String) -> Value {
    let properties = json!({ "amount": { "type": "number" }, "customer": { "type": "string" } });
    json!({ "name": name, "input_schema": { "type": "object", "properties": properties, "additionalProperties": true } })
}

fn main() {
    let families = (0..1_000).map(|number| format!("family{}.tool{}", number % 100, number));
    let others = (0..10_000).map(|number| format!("tool{number}")).chain(["refund".to_owned()]);
    let tools: Vec<ToolDescriptor> =
        callgate::json::from_value(Value::Array(families.chain(others).map(tool).collect())).expect("tools");
    println!(
        "{:<24} {:>8} {:>12} {:>12} {:>7} {:>9}",
        "bundle", "policies", "load", "check", "ratio", "warnings"
    );
    let forms: [(&str, Form); 4] = [
        ("mixed", mixed),
        ("one tool, one field", one_tool_one_field),
        ("one tool, many bounds", one_tool_many_bounds),
        ("nested", nested),
    ];
    for (name, form) in forms {
        for size in SIZES {
            let policies: Vec<Value> = (0..size).map(form).collect();
            measure(name, size, &json!({ "policies": policies }).to_string(), &tools);
        }
    }
}

/// Takes the fastest of several rounds, because other load only adds time.
fn measure(name: &str, size: usize, text: &str, tools: &[ToolDescriptor]) {
    let (mut load, mut check, mut warnings) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let built = build_texts([("rules.yaml", text)]);
        load = load.min(began.elapsed());
        let began = Instant::now();
        let linted = lint(built, &LintInputs { tools: Some(tools), tests: None });
        check = check.min(began.elapsed());
        warnings = linted.diagnostics.len();
        assert!(linted.policies.is_some(), "the bundle has errors");
    }
    let ratio = check.as_secs_f64() / load.as_secs_f64();
    println!("{name:<24} {size:>8} {load:>12.2?} {check:>12.2?} {ratio:>7.2} {warnings:>9}");
}
