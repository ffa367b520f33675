//! Operations: a future that JavaScript's thread advances, or a thread of the runtime.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use callgate::BoxFuture;
use callgate::host::catch_panic;
use tokio::task::AbortHandle;

use crate::exchange::{Exchange, OperationResult, with_exchange};
use crate::failure::Failure;
use crate::runtime::runtime;

/// Where an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationThread {
    /// JavaScript's: for what takes microseconds between two requests.
    JavaScript,
    /// One of the runtime's.
    Runtime,
}

/// The longest arguments that are evaluated on JavaScript's thread, in bytes.
const LONGEST_INLINE: usize = 16 << 10;

impl OperationThread {
    /// The thread for arguments of this length.
    pub fn for_text(text: &str) -> Self {
        if text.len() > LONGEST_INLINE { Self::Runtime } else { Self::JavaScript }
    }

    /// The runtime's if either needs it.
    pub fn or(self, other: Self) -> Self {
        if self == Self::Runtime { self } else { other }
    }
}

/// One operation of a JavaScript environment.
pub struct Operation {
    exchange: Arc<Exchange>,
    work: Mutex<Work>,
}

enum Work {
    /// Advanced by JavaScript's thread. `None` after its end.
    Inline(Option<BoxFuture<'static, OperationResult>>),
    /// Advanced by the runtime.
    Spawned(AbortHandle),
}

impl Operation {
    /// Starts an operation. It does nothing before the first [`step`](Self::step).
    pub fn start(
        exchange: Arc<Exchange>,
        thread: OperationThread,
        future: BoxFuture<'static, OperationResult>,
    ) -> Result<Self, Failure> {
        let panicked = || Failure::new("internal_error", "Callgate failed to evaluate the call");
        let future = async move { catch_panic(future).await.unwrap_or_else(|_| Err(panicked())) };
        let work = match thread {
            OperationThread::JavaScript => Work::Inline(Some(Box::pin(future))),
            OperationThread::Runtime => {
                let mut future: BoxFuture<'static, OperationResult> = Box::pin(future);
                let exchange = Arc::clone(&exchange);
                let task = runtime()?.spawn(async move {
                    let result =
                        poll_fn(|context| with_exchange(&exchange, || future.as_mut().poll(context))).await;
                    exchange.finish(result);
                });
                Work::Spawned(task.abort_handle())
            }
        };
        Ok(Self { exchange, work: Mutex::new(work) })
    }

    /// The messages to and from JavaScript.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Advances the operation as far as it gets, and returns what JavaScript has to know; see [`Exchange::take_step`].
    pub fn step(&self) -> (String, bool) {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Work::Inline(future) = &mut *work {
            self.advance(future);
        }
        self.exchange.take_step()
    }

    fn advance(&self, slot: &mut Option<BoxFuture<'static, OperationResult>>) {
        let Some(future) = slot else { return };
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(failure) => {
                *slot = None;
                return self.exchange.finish(Err(failure));
            }
        };
        let _entered = runtime.enter();
        let waker = Waker::from(Arc::clone(&self.exchange));
        let mut context = Context::from_waker(&waker);
        loop {
            self.exchange.begin_advance();
            match with_exchange(&self.exchange, || future.as_mut().poll(&mut context)) {
                Poll::Ready(result) => {
                    *slot = None;
                    return self.exchange.finish(result);
                }
                Poll::Pending if self.exchange.advances_again() => {}
                Poll::Pending => return,
            }
        }
    }
}

/// Gives the operation up, as when its signal is aborted.
impl Drop for Operation {
    fn drop(&mut self) {
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        match work {
            Work::Spawned(task) => task.abort(),
            Work::Inline(future) => {
                // Futures of timers and slots end within their runtime.
                let _entered = runtime().ok().map(|runtime| runtime.enter());
                *future = None;
            }
        }
    }
}
