//! What a decision log costs a call: whole calls over a tool that does nothing, without and with a log, on one thread and on two.
//!
//! CPU time of the threads that make the calls, which other programs on the machine do not change much; `with the log's thread` adds that
//! of the thread that writes.

#![expect(
    clippy::expect_used,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use callgate::json::{Value, json};
use callgate::seal::SigningKey;
use callgate::{Engine, Keys, ToolCall, ToolError, ToolExecutor, ToolResponse, load_text};
use callgate_log::{AuditLogOptions, Content, DecisionLog, EventFormat, LogOptions, Rotation};
use criterion::{Criterion, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};

struct NoOp;

impl ToolExecutor for NoOp {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(Value::Null.into())
    }
}

const RULES: &str = "policies:\n  - { id: small, match: { tool: pay, where: [ { path: $.input.amount, gt: 1000 } ] }, deny: {} }\n  \
    - { id: watch, match: pay, mode: shadow, deny: {} }";

fn call() -> ToolCall {
    ToolCall::new("c1", "pay", json!({ "amount": 25, "to": "ann@example.org", "note": "rent ".repeat(40) }))
        .with_context(json!({ "principal": "ann" }))
}

fn engine(log: Option<&DecisionLog>) -> Engine {
    let builder = Engine::builder(load_text(RULES).expect("valid rules"));
    match log {
        Some(log) => builder.observer(log.clone()).build(),
        None => builder.build(),
    }
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Runs so many calls. Returns the CPU time of this thread.
fn run_calls(engine: &Engine, calls: u64) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let call = call();
    let started = cpu_time(ClockId::ThreadCPUTime);
    for _ in 0..calls {
        // A session keeps the names of its calls.
        black_box(runtime.block_on(engine.session().execute(call.clone(), &NoOp)));
    }
    cpu_time(ClockId::ThreadCPUTime) - started
}

/// Runs so many calls on two threads. Returns the CPU time of both.
fn on_two_threads(engine: &Engine, calls: u64) -> Duration {
    std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| run_calls(engine, calls.div_ceil(2))));
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

/// Runs so many calls. Returns the CPU time of the process.
fn with_log_thread(engine: &Engine, calls: u64) -> Duration {
    let started = cpu_time(ClockId::ProcessCPUTime);
    run_calls(engine, calls);
    cpu_time(ClockId::ProcessCPUTime) - started
}

fn decision_log(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a directory");
    let open = |name: &str, content: Content| {
        let format = EventFormat::new(content, Keys::random().expect("a key"));
        let rotation = Rotation { max_bytes: 64 << 20, keep: Some(1) };
        let path = folder.path().join(name);
        DecisionLog::open_file(&path, format, rotation, LogOptions::default()).expect("a log")
    };
    let digests = open("digests.jsonl", Content::Digests);
    let redacted = open("redacted.jsonl", Content::Redacted);
    let mut group = criterion.benchmark_group("whole call");
    for (name, log) in [("no log", None), ("digests", Some(&digests)), ("redacted", Some(&redacted))] {
        let engine = engine(log);
        group.bench_function(format!("{name}, 1 thread"), |bencher| {
            bencher.iter_custom(|calls| run_calls(&engine, calls));
        });
        group.bench_function(format!("{name}, 2 threads"), |bencher| {
            bencher.iter_custom(|calls| on_two_threads(&engine, calls));
        });
        group.bench_function(format!("{name}, with the log's thread"), |bencher| {
            bencher.iter_custom(|calls| with_log_thread(&engine, calls));
        });
    }
    group.finish();
    digests.close();
    redacted.close();
}

/// What an audit log costs: calls wait until their lines are written, so that time counts, and not only CPU time.
fn audit_log(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a directory");
    let key = SigningKey::from_file_or_new(&folder.path().join("key")).expect("a key");
    let format = EventFormat::new(Content::Digests, Keys::random().expect("a key"));
    let options = AuditLogOptions { max_bytes: u64::MAX, ..AuditLogOptions::default() };
    let log = DecisionLog::open_audit_file(&folder.path().join("audit.jsonl"), format, key, options)
        .expect("a log");
    let mut group = criterion.benchmark_group("whole call, time");
    for (name, log) in [("no log", None), ("audit log", Some(&log))] {
        let engine = engine(log);
        for threads in [1, 2, 8] {
            group.bench_function(format!("{name}, {threads} threads"), |bencher| {
                bencher.iter_custom(|calls| time_on_threads(&engine, calls, threads));
            });
        }
    }
    group.finish();
    log.close();
}

/// Runs so many calls on threads. Returns the time that passes.
fn time_on_threads(engine: &Engine, calls: u64, threads: u64) -> Duration {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| run_calls(engine, calls.div_ceil(threads)));
        }
    });
    started.elapsed()
}

criterion_group!(benches, decision_log, audit_log);
criterion_main!(benches);
