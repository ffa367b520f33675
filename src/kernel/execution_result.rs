//! The result of executing a call: what the tool gave, or something in its place, or why there is nothing.

use std::sync::Arc;
use std::time::Duration;

use super::CallScope;
use super::decision::Decision;
use super::trace::PolicyRef;
use crate::call::{OutcomeKind, Reason, reason_code};
use crate::durations::format;
use crate::host::ToolError;
use crate::json::{Map, Value};
use crate::middleware::PolicyKind;

/// What a tool gave, or what was given in its place.
#[derive(Clone, Debug)]
pub(crate) struct CallResponse {
    pub(crate) result: Result<Value, ToolError>,
    pub(crate) source: Source,
    /// No tool exists behind the call.
    pub(crate) dry: bool,
}

/// Where a response comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The tool.
    Tool,
    /// A policy: it answered in the tool's place, or gave the tool up.
    Policy(PolicyRef),
    /// A cache policy, with the age of the result.
    Cache(PolicyRef, Duration),
    /// People or a hook, which answered in the tool's place; their names, as far as they are known.
    Others(Vec<String>),
}

impl Source {
    /// The policy that answered, or gave the tool up.
    pub(crate) fn policy(&self) -> Option<PolicyRef> {
        match self {
            Self::Policy(by) => Some(*by),
            Self::Tool | Self::Cache(..) | Self::Others(_) => None,
        }
    }
}

impl CallResponse {
    /// The tool gave a result.
    pub(crate) fn executed(output: Value, dry: bool) -> Self {
        Self { result: Ok(output), source: Source::Tool, dry }
    }

    /// A policy answered in the tool's place.
    pub(crate) fn by_policy(policy: PolicyRef, output: Value) -> Self {
        Self { result: Ok(output), source: Source::Policy(policy), dry: false }
    }

    /// People or a hook answered in the tool's place.
    pub(crate) fn answered(output: Value, by: Vec<String>) -> Self {
        Self { result: Ok(output), source: Source::Others(by), dry: false }
    }

    /// The tool failed.
    pub(crate) fn failed(error: ToolError) -> Self {
        Self { result: Err(error), source: Source::Tool, dry: false }
    }

    /// A policy made the call fail.
    pub(crate) fn failed_by(policy: PolicyRef, error: ToolError) -> Self {
        Self { result: Err(error), source: Source::Policy(policy), dry: false }
    }

    /// Whether it is the result of the tool itself.
    pub(crate) fn is_executed(&self) -> bool {
        matches!((&self.result, &self.source), (Ok(_), Source::Tool))
    }
}

/// An execution without a response: what is around the tool failed, or the run was aborted, whether the tool ran or not.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    /// The policy that failed, if it was one.
    pub(crate) policy: Option<PolicyRef>,
    pub(crate) reason: Reason,
    pub(crate) kind: OutcomeKind,
}

/// An executed call.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) result: Result<CallResponse, Broken>,
    /// How often the tool was called.
    pub(crate) attempts: u32,
    /// The arguments of the tool's last run, if a policy around the execution changed them.
    pub(crate) input: Option<Value>,
    pub(crate) records: Records,
}

impl Execution {
    /// An execution that broke before anything was recorded.
    pub(crate) fn broken(reason: Reason, kind: OutcomeKind) -> Self {
        Err(Broken { policy: None, reason, kind }).into()
    }
}

impl From<Result<CallResponse, Broken>> for Execution {
    fn from(result: Result<CallResponse, Broken>) -> Self {
        Self { result, attempts: 0, input: None, records: Records::default() }
    }
}

/// An execution that was stopped before the tool was called.
#[derive(Debug)]
pub(crate) struct StoppedExecution {
    /// The decision that stopped it.
    pub(crate) decision: Box<Decision<'static>>,
    pub(crate) records: Records,
}

/// Records of the policies around the execution.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// The audit entries, in order.
    pub(crate) entries: Vec<(PolicyRef, Map)>,
    /// The results that scripts received, unredacted: what is redacted in them must not leave by another way.
    pub(crate) results: Vec<Arc<Value>>,
}

/// The parts of an outcome that an execution decides.
pub(super) struct OutcomeParts {
    pub(super) kind: OutcomeKind,
    pub(super) output: Option<Value>,
    /// The error, if it is one that a policy may recover.
    pub(super) error: Option<ToolError>,
    pub(super) reason: Reason,
    /// No tool exists behind the call.
    pub(super) dry: bool,
    /// The reason's code is a script's word.
    pub(super) thrown: bool,
}

impl OutcomeParts {
    fn new(kind: OutcomeKind, output: Option<Value>, reason: Reason) -> Self {
        Self { kind, output, error: None, reason, dry: false, thrown: false }
    }

    pub(super) fn from_result(
        result: Result<CallResponse, Broken>,
        subject: &CallScope<'_>,
        decision: &Decision<'_>,
    ) -> Self {
        let id = |reference: PolicyRef| subject.policy(reference).map(|policy| policy.id.clone());
        match result {
            Ok(CallResponse { result: Ok(output), source, dry }) => {
                let (kind, reason) = success(source, id, decision);
                Self { dry, ..Self::new(kind, Some(output), reason) }
            }
            Ok(CallResponse { result: Err(error), source, .. }) => {
                let by = source.policy();
                let policy = by.and_then(|by| subject.policy(by));
                let thrown = policy.is_some_and(|policy| matches!(policy.kind, PolicyKind::Around(_)));
                let code = by.and_then(|_| error.kind.clone());
                let code = code.unwrap_or_else(|| reason_code::TOOL_ERROR.to_owned());
                let reason = Reason { policy: by.and_then(id), code, message: error.message.clone() };
                Self { error: Some(error), thrown, ..Self::new(OutcomeKind::Failed, None, reason) }
            }
            Err(Broken { policy, reason, kind }) => {
                let policy = policy.and_then(id).or(reason.policy);
                Self::new(kind, None, Reason { policy, ..reason })
            }
        }
    }
}

/// The kind and the reason of a call that has a result.
fn success(
    source: Source,
    id: impl Fn(PolicyRef) -> Option<String>,
    decision: &Decision<'_>,
) -> (OutcomeKind, Reason) {
    let (kind, policy, code, message) = match source {
        Source::Tool => return (OutcomeKind::Executed, decision.reason()),
        Source::Policy(by) => {
            let policy = id(by);
            let message = format!("`{}` answers in the tool's place", policy.as_deref().unwrap_or_default());
            (OutcomeKind::Answered, policy, reason_code::ANSWERED, message)
        }
        Source::Others(by) => {
            let who = if by.is_empty() { "a person".to_owned() } else { by.join(", ") };
            let message = format!("{who} answered in the tool's place");
            (OutcomeKind::Answered, None, reason_code::ANSWERED, message)
        }
        Source::Cache(by, age) => {
            let when = match age.as_millis() {
                0 => "just now".to_owned(),
                _ => format!("{} ago", format(age)),
            };
            let message = format!("the tool returned this {when} for the same call");
            (OutcomeKind::Cached, id(by), reason_code::CACHED, message)
        }
    };
    (kind, Reason { policy, code: code.to_owned(), message })
}
