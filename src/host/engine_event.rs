//! The events of an engine, as observers receive them: what was decided, ran, was asked and failed. All redacted.

use std::time::Duration;

use jiff::Timestamp;

use super::StoreError;
use crate::call::{
    Amount, ApprovalDecision, ApprovalRequest, CallTrace, Effect, Outcome, PolicyTrace, Reason,
    RoundPosition, RunShadowEffect, Task,
};
use crate::json::Value;

/// An event of an engine.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EngineEvent<'a> {
    /// When it happened, by the engine's clock.
    pub time: Timestamp,
    /// The digest of the rules that applied; of several layers that of the bundle. Empty for events that no rules concern.
    pub revision: &'a str,
    /// The run that it belongs to.
    pub run: Option<RunIdentity<'a>>,
    /// The call that it belongs to.
    pub call: Option<CallIdentity<'a>>,
    /// What happened.
    pub kind: EngineEventKind<'a>,
}

/// The run of an event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RunIdentity<'a> {
    /// The id of the run.
    pub request_id: &'a str,
    /// The number of earlier model calls in the run, from 0.
    pub iteration: u64,
    /// The session's name, if it has one.
    pub session: Option<&'a str>,
    /// The name of the session in the state store: its name, or one that no other session has.
    pub conversation: &'a str,
}

