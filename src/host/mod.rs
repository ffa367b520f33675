//! What the embedding program supplies: the tools, a clock, a store, and eyes.

mod account;
mod clock;
mod guard;
mod record;
mod store;
mod toolbox;

pub use account::Account;
pub use clock::{BoxFuture, Clock, ManualClock, SystemClock};
pub(crate) use guard::{before, guarded};
pub use record::{LARGEST_RECORD, Page, Record, RecordKey, WhenFull, Write, space};
pub(crate) use store::in_time;
pub use store::{
    Allowance, CacheEntry, CacheSpace, Lookup, Refusal, StateStore, StoreError, StoreFuture, Take,
};

pub use toolbox::Toolbox;

use std::future::Future;

pub use crate::call::Amount;
use crate::call::{ApprovalDecision, ApprovalRequest, Outcome, RunShadow, ToolCall};
use crate::json::Value;

/// Why a tool gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// For the model.
    pub message: String,
    /// A word that policies can match, such as `timeout`.
    pub kind: Option<String>,
}

impl ToolError {
    /// An error with a message and no kind.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: None }
    }

    /// The same error with a word that policies can match.
    #[must_use]
    pub fn of_kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// The result.
    pub output: Value,
    /// No tool stood behind the call: the output says nothing.
    pub dry: bool,
    /// The call is not over: the output asks for more, or says where the result will be. It is not kept in caches.
    pub interim: bool,
}

impl From<Value> for ToolAnswer {
    fn from(output: Value) -> Self {
        Self { output, dry: false, interim: false }
    }
}

/// Runs tools. Only calls that passed every policy get here, with their final arguments.
///
/// One executor serves many calls at once. A future that is dropped is a call that was given up, after a timeout for
/// example: what runs on behind it is the executor's to stop.
pub trait ToolExecutor: Sync {
    /// Runs one call to its end.
    fn execute(&self, call: &ToolCall) -> impl Future<Output = Result<ToolAnswer, ToolError>> + Send;
}

/// A call that is about to reach its tool, or whatever answers for it there: the beginning of a `tool.call` span.
#[derive(Clone, Copy, Debug)]
pub struct ToolStart<'a> {
    /// The run's own name.
    pub request_id: &'a str,
    /// How often the model was called before, from 0.
    pub iteration: u64,
    /// The call.
    pub call_id: &'a str,
    /// Its tool.
    pub tool: &'a str,
    /// The server that has it.
    pub server: Option<&'a str>,
    /// `tool.args`: the arguments that it runs with, redacted.
    pub args: &'a Value,
}

/// A call that was settled: a whole `tool.call` span.
#[derive(Clone, Copy, Debug)]
pub struct ToolSpan<'a> {
    /// The run's own name.
    pub request_id: &'a str,
    /// How often the model was called before, from 0.
    pub iteration: u64,
    /// How it ended, with `tool.args` that were consumed (`input`), the raw `tool.result` (`output` or `error`) and its duration; all
    /// redacted.
    pub outcome: &'a Outcome,
    /// The `tool.result` that the model is given, as text.
    pub shown: Option<&'a str>,
}

/// A hook of the host's that failed where that changes no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookFailure<'a> {
    /// The run's own name.
    pub request_id: &'a str,
    /// The hook's id.
    pub hook: &'a str,
    /// The method that failed, such as `on_end`.
    pub point: &'static str,
    /// The hook's own error, or that it panicked. A panic's message is not repeated: it may hold arguments.
    pub message: &'a str,
}

/// Sees every outcome, redacted. Observers are isolated: one that panics changes nothing.
pub trait Observer: Send + Sync {
    /// A call came to an outcome.
    fn on_outcome(&self, outcome: &Outcome);

    /// A call is about to run. Not told of calls that are refused, or answered before they get there.
    fn on_tool_start(&self, _start: &ToolStart<'_>) {}

    /// A call was settled, also one that never started. Not told of calls that wait for a person.
    fn on_tool_end(&self, _span: &ToolSpan<'_>) {}

    /// A policy in shadow would have changed the run, or stopped it: once in a run for each policy and what it would have done. What
    /// one would have done to a call stands in the call's outcome.
    fn on_run_shadow(&self, _request_id: &str, _shadow: &RunShadow) {}

    /// A hook failed: it panicked, or returned an error. Before a tool has run, that denies the call as well; at every other point the
    /// run goes on as if the hook were not there.
    fn on_hook_failure(&self, _failure: &HookFailure<'_>) {}

    /// A person is asked about a call: once for each question, however often its session is taken up.
    fn on_request(&self, _request: &ApprovalRequest) {}

    /// People approved a call, changed or answered it; once for each question, and before the call runs. Where the store
    /// does not outlive the process, once for each history that has the answer and not yet the result.
    fn on_approved(&self, _decision: &ApprovalDecision) {}

    /// People denied a call, ended its run, or let the question lapse; as often as [`Self::on_approved`].
    fn on_denied(&self, _decision: &ApprovalDecision) {}
}
