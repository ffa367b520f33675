//! The interfaces that the embedding program implements: tool executor, clock, state store and observers.

mod account;
mod cache_store;
mod clock;
mod closure_tools;
mod limit_store;
mod panic_guard;
mod record_store;
mod state_store;
mod store_operation;

pub use account::Account;
pub use cache_store::{CacheEntry, CacheLookup, CacheSpace, CacheStore};
pub use clock::{BoxFuture, Clock, ManualClock, SystemClock};
pub use closure_tools::ClosureTools;
pub use limit_store::{Allowance, LimitAcquisition, LimitRefusal, LimitStore};
pub use panic_guard::{catch_panic, with_deadline};
pub use record_store::{
    ConditionalWrite, MAX_RECORD_BYTES, OnQuotaExceeded, Record, RecordKey, RecordPage, RecordStore, space,
};
pub use state_store::{CombinedStore, StateStore};
pub use store_operation::{StoreError, StoreFuture, with_store_timeout};

use std::future::Future;

pub use crate::call::Amount;
use crate::call::{ApprovalDecision, ApprovalRequest, Outcome, RunShadowEffect, ToolCall};
use crate::json::Value;

/// The error of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The message for the model.
    pub message: String,
    /// A machine-readable kind that policies can match, such as `timeout`.
    pub kind: Option<String>,
}

impl ToolError {
    /// An error with a message and no kind.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: None }
    }

    /// Sets the kind, which policies can match.
    #[must_use]
    pub fn with_kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }
}

/// The successful response of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResponse {
    /// The result.
    pub output: Value,
    /// No tool was called: the output is a placeholder without meaning.
    pub dry: bool,
    /// The call is not complete: the output asks for more input, or says where the result will be. It is never cached.
    pub interim: bool,
}

impl From<Value> for ToolResponse {
    fn from(output: Value) -> Self {
        Self { output, dry: false, interim: false }
    }
}

/// Runs tools. Only calls that passed every policy are executed, with their final arguments.
///
/// One executor serves many calls at once. If its future is dropped, the call was abandoned, after a timeout for example;
/// the executor must stop any work that continues in the background.
pub trait ToolExecutor: Sync {
    /// Runs one call to completion.
    fn execute(&self, call: &ToolCall) -> impl Future<Output = Result<ToolResponse, ToolError>> + Send;
}

/// The start of a `tool.call` span: a call that is about to reach its tool, or a wrapper that answers in the tool's place.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolCallStart<'a> {
    /// The id of the run.
    pub request_id: &'a str,
    /// The number of earlier model calls in the run, from 0.
    pub iteration: u64,
    /// The id of the call.
    pub call_id: &'a str,
    /// The name of the tool.
    pub tool: &'a str,
    /// The MCP server that provides the tool.
    pub server: Option<&'a str>,
    /// `tool.args`: the arguments that the call runs with, redacted.
    pub args: &'a Value,
}

/// A complete `tool.call` span: a call after the settle phase.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolCallSpan<'a> {
    /// The id of the run.
    pub request_id: &'a str,
    /// The number of earlier model calls in the run, from 0.
    pub iteration: u64,
    /// The outcome, with the `tool.args` that were used (`input`), the raw `tool.result` (`output` or `error`) and the
    /// duration; all redacted.
    pub outcome: &'a Outcome,
    /// The `tool.result` as the model receives it, as text.
    pub shown: Option<&'a str>,
}

/// The failure of a host's hook at a point where it changes no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookFailure<'a> {
    /// The id of the run.
    pub request_id: &'a str,
    /// The id of the hook.
    pub hook: &'a str,
    /// The method that failed, such as `on_end`.
    pub point: &'static str,
    /// The error that the hook returned, or a note that it panicked. The panic's message is omitted, because it may contain
    /// arguments.
    pub message: &'a str,
}

/// Receives every outcome, redacted: for audit logs, metrics and tracing. Observers are isolated: a panic in one changes
/// nothing.
pub trait Observer: Send + Sync {
    /// A call has an outcome.
    fn on_outcome(&self, outcome: &Outcome);

    /// A call is about to run. Not called for calls that are denied, or answered before they reach the tool.
    fn on_tool_start(&self, _start: &ToolCallStart<'_>) {}

    /// A call was settled, also one that never started. Not called for calls with a pending approval.
    fn on_tool_end(&self, _span: &ToolCallSpan<'_>) {}

    /// A policy in shadow mode would have changed or stopped the run. Reported once a run for each policy and effect. The
    /// shadow effects on a call are part of the call's outcome.
    fn on_run_shadow(&self, _request_id: &str, _shadow: &RunShadowEffect) {}

    /// A hook panicked or returned an error. Before the tool runs, this also denies the call; at every other point the run
    /// continues as if the hook were absent.
    fn on_hook_failure(&self, _failure: &HookFailure<'_>) {}

    /// Approval was requested for a call. Called once for each request, however often its session is resumed.
    fn on_request(&self, _request: &ApprovalRequest) {}

    /// A call was approved, edited or answered by its approvers. Called once for each request, before the call runs; if the
    /// store does not outlive the process, once for each history that has the answer but no result.
    fn on_approved(&self, _decision: &ApprovalDecision) {}

    /// A request was denied, cancelled with its run, or expired. Called as often as [`Self::on_approved`].
    fn on_denied(&self, _decision: &ApprovalDecision) {}
}
