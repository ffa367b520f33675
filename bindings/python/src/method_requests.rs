//! Methods of stores and hooks in Python: the engine files a request, Python calls the method and reports its result.

use callgate::host::StoreError;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::host_request::{HostRequest, PendingResult, request};
use crate::operation::OperationContext;

/// What a method returned, or the class of what it raised.
type MethodResult = Result<Py<PyAny>, String>;

/// A method that has to be called.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct MethodRequest {
    #[pyo3(get)]
    method: Py<PyAny>,
    #[pyo3(get)]
    arguments: Py<PyTuple>,
    /// Whose method it is, for messages.
    #[pyo3(get)]
    owner: String,
    /// Whether it must return before the next timer of the operation.
    #[pyo3(get)]
    has_deadline: bool,
    result: PendingResult<MethodResult>,
}

impl MethodRequest {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.result.is_abandoned()
    }

    /// Reports the result. It is ignored if nobody waits for it.
    pub(crate) fn report(&self, result: MethodResult) {
        self.result.report(result);
    }
}

/// The arguments of a method.
pub(crate) fn arguments<'py, T>(py: Python<'py>, arguments: T) -> PyResult<Py<PyTuple>>
where
    T: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
{
    Ok(arguments.into_pyobject(py)?.unbind())
}

fn unavailable(message: impl Into<String>) -> StoreError {
    StoreError::Unavailable(message.into())
}

/// Calls a method of a store in Python.
pub(crate) async fn call_store(
    store: &Py<PyAny>,
    method: &'static str,
    arguments: PyResult<Py<PyTuple>>,
) -> Result<Py<PyAny>, StoreError> {
    let operation = OperationContext::current()
        .ok_or_else(|| unavailable("a store in Python is available only while a call runs"))?;
    let arguments = arguments.map_err(|error| unavailable(error.to_string()))?;
    let method = Python::attach(|py| store.getattr(py, method));
    let method = method.map_err(|error| unavailable(error.to_string()))?;
    let create = |result| {
        let owner = "the store".to_owned();
        HostRequest::Method(Box::new(MethodRequest { method, arguments, owner, has_deadline: true, result }))
    };
    match request(&operation, create).await {
        Some(Ok(result)) => Ok(result),
        Some(Err(message)) => Err(unavailable(format!("the store failed: {message}"))),
        None => Err(unavailable("the result of the store was lost")),
    }
}

/// Calls a method of a hook in Python. Returns `None` if it failed, which Python has logged.
pub(crate) async fn call_hook(id: &str, method: Py<PyAny>, arguments: Py<PyTuple>) -> Option<Py<PyAny>> {
    let operation = OperationContext::current()?;
    let create = |result| {
        let owner = format!("the hook `{id}`");
        HostRequest::Method(Box::new(MethodRequest { method, arguments, owner, has_deadline: false, result }))
    };
    request(&operation, create).await?.ok()
}

/// Reads the result of a method of a store.
pub(crate) fn read_result<T: for<'py> FromPyObjectOwned<'py>>(result: &Py<PyAny>) -> Result<T, StoreError> {
    Python::attach(|py| {
        let read = result.bind(py).extract::<T>().map_err(|error| error.into().to_string());
        read.map_err(|error| {
            unavailable(format!("the store returned something else than is expected: {error}"))
        })
    })
}
