//! The result of executing a call: what the tool gave, or something in its place, or why there is nothing.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use super::decision::Decision;
use super::policy_masks::{CachedValue, PolicyMasks};
use super::policy_reference::PolicyRef;
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

/// The reason of a call that a policy answered in the tool's place.
pub(super) fn answered_by_policy(policy: Option<String>) -> Reason {
    let name = policy.as_deref().unwrap_or_default();
    let message = format!("`{name}` answers in the tool's place");
    Reason { policy, code: reason_code::ANSWERED.to_owned(), message }
}

/// The reason of a call that people or a hook answered in the tool's place; their names, as far as they are known.
pub(super) fn answered_by_others(names: &[String]) -> Reason {
    let names = if names.is_empty() { "a person".to_owned() } else { names.join(", ") };
    let message = format!("{names} answered in the tool's place");
    Reason { policy: None, code: reason_code::ANSWERED.to_owned(), message }
}

/// The reason of a call whose result is from a cache policy and of this age.
pub(super) fn cached(policy: Option<String>, age: Duration) -> Reason {
    let when = match age.as_millis() {
        0 => "just now".to_owned(),
        _ => format!("{} ago", format(age)),
    };
    let message = format!("the tool returned this {when} for the same call");
    Reason { policy, code: reason_code::CACHED.to_owned(), message }
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

    /// The response that a hook or a policy gives in the tool's place. Returns `None` if the tool itself is to run.
    pub(crate) fn from_decision(decision: &Decision<'_>) -> Option<Self> {
        if let Some((by, output)) = decision.given.as_deref() {
            return Some(Self::answered(output.clone(), vec![by.clone()]));
        }
        let reference = decision.answer?;
        match &reference.find(&decision.layers)?.kind {
            PolicyKind::Respond(respond) => Some(Self::by_policy(reference, respond.output.clone())),
            _ => None,
        }
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

/// Records of the policies around the execution. They take a pointer as long as there are none, as for most calls.
#[derive(Debug, Default)]
pub(crate) struct Records(Option<Box<ExecutionRecords>>);

/// What the policies around an execution recorded.
#[derive(Debug)]
pub(crate) struct ExecutionRecords {
    /// The audit entries, in order.
    pub(crate) entries: Vec<(PolicyRef, Map)>,
    /// The lines that scripts printed, unredacted.
    pub(crate) printed: Vec<(PolicyRef, String)>,
    /// The results that scripts received, unredacted: what is redacted in them must not leave by another way.
    pub(crate) results: Vec<Arc<Value>>,
    /// The results that scripts made of others, if policies redact results. A script outside of them may pass them on.
    pub(crate) made_results: Vec<Value>,
    /// Whether a script received a result, or a value that one kept of earlier calls.
    pub(crate) has_received: bool,
    /// What redaction changes in the values that cached results and kept values were made of.
    pub(crate) inherited: PolicyMasks,
}

/// What [`Records`] read as long as there are none.
static NO_RECORDS: ExecutionRecords = ExecutionRecords::new();

impl Deref for Records {
    type Target = ExecutionRecords;

    fn deref(&self) -> &ExecutionRecords {
        self.0.as_deref().unwrap_or(&NO_RECORDS)
    }
}

impl DerefMut for Records {
    fn deref_mut(&mut self) -> &mut ExecutionRecords {
        self.0.get_or_insert_with(|| Box::new(ExecutionRecords::new()))
    }
}

impl ExecutionRecords {
    const fn new() -> Self {
        Self {
            entries: Vec::new(),
            printed: Vec::new(),
            results: Vec::new(),
            made_results: Vec::new(),
            has_received: false,
            inherited: PolicyMasks::new(),
        }
    }

    /// Whether the result or a text of the call may be made of values that redaction changes elsewhere.
    pub(super) fn has_sources(&self) -> bool {
        !self.results.is_empty() || !self.inherited.is_empty()
    }

    /// Whether a script made this result of others, and did not pass one on unchanged.
    pub(super) fn is_made(&self, output: &Value) -> bool {
        let is_output = |result: &Value| result == output;
        !self.results.iter().any(|result| is_output(result)) || self.made_results.iter().any(is_output)
    }

    /// Adds a value from a cache, and returns it.
    pub(crate) fn add_cached(&mut self, cached: CachedValue) -> Value {
        let CachedValue { value, masks } = cached;
        if !masks.is_empty() {
            self.inherited.merge(&masks);
            self.made_results.push(value.clone());
        }
        value
    }
}
