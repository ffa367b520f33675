//! The options of an engine, as Python gives them.

use callgate::host::{CacheStore, RecordStore};
use callgate::json::Value;
use callgate::{CompiledPolicies, EngineBuilder, Keys, ToolDescriptor};
use callgate_state::{HostState, HostStores, LimitValues, OpenStateStore};
use jiff::Timestamp;
use pyo3::prelude::*;
use std::sync::Arc;

use crate::clock::OperationClock;
use crate::errors;
use crate::hooks::{HookForms, PythonHook};
use crate::host_stores::{PythonCacheStore, PythonLimitStore, PythonRecordStore};
use crate::json_conversion::to_value;
use crate::observers::PythonObserver;
use crate::state_store::{host_keys, open_state};

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
    record_store: Option<Py<PyAny>>,
    limit_store: Option<Py<PyAny>>,
    cache_store: Option<Py<PyAny>>,
}

impl EngineOptions<'_> {
    /// A builder with these options, the store if there is one, and in which forms the hooks can run.
    pub(crate) fn builder(
        self,
        py: Python<'_>,
        policies: Arc<CompiledPolicies>,
    ) -> PyResult<(EngineBuilder, Option<OpenStateStore>, HookForms)> {
        let keys = self.keys.map(|text| Keys::parse(&text)).transpose();
        let keys = keys.map_err(|error| errors::store(format!("`keys` can't be used: {error}")))?;
        let stores = HostStores {
            records: self
                .record_store
                .map(|store| Arc::new(PythonRecordStore(store)) as Arc<dyn RecordStore>),
            limits: self.limit_store.map(|store| Arc::new(PythonLimitStore(store)) as Arc<dyn LimitValues>),
            cache: self.cache_store.map(|store| Arc::new(PythonCacheStore(store)) as Arc<dyn CacheStore>),
        };
        let has_stores = stores.records.is_some() || stores.limits.is_some() || stores.cache.is_some();
        let url = self.state.as_deref().or(has_stores.then_some("memory:"));
        let host = HostState { keys: keys.clone(), stores };
        let opened = url.map(|url| open_state(py, url, host)).transpose()?;
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
        let mut forms = HookForms::default();
        for hook in &self.hooks {
            builder = builder.middleware(PythonHook::new(hook, &mut forms)?);
        }
        for observer in self.observers {
            builder = builder.observer(PythonObserver::new(observer, keys.clone()));
        }
        Ok((builder, opened, forms))
    }
}

/// Reads the descriptors of tools: a list, or the result of an MCP `tools/list`.
pub(crate) fn read_tools(tools: &Value) -> PyResult<Vec<ToolDescriptor>> {
    callgate::parse_tools(&tools.to_string()).map_err(|error| errors::value(format!("`tools`: {error}")))
}
