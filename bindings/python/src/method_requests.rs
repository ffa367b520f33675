//! Methods of stores in Python: a store of the engine files a request, Python calls the method and reports its result.

use callgate::host::StoreError;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::host_request::{HostRequest, PendingResult, request};
use crate::operation::OperationContext;

type StoreResult = Result<Py<PyAny>, String>;

/// A method of a store that has to be called.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct StoreRequest {
    #[pyo3(get)]
    method: Py<PyAny>,
    #[pyo3(get)]
    arguments: Py<PyTuple>,
    result: PendingResult<StoreResult>,
}

impl StoreRequest {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.result.is_abandoned()
    }

    /// Reports the result. It is ignored if nobody waits for it.
    pub(crate) fn report(&self, result: StoreResult) {
        self.result.report(result);
    }
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
    let create = |result| HostRequest::Store(Box::new(StoreRequest { method, arguments, result }));
    match request(&operation, create).await {
        Some(Ok(result)) => Ok(result),
        Some(Err(message)) => Err(unavailable(format!("the store failed: {message}"))),
        None => Err(unavailable("the result of the store was lost")),
    }
}

/// Reads the result of a method.
pub(crate) fn read_result<T: for<'py> FromPyObjectOwned<'py>>(result: &Py<PyAny>) -> Result<T, StoreError> {
    Python::attach(|py| {
        let read = result.bind(py).extract::<T>().map_err(|error| error.into().to_string());
        read.map_err(|error| {
            unavailable(format!("the store returned something else than is expected: {error}"))
        })
    })
}
