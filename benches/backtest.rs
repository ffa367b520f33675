//! What a backtest costs: recorded calls that are read, replayed and compared, as a multiple of reading their JSON in the same run.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate::json::{self, json};
use callgate::load_text;
use callgate_analysis::backtest::{BacktestReport, Replay};
use callgate_analysis::recording::{RecordedCall, RecordedLine, RecordingReader, RoundAssembler};
use jiff::Timestamp;

const RULES: &str = "policies:
  - { id: ask, match: { tool: pay, where: { path: $.input.amount, gt: 1000 } }, approval: {} }
  - { id: outside, match: { tool: mail, where: { not: { path: $.input.to, domain: example.com } } }, deny: {} }
  - { id: seen, match: fetch, label: { add: [web] } }
  - { id: few, match: mail, rate_limit: { limit: 1000000, per: 1h, key: $.context.principal } }
  - { id: last, match: pay, fact: { name: last, value: input.amount } }
";
const CALLS: usize = 50_000;
const SESSIONS: usize = 500;
const RUNS: usize = 3;

/// Lines of a decision log. `amount` decides whether payments are suspended.
fn log(amount: u32) -> Vec<String> {
    let line = |number: usize| {
        let (tool, input) = match number % 3 {
            0 => ("pay", json!({ "amount": amount, "order": format!("W{number}"), "currency": "EUR" })),
            1 => ("mail", json!({ "to": "ann@example.com", "body": "text ".repeat(20) })),
            _ => ("fetch", json!({ "url": format!("https://docs.example.com/{number}") })),
        };
        let is_suspended = tool == "pay" && amount > 1_000;
        let (outcome, code) =
            if is_suspended { ("suspended", "approval_required") } else { ("executed", "allowed") };
        let seconds = i64::try_from(number).unwrap_or_default();
        let time = Timestamp::from_second(1_793_520_000 + seconds).expect("a time");
        let mut event = json!({
            "version": 1, "event": "call_completed", "time": time.to_string(), "session": format!("s{}", number % SESSIONS),
            "id": format!("c{number}"), "tool": tool, "outcome": outcome, "reason": { "code": code }, "duration_us": 50,
            "input": input, "context": { "principal": "ann" },
        });
        if !is_suspended {
            event["recorded"] = json!({ "output": { "ok": true, "text": "a result of some length" } });
        }
        event.to_string()
    };
    (0..CALLS).map(line).collect()
}

fn read(lines: &[String]) -> Vec<RecordedCall> {
    let mut reader = RecordingReader::default();
    let file: Arc<str> = Arc::from("log.jsonl");
    let read = lines.iter().zip(1..).filter_map(|(line, number)| {
        match reader.read(line, &file, number).expect("a line") {
            RecordedLine::Call(call) => Some(*call),
            _ => None,
        }
    });
    read.collect()
}

fn replay(calls: &[RecordedCall]) -> BacktestReport {
    let mut replay = Replay::new(load_text(RULES).expect("valid rules"), &[], Timestamp::UNIX_EPOCH);
    let mut report = BacktestReport::default();
    let mut rounds = RoundAssembler::default();
    for call in calls {
        for round in rounds.add(call.clone()) {
            for (call, decision) in round.iter().zip(replay.decide(&round)) {
                report.add(call, decision);
            }
        }
    }
    report
}

/// The shortest of several runs.
fn measure<T>(mut run: impl FnMut() -> T) -> Duration {
    let times = (0..RUNS).map(|_| {
        let started = Instant::now();
        black_box(run());
        started.elapsed()
    });
    times.min().unwrap_or_default()
}

fn main() {
    for (name, amount) in [("permitted", 25), ("a third suspended", 5_000)] {
        let lines = log(amount);
        let floor = measure(|| lines.iter().map(|line| json::parse(line).is_ok()).filter(|is| *is).count());
        let calls = read(&lines);
        for (step, time) in [
            ("read as JSON", floor),
            ("read as recorded calls", measure(|| read(&lines))),
            ("replay and compare", measure(|| replay(&calls))),
        ] {
            let per_call = time.as_secs_f64() * 1e6 / CALLS as f64;
            let multiple = time.as_secs_f64() / floor.as_secs_f64();
            println!("{name}: {step}: {per_call:.2} µs for each call, {multiple:.1} × the floor");
        }
    }
}
