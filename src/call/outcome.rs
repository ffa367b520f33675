//! What is said of a call on its way, and how it ends.

use serde::{Deserialize, Serialize};

use super::{ApprovalRequest, Approved};
use crate::json::{Map, Value};

/// Where on a call's way a policy acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The arguments are brought into form and checked.
    Normalise,
    /// It is decided whether the call may run.
    Gate,
    /// The call runs, or something answers for it.
    Execute,
    /// The result is brought into form and recorded.
    Settle,
}

/// What one policy says of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing against it.
    Pass,
    /// It changed the arguments or the result.
    Rewrite,
    /// It answers in place of the tool.
    Answer,
    /// A person must say yes first.
    Suspend,
    /// The call must not run.
    Deny,
    /// The call must not run, nor any later one of the session.
    Halt,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeKind {
    /// The tool ran and answered.
    Executed,
    /// A cache answered.
    Cached,
    /// A policy or a person answered in the tool's place.
    Answered,
    /// The arguments do not fit; the message says how to mend them.
    Invalid,
    /// The call was refused.
    Denied,
    /// The call waits for a person.
    Suspended,
    /// The run was stopped.
    Halted,
    /// The call was given up from outside.
    Aborted,
    /// The tool failed, or its result had to be withheld.
    Failed,
    /// The tool failed and a policy turned the error into a message for the model.
    Recovered,
    /// It is unknown whether the tool ran to its end.
    Indeterminate,
}

impl OutcomeKind {
    /// Every kind, in the order of the words page.
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

