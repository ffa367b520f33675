//! Values of the engine that are dropped without the GIL: dropping one may wait for a thread, and that thread for the GIL.

use std::ops::Deref;

use pyo3::Python;

/// A value that is dropped without the GIL.
pub(crate) struct Detached<T: Send>(Option<T>);

impl<T: Send> Detached<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send> Deref for Detached<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        drop_detached(self.0.take());
    }
}

/// Drops a value without the GIL.
pub(crate) fn drop_detached<T: Send>(value: T) {
    let mut value = Some(value);
    // At the end of the interpreter nobody waits for the GIL any more.
    Python::try_attach(|py| {
        let value = value.take();
        py.detach(move || drop(value));
    });
}
