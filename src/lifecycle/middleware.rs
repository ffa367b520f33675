//! Middleware: host code that runs beside the policies and under the same rules. It can restrict a call, edit its arguments
//! before gate sees them, or answer it; it can't lift a policy.

use std::future::ready;
use std::time::Duration;

use super::chunk::{Chunk, ChunkAction};
use super::hook_error::HookError;
use super::model_config::{ModelConfig, ModelConfigPatch};
use super::run_context::RunContext;
use super::usage::Usage;
use crate::call::{Outcome, RunShadowEffect, ToolCall};
use crate::host::{BoxFuture, ToolError};
use crate::json::{Map, Value};
use crate::message::History;
use crate::tools::ToolDescriptor;

/// A call as hooks receive it, with its tool and its run. Dereferences to the [`ToolCall`]: `call.tool`, `call.input`,
/// `call.context`.
///
/// Hooks also see calls whose arguments are not a JSON object (arguments that are not JSON are a string), calls of unknown
/// tools, and calls of tools that the model was not offered.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HookCall<'a> {
    /// The call, with the arguments as edited by the hooks before this one.
    pub call: &'a ToolCall,
    /// The descriptor of the tool, from the tools of the engine and the session; `None` if the tool is unknown.
    pub descriptor: Option<&'a ToolDescriptor>,
    /// The run of the call.
    pub run: &'a RunContext,
}

impl std::ops::Deref for HookCall<'_> {
    type Target = ToolCall;

    fn deref(&self) -> &ToolCall {
        self.call
    }
}

/// An approval that a hook requires. It is merged with the policies' approvals into one request.
///
/// An approval stays valid while the hook of this id returns the same requirement, message included, for the same final
/// arguments. So a message must not contain values that change, such as the time: each resume would request approval again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredApproval {
    /// The message for the approver.
    pub message: String,
    /// The approvers: principals, and roles as `role:NAME`. If empty, anyone whom the host allows to answer.
    pub approvers: Vec<String>,
    /// The number of approvals that are needed; 0 counts as 1.
    pub quorum: u32,
    /// How long the request is valid; `None` for no expiry.
    pub expires: Option<Duration>,
}

impl RequiredApproval {
    /// One approval by anyone whom the host allows to answer, without expiry.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), approvers: Vec::new(), quorum: 1, expires: None }
    }
}

/// The verdict of a hook before a call is decided. The strictest of several applies (`Halt`, `Block`, `RequireApproval`,
/// `Skip`). Edits and annotations are passed from hook to hook, and all required approvals apply.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum BeforeAction {
    /// Does not affect the call.
    #[default]
    Continue,
    /// Replaces the arguments. The call keeps its id and its tool.
    Edit(Value),
    /// Adds members to the `metadata` of the call's context.
    Annotate(Map),
    /// Returns this result; the tool does not run.
    Skip(Value),
    /// Requires human approval of the final arguments.
    RequireApproval(RequiredApproval),
    /// Denies the call; the model receives the reason.
    Block(String),
    /// Denies the call and ends the run.
    Halt(String),
}

/// What a hook does with a tool's error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorAction {
    /// Keep the error.
    Keep,
    /// Replace it with another error.
    Replace(ToolError),
    /// Replace it with this result, so that the model can retry.
    Recover(Value),
}

/// A call with its outcome, as hooks receive it: redacted by the policies.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolCallEnd<'a> {
    /// The outcome, with the arguments that the call ran with, redacted.
    pub outcome: &'a Outcome,
    /// The descriptor of the tool; `None` if the tool is unknown.
    pub descriptor: Option<&'a ToolDescriptor>,
    /// The run of the call.
    pub run: &'a RunContext,
    /// How long the call took.
    pub duration: Duration,
}

impl ToolCallEnd<'_> {
    /// Whether the call has a result.
    pub fn is_ok(&self) -> bool {
        self.outcome.output.is_some()
    }
}

/// Statistics of a whole run.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunStats {
    /// How long the run took.
    pub duration: Duration,
    /// The number of model calls.
    pub iterations: u64,
    /// The total usage.
    pub usage: Usage,
    /// The effects that policies in shadow mode would have had on the run, each once.
    pub shadows: Vec<RunShadowEffect>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnd {
    /// The run finished normally.
    Finished {
        /// The finish reason, as the provider names it.
        reason: Option<String>,
        /// The last text of the model.
        content: String,
    },
    /// A policy, a hook, a person or the host aborted the run.
    Aborted {
        /// The reason.
        reason: String,
    },
    /// The run failed with an unhandled error.
    Failed {
        /// The error.
        error: String,
    },
}

/// Runs the inner layers of an `around` hook.
pub trait NextHandler: Send {
    /// Runs them with these arguments and options. If the arguments differ from the call's, gate evaluates the call again.
    fn run<'s>(&'s mut self, input: Value, options: Value) -> BoxFuture<'s, Result<Value, ToolError>>;
}

/// The inner layers of an `around` hook: further hooks, the policies that wrap the execution, and the tool.
pub struct Next<'n> {
    call: &'n ToolCall,
    handler: &'n mut dyn NextHandler,
}

