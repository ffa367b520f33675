//! Tools of Python: the engine's executor files a request, Python runs the tool and reports its result.

use std::future::Future;
use std::sync::Arc;

use callgate::{ToolCall as EngineCall, ToolError, ToolExecutor, ToolResponse};
use pyo3::prelude::*;

use crate::host_request::{HostRequest, PendingResult, request};
use crate::operation::OperationContext;
use crate::tool_call::ToolCall;

type ToolResult = Result<ToolResponse, ToolError>;

/// A call whose tool has to run.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct ToolRequest {
    call: EngineCall,
    result: PendingResult<ToolResult>,
}

impl ToolRequest {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.result.is_abandoned()
    }

    /// Reports the result. It is ignored if nobody waits for it.
    pub(crate) fn report(&self, result: ToolResult) {
        self.result.report(result);
    }
}

#[pymethods]
impl ToolRequest {
    /// The call, with its final arguments.
    #[getter]
    fn call(&self) -> ToolCall {
        ToolCall::new(self.call.clone())
    }

    /// Whether the result is not waited for any more.
    #[getter(is_abandoned)]
    fn get_is_abandoned(&self) -> bool {
        self.is_abandoned()
    }
}

/// Runs tools by asking the driver of an operation.
pub(crate) struct PythonTools(pub(crate) Arc<OperationContext>);

impl ToolExecutor for PythonTools {
    fn execute(&self, call: &EngineCall) -> impl Future<Output = ToolResult> + Send {
        let call = call.clone();
        let operation = Arc::clone(&self.0);
        async move {
            let tool = |result| HostRequest::Tool(Box::new(ToolRequest { call, result }));
            let lost = || Err(ToolError::new("the result of the tool was lost"));
            request(&operation, tool).await.unwrap_or_else(lost)
        }
    }
}