    /// The word in JSON and on the command line.
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

impl std::fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The stable codes that reasons carry, beside those that policies choose themselves (`deny: { code: … }`).
pub mod reason_code {
    /// A policy of kind `allow`, `respond` or `approval` let the call through, or nothing was against it.
    pub const ALLOWED: &str = "allowed";
    /// No policy that permits matched, and `defaults.unmatched` says what happens then.
    pub const UNMATCHED: &str = "unmatched";
    /// A `deny` policy matched.
    pub const DENIED: &str = "denied";
    /// The host's own code is against it.
    pub const BLOCKED: &str = "blocked";
    /// The model was not offered the tool: a hook or a `model` policy removed it from the configuration, or it never stood there.
    pub const NOT_OFFERED: &str = "not_offered";
    /// A `halt` policy matched, or the host's own code stops the run.
    pub const HALTED: &str = "halted";
    /// An earlier call halted the session.
    pub const SESSION_HALTED: &str = "session_halted";
    /// An `approval` policy matched.
    pub const APPROVAL_REQUIRED: &str = "approval_required";
    /// A person has said yes.
    pub const APPROVED: &str = "approved";
    /// A person has said no.
    pub const APPROVAL_DENIED: &str = "approval_denied";
    /// The question to a person has lapsed.
    pub const APPROVAL_EXPIRED: &str = "approval_expired";
    /// What is said to be a question of ours is none, and no policy asks one.
    pub const APPROVAL_INVALID: &str = "approval_invalid";
    /// The same was asked too often in one session.
    pub const ASKED_TOO_OFTEN: &str = "asked_too_often";
    /// Another call of the round waits for a person, and they are asked one at a time.
    pub const ASK_AGAIN: &str = "ask_again";
    /// The run was ended from outside, or by the host's own code.
    pub const ABORTED: &str = "aborted";
    /// A person ended the run.
    pub const CANCELLED: &str = "cancelled";
    /// It is not known whether the call ran: whoever began it never said how it ended.
    pub const UNFINISHED: &str = "unfinished";
    /// A restricting policy could not be decided, and so counts as matching.
    pub const UNDECIDED: &str = "undecided";
    /// The arguments are no JSON object.
    pub const INVALID_ARGUMENTS: &str = "invalid_arguments";
    /// The call itself could not be read.
    pub const INVALID_CALL: &str = "invalid_call";
    /// An argument has a name that a server could take for another one, which policies read.
    pub const AMBIGUOUS_ARGUMENT: &str = "ambiguous_argument";
    /// The arguments break a schema.
    pub const SCHEMA_VIOLATION: &str = "schema_violation";
    /// `validate: { schema: tool }`, and no usable schema of the tool is known.
    pub const SCHEMA_UNAVAILABLE: &str = "schema_unavailable";
    /// A `transform` could not be applied to these arguments.
    pub const TRANSFORM_FAILED: &str = "transform_failed";
    /// A `respond` policy answered.
    pub const ANSWERED: &str = "answered";
    /// A `rate_limit` has too little left.
    pub const RATE_LIMITED: &str = "rate_limited";
    /// A `concurrency` limit has no slot free.
    pub const CONCURRENCY_LIMITED: &str = "concurrency_limited";
    /// A `budget` is used up.
    pub const BUDGET_EXCEEDED: &str = "budget_exceeded";
    /// The store that counts for a limit did not answer.
    pub const STORE_UNAVAILABLE: &str = "store_unavailable";
    /// The caller, or its tenant, uses all of its share of the store.
    pub const QUOTA_EXCEEDED: &str = "quota_exceeded";
    /// What the store holds was changed, removed, or replaced by an older version of it.
    pub const STATE_ALTERED: &str = "state_altered";
    /// A cache answered.
    pub const CACHED: &str = "cached";
    /// A `timeout` gave the tool up.
    pub const TIMEOUT: &str = "timeout";
    /// An `around` script threw an error of its own that has no kind.
    pub const THROWN: &str = "thrown";
    /// An `around` script failed.
    pub const SCRIPT_ERROR: &str = "script_error";
    /// The tool ended in an error.
    pub const TOOL_ERROR: &str = "tool_error";
    /// A `recover` policy turned the tool's error into a message.
    pub const RECOVERED: &str = "recovered";
    /// The tool ran, but its result could not be brought into the form that the policies demand.
    pub const OUTPUT_WITHHELD: &str = "output_withheld";
    /// The policies need more work for the call than one call may use.
    pub const WORK_EXCEEDED: &str = "work_exceeded";
    /// Callgate itself failed while it decided.
    pub const INTERNAL_ERROR: &str = "internal_error";
}

/// Why a call was decided as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The policy that decided, or the host's own code by its name, where one did.
    pub policy: Option<String>,
    /// A stable code: one of [`reason_code`], or the policy's own.
    pub code: String,
    /// For the agent and the people behind it.
    pub message: String,
}

/// What one policy did with one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyTrace {
    /// The policy's id.
    pub id: String,
    /// Its kind key.
    pub kind: String,
    /// Where it acted.
    pub phase: Phase,
    /// What it said (of a shadow: would have said).
    pub verdict: Verdict,
    /// Whether it only watches.
    pub shadow: bool,
    /// Whether it counts as matching only because it could not be decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

/// What an `audit` policy chose to record of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The policy's id.
    pub policy: String,
    /// Path as written in the policy → value, redacted; a path that yields several has a list.
    pub fields: Map,
}

/// How one call ended, with everything that people and programs are told of it. Redacted already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The call's id.
    pub id: String,
    /// The call's tool.
    pub tool: String,
    /// The session's name, where it has one.
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
    /// Why.
    pub reason: Reason,
    /// Which policies took part, in order.
    pub policies: Vec<PolicyTrace>,
    /// The question to a person, where the call waits for one.
    pub approval: Option<ApprovalRequest>,
    /// By what it may run, where it waited for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// The call was settled before; this tells how, and nothing was run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// What `audit` policies recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audit: Vec<AuditEntry>,
    /// No tool stood behind the call, so the output says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry: bool,
    /// How often the tool was called, where that was more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// For a call that a limit refused: in how many milliseconds it may come again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The digest of the rules that decided.
    pub revision: String,
    /// Time in Callgate and in the tool, in microseconds.
    pub duration_us: u64,
}

impl Outcome {
    /// How a call ended, with nothing else to tell of it.
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
