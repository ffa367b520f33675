//! Values of the engine that are dropped without the GIL: dropping one may wait for a thread, and that thread for the GIL. In a forked child
//! they are not dropped at all, because their threads are those of the parent.

use std::mem::forget;
use std::ops::Deref;

use pyo3::{PyResult, Python};

use crate::fork_guard::OwnerProcess;

/// A value that belongs to the process that created it, and is dropped without the GIL.
pub(crate) struct Detached<T: Send> {
    value: Option<T>,
    owner: OwnerProcess,
}

impl<T: Send> Detached<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), owner: OwnerProcess::current() }
    }

    /// Fails in a forked child of the process that created the value.
    pub(crate) fn check_owner(&self) -> PyResult<()> {
        self.owner.check()
    }

    /// Takes the value, and drops it.
    pub(crate) fn close(&mut self) {
        self.owner.drop_detached(self.value.take());
    }
}

impl<T: Send> Deref for Detached<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.value
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl OwnerProcess {
    /// Drops a value of this process without the GIL.
    pub(crate) fn drop_detached<T: Send>(self, value: T) {
        if !self.is_current() {
            forget(value);
            return;
        }
        let mut value = Some(value);
        Python::try_attach(|py| {
            let value = value.take();
            py.detach(move || drop(value));
        });
        // At the end of the interpreter nobody waits for the GIL any more, and the rest is dropped here.
    }
}
