//! Requests of an operation to its driver in Python: to run a tool, or a method of a store or a hook. A request waits until its result is
//! reported.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::around_turns::AroundTurn;
use crate::method_requests::MethodRequest;
use crate::operation::OperationContext;
use crate::tool_requests::ToolRequest;

/// What the driver is asked for.
pub(crate) enum HostRequest {
    Tool(Box<ToolRequest>),
    Method(Box<MethodRequest>),
    Around(Box<AroundTurn>),
}

impl HostRequest {
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Tool(request) => request.is_abandoned(),
            Self::Method(request) => request.is_abandoned(),
            Self::Around(turn) => turn.is_abandoned(),
        }
    }
}

/// The requests of an operation that Python has not seen yet.
#[derive(Default)]
pub(crate) struct RequestQueue(Mutex<VecDeque<HostRequest>>);

impl RequestQueue {
    fn requests(&self) -> MutexGuard<'_, VecDeque<HostRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next request that is still waited for.
    pub(crate) fn take(&self) -> Option<HostRequest> {
        let mut requests = self.requests();
        while let Some(request) = requests.pop_front() {
            if !request.is_abandoned() {
                return Some(request);
            }
        }
        None
    }
}

/// How far a request is.
enum Progress<T> {
    Running(Option<Waker>),
    Ended(T),
    Taken,
    /// The engine does not wait for it any more, for example after a timeout.
    Abandoned,
}

/// The result of a request, shared by the engine and Python.
pub(crate) struct PendingResult<T>(Arc<Mutex<Progress<T>>>);

impl<T> Clone for PendingResult<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PendingResult<T> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Progress::Running(None))))
    }

    fn progress(&self) -> MutexGuard<'_, Progress<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(*self.progress(), Progress::Abandoned)
    }

    /// Reports the result. It is ignored if nobody waits for it.
    pub(crate) fn report(&self, result: T) {
        let mut progress = self.progress();
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

/// Files a request with the operation, and waits for its result. Returns `None` if the result was lost.
pub(crate) async fn request<T>(
    operation: &OperationContext,
    create: impl FnOnce(PendingResult<T>) -> HostRequest,
) -> Option<T> {
    let waiting = WaitingRequest(PendingResult::new());
    operation.requests().requests().push_back(create(waiting.0.clone()));
    poll_fn(|context| {
        let mut progress = waiting.0.progress();
        match std::mem::replace(&mut *progress, Progress::Taken) {
            Progress::Ended(result) => Poll::Ready(Some(result)),
            Progress::Running(_) => {
                *progress = Progress::Running(Some(context.waker().clone()));
                Poll::Pending
            }
            Progress::Taken | Progress::Abandoned => Poll::Ready(None),
        }
    })
    .await
}

/// Marks the request as abandoned when it is dropped before its end.
struct WaitingRequest<T>(PendingResult<T>);

impl<T> Drop for WaitingRequest<T> {
    fn drop(&mut self) {
        let mut progress = self.0.progress();
        if !matches!(*progress, Progress::Taken) {
            *progress = Progress::Abandoned;
        }
    }
}
