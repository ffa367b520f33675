//! The exceptions of the package. They are defined in Python (`callgate/errors.py`), and created here.

use callgate::diagnostic::render;
use callgate::{LoadError, json};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::json_conversion::to_python;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// An exception of the class with this name.
fn exception(py: Python<'_>, class: &str, arguments: (String, Py<PyAny>)) -> PyErr {
    let created = || -> PyResult<PyErr> {
        let module = MODULE.get_or_try_init(py, || py.import("callgate.errors").map(Bound::unbind))?;
        let class = module.bind(py).getattr(class)?.cast_into::<PyType>()?;
        Ok(PyErr::from_value(class.call1(arguments)?))
    };
    created().unwrap_or_else(|error| error)
}

fn plain(class: &str, message: String) -> PyErr {
    Python::attach(|py| exception(py, class, (message, py.None())))
}

/// An engine, session or history can't be used in this way.
pub(crate) fn state(message: impl Into<String>) -> PyErr {
    plain("StateError", message.into())
}

/// A state store or its keys can't be used.
pub(crate) fn store(message: impl Into<String>) -> PyErr {
    plain("StoreError", message.into())
}

/// A value is not JSON, or not the JSON that is expected.
pub(crate) fn value(message: impl Into<String>) -> PyErr {
    plain("InvalidValueError", message.into())
}

/// An approval answer is not accepted.
pub(crate) fn answer(message: impl Into<String>) -> PyErr {
    plain("AnswerError", message.into())
}

/// Rules have errors: the rendered text, and each diagnostic as a dictionary.
pub(crate) fn rules(py: Python<'_>, error: &LoadError) -> PyErr {
    let built = error.build_result();
    let diagnostics = render::json(&built.diagnostics, &built.sources)
        .ok()
        .and_then(|text| json::from_str::<json::Value>(&text).ok())
        .unwrap_or_default();
    match to_python(py, &diagnostics) {
        Ok(diagnostics) => exception(py, "RulesError", (error.to_string(), diagnostics.unbind())),
        Err(error) => error,
    }
}
