//! The host's own code in the chain, beside the policies and under the same rules: it can make a call stricter, change its
//! arguments before gate sees them, or answer for it; it lifts nothing.

use std::future::ready;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::chunk::{Chunk, ChunkFate};
use super::config::{Config, ConfigPatch};
use super::context::RunContext;
use crate::call::{Outcome, RunShadow, ToolCall};
use crate::host::{BoxFuture, ToolError};
use crate::json::{Map, Value};
use crate::message::History;
use crate::tools::ToolDescriptor;

/// A call as a hook gets it, with its tool and its run. It derefs to the [`ToolCall`]: `call.tool`, `call.input`, `call.context`.
///
/// Arguments that are not a JSON object reach hooks as they came (text that is not JSON is a string), and so do calls of tools that
/// nobody knows or that the model was not offered.
#[derive(Clone, Copy, Debug)]
pub struct HookCall<'a> {
    /// The call, with the arguments as the hooks before this one left them.
    pub call: &'a ToolCall,
    /// The tool's descriptor, among the tools of the engine and the session; `None` where the tool is unknown.
    pub descriptor: Option<&'a ToolDescriptor>,
    /// The run that the call belongs to.
    pub run: &'a RunContext,
}

impl std::ops::Deref for HookCall<'_> {
    type Target = ToolCall;

    fn deref(&self) -> &ToolCall {
        self.call
    }
}

/// An approval that a hook requires. It joins the policies' approvals in one request.
///
/// An approval counts as long as the hook of this id states the same requirement, message included, about the same final arguments.
/// So a message must not hold what changes by itself, such as the time: the call would be asked about again on every resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredApproval {
    /// What the approver reads.
    pub message: String,
    /// Who may answer: principals, and roles as `role:NAME`; whomever the host lets answer, if empty.
    pub approvers: Vec<String>,
    /// How many approvals it takes; 0 counts as 1.
    pub quorum: u32,
    /// After how long the request expires; never, if `None`.
    pub expires: Option<Duration>,
}

impl RequiredApproval {
    /// One approval by anyone whom the host lets answer, without expiry.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), approvers: Vec::new(), quorum: 1, expires: None }
    }
}

/// What a hook says of a call before it is decided. Of several the strictest counts (`Halt`, `Block`, `RequireApproval`, `Skip`);
/// edits and annotations are piped, and every requirement of an approval counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Before {
    /// Nothing.
    #[default]
    Continue,
    /// Other arguments. The call keeps its id and its tool.
    Edit(Value),
    /// Members for the `metadata` of the call's context.
    Annotate(Map),
    /// This is its result; the tool does not run.
    Skip(Value),
    /// A person must approve the final arguments first.
    RequireApproval(RequiredApproval),
    /// It must not run; the model is told why.
    Block(String),
    /// It must not run, and the run ends.
    Halt(String),
}

/// What becomes of a tool's error.
#[derive(Clone, Debug, PartialEq)]
pub enum OnError {
    /// It stands.
    Keep,
    /// Another one takes its place.
    Replace(ToolError),
    /// This result takes its place, for the model to try again by.
    Recover(Value),
}

/// How a call ended, as hooks see it: what policies hide is hidden.
#[derive(Clone, Debug)]
pub struct ToolEnd<'a> {
    /// The call, with the arguments that it ran with as they may be shown.
    pub outcome: &'a Outcome,
    /// The tool's descriptor; `None` where the tool is unknown.
    pub descriptor: Option<&'a ToolDescriptor>,
    /// The run that the call belongs to.
    pub run: &'a RunContext,
    /// How long it took.
    pub duration: Duration,
}

impl ToolEnd<'_> {
    /// Whether there is a result.
    pub fn is_ok(&self) -> bool {
        self.outcome.output.is_some()
    }
}

/// What one call of a model used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Read.
    pub prompt_tokens: u64,
    /// Written.
    pub completion_tokens: u64,
    /// Both, where a provider counts more than those.
    pub total_tokens: Option<u64>,
    /// What it cost, in the host's currency.
    pub cost: Option<f64>,
}

impl Usage {
    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.total_tokens.unwrap_or_else(|| self.prompt_tokens.saturating_add(self.completion_tokens))
    }
}

/// What a whole run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStats {
    /// How long it took.
    pub duration: Duration,
    /// How often the model was called.
    pub iterations: u64,
    /// What it used in all.
    pub usage: Usage,
    /// What policies in shadow would have done to it, each thing once.
    pub shadows: Vec<RunShadow>,
}

/// How a run ended: in exactly one of these ways.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// By itself.
    Finished {
        /// Why, in the provider's word.
        reason: Option<String>,
        /// What the model said last.
        content: String,
    },
    /// It was ended, by a policy, a hook, a person or the host.
    Aborted {
        /// Why.
        reason: String,
    },
    /// By an error that nobody dealt with.
    Failed {
        /// What went wrong.
        error: String,
    },
}

/// Runs what is inside of a hook.
pub trait NextStep: Send {
    /// Runs it with these arguments and options. Other arguments than the call's go through gate again.
    fn run<'s>(&'s mut self, input: Value, options: Value) -> BoxFuture<'s, Result<Value, ToolError>>;
}

