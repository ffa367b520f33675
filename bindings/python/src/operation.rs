//! Operations: futures of the engine that Python drives. Each step runs the engine without the GIL, until a tool has to run, something
//! has to be waited for, or the operation has a result.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use callgate::{ToolError, ToolResponse};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::around_turns::{AroundReply, AroundTurn};
use crate::errors;
use crate::fork_guard::OwnerProcess;
use crate::host_request::{HostRequest, RequestQueue};
use crate::json_conversion::to_value;
use crate::method_requests::MethodRequest;
use crate::tool_requests::ToolRequest;
use crate::wake_signal::WakeSignal;

/// The result of an operation, as a function that makes it an object of Python.
pub(crate) type OperationResult = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
type OperationFuture = Pin<Box<dyn Future<Output = OperationResult> + Send>>;

/// How long a blocked thread waits before it looks for signals such as Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    static CURRENT: RefCell<Option<Arc<OperationContext>>> = const { RefCell::new(None) };
}

/// The timer of an operation.
pub(crate) type TimerId = (Instant, u64);

/// The timers of an operation.
#[derive(Default)]
pub(crate) struct Timers {
    running: BTreeSet<TimerId>,
    started: u64,
}

impl Timers {
    pub(crate) fn start(&mut self, until: Instant) -> TimerId {
        self.started += 1;
        let timer = (until, self.started);
        self.running.insert(timer);
        timer
    }

    pub(crate) fn stop(&mut self, timer: TimerId) {
        self.running.remove(&timer);
    }
}

/// What the futures of an operation use: its timers, its requests for tools, stores and hooks, and what wakes its driver.
#[derive(Default)]
pub(crate) struct OperationContext {
    timers: Mutex<Timers>,
    requests: RequestQueue,
    signal: WakeSignal,
}

impl OperationContext {
    /// The operation that this thread is running.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with(|current| current.borrow().clone())
    }

    pub(crate) fn timers(&self) -> MutexGuard<'_, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn requests(&self) -> &RequestQueue {
        &self.requests
    }

    fn deadline(&self) -> Option<Instant> {
        self.timers().running.first().map(|(until, _)| *until)
    }
}

impl Wake for OperationContext {
    fn wake(self: Arc<Self>) {
        self.signal.wake();
    }
}

/// What comes next of an operation.
enum Step {
    Ask(HostRequest),
    Wait,
    Done(OperationResult),
}

/// An operation of the engine, driven by Python.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct Operation {
    /// `None` after the end.
    future: Mutex<Option<OperationFuture>>,
    context: Arc<OperationContext>,
    owner: OwnerProcess,
}

impl Operation {
    /// An operation whose future uses this context.
    pub(crate) fn new(
        create: impl FnOnce(Arc<OperationContext>) -> Pin<Box<dyn Future<Output = OperationResult> + Send>>,
    ) -> Self {
        let context = Arc::<OperationContext>::default();
        let future = Mutex::new(Some(create(Arc::clone(&context))));
        Self { future, context, owner: OwnerProcess::current() }
    }

