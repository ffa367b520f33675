//! The outcome of a call: phases, verdicts, reason codes, and the final [`Outcome`].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{ApprovalRecord, ApprovalRequest, Effect};
use crate::json::{Map, Value};

/// The phase of a call in which a policy acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Normalises and validates the arguments.
    Normalise,
    /// Decides whether the call may run.
    Gate,
    /// Runs the call, or answers in place of the tool.
    Execute,
    /// Normalises and records the result.
    Settle,
}

impl Phase {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normalise => "normalise",
            Self::Gate => "gate",
            Self::Execute => "execute",
            Self::Settle => "settle",
        }
    }
}

/// A policy's verdict on one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verdict {
    /// No objection.
    Pass,
    /// It changed the arguments or the result.
    Rewrite,
    /// It answers in place of the tool.
    Answer,
    /// Requires human approval.
    Suspend,
    /// The call must not run.
    Deny,
    /// Neither the call nor any later one of the session may run.
    Halt,
}

impl Verdict {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Rewrite => "rewrite",
            Self::Answer => "answer",
            Self::Suspend => "suspend",
            Self::Deny => "deny",
            Self::Halt => "halt",
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OutcomeKind {
    /// The tool ran and answered.
    Executed,
    /// A cache answered.
    Cached,
    /// A policy or a person answered in the tool's place.
    Answered,
    /// The arguments are invalid; the message says how to fix them.
    Invalid,
    /// The call was denied.
    Denied,
    /// The call is pending: it requires approval.
    Suspended,
    /// The run was stopped.
    Halted,
    /// The call was cancelled from outside.
    Aborted,
    /// The tool failed, or its result had to be withheld.
    Failed,
    /// The tool failed and a policy replaced the error with a message for the model.
    Recovered,
    /// It is unknown whether the tool completed.
    Indeterminate,
}

impl OutcomeKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::Executed,
        Self::Cached,
        Self::Answered,
        Self::Invalid,
        Self::Denied,
        Self::Suspended,
        Self::Halted,
        Self::Aborted,
        Self::Failed,
        Self::Recovered,
        Self::Indeterminate,
    ];

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Cached => "cached",
            Self::Answered => "answered",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Suspended => "suspended",
            Self::Halted => "halted",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
            Self::Recovered => "recovered",
            Self::Indeterminate => "indeterminate",
        }
    }
}

impl OutcomeKind {
    /// The effect that leads to this outcome. Returns `None` if the outcome does not say it.
    #[doc(hidden)]
    pub fn effect(self) -> Option<Effect> {
        Some(match self {
            Self::Executed | Self::Cached | Self::Failed | Self::Recovered => Effect::Run,
            Self::Answered => Effect::Answer,
            Self::Suspended => Effect::Suspend,
            Self::Invalid => Effect::Invalid,
            Self::Denied => Effect::Deny,
            Self::Halted => Effect::Halt,
            Self::Aborted | Self::Indeterminate => return None,
        })
    }
}

impl std::fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Stable reason codes. Policies can also set their own (`deny: { code: … }`).
pub mod reason_code {
    /// A policy of kind `allow`, `respond` or `approval` permitted the call, or no policy objected.
    pub const ALLOWED: &str = "allowed";
    /// No permitting policy matched; `defaults.unmatched` decided.
    pub const UNMATCHED: &str = "unmatched";
    /// A `deny` policy matched.
    pub const DENIED: &str = "denied";
    /// A value that a `require` policy demands is missing.
    pub const MISSING: &str = "missing";
    /// The host's own code denied the call.
    pub const BLOCKED: &str = "blocked";
    /// The model was not offered the tool: a hook or a `model` policy removed it from the configuration, or it was never part of
    /// it.
    pub const NOT_OFFERED: &str = "not_offered";
    /// A `halt` policy matched, or the host's own code stopped the run.
    pub const HALTED: &str = "halted";
    /// An earlier call halted the session.
    pub const SESSION_HALTED: &str = "session_halted";
    /// An `approval` policy matched.
    pub const APPROVAL_REQUIRED: &str = "approval_required";
    /// The call was approved.
    pub const APPROVED: &str = "approved";
    /// Approval was denied.
    pub const APPROVAL_DENIED: &str = "approval_denied";
    /// The approval request expired.
    pub const APPROVAL_EXPIRED: &str = "approval_expired";
    /// The approval request is invalid, and no policy requires approval now.
    pub const APPROVAL_INVALID: &str = "approval_invalid";
    /// The same approval was requested too often in one session.
    pub const ASKED_TOO_OFTEN: &str = "asked_too_often";
    /// Another call of the round is pending, and approvals are requested one at a time.
    pub const ASK_AGAIN: &str = "ask_again";
    /// The run was cancelled from outside, or by the host's own code.
    pub const ABORTED: &str = "aborted";
    /// An approver cancelled the run.
    pub const CANCELLED: &str = "cancelled";
    /// It is unknown whether the call ran: it was started, and no outcome was recorded.
    pub const UNFINISHED: &str = "unfinished";
    /// A restricting policy was undecided, and so counts as matching (fail closed).
    pub const UNDECIDED: &str = "undecided";
    /// The arguments are not a JSON object.
    pub const INVALID_ARGUMENTS: &str = "invalid_arguments";
    /// The call itself is malformed.
    pub const INVALID_CALL: &str = "invalid_call";
    /// An argument's name could be read by a server as another name, which policies read.
    pub const AMBIGUOUS_ARGUMENT: &str = "ambiguous_argument";
    /// The arguments violate a schema.
    pub const SCHEMA_VIOLATION: &str = "schema_violation";
    /// `validate: { schema: tool }`, but the tool has no usable schema.
    pub const SCHEMA_UNAVAILABLE: &str = "schema_unavailable";
    /// A `transform` could not be applied to these arguments.
    pub const TRANSFORM_FAILED: &str = "transform_failed";
    /// A `respond` policy answered.
    pub const ANSWERED: &str = "answered";
    /// A `rate_limit` has too little capacity left.
    pub const RATE_LIMITED: &str = "rate_limited";
    /// A `concurrency` limit has no free slot.
    pub const CONCURRENCY_LIMITED: &str = "concurrency_limited";
    /// A `budget` is used up.
    pub const BUDGET_EXCEEDED: &str = "budget_exceeded";
    /// The store that counts for a limit is unavailable.
    pub const STORE_UNAVAILABLE: &str = "store_unavailable";
    /// The caller, or its tenant, has used all of its share of the store.
    pub const QUOTA_EXCEEDED: &str = "quota_exceeded";
    /// A record in the store was changed, removed, or replaced by an older version.
    pub const STATE_ALTERED: &str = "state_altered";
    /// A cache answered.
    pub const CACHED: &str = "cached";
    /// The tool exceeded a `timeout`.
    pub const TIMEOUT: &str = "timeout";
    /// An `around` script threw an error of its own without a kind.
    pub const THROWN: &str = "thrown";
    /// An `around` script failed.
    pub const SCRIPT_ERROR: &str = "script_error";
    /// The tool returned an error.
    pub const TOOL_ERROR: &str = "tool_error";
    /// A `recover` policy replaced the tool's error with a message.
    pub const RECOVERED: &str = "recovered";
    /// The tool ran, but its result could not be normalised as the policies require.
    pub const OUTPUT_WITHHELD: &str = "output_withheld";
    /// An observer that calls depend on, such as an audit log, cannot record the call.
    pub const LOG_UNAVAILABLE: &str = "log_unavailable";
    /// The policies need more work for the call than the limit for one call.
    pub const WORK_EXCEEDED: &str = "work_exceeded";
    /// Callgate itself failed while it evaluated the call.
    pub const INTERNAL_ERROR: &str = "internal_error";

