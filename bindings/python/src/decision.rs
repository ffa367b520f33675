//! `Decision`: what the policies decide on a call that is not executed.

use callgate::call::{PolicyTrace, Reason};
use callgate::json::{self, Value, json};
use callgate::{Decision as EngineDecision, Effect};
use pyo3::prelude::*;

use crate::json_conversion::to_python;

/// The decision on one call.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct Decision {
    effect: Effect,
    reason: Reason,
    input: Option<Value>,
    limits: Vec<String>,
    policies: Vec<PolicyTrace>,
}

impl Decision {
    pub(crate) fn new(decision: &EngineDecision<'_>) -> Self {
        Self {
            effect: decision.effect(),
            reason: decision.reason(),
            input: decision.changed_call().map(|call| call.input),
            limits: decision.pending().map(str::to_owned).collect(),
            policies: decision.policies(),
        }
    }
}

#[pymethods]
impl Decision {
    /// `run`, `answer`, `suspend`, `invalid`, `deny` or `halt`.
    #[getter]
    fn effect(&self) -> &'static str {
        self.effect.name()
    }

    /// Whether the call reaches its tool, or a policy that answers for it.
    #[getter]
    fn is_permitted(&self) -> bool {
        matches!(self.effect, Effect::Run | Effect::Answer)
    }

    /// Whether a person must approve the call first.
    #[getter]
    fn needs_approval(&self) -> bool {
        self.effect == Effect::Suspend
    }

    /// The code of the reason.
    #[getter]
    fn code(&self) -> &str {
        &self.reason.code
    }

    /// The message of the reason.
    #[getter]
    fn message(&self) -> &str {
        &self.reason.message
    }

    /// The policy of the reason.
    #[getter]
    fn policy(&self) -> Option<&str> {
        self.reason.policy.as_deref()
    }

    /// The arguments, if a policy changed them.
    #[getter]
    fn changed_input<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.input.as_ref().map(|input| to_python(py, input)).transpose()
    }

    /// The limits that the call must acquire before it runs.
    #[getter]
    fn limits(&self) -> Vec<String> {
        self.limits.clone()
    }

    /// The policies that took part, in order, as dicts.
    #[getter]
    fn policies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &json::to_value(&self.policies).unwrap_or_default())
    }

    /// The decision as JSON values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let document = json!({
            "effect": self.effect.name(),
            "reason": json::to_value(&self.reason).unwrap_or_default(),
            "input": self.input.clone(),
            "limits": self.limits.clone(),
            "policies": json::to_value(&self.policies).unwrap_or_default(),
        });
        to_python(py, &document)
    }

    fn __repr__(&self) -> String {
        format!(
            "Decision(effect={:?}, code={:?}, message={:?})",
            self.effect.name(),
            self.reason.code,
            self.reason.message
        )
    }
}
