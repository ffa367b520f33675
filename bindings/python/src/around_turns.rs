//! `around` hooks of Python. The hook and the layers inside it take turns: Python runs the hook until it calls `next` or ends, then the
//! engine runs the inner layers and gives Python their result.

use std::sync::atomic::{AtomicU64, Ordering};

use callgate::ToolError;
use callgate::json::Value;
use callgate::lifecycle::{HookCall, Next};
use pyo3::prelude::*;

use crate::host_request::{HostRequest, PendingResult, request};
use crate::json_conversion::to_python;
use crate::operation::OperationContext;
use crate::tool_call::ToolCall;

type CallResult = Result<Value, ToolError>;

/// What Python does in its turn.
pub(crate) enum AroundReply {
    /// The hook called `next` with these: nothing, the arguments, or the arguments and the options for the tool.
    Next(Vec<Value>),
    /// The hook returned or raised.
    Ended(CallResult),
}

/// A turn of an `around` hook. The first starts it; each later one has the result of its `next`.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct AroundTurn {
    /// The same for all turns of one run of a hook.
    #[pyo3(get)]
    id: u64,
    #[pyo3(get)]
    method: Py<PyAny>,
    call: callgate::ToolCall,
    result: Option<CallResult>,
    reply: PendingResult<AroundReply>,
}

impl AroundTurn {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.is_abandoned()
    }

    pub(crate) fn report(&self, reply: AroundReply) {
        self.reply.report(reply);
    }
}

#[pymethods]
impl AroundTurn {
    /// The call.
    #[getter]
    fn call(&self) -> ToolCall {
        ToolCall::new(self.call.clone())
    }

    /// Whether it has the result of `next`.
    #[getter]
    fn is_next(&self) -> bool {
        self.result.is_some()
    }

    /// The result of the layers inside the hook.
    #[getter]
    fn output<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.result {
            Some(Ok(output)) => to_python(py, output),
            _ => Ok(py.None().into_bound(py)),
        }
    }

    /// The message and the kind of their error, or `None`.
    #[getter]
    fn error(&self) -> Option<(&str, Option<&str>)> {
        let error = self.result.as_ref()?.as_ref().err()?;
        Some((&error.message, error.kind.as_deref()))
    }
}

static LAST_ID: AtomicU64 = AtomicU64::new(0);

/// Runs an `around` hook.
pub(crate) async fn run_around(method: &Py<PyAny>, call: &HookCall<'_>, mut next: Next<'_>) -> CallResult {
    let lost = || ToolError::new("the hook around the call was lost").with_kind("internal_error");
    let operation = OperationContext::current().ok_or_else(lost)?;
    let id = LAST_ID.fetch_add(1, Ordering::Relaxed);
    let mut result = None;
    loop {
        let method = Python::attach(|py| method.clone_ref(py));
        let (call, result_of_next) = (call.call.clone(), result.take());
        let turn = |reply| {
            HostRequest::Around(Box::new(AroundTurn { id, method, call, result: result_of_next, reply }))
        };
        let changed = match request(&operation, turn).await.ok_or_else(lost)? {
            AroundReply::Ended(result) => return result,
            AroundReply::Next(changed) => changed,
        };
        let mut changed = changed.into_iter();
        result = Some(match (changed.next(), changed.next()) {
            (None, _) => next.call().await,
            (Some(input), None) => next.call_with_input(input).await,
            (Some(input), Some(options)) => next.call_with(input, options).await,
        });
    }
}
