//! How the execution of a call ended, and what is told of that before it is settled.

use std::sync::Arc;
use std::time::Duration;

use super::Subject;
use super::decision::Decision;
use super::trace::PolicyRef;
use crate::call::{OutcomeKind, Reason, reason_code};
use crate::host::{ToolAnswer, ToolError};
use crate::json::{Map, Value};
use crate::middleware::Kind;
use crate::spans::in_words;

/// How the execution of a call ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The tool gave a result.
    Ran(ToolAnswer),
    /// The tool ended in an error, or a policy gave it up.
    Failed(ToolError, Option<PolicyRef>),
    /// A policy answered in the tool's place.
    Answered(PolicyRef, Value),
    /// A person answered in the tool's place; who, as far as they are named.
    Given(Value, Vec<String>),
    /// A cache answered, with what is so old.
    Cached(PolicyRef, Value, Duration),
    /// A policy around the execution failed, or something else did, whether the tool ran to its end or not.
    Broken(Option<PolicyRef>, Reason, OutcomeKind),
}

/// What came of executing a call.
#[derive(Debug)]
pub(crate) struct Execution {
    /// How it ended.
    pub(crate) ended: Ended,
    /// How often the tool was called.
    pub(crate) attempts: u32,
    /// The arguments that the tool ran with last, where a policy around the execution changed them.
    pub(crate) input: Option<Value>,
    /// What policies around the execution recorded.
    pub(crate) records: Records,
}

/// What policies around the execution recorded, and what they had to record it from.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// The entries, in order.
    pub(crate) entries: Vec<(PolicyRef, Map)>,
    /// The results that scripts were given, as they were: what is redacted in them must not come out another way.
    pub(crate) results: Vec<Arc<Value>>,
}

impl From<Ended> for Execution {
    fn from(ended: Ended) -> Self {
        Self { ended, attempts: 0, input: None, records: Records::default() }
    }
}

/// What is told of an ended execution.
pub(super) struct Told {
    pub(super) kind: OutcomeKind,
    pub(super) output: Option<Value>,
    /// The error, where it is one that a policy may recover.
    pub(super) error: Option<ToolError>,
    pub(super) reason: Reason,
    /// No tool stood behind the call.
    pub(super) dry: bool,
    /// The reason's code is a script's word.
    pub(super) thrown: bool,
}

impl Told {
    fn new(kind: OutcomeKind, output: Option<Value>, reason: Reason) -> Self {
        Self { kind, output, error: None, reason, dry: false, thrown: false }
    }
}

impl Ended {
    pub(super) fn told(self, subject: &Subject<'_>, decision: &Decision<'_>) -> Told {
        let id = |reference: PolicyRef| subject.policy(reference).map(|policy| policy.id.clone());
        match self {
            Self::Ran(ToolAnswer { output, dry, .. }) => {
                Told { dry, ..Told::new(OutcomeKind::Executed, Some(output), decision.reason()) }
            }
            Self::Answered(by, output) => {
                let policy = id(by);
                let message =
                    format!("`{}` answers in the tool's place", policy.as_deref().unwrap_or_default());
                let reason = Reason { policy, code: reason_code::ANSWERED.to_owned(), message };
                Told::new(OutcomeKind::Answered, Some(output), reason)
            }
            Self::Given(output, by) => {
                let who = if by.is_empty() { "a person".to_owned() } else { by.join(", ") };
                let message = format!("{who} answered in the tool's place");
                let reason = Reason { policy: None, code: reason_code::ANSWERED.to_owned(), message };
                Told::new(OutcomeKind::Answered, Some(output), reason)
            }
            Self::Cached(by, output, age) => {
                let when = match age.as_millis() {
                    0 => "just now".to_owned(),
                    _ => format!("{} ago", in_words(age)),
                };
                let message = format!("the tool gave this {when} for the same call");
                let reason = Reason { policy: id(by), code: reason_code::CACHED.to_owned(), message };
                Told::new(OutcomeKind::Cached, Some(output), reason)
            }
            Self::Failed(error, by) => {
                let policy = by.and_then(|by| subject.policy(by));
                let thrown = policy.is_some_and(|policy| matches!(policy.kind, Kind::Around(_)));
                let code = by.and_then(|_| error.kind.clone());
                let code = code.unwrap_or_else(|| reason_code::TOOL_ERROR.to_owned());
                let reason = Reason { policy: by.and_then(id), code, message: error.message.clone() };
                Told { error: Some(error), thrown, ..Told::new(OutcomeKind::Failed, None, reason) }
            }
            Self::Broken(by, reason, kind) => {
                let policy = by.and_then(id).or(reason.policy);
                Told::new(kind, None, Reason { policy, ..reason })
            }
        }
    }
}
