//! `NativeEngine`: the engine as a class of JavaScript.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use callgate::host::{Clock, StateStore, SystemClock};
use callgate::json::{self, Value, json};
use callgate::reload::{Reloader, RulesWatcher, WatcherOptions};
use callgate::{Engine, ManualClock, SessionState, ToolCall};
use callgate_policy_tests::PolicyTests;
use jiff::Timestamp;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

use crate::approvals::InboxCommand;
use crate::engine_loading::{EngineLoading, load_layer};
use crate::engine_options::{EngineOptions, SessionOptions};
use crate::failure::Failure;
use crate::flat_json::decision_text;
use crate::hooks::JavaScriptHook;
use crate::host::Host;
use crate::json_text::flagged;
use crate::operation::OperationThread;
use crate::session::NativeSession;

/// An engine.
#[napi]
pub struct NativeEngine {
    engine: Engine,
    paths: Vec<PathBuf>,
    store: Arc<dyn StateStore>,
    thread: OperationThread,
    number: u32,
    time: Option<Timestamp>,
    watcher: Mutex<Option<RulesWatcher>>,
    /// The state of a session without a past.
    new_session: SessionState,
}

#[napi]
impl Host {
    /// Starts to load an engine.
    #[napi]
    pub fn load_engine(&self, options: String) -> napi::Result<AsyncTask<EngineLoading>> {
        let options = EngineOptions::parse(&options)?;
        Ok(AsyncTask::new(EngineLoading { options, events: Arc::clone(self.events()) }))
    }
}

impl NativeEngine {
    /// The class of an engine. `number` is that of its events.
    pub fn new(
        engine: Engine,
        paths: Vec<PathBuf>,
        store: Arc<dyn StateStore>,
        thread: OperationThread,
        number: u32,
        time: Option<Timestamp>,
    ) -> Self {
        Self {
            engine,
            paths,
            store,
            thread,
            number,
            time,
            watcher: Mutex::default(),
            new_session: SessionState::default(),
        }
    }

    /// The clock for approvals: that of the engine.
    fn clock(&self) -> Box<dyn Clock> {
        match self.time {
            Some(time) => Box::new(ManualClock::new(time)),
            None => Box::new(SystemClock),
        }
    }
}

#[napi]
impl NativeEngine {
    /// The number of its events.
    #[napi(getter)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The digest of the active rules.
    #[napi(getter)]
    pub fn revision(&self) -> String {
        self.engine.revision()
    }

    /// The kinds of the active policies, each once.
    #[napi]
    pub fn policy_kinds(&self) -> Vec<String> {
        let rules = self.engine.rules();
        let mut kinds: Vec<String> =
            rules.policies().iter().map(|policy| policy.kind.definition().name.to_owned()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Decides a call without executing it, for a session without a past.
    #[napi]
    pub fn decide(&self, call: String) -> napi::Result<String> {
        decision_text(&self.engine, &read_call(&call)?, &self.new_session)
    }

    /// Opens a session.
    #[napi]
    pub fn session(&self, options: String) -> napi::Result<NativeSession> {
        let options = SessionOptions::parse(&options)?;
        let mut session = self.engine.session().with_context(options.context.clone());
        if let Some(name) = &options.name {
            session = session.with_name(name);
        }
        for layer in &options.layers {
            session = session.with_layer(load_layer(layer, &self.engine.rules())?);
        }
        if !options.tools.is_empty() {
            session = session.with_tools(options.tools);
        }
        for hook in options.hooks {
            session = session.with_middleware(JavaScriptHook::new(hook));
        }
        if options.record_calls {
            session = session.with_call_recording();
        }
        if options.has_unknown_past {
            session = session.with_unknown_past();
        }
        let shared =
            SessionEngine { engine: self.engine.clone(), context: options.context, thread: self.thread };
        Ok(NativeSession::new(session, shared, options.requester))
    }

    /// Reads or answers approval requests.
    #[napi]
    pub fn approvals(&self, host: &Host, command: String) -> napi::Result<String> {
        let command = InboxCommand::parse(&command)?;
        let inbox = callgate::approval::Inbox::new(
            Arc::clone(&self.store),
            self.engine.keys().clone(),
            BoxedClock(self.clock()),
        );
        host.start(self.thread, move |_| Box::pin(async move { command.run(&inbox).await }))
    }

    /// Watches the rules files. Does nothing if they are watched already.
    #[napi]
    pub fn watch(&self) -> napi::Result<()> {
        if self.paths.is_empty() {
            return Err(Failure::invalid_argument(
                "rules that were given as a string have no files to watch",
            )
            .into());
        }
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_none() {
            let reloader = Reloader::new(self.engine.clone(), self.paths.clone()).with_tests(PolicyTests);
            let started = RulesWatcher::start(reloader, WatcherOptions::default());
            *watcher = Some(started.map_err(|error| Failure::new("internal_error", error.to_string()))?);
        }
        Ok(())
    }

    /// Stops watching.
    #[napi]
    pub fn unwatch(&self) {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop_elsewhere(watcher);
    }

    /// The active rules, and newer ones that were rejected or are pending.
    #[napi]
    pub fn status(&self) -> String {
        let status = self.engine.status();
        let rejected = status.last_rejected.map(|rejected| {
            json!({
                "rejectedAt": rejected.rejected_at.to_string(),
                "revision": rejected.revision,
                "summary": rejected.reason.summary(),
                "report": rejected.reason.to_string(),
            })
        });
        let pending = status.pending.map(|pending| {
            let relaxations: Vec<Value> = pending
                .relaxations
                .iter()
                .map(|one| json!({ "policy": one.policy.clone(), "change": one.change.as_str(), "consequence": one.consequence }))
                .collect();
            json!({
                "revision": pending.revision,
                "pendingSince": pending.pending_since.to_string(),
                "relaxations": relaxations,
            })
        });
        let status = json!({
            "revision": status.revision,
            "loadedAt": status.loaded_at.to_string(),
            "lastRejected": rejected,
            "pending": pending,
        });
        flagged(&status.to_string())
    }

    /// Lets pending rules take effect.
    #[napi]
    pub fn confirm(&self, revision: String) -> napi::Result<()> {
        self.engine.confirm(&revision).map_err(|error| Failure::new("not_pending", error.to_string()).into())
    }
}

/// What the sessions of an engine need of it.
#[derive(Clone)]
pub struct SessionEngine {
    pub engine: Engine,
    /// The context of calls that have none.
    pub context: Value,
    /// Where operations run, because of the store.
    pub thread: OperationThread,
}

/// A clock behind a pointer.
struct BoxedClock(Box<dyn Clock>);

impl Clock for BoxedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// The end of a watcher waits for a reload in progress, which JavaScript's thread must not.
fn drop_elsewhere(watcher: Option<RulesWatcher>) {
    if let Some(watcher) = watcher {
        std::thread::spawn(move || drop(watcher));
    }
}

impl Drop for NativeEngine {
    fn drop(&mut self) {
        drop_elsewhere(self.watcher.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Reads a call.
pub fn read_call(text: &str) -> Result<ToolCall, Failure> {
    json::from_str(text).map_err(|error| Failure::new("invalid_call", error.to_string()))
}
