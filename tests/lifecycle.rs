//! A whole run of an agent: its configuration, stream and budgets, and its single ending.

mod arming;
mod budgets;
mod concurrent_runs;
mod configuring;
mod dropped;
mod endings;
mod positions;
mod running;
mod shadows;
mod showing;
mod skills;
mod streaming;

use std::sync::{Arc, Mutex};

use callgate::call::Outcome;
use callgate::host::BoxFuture;
use callgate::json::Value;
use callgate::lifecycle::{
    BeforeAction, Chunk, ChunkAction, HookCall, HookError, Middleware, ModelConfig, ModelConfigPatch,
    RunContext, RunEnd, RunStats, ToolCallEnd, Usage,
};
use callgate::message::{History, Message, Part, Role};
use callgate::{Session, ToolCall, ToolDescriptor};

use crate::fixtures::{noon, rules};

/// Events that hooks observed, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn record(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A hook that records every event, with the position of the run.
pub struct Listener {
    pub name: &'static str,
    pub log: Log,
}

impl Listener {
    fn record(&self, run: &RunContext, what: &str) {
        self.log.record(format!("{} {}#{} {what}", self.name, run.phase.name(), run.iteration));
    }
}

impl Middleware for Listener {
    fn id(&self) -> &str {
        self.name
    }
    fn on_session_start(&self, run: &RunContext) {
        self.record(run, "session starts");
    }
    fn on_config(&self, run: &RunContext, _: &ModelConfig) -> Option<ModelConfigPatch> {
        self.record(run, "config");
        None
    }
    fn on_start(&self, run: &RunContext) {
        self.record(run, "start");
    }
    fn before_completion(&self, run: &RunContext, _: &History) {
        self.record(run, "before completion");
    }
    fn on_chunk(&self, run: &RunContext, _: &Chunk) -> ChunkAction {
        self.record(run, &format!("chunk {}", run.chunk_index));
        ChunkAction::Pass
    }
    fn on_usage(&self, run: &RunContext, usage: &Usage) {
        self.record(run, &format!("usage {}", usage.tokens()));
    }
    fn after_tool_request(&self, run: &RunContext, calls: &[ToolCall]) -> Option<String> {
        self.record(run, &format!("{} requested", calls.len()));
        None
    }
    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        self.record(call.run, &format!("before {}", call.tool));
        Box::pin(std::future::ready(BeforeAction::Continue))
    }
    fn after<'a>(&'a self, end: &'a ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        self.record(end.run, &format!("after {} {}", end.outcome.tool, end.outcome.outcome));
        Box::pin(std::future::ready(()))
    }
    fn after_tools(&self, run: &RunContext, outcomes: &[Outcome]) {
        self.record(run, &format!("{} done", outcomes.len()));
    }
    fn after_compaction(&self, run: &RunContext, before: &History, after: &History) {
        self.record(run, &format!("compacted {} to {}", before.messages().len(), after.messages().len()));
    }
    fn after_completion(&self, run: &RunContext, _: &History) {
        self.record(run, "after completion");
    }
    fn on_end(&self, run: &RunContext, ending: &RunEnd, stats: &RunStats) -> Result<(), HookError> {
        let ending = match ending {
            RunEnd::Finished { reason, .. } => format!("finished {}", reason.clone().unwrap_or_default()),
            RunEnd::Aborted { reason } => format!("aborted {reason}"),
            RunEnd::Failed { error } => format!("failed {error}"),
        };
        self.record(run, &format!("{ending} after {} with {}", stats.iterations, stats.usage.tokens()));
        Ok(())
    }
    fn on_session_end(&self, run: &RunContext) {
        self.record(run, "session ends");
    }
}

/// A session with these rules and one listener.
pub fn session(text: &str) -> (Session, Log) {
    let log = Log::default();
    let listener = Listener { name: "ear", log: log.clone() };
    (rules(text).clock(noon()).middleware(listener).build().session(), log)
}

pub fn user(text: &str) -> History {
    History::new(vec![Message::new(Role::User, vec![Part::text(text)])])
}

pub fn push_call(history: &mut History, id: &str, tool: &str, input: Value) {
    history.push(Message::new(Role::Assistant, vec![Part::call(id, tool, input)]));
}

pub fn finished(tokens: u64) -> Chunk {
    let usage = Usage { prompt_tokens: tokens, ..Usage::default() };
    Chunk::Finished { reason: Some("stop".into()), usage: Some(usage) }
}

pub fn ending() -> RunEnd {
    RunEnd::Finished { reason: Some("stop".into()), content: "done".into() }
}

pub fn tool(name: &str) -> ToolDescriptor {
    callgate::json::from_value(callgate::json::json!({ "name": name })).unwrap()
}

pub fn abort_reason<T: std::fmt::Debug>(result: Result<T, RunEnd>) -> String {
    match result {
        Err(RunEnd::Aborted { reason }) => reason,
        other => panic!("the run goes on: {other:?}"),
    }
}
