//! Observers of Python: functions that receive each event of the engine as a dict, in the form of decision logs.

use callgate::json::{self, Value};
use callgate::{EngineEvent, Keys, Observer};
use callgate_log::{Content, EventFormat};
use pyo3::prelude::*;

use crate::json_conversion::to_python;

/// A function that receives events.
pub(crate) struct PythonObserver {
    function: Py<PyAny>,
    format: EventFormat,
}

impl PythonObserver {
    pub(crate) fn new(function: Py<PyAny>, keys: Keys) -> Self {
        Self { function, format: EventFormat::new(Content::Redacted, keys) }
    }
}

impl Observer for PythonObserver {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let Ok(document) = json::from_str::<Value>(&self.format.line(event)) else { return };
        Python::try_attach(|py| {
            let function = self.function.bind(py);
            if let Err(error) = to_python(py, &document).and_then(|event| function.call1((event,))) {
                error.write_unraisable(py, Some(function));
            }
        });
    }
}
