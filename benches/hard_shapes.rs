//! Benchmark of decisions that could take long: up to 10,000 policies of one tool that all test the same argument, conditions in each other,
//! a condition for each of many elements, and tools with names never seen before. What decides is compared before anything is timed.

#![expect(
    clippy::expect_used,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

use std::hint::black_box;

use callgate::json::{Value, json};
use callgate::{Effect, Engine, SessionState, ToolCall};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];

/// The name of an operator, and the test with that operator for a number.
type Shape = (&'static str, fn(usize) -> Value);

/// Tests of which each holds for the value of one number only; except those of bounds, of which a few hold.
const SHAPES: [Shape; 9] = [
    ("eq", |number| json!({ "path": "$.input.text", "eq": format!("x{number}-abc-x{number}") })),
    (
        "in",
        |number| json!({ "path": "$.input.text", "in": [format!("x{number}-abc-x{number}"), format!("y{number}")] }),
    ),
    ("starts_with", |number| json!({ "path": "$.input.text", "starts_with": format!("x{number}-") })),
    ("ends_with", |number| json!({ "path": "$.input.text", "ends_with": format!("-x{number}") })),
    ("contains", |number| json!({ "path": "$.input.text", "contains": format!("x{number}-") })),
    ("matches", |number| json!({ "path": "$.input.text", "matches": format!("^x{number}-[a-z]+-") })),
    ("host", |number| json!({ "path": "$.input.url", "host": format!("*.x{number}.example.com") })),
    ("inside", |number| json!({ "path": "$.input.file", "inside": format!("/srv/x{number}") })),
    ("gt", |number| json!({ "path": "$.input.amount", "gt": number })),
];

fn call_for(number: usize) -> ToolCall {
    let input = json!({
        "text": format!("x{number}-abc-x{number}"),
        "url": format!("https://api.x{number}.example.com/orders"),
        "file": format!("/srv/x{number}/a.txt"),
        "amount": 3,
    });
    ToolCall::new("c1", "pay", input)
}

fn one_tool(criterion: &mut Criterion) {
    let session = SessionState::default();
    for (name, test) in SHAPES {
        let mut group = criterion.benchmark_group(format!("one_tool/{name}"));
        for size in SIZES {
            let policy = |number: usize| json!({ "id": format!("p{number}"), "match": { "tool": "pay", "where": [test(number)] }, "deny": {} });
            let policies: Vec<Value> = (0..size).map(policy).collect();
            let engine =
                Engine::from_text(&json!({ "policies": policies }).to_string()).expect("valid rules");
            let call = call_for(size / 2);
            let decision = engine.decide(&call, &session);
            assert_eq!(decision.policies().len(), if name == "gt" { 3 } else { 1 }, "{name}");
            assert_eq!(decision.effect(), Effect::Deny, "{name}");
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter(|| engine.decide(black_box(&call), &session).effect());
            });
        }
    }
}

fn one_policy(criterion: &mut Criterion) {
    let session = SessionState::default();
    let mut group = criterion.benchmark_group("one_policy");
    let test = json!({ "path": "$.input.amount", "gt": 5 });
    let nested = (0..20).fold(test.clone(), |inner, depth| match depth % 3 {
        0 => json!({ "any": [inner, test.clone()] }),
        1 => json!({ "all": [inner, test.clone()] }),
        _ => json!({ "not": { "not": inner } }),
    });
    let every = json!({ "every": { "path": "$.input.items[*].amount", "gt": 0 } });
    let items: Vec<Value> = (1..=1_000).map(|amount| json!({ "amount": amount })).collect();
    let input = json!({ "amount": 10, "items": items });
    for (name, condition) in
        [("one test", test), ("20 conditions deep", nested), ("every of 1,000 elements", every)]
    {
        let policies = json!([{ "id": "p", "match": { "tool": "pay", "where": [condition] }, "deny": {} }]);
        let engine = Engine::from_text(&json!({ "policies": policies }).to_string()).expect("valid rules");
        let call = ToolCall::new("c1", "pay", input.clone());
        assert_eq!(engine.decide(&call, &session).effect(), Effect::Deny, "{name}");
        group.bench_function(name, |bencher| {
            bencher.iter(|| engine.decide(black_box(&call), &session).effect());
        });
    }
}

/// Calls of tools whose names are invented, under policies of which a tenth match by a pattern.
fn invented_names(criterion: &mut Criterion) {
    let session = SessionState::default();
    let mut group = criterion.benchmark_group("invented_names");
    for size in SIZES {
        let tool = |number: usize| match number % 10 {
            0 => format!("desk{number}.*"),
            _ => format!("desk{number}.read"),
        };
        let policies: Vec<Value> = (0..size)
            .map(
                |number| json!({ "id": format!("p{number}"), "match": { "tool": tool(number) }, "deny": {} }),
            )
            .collect();
        let engine = Engine::from_text(&json!({ "policies": policies }).to_string()).expect("valid rules");
        let mut number = 0_u64;
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                number += 1;
                let call = ToolCall::new("c1", format!("invented{number}"), json!({}));
                engine.decide(black_box(&call), &session).effect()
            });
        });
    }
}

criterion_group!(benches, one_tool, one_policy, invented_names);
criterion_main!(benches);
