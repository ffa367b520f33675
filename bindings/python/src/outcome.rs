//! `Outcome`: how a call ended, already redacted.

use callgate::json::{self, Value};
use callgate::message::{ResultOutput, ResultStatus};
use callgate::{Engine, Outcome as EngineOutcome, Session};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

use crate::json_conversion::to_python;

/// The outcome of one call.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct Outcome {
    outcome: EngineOutcome,
    /// The result for the model; `None` if the call is suspended.
    result: Option<(ResultOutput, ResultStatus)>,
}

/// Makes outcomes with their results for the model.
pub(crate) struct OutcomeFormatter(Mutex<Session>);

impl OutcomeFormatter {
    pub(crate) fn new(engine: &Engine) -> Self {
        Self(Mutex::new(engine.session()))
    }

    pub(crate) fn format(&self, outcome: EngineOutcome) -> Outcome {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = session.result_for_model(&outcome).map(|part| (part.output, part.status));
        Outcome { outcome, result }
    }
}

impl Outcome {
    fn document(&self) -> Value {
        json::to_value(&self.outcome).unwrap_or_default()
    }
}

#[pymethods]
impl Outcome {
    /// The id of the call.
    #[getter]
    fn id(&self) -> &str {
        &self.outcome.id
    }

    /// The tool.
    #[getter]
    fn tool(&self) -> &str {
        &self.outcome.tool
    }

    /// How it ended: `executed`, `denied`, `suspended` and so on.
    #[getter]
    fn kind(&self) -> &'static str {
        self.outcome.outcome.name()
    }

    /// Whether the call has a result: its tool ran, or something answered for it.
    #[getter]
    fn is_ok(&self) -> bool {
        matches!(self.result, Some((_, ResultStatus::Output)))
    }

    /// Whether the call is pending until it is approved.
    #[getter]
    fn is_suspended(&self) -> bool {
        self.result.is_none()
    }

    /// Whether the tool did not run, because a policy or a person did not let it.
    #[getter]
    fn is_denied(&self) -> bool {
        matches!(self.result, Some((_, ResultStatus::Denied)))
    }

    /// The final arguments, redacted.
    #[getter]
    fn input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.outcome.input)
    }

    /// The result, redacted.
    #[getter]
    fn output<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.outcome.output.as_ref().map(|output| to_python(py, output)).transpose()
    }

    /// The error, redacted.
    #[getter]
    fn error(&self) -> Option<&str> {
        self.outcome.error.as_deref()
    }

    /// The code of the reason.
    #[getter]
    fn code(&self) -> &str {
        &self.outcome.reason.code
    }

    /// The message of the reason.
    #[getter]
    fn message(&self) -> &str {
        &self.outcome.reason.message
    }

    /// The policy of the reason.
    #[getter]
    fn policy(&self) -> Option<&str> {
        self.outcome.reason.policy.as_deref()
    }

    /// The text for the model: the result, or why there is none.
    #[getter]
    fn text(&self) -> Option<String> {
        self.result.as_ref().map(|(output, _)| output.text())
    }

    /// The approval request of a suspended call, as a dict.
    #[getter]
    fn approval<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(request) = &self.outcome.approval else { return Ok(None) };
        to_python(py, &json::to_value(request).unwrap_or_default()).map(Some)
    }

    /// Whether the call had completed before, and nothing was run.
    #[getter]
    fn replayed(&self) -> bool {
        self.outcome.replayed
    }

    /// Whether an approver changed the arguments.
    #[getter]
    fn is_edited(&self) -> bool {
        self.outcome.approved.as_ref().is_some_and(|approved| approved.edited)
    }

    /// After how many milliseconds to retry a call that a limit denied.
    #[getter]
    fn retry_after_ms(&self) -> Option<u64> {
        self.outcome.retry_after_ms
    }

    /// The policies that took part, in order, as dicts.
    #[getter]
    fn policies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &json::to_value(&self.outcome.policies).unwrap_or_default())
    }

    /// The outcome as JSON values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.document())
    }

    /// The outcome as JSON, exactly as Callgate writes it everywhere.
    fn to_json(&self) -> String {
        self.document().to_string()
    }

    fn __repr__(&self) -> String {
        let reason = &self.outcome.reason;
        format!(
            "Outcome(kind={:?}, tool={:?}, code={:?}, message={:?})",
            self.kind(),
            self.outcome.tool,
            reason.code,
            reason.message
        )
    }
}