/// What is inside of a hook: other hooks, the policies around the execution, and the tool.
pub struct Next<'n> {
    call: &'n ToolCall,
    step: &'n mut dyn NextStep,
}

impl std::fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").field("call", &self.call.id).finish_non_exhaustive()
    }
}

impl<'n> Next<'n> {
    /// What is inside of a hook around this call.
    pub fn new(call: &'n ToolCall, step: &'n mut dyn NextStep) -> Self {
        Self { call, step }
    }

    /// Runs it as the call is.
    pub async fn call(&mut self) -> Result<Value, ToolError> {
        self.step.run(self.call.input.clone(), self.call.options.clone()).await
    }

    /// Runs it with other arguments, which go through gate again.
    pub async fn with_input(&mut self, input: Value) -> Result<Value, ToolError> {
        self.step.run(input, self.call.options.clone()).await
    }

    /// Runs it with other arguments and options for the host's executor.
    pub async fn with(&mut self, input: Value, options: Value) -> Result<Value, ToolError> {
        self.step.run(input, options).await
    }
}

/// The host's own code at the points of a run. Every method has a default that does nothing.
///
/// Around tool calls: `before` in order, each seeing the arguments as the one before left them; then the policies' normalise and
/// gate; then `around`, the first outermost, outside of the policies around the execution; then the policies' settle; then
/// `on_error` and `after` in reverse order. A hook that panics before the tool ran denies the call; later, it changes nothing, and
/// observers are told ([`Observer::on_hook_failure`](crate::host::Observer::on_hook_failure)).
///
/// A call that was suspended for an approval passes the same points when it resumes: `before` runs again, on the arguments that the model
/// sent or that an approver edited. Where the final arguments then are not those that were approved, the call is asked about again.
/// So a `before` hook should make the same of the same arguments.
///
/// For long work that nobody has to wait for there is [`RunContext::defer`].
pub trait Middleware: Send + Sync {
    /// Its name, for reasons and errors.
    fn id(&self) -> &str;

    /// Whether the tool hooks concern this call.
    fn concerns(&self, _call: &HookCall<'_>) -> bool {
        true
    }

    /// Before a call is decided: live, when an answered call resumes, and when an `around` hook or script calls with other
    /// arguments.
    fn before<'a>(&'a self, _call: &'a HookCall<'a>) -> BoxFuture<'a, Before> {
        Box::pin(ready(Before::Continue))
    }

    /// Whether there is anything in [`around`](Self::around).
    fn wraps(&self) -> bool {
        false
    }

    /// Around the execution: call `next` once, more often or never.
    fn around<'a>(
        &'a self,
        _call: &'a HookCall<'a>,
        mut next: Next<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { next.call().await })
    }

    /// When a tool has failed and no policy has dealt with that.
    fn on_error<'a>(&'a self, _call: &'a HookCall<'a>, _error: &'a ToolError) -> BoxFuture<'a, OnError> {
        Box::pin(ready(OnError::Keep))
    }

    /// After a call has come to an outcome, also one that did not run. All are called.
    fn after<'a>(&'a self, _end: &'a ToolEnd<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The session begins.
    fn on_session_start(&self, _run: &RunContext) {}

    /// At init, and before each call of the model: what is to be otherwise. Each sees what the one before it left.
    fn on_config(&self, _run: &RunContext, _config: &Config) -> Option<ConfigPatch> {
        None
    }

    /// The run begins, after its first configuration.
    fn on_start(&self, _run: &RunContext) {}

    /// Whether the model is called once more: one that says no ends the run as finished. Not asked before the first call.
    fn goes_on(&self, _run: &RunContext, _history: &History) -> bool {
        true
    }

    /// Before the model is called.
    fn before_completion(&self, _run: &RunContext, _history: &History) {}

    /// For each chunk that the model streams.
    fn on_chunk(&self, _run: &RunContext, _chunk: &Chunk) -> ChunkFate {
        ChunkFate::Pass
    }

    /// The model asks for these calls: a reason here ends the run before any of them runs.
    fn after_tool_request(&self, _run: &RunContext, _calls: &[ToolCall]) -> Option<String> {
        None
    }

    /// All calls of a round have come to their outcomes.
    fn after_tools(&self, _run: &RunContext, _outcomes: &[Outcome]) {}

    /// What one call of the model used.
    fn on_usage(&self, _run: &RunContext, _usage: &Usage) {}

    /// The history was compacted, and is another one by that.
    fn after_compaction(&self, _run: &RunContext, _before: &History, _after: &History) {}

    /// The model has ended its last turn.
    fn after_completion(&self, _run: &RunContext, _history: &History) {}

    /// The run has ended.
    ///
    /// # Errors
    /// What went wrong, in words for the host. The run has ended all the same: observers are told, and
    /// [`Afterwork::finish`](crate::session::Afterwork::finish) returns it.
    fn on_end(&self, _run: &RunContext, _ending: &Ending, _stats: &RunStats) -> Result<(), String> {
        Ok(())
    }

    /// The session ends.
    fn on_session_end(&self, _run: &RunContext) {}
}
