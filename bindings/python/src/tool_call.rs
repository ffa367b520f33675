//! `ToolCall`: one call of a tool, as the agent requests it.

use callgate::ToolCall as EngineCall;
use callgate::json::{JsonType, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::borrow::Cow;

use crate::errors;
use crate::json_conversion::{to_python, to_value};

/// One tool call.
#[pyclass(frozen, eq, module = "callgate._callgate")]
#[derive(PartialEq)]
pub(crate) struct ToolCall(EngineCall);

impl ToolCall {
    pub(crate) fn new(call: EngineCall) -> Self {
        Self(call)
    }
}

#[pymethods]
impl ToolCall {
    #[new]
    #[pyo3(signature = (tool, input, *, id=String::new(), server=None, context=None))]
    fn create(
        tool: String,
        input: &Bound<'_, PyAny>,
        id: String,
        server: Option<String>,
        context: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut call = EngineCall::new(id, tool, to_value(input)?);
        call.server = server;
        call.context = context.map(read_context).transpose()?.unwrap_or_default();
        Ok(Self(call))
    }

    /// A request by another MCP method than `tools/call`, such as `resources/read`.
    #[staticmethod]
    #[pyo3(signature = (method, params, *, id=String::new(), server=None, context=None))]
    fn for_method(
        method: &str,
        params: &Bound<'_, PyAny>,
        id: String,
        server: Option<String>,
        context: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut call = EngineCall::for_method(id, method, to_value(params)?);
        call.server = server;
        call.context = context.map(read_context).transpose()?.unwrap_or_default();
        Ok(Self(call))
    }

    /// The id.
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    /// The name of the tool.
    #[getter]
    fn tool(&self) -> &str {
        &self.0.tool
    }

    /// The MCP server that has the tool.
    #[getter]
    fn server(&self) -> Option<&str> {
        self.0.server.as_deref()
    }

    /// The arguments, a new copy each time.
    #[getter]
    fn input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.input)
    }

    /// What the host vouches for.
    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.context)
    }

    fn __repr__(&self) -> String {
        format!("ToolCall(tool={:?}, input={}, id={:?})", self.0.tool, self.0.input, self.0.id)
    }
}

/// Reads the context of a call or session.
pub(crate) fn read_context(context: &Bound<'_, PyAny>) -> PyResult<Value> {
    let context = to_value(context)?;
    match context {
        Value::Object(_) | Value::Null => Ok(context),
        other => Err(errors::value(format!(
            "the context must be a dict, not {}",
            JsonType::from_value(&other).with_article()
        ))),
    }
}

/// Reads a call: a `ToolCall`, or a dict with `tool`, `input` and optionally `id`, `server` and `context`.
pub(crate) fn read_call<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, EngineCall>> {
    if let Ok(call) = object.cast::<ToolCall>() {
        return Ok(Cow::Borrowed(&call.get().0));
    }
    let Ok(members) = object.cast::<PyDict>() else {
        return Err(errors::value(format!(
            "a call must be a `ToolCall` or a dict, not `{}`",
            object.get_type().qualname()?
        )));
    };
    let (mut tool, mut input) = (None, None);
    let mut call = EngineCall::new("", "", Value::Null);
    for (key, value) in members.iter() {
        match key.cast::<PyString>().ok().and_then(|key| key.to_str().ok()) {
            Some("tool") => tool = Some(read_text("tool", &value)?),
            Some("input") => input = Some(to_value(&value)?),
            Some("id") => call.id = read_text("id", &value)?,
            Some("server") if value.is_none() => {}
            Some("server") => call.server = Some(read_text("server", &value)?),
            Some("context") => call.context = read_context(&value)?,
            _ => {
                return Err(errors::value(format!(
                    "a call has no `{}`; it has `tool`, `input`, `id`, `server` and `context`",
                    key.str()?
                )));
            }
        }
    }
    let (Some(tool), Some(input)) = (tool, input) else {
        return Err(errors::value("a call needs `tool` and `input`"));
    };
    (call.tool, call.input) = (tool, input);
    Ok(Cow::Owned(call))
}

fn read_text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = value.cast::<PyString>().ok().and_then(|text| text.to_str().ok());
    text.map(str::to_owned).ok_or_else(|| errors::value(format!("`{name}` of a call must be a string")))
}
