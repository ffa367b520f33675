//! Shared test fixtures: a manual clock, and scripted tools.

use std::collections::VecDeque;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::call::Outcome;
use callgate::host::{Clock, ManualClock};
use callgate::json::{Value, json};
use callgate::seal::Keys;
use callgate::{Engine, EngineBuilder, Session, ToolCall, ToolError, ToolExecutor, ToolResponse, engine};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Noon, on a clock that stands still.
pub fn noon() -> ManualClock {
    ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap())
}

/// A server's keys, for tests that compare digests or share a store.
pub fn keys() -> Keys {
    Keys::parse(&"5a".repeat(32)).unwrap()
}

pub fn rules(text: &str) -> EngineBuilder {
    Engine::builder(engine::load_text(text).unwrap_or_else(|error| panic!("{error}"))).seed(1)
}

/// An engine with one policy that applies to every tool, and its clock.
pub fn policy(text: &str) -> (Engine, ManualClock) {
    let clock = noon();
    let engine = rules(&format!("policies: [ {{ id: p, {text} }} ]")).clock(clock.clone()).build();
    (engine, clock)
}

pub fn call(tool: &str, input: Value) -> ToolCall {
    ToolCall::new("", tool, input)
}

/// The kind of an outcome, and the code of its reason.
pub fn kind_and_code(outcome: &Outcome) -> (&'static str, &str) {
    (outcome.outcome.name(), outcome.reason.code.as_str())
}

type Script = VecDeque<(Duration, Result<Value, ToolError>)>;

/// A tool that returns its scripted results in sequence, the last one repeatedly, and records its calls. Clones are the same
/// tool.
#[derive(Clone)]
pub struct Tool {
    clock: ManualClock,
    script: Arc<Mutex<Script>>,
    calls: Arc<Mutex<Vec<ToolCall>>>,
}

impl Tool {
    /// Returns the number of the call.
    pub fn counting(clock: &ManualClock) -> Self {
        Self::scripted(clock, [])
    }

    /// Takes this long for each call, and then returns this.
    pub fn scripted(
        clock: &ManualClock,
        script: impl IntoIterator<Item = (Duration, Result<Value, ToolError>)>,
    ) -> Self {
        Self {
            clock: clock.clone(),
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            calls: Arc::default(),
        }
    }

    pub fn calls(&self) -> Vec<ToolCall> {
        self.calls.lock().unwrap().clone()
    }

    /// The arguments of all calls.
    pub fn inputs(&self) -> Vec<Value> {
        self.calls().into_iter().map(|call| call.input).collect()
    }

    pub fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

impl ToolExecutor for Tool {
    fn execute(&self, call: &ToolCall) -> impl Future<Output = Result<ToolResponse, ToolError>> + Send {
        let mut calls = self.calls.lock().unwrap();
        calls.push(call.clone());
        let mut script = self.script.lock().unwrap();
        let (takes, gives) = match script.len() {
            0 => (Duration::ZERO, Ok(json!(calls.len()))),
            1 => script[0].clone(),
            _ => script.pop_front().unwrap(),
        };
        async move {
            if !takes.is_zero() {
                self.clock.sleep(takes).await;
            }
            gives.map(ToolResponse::from)
        }
    }
}

/// Executes calls one after the other in a session, and returns their outcomes.
pub fn run(clock: &ManualClock, session: &mut Session, tool: &Tool, calls: &[ToolCall]) -> Vec<Outcome> {
    calls.iter().map(|call| clock.block_on(session.execute(call.clone(), tool))).collect()
}
