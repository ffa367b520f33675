//! Benchmarks of decisions: bundles of 10 to 10,000 policies, small and large arguments, compared with a hand-written baseline
//! of the same rules; and loading.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

use std::collections::HashMap;
use std::hint::black_box;

use callgate::json::{Value, json};
use callgate::{Effect, Engine, SessionState, ToolCall, engine};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use regex::Regex;

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
const REGIONS: [&str; 4] = ["eu", "us", "jp", "br"];
const CALLS: usize = 64;

/// One rule of the mix: of ten rules, seven name their tool exactly, two match it by a glob and one matches a family of tools by a regex.
/// The conditions rotate between `eq`, `gt`, `in`, `matches`, a condition on the context and an equality test of a boolean.
struct Rule {
    tool: String,
    condition: usize,
    effect: Effect,
}

fn mix(size: usize) -> Vec<Rule> {
    // As many tools as policies, up to a thousand, in families of ten.
    let tools = size.min(1_000);
    let families = tools.div_ceil(10);
    let rule = |number: usize| {
        let tool = match number % 10 {
            0..7 => format!("family{}.tool{}", number * 7 % families, number % tools),
            7 | 8 => format!("family{}.*", number * 3 % families),
            _ => format!("/^family{}\\.tool\\d*5$/", number * 3 % families),
        };
        let effect = [Effect::Deny, Effect::Suspend, Effect::Run][number % 3];
        Rule { tool, condition: number % 6, effect }
    };
    (0..size).map(rule).collect()
}

/// Tests for values that no call of the benchmark has: rules are evaluated and do not match, as for most calls in production.
fn rules(mix: &[Rule]) -> String {
    let policy = |(number, rule): (usize, &Rule)| {
        let condition = match rule.condition {
            0 => json!([{ "path": "$.input.region", "eq": format!("region{number}") }]),
            1 => json!([{ "path": "$.input.amount", "gt": 1_000 + number }]),
            2 => json!([{ "path": "$.input.region", "in": [format!("a{number}"), format!("b{number}")] }]),
            3 => json!([{ "path": "$.input.subject", "matches": "^URGENT" }]),
            4 => json!([{ "path": "$.context.role", "eq": "guest" }, { "path": "$.input.amount", "gt": 10 }]),
            _ => json!([{ "path": "$.input.draft", "eq": true }]),
        };
        let kind = match rule.effect {
            Effect::Deny => "deny",
            Effect::Suspend => "approval",
            _ => "allow",
        };
        json!({ "id": format!("p{number}"), "match": { "tool": rule.tool, "where": condition }, kind: {} })
    };
    json!({ "policies": mix.iter().enumerate().map(policy).collect::<Vec<_>>() }).to_string()
}

/// The same rules written by hand: closures over the arguments in a map by tool, with tool patterns resolved once.
type Closure = Box<dyn Fn(&ToolCall) -> bool>;

struct Baseline(HashMap<String, Vec<(Closure, Effect)>>);

fn closure(rule: &Rule, number: usize) -> Closure {
    match rule.condition {
        0 => {
            let wanted = format!("region{number}");
            Box::new(move |call| call.input.get("region").and_then(Value::as_str) == Some(wanted.as_str()))
        }
        1 => {
            let bound = (1_000 + number) as f64;
            Box::new(move |call| {
                call.input.get("amount").and_then(Value::as_f64).is_some_and(|amount| amount > bound)
            })
        }
        2 => {
            let wanted = [format!("a{number}"), format!("b{number}")];
            Box::new(move |call| {
                let region = call.input.get("region").and_then(Value::as_str);
                region.is_some_and(|region| wanted.iter().any(|wanted| wanted == region))
            })
        }
        3 => {
            let urgent = Regex::new("^URGENT").expect("a regular expression");
            Box::new(move |call| {
                call.input
                    .get("subject")
                    .and_then(Value::as_str)
                    .is_some_and(|subject| urgent.is_match(subject))
            })
        }
        4 => Box::new(|call| {
            call.context.get("role").and_then(Value::as_str) == Some("guest")
                && call.input.get("amount").and_then(Value::as_f64).is_some_and(|amount| amount > 10.0)
        }),
        _ => Box::new(|call| call.input.get("draft").and_then(Value::as_bool) == Some(true)),
    }
}

