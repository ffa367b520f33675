//! Cost of an `around` script: alone, with one `next`, and reading one field of small and large inputs, compared with two
//! baselines: a copy of the input, and an expression on the same call. Also the overhead for a whole call, from the session to
//! the outcome, compared with the same call without a policy.

#![expect(
    clippy::expect_used,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use callgate::call::{CallView, Outcome, SessionState, ToolCall};
use callgate::json::{Value, json};
use callgate::script::{Answer, AroundScript, Journal, Predicate, ReplayResult, ScriptCall};
use callgate::{Engine, OutcomeKind, Session, ToolError, ToolExecutor, ToolResponse};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};

fn input(rows: usize) -> Value {
    let rows: Vec<Value> =
        (0..rows).map(|n| json!({"name": format!("row number {n}"), "price": n, "tags": ["a"]})).collect();
    json!({"amount": 250, "customer": "c1", "rows": rows})
}

/// Runs a script to its end; every effect gets the same output.
fn run<'c>(around: &AroundScript, seen: &ScriptCall<'c>, output: &Arc<Value>) -> ReplayResult<'c> {
    let mut journal = Journal::new(seen);
    loop {
        match around.replay(seen, &journal) {
            ReplayResult::Effect(effect) => journal.push(effect, Answer::Value(Arc::clone(output))),
            end => return end,
        }
    }
}

const SCRIPTS: [(&str, &str); 5] = [
    ("trivial", "1"),
    ("one next", "let out = next(input); out"),
    ("one field", "if input.amount > 100 { 1 } else { 2 }"),
    (
        "change and add",
        "if input.amount > 100 { input.large = true; } let out = next(input); out.seen = true; out",
    ),
    ("loop of 1000", "let sum = 0; for i in range(0, 1000) { sum += i; } sum"),
];

fn scripts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("script");
    for (size, rows) in [("100 B", 1), ("10 KB", 180), ("1 MB", 18_000)] {
        let (call, session) = (ToolCall::new("c1", "pay", input(rows)), SessionState::default());
        let view = CallView::new(&call, &session);
        let output = Arc::new(input(rows));
        for (name, script) in SCRIPTS {
            let around = AroundScript::compile(script).expect("a script");
            let seen = around.begin(&call, None, &session).expect("a call");
            assert!(matches!(run(&around, &seen, &output), ReplayResult::Completed { .. }));
            group.bench_function(BenchmarkId::new(name, size), |bencher| {
                bencher.iter(|| black_box(run(&around, &seen, &output)));
            });
        }
        let around = AroundScript::compile("next(input)").expect("a script");
        group.bench_function(BenchmarkId::new("begin", size), |bencher| {
            bencher.iter(|| black_box(around.begin(&call, None, &session)));
        });
        let predicate = Predicate::compile("input.amount > 100").expect("an expression");
        group.bench_function(BenchmarkId::new("baseline: expression", size), |bencher| {
            bencher.iter(|| black_box(predicate.eval(&view)));
        });
        group.bench_function(BenchmarkId::new("baseline: copy of the input", size), |bencher| {
            bencher.iter(|| black_box(call.input.clone()));
        });
    }
    group.finish();
}

/// A tool that returns immediately.
struct Ready;

impl ToolExecutor for Ready {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(json!({"ok": true}).into())
    }
}

fn execute(session: &mut Session, call: ToolCall) -> Outcome {
    let mut future = pin!(session.execute(call, &Ready));
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
    .expect("an outcome: no future here is pending")
}

/// Whole calls, without the time to clone the call and to drop its outcome.
fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call");
    let wrap = |script: &str| json!({"policies": [{"id": "wrap", "around": {"script": script}}]}).to_string();
    for (size, rows) in [("100 B", 1), ("10 KB", 180)] {
        let call = ToolCall::new("c1", "pay", input(rows));
        for (name, rules) in [
            ("baseline: no policy", "policies: []".to_owned()),
            ("trivial", wrap("1")),
            ("one next", wrap("next(input)")),
            ("one field", wrap("if input.amount > 1000 { throw \"large\"; } next(input)")),
        ] {
            let engine = Engine::from_text(&rules).expect("valid rules");
            let mut session = engine.session();
            let ended = execute(&mut session, call.clone()).outcome;
            assert!(matches!(ended, OutcomeKind::Executed | OutcomeKind::Answered));
            group.bench_function(BenchmarkId::new(name, size), |bencher| {
                bencher.iter_batched(
                    || call.clone(),
                    |call| execute(&mut session, call),
                    BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, scripts, calls);
criterion_main!(benches);
