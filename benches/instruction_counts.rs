//! Runs one main path a number of times, for a tool that counts instructions, such as `valgrind --tool=callgrind`: the difference between
//! two numbers of runs is what the path costs. `benches/count-instructions` does that for all of them.
//!
//! Usage: `instruction_counts PATH RUNS`. `load` loads that many policies once; `tool` makes the calls of `call` without Callgate.
//! `text` and `parsed_text` evaluate arguments that are still text, and `serde_json` only parses them; a name with `_9k` has arguments of 9.4 KB instead of 245 bytes.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark is run manually on its own data and must stop if that data is wrong"
)]

mod workload;

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use callgate::json::{Value, json};
use callgate::{Engine, SessionState, ToolCall, ToolError, ToolExecutor, ToolResponse};
use workload::{FoldedIndex, calls, rules, rules_text};

/// A tool that returns nothing, immediately.
struct IdleTool;

impl ToolExecutor for IdleTool {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(Value::Null.into())
    }
}

/// A call; each run has its own.
fn read_call() -> ToolCall {
    ToolCall::new("c1", "read", json!({ "path": "a.txt" }))
}

/// The result of a future that waits for nothing.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the tool answers immediately"),
    }
}

fn run(path: &str, runs: usize) {
    let session = SessionState::default();
    let (name, size) = path.split_once('/').unwrap_or((path, "100"));
    let size: usize = size.parse().expect("a number of policies");
    let (name, bytes) = name.strip_suffix("_9k").map_or((name, 245), |name| (name, 9_400));
    let calls = calls(size, bytes);
    let repeated = || calls.iter().cycle().take(runs);
    match name {
        "decide" | "effect" => {
            let engine = Engine::from_text(&rules_text(&rules(size))).expect("valid rules");
            for call in &calls {
                black_box(engine.decide(call, &session).effect());
            }
            match name {
                "decide" => repeated().for_each(|call| drop(black_box(engine.decide(call, &session)))),
                _ => {
                    for call in repeated() {
                        black_box(engine.effect(call, &session));
                    }
                }
            }
        }
        "index" => {
            let index = FoldedIndex::new(size);
            for call in repeated() {
                black_box(index.decide(call));
            }
        }
        "text" | "parsed_text" | "serde_json" => {
            let engine = Engine::from_text(&rules_text(&rules(size))).expect("valid rules");
            let texts: Vec<(&str, String)> =
                calls.iter().map(|call| (call.tool.as_str(), call.input.to_string())).collect();
            for (tool, text) in texts.iter().cycle().take(runs) {
                let call = |input| ToolCall::new("c1", *tool, input);
                match name {
                    "text" => {
                        black_box(engine.effect_of_text(call(Value::Null), text, &session).expect("JSON"));
                    }
                    "parsed_text" => {
                        black_box(engine.effect(&call(text.parse().expect("JSON")), &session));
                    }
                    _ => drop(black_box(serde_json::from_str::<serde_json::Value>(text))),
                }
            }
        }
        "call" => {
            let engine =
                Engine::from_text("policies: [{ id: all, match: \"*\", allow: {} }]").expect("valid rules");
            let mut session = engine.session();
            for _ in 0..runs {
                drop(black_box(ready(session.execute(read_call(), &IdleTool))));
            }
        }
        "tool" => {
            for _ in 0..runs {
                drop(black_box(ready(IdleTool.execute(black_box(&read_call())))));
            }
        }
        "load" => {
            let engine = Engine::from_text(&rules_text(&rules(runs))).expect("valid rules");
            std::mem::forget(black_box(engine));
        }
        other => panic!("no path `{other}`"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().filter(|argument| argument != "--bench").collect();
    let runs = arguments.get(2).map_or(1, |runs| runs.parse().expect("a number of runs"));
    run(arguments.get(1).map_or("decide/100", String::as_str), runs);
}
