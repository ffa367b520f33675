//! Forked processes: an engine is used only by the process that created it. A child has copies of locks that threads of its parent may
//! hold, and copies of limits that both would count.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::{PyResult, pyfunction};

use crate::errors;

/// How often this process and its ancestors were forked.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Notes that this process is a forked child; `os.register_at_fork` calls it.
#[pyfunction]
pub(crate) fn mark_forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process that created an engine.
#[derive(Clone, Copy)]
pub(crate) struct OwnerProcess(u64);

impl OwnerProcess {
    pub(crate) fn current() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is this one.
    pub(crate) fn is_current(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// Fails in a forked child of the process.
    pub(crate) fn check(self) -> PyResult<()> {
        if self.is_current() {
            return Ok(());
        }
        Err(errors::state(
            "this engine belongs to the parent process; create an engine in each process after the fork",
        ))
    }
}
