//! Tools of Python: the engine's executor files a request, Python runs the tool and reports its result.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use callgate::{ToolCall as EngineCall, ToolError, ToolExecutor, ToolResponse};
use pyo3::prelude::*;

use crate::operation::OperationContext;
use crate::tool_call::ToolCall;

type ToolResult = Result<ToolResponse, ToolError>;

/// How far a requested tool is.
enum Progress {
    Running(Option<Waker>),
    Ended(ToolResult),
    Taken,
    /// The engine does not wait for it any more, for example after a timeout.
    Abandoned,
}

/// The state of a request, shared by the executor and Python.
struct RequestState(Mutex<Progress>);

impl RequestState {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call whose tool has to run.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct ToolRequest {
    call: EngineCall,
    state: Arc<RequestState>,
}

impl ToolRequest {
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(*self.state.progress(), Progress::Abandoned)
    }

    /// Reports the result. It is ignored if nobody waits for it.
    pub(crate) fn report(&self, result: ToolResult) {
        let mut progress = self.state.progress();
        if let Progress::Running(waker) = &mut *progress {
            let waker = waker.take();
            *progress = Progress::Ended(result);
            drop(progress);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
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

/// The requests of an operation that Python has not seen yet.
#[derive(Default)]
pub(crate) struct RequestQueue(Mutex<VecDeque<ToolRequest>>);

impl RequestQueue {
    fn requests(&self) -> MutexGuard<'_, VecDeque<ToolRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next request that is still waited for.
    pub(crate) fn take(&self) -> Option<ToolRequest> {
        let mut requests = self.requests();
        while let Some(request) = requests.pop_front() {
            if !request.is_abandoned() {
                return Some(request);
            }
        }
        None
    }
}

/// Runs tools by asking the driver of an operation.
pub(crate) struct PythonTools(pub(crate) Arc<OperationContext>);

impl ToolExecutor for PythonTools {
    fn execute(&self, call: &EngineCall) -> impl Future<Output = ToolResult> + Send {
        let call = call.clone();
        let operation = Arc::clone(&self.0);
        async move {
            let state = Arc::new(RequestState(Mutex::new(Progress::Running(None))));
            let waiting = WaitingRequest(Arc::clone(&state));
            operation.requests().requests().push_back(ToolRequest { call, state });
            poll_fn(|context| {
                let mut progress = waiting.0.progress();
                match std::mem::replace(&mut *progress, Progress::Taken) {
                    Progress::Ended(result) => Poll::Ready(result),
                    Progress::Running(_) => {
                        *progress = Progress::Running(Some(context.waker().clone()));
                        Poll::Pending
                    }
                    Progress::Taken | Progress::Abandoned => {
                        Poll::Ready(Err(ToolError::new("the result of the tool was lost")))
                    }
                }
            })
            .await
        }
    }
}

/// Marks the request as abandoned when the executor is dropped before its end.
struct WaitingRequest(Arc<RequestState>);

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        let mut progress = self.0.progress();
        if !matches!(*progress, Progress::Taken) {
            *progress = Progress::Abandoned;
        }
    }
}
