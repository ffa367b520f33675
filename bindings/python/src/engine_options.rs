//! The options of an engine, as Python gives them.

use callgate::json::Value;
use callgate::{CompiledPolicies, EngineBuilder, Keys, ToolDescriptor};
use jiff::Timestamp;
use pyo3::prelude::*;
use std::sync::Arc;

use crate::clock::OperationClock;
use crate::errors;
use crate::hooks::PythonHook;
use crate::json_conversion::to_value;
use crate::observers::PythonObserver;
use crate::state_store::{OpenStateStore, host_keys};

/// The options of `Engine.load` and `Engine.from_text`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct EngineOptions<'py> {
    state: Option<String>,
    keys: Option<String>,
    tools: Option<Bound<'py, PyAny>>,
    hooks: Vec<Bound<'py, PyAny>>,
    observers: Vec<Py<PyAny>>,
    seed: Option<u64>,
    fixed_time: Option<String>,
}

impl EngineOptions<'_> {
    /// A builder with these options, and the store if there is one.
    pub(crate) fn builder(
        self,
        py: Python<'_>,
        policies: Arc<CompiledPolicies>,
    ) -> PyResult<(EngineBuilder, Option<OpenStateStore>)> {
        let keys = self.keys.map(|text| Keys::parse(&text)).transpose();
        let keys = keys.map_err(|error| errors::store(format!("`keys` can't be used: {error}")))?;
        let opened = match &self.state {
            Some(url) => Some(OpenStateStore::open(py, url, keys.clone())?),
            None => None,
        };
        let keys = match &opened {
            Some(opened) => opened.keys.clone(),
            None => host_keys(keys)?,
        };
        let fixed = self.fixed_time.map(|text| text.parse::<Timestamp>()).transpose();
        let fixed = fixed.map_err(|error| errors::value(format!("`fixed_time` is not RFC 3339: {error}")))?;
        let mut builder =
            callgate::Engine::builder(policies).clock(OperationClock::new(fixed)).keys(keys.clone());
        if let Some(opened) = &opened {
            builder = builder.store(Arc::clone(&opened.store));
        }
        if let Some(seed) = self.seed {
            builder = builder.seed(seed);
        }
        if let Some(tools) = self.tools {
            builder = builder.tools(read_tools(&to_value(&tools)?)?);
        }
        for hook in &self.hooks {
            builder = builder.middleware(PythonHook::new(hook)?);
        }
        for observer in self.observers {
            builder = builder.observer(PythonObserver::new(observer, keys.clone()));
        }
        Ok((builder, opened))
    }
}

/// Reads the descriptors of tools: a list, or the result of an MCP `tools/list`.
pub(crate) fn read_tools(tools: &Value) -> PyResult<Vec<ToolDescriptor>> {
    callgate::parse_tools(&tools.to_string()).map_err(|error| errors::value(format!("`tools`: {error}")))
}
