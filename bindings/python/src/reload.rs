//! `Watcher`: reloads the rules of an engine when their files change.

use std::time::Duration;

use callgate::reload::{ReloadEvent, Reloader, RulesWatcher, WatcherOptions};
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::detached::Detached;
use crate::engine::Engine;
use crate::errors;

/// A running watcher. It stops when it is closed or dropped.
#[pyclass(frozen, module = "callgate._callgate")]
pub(crate) struct Watcher(Mutex<Detached<RulesWatcher>>);

#[pymethods]
impl Watcher {
    /// Starts watching. `on_change` is called with the kind of each change and its message.
    #[new]
    fn create(
        py: Python<'_>,
        engine: &Bound<'_, Engine>,
        on_change: Option<Py<PyAny>>,
        debounce: f64,
    ) -> PyResult<Self> {
        let parts = engine.get().parts()?;
        if parts.paths.is_empty() {
            return Err(errors::state("an engine with rules from a string has no files to watch"));
        }
        let debounce = Duration::try_from_secs_f64(debounce)
            .map_err(|error| errors::value(format!("`debounce`: {error}")))?;
        if let Some(on_change) = on_change {
            parts.engine.on_change(move |change| notify(&on_change, change));
        }
        let reloader = Reloader::new(parts.engine.clone(), parts.paths.clone());
        let options = WatcherOptions { debounce, ..WatcherOptions::default() };
        let watcher = py
            .detach(|| RulesWatcher::start(reloader, options))
            .map_err(|error| errors::state(format!("the files can't be watched: {error}")))?;
        Ok(Self(Mutex::new(Detached::new(watcher))))
    }

    /// Stops watching. Nothing changes afterwards.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).close();
    }
}

fn notify(on_change: &Py<PyAny>, change: &ReloadEvent) {
    let (kind, message) = match change {
        ReloadEvent::Applied { to, .. } => ("applied", to.clone()),
        ReloadEvent::Rejected(rejected) => ("rejected", rejected.reason.to_string()),
        ReloadEvent::Pending(pending) => ("pending", pending.revision.clone()),
        ReloadEvent::Reverted => ("reverted", String::new()),
        other => ("other", format!("{other:?}")),
    };
    Python::try_attach(|py| {
        if let Err(error) = on_change.call1(py, (kind, message)) {
            error.write_unraisable(py, None);
        }
    });
}