impl Baseline {
    fn new(mix: &[Rule], calls: &[ToolCall]) -> Self {
        let mut by_tool: HashMap<String, Vec<(Closure, Effect)>> = HashMap::new();
        for call in calls {
            let fits = |rule: &Rule| match rule.tool.strip_prefix('/') {
                Some(regex) => Regex::new(regex.trim_end_matches('/'))
                    .expect("a regular expression")
                    .is_match(&call.tool),
                None => match rule.tool.strip_suffix('*') {
                    Some(start) => call.tool.starts_with(start),
                    None => rule.tool == call.tool,
                },
            };
            let closures = mix.iter().enumerate().filter(|(_, rule)| fits(rule));
            by_tool.entry(call.tool.clone()).or_insert_with(|| {
                closures.map(|(number, rule)| (closure(rule, number), rule.effect)).collect()
            });
        }
        Self(by_tool)
    }

    fn decide(&self, call: &ToolCall) -> Effect {
        let mut strictest = Effect::Run;
        for (matches, effect) in self.0.get(&call.tool).into_iter().flatten() {
            if *effect > strictest && matches(call) {
                strictest = *effect;
            }
        }
        strictest
    }
}

/// Calls of 64 of the tools, with arguments of about `bytes` bytes.
fn calls(mix: &[Rule], bytes: usize) -> Vec<ToolCall> {
    let tools = mix.len().min(1_000);
    let families = tools.div_ceil(10);
    let call = |number: usize| {
        let place = number * 37 % mix.len() / 10 * 10;
        let tool = format!("family{}.tool{}", place * 7 % families, place % tools);
        let mut input = json!({
            "region": REGIONS[number % 4], "amount": number * 10, "subject": "Quarterly figures", "draft": false,
            "to": ["ana@example.com", "bob@example.com"],
        });
        let paragraphs = bytes.saturating_sub(150) / 100;
        let text = "All work and no play makes a dull agent, and a dull agent makes work.";
        let body: Vec<Value> = (0..paragraphs).map(|line| json!({ "line": line, "text": text })).collect();
        input["body"] = body.into();
        ToolCall::new("c1", tool, input).with_context(json!({ "role": "clerk", "tenant": "acme" }))
    };
    (0..CALLS).map(call).collect()
}

fn decisions(criterion: &mut Criterion) {
    let session = SessionState::default();
    for (name, bytes) in [("300B", 300), ("10KB", 10_000)] {
        let mut group = criterion.benchmark_group(format!("decide/{name}"));
        for size in SIZES {
            let mix = mix(size);
            let calls = calls(&mix, bytes);
            let engine = Engine::from_text(&rules(&mix)).expect("valid rules");
            let baseline = Baseline::new(&mix, &calls);
            for call in &calls {
                assert_eq!(engine.decide(call, &session).effect(), baseline.decide(call), "{}", call.tool);
            }
            let mut next = calls.iter().cycle();
            group.bench_function(BenchmarkId::new("engine", size), |bencher| {
                bencher.iter(|| engine.decide(black_box(next.next().expect("a cycle")), &session).effect());
            });
            let mut next = calls.iter().cycle();
            group.bench_function(BenchmarkId::new("baseline", size), |bencher| {
                bencher.iter(|| baseline.decide(black_box(next.next().expect("a cycle"))));
            });
        }
    }
}

fn loading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10);
    for size in SIZES {
        let text = rules(&mix(size));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| engine::load_text(black_box(&text)).expect("valid rules"));
        });
    }
}

criterion_group!(benches, decisions, loading);
criterion_main!(benches);