    fn take_future(&self) -> Option<OperationFuture> {
        self.future.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Runs the engine until something else has to happen.
    fn advance(&self) -> PyResult<Step> {
        self.owner.check()?;
        let Some(mut future) = self.take_future() else {
            return Err(errors::state("the operation has ended, or another thread runs it"));
        };
        let waker = Waker::from(Arc::clone(&self.context));
        let mut context = Context::from_waker(&waker);
        loop {
            self.context.signal.clear();
            let former = CURRENT.with(|current| current.replace(Some(Arc::clone(&self.context))));
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
            CURRENT.with(|current| current.replace(former));
            match polled {
                Ok(Poll::Ready(result)) => return Ok(Step::Done(result)),
                Ok(Poll::Pending) => {}
                Err(_) => return Err(errors::state("internal error: the call is denied; please report it")),
            }
            let step = match self.context.requests.take() {
                Some(request) => Step::Ask(request),
                None if self.context.signal.is_woken() => continue,
                None => Step::Wait,
            };
            *self.future.lock().unwrap_or_else(PoisonError::into_inner) = Some(future);
            return Ok(step);
        }
    }
}

#[pymethods]
impl Operation {
    /// Runs the engine. Returns the request for a tool, a store or a hook, or `None` if something has to be waited for, or else the result.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match py.detach(|| self.advance())? {
            Step::Ask(HostRequest::Tool(request)) => Ok(Py::new(py, *request)?.into_any()),
            Step::Ask(HostRequest::Method(request)) => Ok(Py::new(py, *request)?.into_any()),
            Step::Ask(HostRequest::Around(turn)) => Ok(Py::new(py, *turn)?.into_any()),
            Step::Wait => Ok(py.None()),
            Step::Done(result) => result(py),
        }
    }

    /// Reports the result of a tool, and runs the engine on. What is not JSON fails the call. `flags`: those of a `ToolResponse`.
    #[pyo3(signature = (request, output, flags=(false, false, false)))]
    fn succeed(
        &self,
        request: &Bound<'_, ToolRequest>,
        output: &Bound<'_, PyAny>,
        flags: (bool, bool, bool),
    ) -> PyResult<Py<PyAny>> {
        let py = request.py();
        let (dry, interim, single_use) = flags;
        let result = match to_value(output) {
            Ok(output) => Ok(ToolResponse { output, dry, interim, single_use }),
            Err(error) => Err(ToolError::new(format!("the tool's result is not JSON: {}", error.value(py)))
                .with_kind("invalid_result")),
        };
        request.get().report(result);
        self.step(py)
    }

    /// Reports the error of a tool, and runs the engine on.
    #[pyo3(signature = (request, message, kind=None))]
    fn fail(
        &self,
        request: &Bound<'_, ToolRequest>,
        message: String,
        kind: Option<String>,
    ) -> PyResult<Py<PyAny>> {
        request.get().report(Err(ToolError { message, kind }));
        self.step(request.py())
    }

    /// Reports the result of a method, and runs the engine on.
    fn method_succeed(&self, request: &Bound<'_, MethodRequest>, result: Py<PyAny>) -> PyResult<Py<PyAny>> {
        request.get().report(Ok(result));
        self.step(request.py())
    }

    /// Reports the error of a method, and runs the engine on.
    fn method_fail(&self, request: &Bound<'_, MethodRequest>, message: String) -> PyResult<Py<PyAny>> {
        request.get().report(Err(message));
        self.step(request.py())
    }

    /// Runs the layers inside an `around` hook, with other arguments if they are given.
    #[pyo3(signature = (turn, *changed))]
    fn around_next(&self, turn: &Bound<'_, AroundTurn>, changed: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let changed = changed.iter().map(|value| to_value(&value)).collect::<PyResult<Vec<_>>>()?;
        turn.get().report(AroundReply::Next(changed));
        self.step(turn.py())
    }

    /// Reports the result of an `around` hook, and runs the engine on. What is not JSON fails the call.
    fn around_succeed(&self, turn: &Bound<'_, AroundTurn>, output: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = turn.py();
        let output = to_value(output).map_err(|error| {
            ToolError::new(format!("the hook's result is not JSON: {}", error.value(py)))
                .with_kind("invalid_result")
        });
        turn.get().report(AroundReply::Ended(output));
        self.step(py)
    }

    /// Reports the error of an `around` hook, and runs the engine on.
    #[pyo3(signature = (turn, message, kind=None))]
    fn around_fail(
        &self,
        turn: &Bound<'_, AroundTurn>,
        message: String,
        kind: Option<String>,
    ) -> PyResult<Py<PyAny>> {
        turn.get().report(AroundReply::Ended(Err(ToolError { message, kind })));
        self.step(turn.py())
    }

    /// The seconds until the next timer. Returns `None` without a timer.
    fn timeout(&self) -> Option<f64> {
        self.context.deadline().map(|until| until.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Blocks until the engine can run on.
    fn block(&self, py: Python<'_>) -> PyResult<()> {
        while !py.detach(|| self.context.signal.block(self.context.deadline(), SIGNAL_INTERVAL)) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Calls this, from any thread, when the engine can run on. Returns `False`, and does not, if it already can.
    fn notify(&self, callback: Py<PyAny>) -> bool {
        self.context.signal.set_callback(callback)
    }

    /// Gives the operation up. A call whose tool was started counts as started.
    fn close(&self) {
        self.owner.drop_detached(self.take_future());
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.owner.drop_detached(self.take_future());
    }
}
