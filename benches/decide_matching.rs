//! Benchmark of decisions on rules whose conditions hold: 10 to 10,000 policies, of which 12 to 29 concern a call and about half match,
//! beside a hand-written index of the same rules that stops at the strictest match; and the same decisions on one thread and on two. Every
//! effect is compared before anything is timed.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

mod workload;

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use callgate::{Engine, SessionState, ToolCall};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use workload::{CALLS, FoldedIndex, calls, rules, rules_text};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];

fn decisions(criterion: &mut Criterion) {
    let session = SessionState::default();
    for (name, bytes) in [("245B", 245), ("9.4KB", 9_400)] {
        let mut group = criterion.benchmark_group(format!("matching/{name}"));
        for size in SIZES {
            let calls = calls(size, bytes);
            let engine = Engine::from_text(&rules_text(&rules(size))).expect("valid rules");
            let index = FoldedIndex::new(size);
            let (mut effects, mut involved) = (HashMap::new(), 0);
            for call in &calls {
                let decision = engine.decide(call, &session);
                assert_eq!(decision.effect(), index.decide(call), "{}", call.tool);
                assert_eq!(engine.effect(call, &session), index.decide(call), "{}", call.tool);
                *effects.entry(format!("{:?}", decision.effect())).or_insert(0) += 1;
                involved += decision.policies().len();
            }
            println!("{size} policies: {effects:?}, {involved} matches in {CALLS} calls");
            let mut next = calls.iter().cycle();
            group.bench_function(BenchmarkId::new("decide", size), |bencher| {
                bencher.iter(|| engine.decide(black_box(next.next().expect("a cycle")), &session).effect());
            });
            let mut next = calls.iter().cycle();
            group.bench_function(BenchmarkId::new("effect", size), |bencher| {
                bencher.iter(|| engine.effect(black_box(next.next().expect("a cycle")), &session));
            });
            let mut next = calls.iter().cycle();
            group.bench_function(BenchmarkId::new("index", size), |bencher| {
                bencher.iter(|| index.decide(black_box(next.next().expect("a cycle"))));
            });
        }
    }
}

/// The time for so many decisions on threads that share the engine and the calls.
fn time_on_threads(engine: &Engine, calls: &[ToolCall], decisions: u64, threads: u64) -> Duration {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let session = SessionState::default();
                let share = usize::try_from(decisions / threads).expect("fits");
                for call in calls.iter().cycle().take(share) {
                    black_box(engine.decide(black_box(call), &session).effect());
                }
            });
        }
    });
    started.elapsed()
}

fn threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("threads");
    for size in SIZES {
        let calls = calls(size, 245);
        let engine = Engine::from_text(&rules_text(&rules(size))).expect("valid rules");
        for threads in [1, 2] {
            group.bench_function(BenchmarkId::new(format!("{threads}"), size), |bencher| {
                bencher.iter_custom(|decisions| time_on_threads(&engine, &calls, decisions, threads));
            });
        }
    }
}

criterion_group!(benches, decisions, threads);
criterion_main!(benches);