impl std::fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").field("call", &self.call.id).finish_non_exhaustive()
    }
}

impl<'n> Next<'n> {
    /// The inner layers for this call.
    pub fn new(call: &'n ToolCall, handler: &'n mut dyn NextHandler) -> Self {
        Self { call, handler }
    }

    /// Runs the call unchanged.
    pub async fn call(&mut self) -> Result<Value, ToolError> {
        self.handler.run(self.call.input.clone(), self.call.options.clone()).await
    }

    /// Runs the call with other arguments; gate evaluates it again.
    pub async fn call_with_input(&mut self, input: Value) -> Result<Value, ToolError> {
        self.handler.run(input, self.call.options.clone()).await
    }

    /// Runs the call with other arguments, and with options for the host's executor.
    pub async fn call_with(&mut self, input: Value, options: Value) -> Result<Value, ToolError> {
        self.handler.run(input, options).await
    }
}

/// Host code at each stage of a run. Every method has a default that does nothing.
///
/// Order around a tool call: the `before` hooks in order, each with the arguments as edited by the one before it; the
/// policies' normalise and gate phases; the `around` hooks, the first outermost, outside the policies that wrap the
/// execution; the policies' settle phase; then `on_error` and `after` in reverse order. A panic of a hook before the tool
/// runs denies the call; a later panic changes nothing and is reported to observers
/// ([`Observer::on_hook_failure`](crate::host::Observer::on_hook_failure)).
///
/// A call that was suspended for an approval passes the same stages when it resumes: `before` runs again, on the arguments
/// that the model sent or that an approver edited. If the final arguments then differ from the approved ones, approval is
/// requested again. So a `before` hook should be deterministic: the same result for the same arguments.
///
/// For long background work use [`RunContext::defer`].
pub trait Middleware: Send + Sync {
    /// The id, for reasons and errors.
    fn id(&self) -> &str;

    /// Whether the tool hooks apply to this call.
    fn applies_to(&self, _call: &HookCall<'_>) -> bool {
        true
    }

    /// Runs before a call is decided, when a call resumes after its approval was answered, and when an `around` hook or
    /// script calls the tool with other arguments.
    fn before<'a>(&'a self, _call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        Box::pin(ready(BeforeAction::Continue))
    }

    /// Whether [`around`](Self::around) is implemented.
    fn has_around(&self) -> bool {
        false
    }

    /// Wraps the execution: calls `next` once, several times or never.
    fn around<'a>(
        &'a self,
        _call: &'a HookCall<'a>,
        mut next: Next<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { next.call().await })
    }

    /// Runs when a tool has failed and no policy recovered the error.
    fn on_error<'a>(&'a self, _call: &'a HookCall<'a>, _error: &'a ToolError) -> BoxFuture<'a, ErrorAction> {
        Box::pin(ready(ErrorAction::Keep))
    }

    /// Runs after a call has an outcome, also one that did not run. Every hook runs.
    fn after<'a>(&'a self, _end: &'a ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The session starts.
    fn on_session_start(&self, _run: &RunContext) {}

    /// Changes the configuration at the start of the run and before each model call. Each hook sees the changes of the one
    /// before it.
    fn on_config(&self, _run: &RunContext, _config: &ModelConfig) -> Option<ModelConfigPatch> {
        None
    }

    /// The run starts, after its first configuration.
    fn on_start(&self, _run: &RunContext) {}

    /// Whether to call the model once more. If any hook returns `false`, the run ends as finished. Not called before the
    /// first model call.
    fn should_continue(&self, _run: &RunContext, _history: &History) -> bool {
        true
    }

    /// The model is about to be called.
    fn before_completion(&self, _run: &RunContext, _history: &History) {}

    /// Filters each chunk that the model streams.
    fn on_chunk(&self, _run: &RunContext, _chunk: &Chunk) -> ChunkAction {
        ChunkAction::Pass
    }

    /// The model requests these calls. `Some(reason)` ends the run before any of them runs.
    fn after_tool_request(&self, _run: &RunContext, _calls: &[ToolCall]) -> Option<String> {
        None
    }

    /// All calls of a round have outcomes.
    fn after_tools(&self, _run: &RunContext, _outcomes: &[Outcome]) {}

    /// Reports the usage of one model call.
    fn on_usage(&self, _run: &RunContext, _usage: &Usage) {}

    /// The history was compacted.
    fn after_compaction(&self, _run: &RunContext, _before: &History, _after: &History) {}

    /// The model has ended its last turn.
    fn after_completion(&self, _run: &RunContext, _history: &History) {}

    /// The run has ended.
    ///
    /// # Errors
    /// A message for the host. The run has ended nevertheless: the error is reported to observers, and
    /// [`DeferredTasks::finish`](crate::session::DeferredTasks::finish) returns it.
    fn on_end(&self, _run: &RunContext, _ending: &RunEnd, _stats: &RunStats) -> Result<(), HookError> {
        Ok(())
    }

    /// The session ends.
    fn on_session_end(&self, _run: &RunContext) {}
}
