//! Loads the rules and opens the state of an engine on a thread of the pool.

use std::path::PathBuf;
use std::sync::Arc;

use callgate::diagnostic::render;
use callgate::host::StateStore;
use callgate::json::{self, Value};
use callgate::state::MemoryStore;
use callgate::{Clock, CompiledPolicies, Engine, Keys, LoadError};
use callgate_log::EventFormat;
use callgate_state::HostState;
use jiff::Timestamp;
use napi::{Env, Task};

use crate::engine::NativeEngine;
use crate::engine_options::EngineOptions;
use crate::event_queue::{EventForwarder, EventQueue};
use crate::failure::Failure;
use crate::hooks::JavaScriptHook;
use crate::operation::OperationThread;
use crate::state_store::{OpenedState, open_state};

/// A clock that stands still.
struct FixedClock(Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// Loads an engine.
pub struct EngineLoading {
    pub options: EngineOptions,
    pub events: Arc<EventQueue>,
}

impl EngineLoading {
    fn load(&mut self) -> Result<NativeEngine, Failure> {
        let options = &mut self.options;
        let paths: Vec<PathBuf> = options.paths.iter().flatten().map(PathBuf::from).collect();
        let policies = match &options.text {
            Some(text) => callgate::load_text(text),
            None => callgate::load(&paths),
        };
        let policies = policies.map_err(|error| rules_failure(&error))?;
        let keys = options.keys.take().map(|keys| Keys::parse(&keys)).transpose();
        let keys = keys.map_err(|error| Failure::new("invalid_keys", error.to_string()))?;
        let EngineStore { store, keys, thread } = open_store(options, keys)?;
        let mut builder = Engine::builder(Arc::clone(&policies)).tools(std::mem::take(&mut options.tools));
        builder = builder.store(Arc::clone(&store));
        let event_keys = match &keys {
            Some(keys) => keys.clone(),
            None => Keys::random().map_err(|error| Failure::new("internal_error", error.to_string()))?,
        };
        builder = builder.keys(event_keys.clone());
        if let Some(seed) = options.seed {
            builder = builder.seed(seed);
        }
        let mut time = None;
        if let Some(text) = &options.time {
            let fixed: Timestamp = text.parse().map_err(Failure::invalid_argument)?;
            builder = builder.clock(FixedClock(fixed));
            time = Some(fixed);
        }
        for hook in options.hooks.drain(..) {
            builder = builder.middleware(JavaScriptHook::new(hook));
        }
        let number = self.events.next_engine();
        if let Some(content) = options.events {
            let format = EventFormat::new(content.into(), event_keys);
            builder = builder.observer(EventForwarder::new(Arc::clone(&self.events), number, format));
        }
        Ok(NativeEngine::new(builder.build(), paths, store, thread, number, time))
    }
}

/// The store of an engine with its keys.
struct EngineStore {
    store: Arc<dyn StateStore>,
    keys: Option<Keys>,
    /// Where operations with this store run.
    thread: OperationThread,
}

fn open_store(options: &EngineOptions, keys: Option<Keys>) -> Result<EngineStore, Failure> {
    let url = options.state.as_deref().or(options.stores.is_any().then_some("memory:"));
    let OpenedState { store, keys, is_shared } = match url {
        Some(url) => open_state(url, HostState { keys, stores: options.stores.stores() })?,
        None => OpenedState { store: Arc::new(MemoryStore::default()), keys, is_shared: false },
    };
    let thread = if is_shared { OperationThread::Runtime } else { OperationThread::JavaScript };
    Ok(EngineStore { store, keys, thread })
}

/// The diagnostics of rules that can't be loaded.
pub fn rules_failure(error: &LoadError) -> Failure {
    let built = error.build_result();
    let diagnostics = render::json(&built.diagnostics, &built.sources).ok();
    let diagnostics = diagnostics.and_then(|text| json::parse(&text).ok()).unwrap_or(Value::Null);
    Failure::new("invalid_rules", error.to_string()).with_member("diagnostics", diagnostics)
}

/// Compiles rules for a layer below those of an engine.
pub fn load_layer(text: &str, bundle: &CompiledPolicies) -> Result<Arc<CompiledPolicies>, Failure> {
    callgate::load_layer(text, bundle).map_err(|error| rules_failure(&error))
}

impl Task for EngineLoading {
    type Output = NativeEngine;
    type JsValue = NativeEngine;

    fn compute(&mut self) -> napi::Result<NativeEngine> {
        Ok(self.load()?)
    }

    fn resolve(&mut self, _: Env, engine: NativeEngine) -> napi::Result<NativeEngine> {
        Ok(engine)
    }
}
