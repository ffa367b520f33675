//! Wakes whoever drives an operation: a thread that blocks, or an event loop by its callback.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::{Py, PyAny, Python};

/// What to do on a wake.
#[derive(Default)]
struct Listener {
    is_woken: bool,
    callback: Option<Py<PyAny>>,
}

/// A signal that lasts until it is cleared.
#[derive(Default)]
pub(crate) struct WakeSignal {
    listener: Mutex<Listener>,
    woken: Condvar,
}

impl WakeSignal {
    fn listener(&self) -> MutexGuard<'_, Listener> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clear(&self) {
        self.listener().is_woken = false;
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.listener().is_woken
    }

    /// Wakes a blocked thread, and calls the callback once.
    pub(crate) fn wake(&self) {
        let callback = {
            let mut listener = self.listener();
            listener.is_woken = true;
            listener.callback.take()
        };
        self.woken.notify_all();
        if let Some(callback) = callback {
            Python::try_attach(|py| {
                if let Err(error) = callback.call0(py) {
                    // A loop that is closed waits for nothing.
                    error.write_unraisable(py, None);
                }
                drop(callback);
            });
        }
    }

    /// Blocks until the signal or the deadline, at most for `longest`. Returns whether it is over.
    pub(crate) fn block(&self, deadline: Option<Instant>, longest: Duration) -> bool {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = left.map_or(longest, |left| left.min(longest));
        let (listener, _) = self
            .woken
            .wait_timeout_while(self.listener(), wait, |listener| !listener.is_woken)
            .unwrap_or_else(PoisonError::into_inner);
        listener.is_woken || deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Calls this at the next wake. Returns `false`, and does not, if the signal is already there.
    pub(crate) fn set_callback(&self, callback: Py<PyAny>) -> bool {
        let mut listener = self.listener();
        if listener.is_woken {
            return false;
        }
        let former = listener.callback.replace(callback);
        drop(listener);
        drop(former);
        true
    }
}
