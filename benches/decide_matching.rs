//! Benchmark of decisions on rules whose conditions hold: 10 to 10,000 policies, of which 12 to 29 concern a call and about half match,
//! beside a hand-written index of the same rules that stops at the strictest match. Every effect is compared before anything is timed.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

mod workload;

use std::collections::HashMap;
use std::hint::black_box;

use callgate::{Engine, SessionState};
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

criterion_group!(benches, decisions);
criterion_main!(benches);