/// The call of an event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallIdentity<'a> {
    /// The id of the call.
    pub id: &'a str,
    /// The name of the tool.
    pub tool: &'a str,
    /// The MCP server that provides the tool.
    pub server: Option<&'a str>,
    /// The context that the host supplied with the call: `principal`, `tenant` and other members. What is redacted in the arguments
    /// is redacted here, too.
    pub context: &'a Value,
    /// What the user asked for.
    pub task: &'a Task,
    /// The place of the call in its round, if it is known.
    pub round: Option<RoundPosition>,
    /// The span that the call belongs to, as the host supplied it: a `traceparent` (W3C Trace Context), which may be malformed.
    pub trace_parent: Option<&'a str>,
    /// What traces show of the call beside its parent, as the host supplied it.
    pub trace: Option<&'a CallTrace>,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum EngineEventKind<'a> {
    /// A call was decided, and its limits were acquired or refused. A call that is approved later is decided again.
    CallDecided(CallDecided<'a>),
    /// A call is about to reach its tool, or a wrapper that answers in the tool's place.
    CallStarted(ToolCallStart<'a>),
    /// A call has its outcome; a call with a pending approval has one now and another one later.
    CallCompleted(ToolCallSpan<'a>),
    /// Approval was requested for a call. Once for each request.
    ApprovalRequested(&'a ApprovalRequest),
    /// A request was approved, denied or cancelled, or has expired.
    ApprovalDecided(&'a ApprovalDecision),
    /// A limit had too little left for a call.
    LimitRefused(LimitRefused<'a>),
    /// A cache answered a call.
    CacheHit(CacheHit<'a>),
    /// A policy in shadow mode would have changed or stopped the run.
    RunShadow(&'a RunShadowEffect),
    /// A hook of the host failed.
    HookFailed(HookFailure<'a>),
    /// An operation of the state store failed.
    StoreFailed(&'a StoreError),
    /// The rules were loaded or reloaded.
    Rules(RulesEvent<'a>),
    /// Candidate rules were loaded or reloaded. The event's `revision` is theirs.
    CandidateRules(RulesEvent<'a>),
    /// Candidate rules have evaluated a completed call.
    CandidateDecided(CandidateDecided<'a>),
    /// This number of calls was not evaluated by the candidate rules, because they are slower than the calls.
    CandidateSkipped(u64),
    /// An approver's answer was recorded, through the host that calls [`Engine::report`](crate::Engine::report). The request may need more.
    AnswerRecorded(RecordedAnswer<'a>),
    /// A message about an approval request was sent.
    NotificationSent(NotificationReport<'a>),
    /// A message about an approval request could not be sent.
    NotificationFailed(NotificationReport<'a>),
}

/// An approver's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "hosts build it")]
pub struct RecordedAnswer<'a> {
    /// The id of the request.
    pub approval_id: &'a str,
    /// The name of the session in the state store.
    pub session: &'a str,
    /// The id of the call.
    pub call: &'a str,
    /// The tool of the call.
    pub tool: &'a str,
    /// `approve`, `deny` or `cancel`.
    pub decision: &'a str,
    /// The approver; `None` if the answer is anonymous.
    pub by: Option<&'a str>,
    /// Where it was given, such as `page`, `slack` or `email`.
    pub via: &'a str,
    /// Whether the request needs no more answers.
    pub complete: bool,
}

/// A message about an approval request, without its address, which may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "hosts build it")]
pub struct NotificationReport<'a> {
    /// The id of the message.
    pub message: &'a str,
    /// What it is about, such as `approval_requested`.
    pub about: &'a str,
    /// The id of the request.
    pub approval_id: &'a str,
    /// The name of the session in the state store.
    pub session: &'a str,
    /// The id of the call.
    pub call: &'a str,
    /// The tool of the call.
    pub tool: &'a str,
    /// The format of the channel, such as `slack` or `email`.
    pub channel: &'a str,
    /// The number of the channel in the notification file, from 1.
    pub number: u64,
    /// The approver to whom it was sent, if the channel sends to one.
    pub recipient: Option<&'a str>,
    /// How often sending it was tried.
    pub attempts: u64,
    /// Why it could not be sent.
    pub failure: Option<&'a str>,
}

/// What candidate rules decide on a completed call, compared with what was decided.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CandidateDecided<'a> {
    /// The digest of the candidate rules.
    pub revision: &'a str,
    /// What the candidate decides.
    pub candidate: ComparedDecision<'a>,
    /// What was decided.
    pub active: ComparedDecision<'a>,
    /// The policies of the candidate that took part, in order.
    pub policies: &'a [PolicyTrace],
    /// How the two differ.
    pub difference: CandidateDifference,
}

/// A decision, as far as decisions are compared. The message of the reason is left out: it may quote what only the other rules redact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComparedDecision<'a> {
    /// What happens with the call.
    pub effect: Effect,
    /// The deciding policy; `None` for a default.
    pub policy: Option<&'a str>,
    /// The reason code.
    pub code: &'a str,
}

impl<'a> ComparedDecision<'a> {
    pub(crate) fn new(effect: Effect, reason: &'a Reason) -> Self {
        Self { effect, policy: reason.policy.as_deref(), code: &reason.code }
    }
}

/// How the decision of candidate rules differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CandidateDifference {
    /// It does not: the same effect, and the same arguments and result as far as the tool was called.
    None,
    /// The candidate treats the call less strictly.
    Looser,
    /// The candidate treats the call otherwise, and equally strictly: denied in place of invalid.
    Different,
    /// The candidate treats the call more strictly.
    Stricter,
    /// The tool would have been called with other arguments.
    Arguments,
    /// The model would have seen another result.
    Result,
}

impl CandidateDifference {
    /// Every difference.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Looser, Self::Different, Self::Stricter, Self::Arguments, Self::Result];

    /// Its name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Looser => "looser",
            Self::Different => "different",
            Self::Stricter => "stricter",
            Self::Arguments => "arguments",
            Self::Result => "result",
        }
    }
}

/// The decision on a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallDecided<'a> {
    /// What the decision does with the call.
    pub effect: Effect,
    /// Why.
    pub reason: &'a Reason,
    /// The policies that took part so far, in order.
    pub policies: &'a [PolicyTrace],
    /// The final arguments, redacted.
    pub input: &'a Value,
    /// The time from the arrival of the call to this decision: hooks, the ledger, policies, budgets and limits.
    pub duration: Duration,
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
    /// The `tool.result` as the model receives it, as text. `None` while an approval is pending.
    pub shown: Option<&'a str>,
}

/// A limit that had too little left for a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LimitRefused<'a> {
    /// The id of the limit's policy.
    pub policy: &'a str,
    /// The amount that the call needed.
    pub cost: Amount,
    /// After how long there may be enough, if that is known.
    pub retry_after: Option<Duration>,
    /// Whether the policy is in shadow mode, so that the call was not refused for it.
    pub shadow: bool,
}

/// An answer from a cache.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CacheHit<'a> {
    /// The id of the `cache` policy.
    pub policy: &'a str,
    /// How long ago the result was stored.
    pub age: Duration,
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

/// A change of an engine's rules. The event's `revision` is that of the rules in effect afterwards.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RulesEvent<'a> {
    /// The engine starts with its rules.
    Loaded,
    /// New rules took effect.
    Applied {
        /// The digest of the rules before.
        from: &'a str,
        /// Whether they had been pending, and were confirmed.
        confirmed: bool,
    },
    /// New rules were rejected.
    Rejected {
        /// Their digest; `None` if they could not be read.
        revision: Option<&'a str>,
        /// Why, in one line.
        summary: &'a str,
    },
    /// New rules may allow more than the active ones, and are pending confirmation.
    Pending {
        /// Their digest.
        revision: &'a str,
        /// What they may allow, one line each.
        relaxations: &'a [String],
    },
    /// The rejected or pending rules are gone: the files match the active rules again.
    Reverted,
}
