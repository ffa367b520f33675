//! Decisions of Callgate beside those of Cedar, Regorus, CEL and OPA: the same 10 to 10,000 rules, whose conditions hold as often as they do
//! for users, and the same 64 calls, in one run. All must agree on every call before anything is timed.
//!
//! Each engine has its rules as its documentation recommends, and each call in its own form, before the time starts. CEL evaluates single
//! expressions, so that the host finds the rules of a tool and stops at the strictest that holds. The index is written by hand for
//! these rules. OPA is timed by its own `bench` command, for a few of the calls.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml`

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run has no result"
)]

mod cedar;
mod cel;
#[path = "../../opa_binary/mod.rs"]
mod opa_binary;
mod opa;
mod own;
mod rego;
mod regorus;
#[path = "../../workload/mod.rs"]
mod workload;

use std::hint::black_box;
use std::time::{Duration, Instant};

use callgate::{Effect, ToolCall};
use workload::{CALLS, calls};

/// What an engine is measured for at least, in a round.
const ROUND: Duration = Duration::from_millis(100);
const ROUNDS: usize = 7;

/// A policy engine with the rules of a size, and with the calls for them.
trait PolicyEngine {
    /// What the rules say about the call with this number.
    fn decide(&mut self, call: usize) -> Effect;
}

/// The name of an engine, and what makes it from a number of rules and the calls.
type EngineSource = (&'static str, fn(usize, &[ToolCall]) -> Box<dyn PolicyEngine>);

const ENGINES: [EngineSource; 6] = [
    ("hand-written index", |size, calls| Box::new(own::Index::new(size, calls))),
    ("Callgate effect", |size, calls| Box::new(own::Callgate::<false>::new(size, calls))),
    ("Callgate decide", |size, calls| Box::new(own::Callgate::<true>::new(size, calls))),
    ("CEL and an index", |size, calls| Box::new(cel::Cel::new(size, calls))),
    ("Cedar", |size, calls| Box::new(cedar::Cedar::new(size, calls))),
    ("Regorus", |size, calls| Box::new(regorus::Regorus::new(size, calls))),
];

fn main() {
    let opa = opa_binary::opa_binary();
    println!("{:>6}  {:20} {:>12} {:>10} {:>12}", "rules", "engine", "ns", "× index", "ready in ms");
    for size in [10, 100, 1_000, 10_000] {
        let calls = calls(size, 245);
        let mut engines: Vec<_> =
            ENGINES.iter().map(|(name, new)| Measured::new(name, || new(size, &calls))).collect();
        let expected: Vec<Effect> = (0..CALLS).map(|call| engines[0].engine.decide(call)).collect();
        for measured in &mut engines {
            let effects: Vec<Effect> = (0..CALLS).map(|call| measured.engine.decide(call)).collect();
            assert_eq!(effects, expected, "{} with {size} rules", measured.name);
        }
        for _ in 0..ROUNDS {
            engines.iter_mut().for_each(Measured::round);
        }
        let index = engines[0].median();
        for measured in &mut engines {
            let median = measured.median();
            print_row(size, measured.name, median, index, Some(measured.ready));
        }
        print_row(size, "OPA", opa::median_of_decision(&opa, size, &calls, &expected), index, None);
    }
}

fn print_row(size: usize, name: &str, nanoseconds: f64, index: f64, ready: Option<Duration>) {
    let ready = ready.map_or("-".to_owned(), |ready| format!("{:.1}", ready.as_secs_f64() * 1e3));
    println!("{size:>6}  {name:20} {nanoseconds:>12.0} {:>10.1} {ready:>12}", nanoseconds / index);
}

/// An engine, and the times of its decisions.
struct Measured {
    name: &'static str,
    engine: Box<dyn PolicyEngine>,
    /// How long the engine took to read the rules and the calls.
    ready: Duration,
    /// Nanoseconds of a decision, of each round.
    rounds: Vec<f64>,
}

impl Measured {
    fn new(name: &'static str, new: impl FnOnce() -> Box<dyn PolicyEngine>) -> Self {
        let started = Instant::now();
        let engine = new();
        Self { name, engine, ready: started.elapsed(), rounds: Vec::new() }
    }

    fn round(&mut self) {
        let started = Instant::now();
        let mut decisions = 0_u32;
        while started.elapsed() < ROUND {
            for call in 0..CALLS {
                black_box(self.engine.decide(black_box(call)));
            }
            decisions += CALLS as u32;
        }
        self.rounds.push(started.elapsed().as_nanos() as f64 / f64::from(decisions));
    }

    fn median(&mut self) -> f64 {
        self.rounds.sort_by(f64::total_cmp);
        self.rounds[self.rounds.len() / 2]
    }
}