    /// Codes of outcomes that depend on more than the rules and the calls.
    #[doc(hidden)]
    pub const NOT_REPRODUCIBLE: [&str; 11] = [
        STORE_UNAVAILABLE,
        QUOTA_EXCEEDED,
        STATE_ALTERED,
        LOG_UNAVAILABLE,
        CONCURRENCY_LIMITED,
        NOT_OFFERED,
        BLOCKED,
        ABORTED,
        CANCELLED,
        UNFINISHED,
        INTERNAL_ERROR,
    ];
}

/// Why a call was decided this way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The deciding policy, or the name of the host's own code that decided.
    pub policy: Option<String>,
    /// A stable code: one of [`reason_code`], or the policy's own.
    pub code: String,
    /// A message for the agent and its users.
    pub message: String,
}

/// How one policy was applied to one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PolicyTrace {
    /// The policy's id.
    pub id: String,
    /// Its kind key.
    pub kind: Cow<'static, str>,
    /// The phase in which it acted.
    pub phase: Phase,
    /// Its verdict (in shadow mode: the verdict it would have had).
    pub verdict: Verdict,
    /// Whether it is in shadow mode.
    pub shadow: bool,
    /// Whether it counts as matching only because it was undecided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// What its script printed, redacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<String>,
}

/// The fields that an `audit` policy recorded of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditEntry {
    /// The policy's id.
    pub policy: String,
    /// Path as written in the policy → value, redacted; a path with several values has an array.
    pub fields: Map,
}

/// The outcome of one call, for people and programs. Already redacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The call's id.
    pub id: String,
    /// The call's tool.
    pub tool: String,
    /// The session's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How it ended.
    pub outcome: OutcomeKind,
    /// The final arguments.
    pub input: Value,
    /// The result as the model sees it.
    pub output: Option<Value>,
    /// The error as the model sees it.
    pub error: Option<String>,
    /// The reason.
    pub reason: Reason,
    /// The policies that were applied, in order.
    pub policies: Vec<PolicyTrace>,
    /// The approval request, if the call is pending.
    pub approval: Option<Box<ApprovalRequest>>,
    /// The approval that let the call run, if it required one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovalRecord>,
    /// A replayed outcome: the call had completed before, and nothing was run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// What `audit` policies recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audit: Vec<AuditEntry>,
    /// A dry run without a tool: the output has no meaning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry: bool,
    /// How often the tool was called, if more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// For a call that a limit denied: after how many milliseconds to retry, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The digest of the rules that were evaluated.
    pub revision: String,
    /// Time in Callgate and in the tool, in microseconds.
    pub duration_us: u64,
}

impl Outcome {
    /// An outcome without optional parts.
    pub fn new(
        (id, tool): (&str, &str),
        outcome: OutcomeKind,
        input: Value,
        reason: Reason,
        revision: String,
    ) -> Self {
        Self {
            id: id.to_owned(),
            tool: tool.to_owned(),
            session: None,
            outcome,
            input,
            output: None,
            error: None,
            reason,
            policies: Vec::new(),
            approval: None,
            approved: None,
            replayed: false,
            audit: Vec::new(),
            dry: false,
            attempts: None,
            retry_after_ms: None,
            revision,
            duration_us: 0,
        }
    }
}
