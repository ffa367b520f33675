//! The embedding API: loads rules, decides calls, opens sessions, replaces the active rules.

mod candidate;
mod decisions;
mod reload_status;

pub use candidate::{Candidate, CandidateOptions, CandidateSummary, OnFullQueue};
pub(crate) use reload_status::ReloadDecision;
pub use reload_status::{
    ConfirmError, PendingReload, RejectedReload, RejectionReason, ReloadEvent, ReloadStatus,
};

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::execution::{AcceptsAnswer, EngineServices, HostServices};
use crate::host::{
    CacheStore, Clock, CombinedStore, EngineEventKind, LimitStore, Observer, RecordStore, RulesEvent,
    StateStore, SystemClock,
};

use crate::kernel::EventListener;
use crate::lifecycle::Middleware;
use crate::message::ResponsePart;
use crate::policy::{self, CompiledPolicies, LoadedBundle};
use crate::seal::Keys;
use crate::session::{Session, Shared};
use crate::state::MemoryStore;
use crate::tools::{ToolCatalog, ToolDescriptor};
use reload_status::ReloadHistory;

/// The active rules with everything that evaluates calls against them. Cheap to clone; clones share all state.
///
/// ```
/// use callgate::{Effect, Engine, SessionState, ToolCall};
/// use callgate::json::json;
///
/// let engine = Engine::from_text(
///     "policies:
///        - id: no-large-refunds
///          match: { tool: refund, where: [ { path: $.input.amount, gt: 100 } ] }
///          deny: { message: 'At most 100, not {{ input.amount }}' }",
/// )?;
/// let call = ToolCall::new("c1", "refund", json!({ "amount": 250 }));
/// let decision = engine.decide(&call, &SessionState::default());
/// assert_eq!(decision.effect(), Effect::Deny);
/// assert_eq!(decision.reason().message, "At most 100, not 250");
/// # Ok::<(), callgate::LoadError>(())
/// ```
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    reload_history: Arc<ReloadHistory>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

/// Rules that can't be loaded, with all their diagnostics.
pub struct LoadError(Box<LoadedBundle>);

impl LoadError {
    /// The diagnostics, and the source files that they refer to.
    pub fn build_result(&self) -> &LoadedBundle {
        &self.0
    }
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::diagnostic::render::text(&self.0.diagnostics, &self.0.sources, false))
    }
}

/// Same as `Display`: a `main` that returns the error prints the diagnostics, and not the document trees.
impl std::fmt::Debug for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for LoadError {}

/// Loads and compiles the rules files at and below the paths, for [`Engine`]s and for the lower layers of sessions
/// ([`Session::with_layer`]).
pub fn load(paths: &[PathBuf]) -> Result<Arc<CompiledPolicies>, LoadError> {
    into_policies(policy::build(paths))
}

/// Compiles one rules file given as a string.
pub fn load_text(text: &str) -> Result<Arc<CompiledPolicies>, LoadError> {
    into_policies(policy::build_texts([("rules.yaml", text)]))
}

/// Compiles one rules file given as a string, for a lower layer of sessions with this bundle ([`Session::with_layer`]). It can use the
/// groups, constants, functions and named values of the bundle, and add names of its own.
pub fn load_layer(text: &str, bundle: &CompiledPolicies) -> Result<Arc<CompiledPolicies>, LoadError> {
    into_policies(policy::build_layer([("rules.yaml", text)], bundle))
}

fn into_policies(mut built: LoadedBundle) -> Result<Arc<CompiledPolicies>, LoadError> {
    built.policies.take().map(Arc::new).ok_or_else(|| LoadError(Box::new(built)))
}

impl Engine {
    /// Creates an engine with these rules, no tool descriptors and the system clock.
    pub fn new(policies: Arc<CompiledPolicies>) -> Self {
        Self::builder(policies).build()
    }

    /// Creates an engine with the rules files at and below these paths.
    pub fn from_paths(paths: &[PathBuf]) -> Result<Self, LoadError> {
        load(paths).map(Self::new)
    }

    /// Creates an engine with one rules file given as a string.
    pub fn from_text(text: &str) -> Result<Self, LoadError> {
        load_text(text).map(Self::new)
    }

    /// Starts building an engine with these rules.
    pub fn builder(policies: Arc<CompiledPolicies>) -> EngineBuilder {
        EngineBuilder {
            chains: policies,
            tools: Arc::default(),
            clock: Arc::new(SystemClock),
            observers: Vec::new(),
            store: CombinedStore::new(Arc::new(MemoryStore::default())),
            seed: None,
            keys: None,
            answer_validator: None,
            hooks: Vec::new(),
            listener: None,
            candidate: None,
        }
    }

    /// Opens a session, which is one agent run.
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.shared))
    }

    /// The keys that seal approval requests: those of [`EngineBuilder::keys`], or a random one that only this engine has.
    pub fn keys(&self) -> &Keys {
        &self.shared.services.keys
    }

    /// The active rules, for use as a lower layer of another engine's sessions.
    pub fn rules(&self) -> Arc<CompiledPolicies> {
        self.shared.bundle.load_full()
    }

    /// Notifies observers of what happened outside of calls: a recorded answer, or a message about an approval request.
    pub fn report(&self, event: EngineEventKind<'_>) {
        self.shared.services.observers.notify(&self.revision(), event);
    }

    /// Notifies observers of a change of the rules.
    fn notify_observers(&self, revision: &str, change: RulesEvent<'_>) {
        self.shared.services.observers.notify(revision, EngineEventKind::Rules(change));
    }

    /// The digest of the active rules.
    pub fn revision(&self) -> String {
        self.shared.bundle.load().revision().to_owned()
    }
}

/// Builds an [`Engine`].
pub struct EngineBuilder {
    chains: Arc<CompiledPolicies>,
    tools: Arc<ToolCatalog>,
    clock: Arc<dyn Clock>,
    observers: Vec<Box<dyn Observer>>,
    store: CombinedStore,
    seed: Option<u64>,
    keys: Option<Keys>,
    answer_validator: Option<Box<AcceptsAnswer>>,
    hooks: Vec<Arc<dyn Middleware>>,
    listener: Option<Arc<dyn EventListener>>,
    candidate: Option<Candidate>,
}

impl std::fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineBuilder").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl EngineBuilder {
    /// Sets the descriptors of the tools that calls can name.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        self.tools = Arc::new(ToolCatalog::new(tools));
        self
    }

    /// Sets the tools as a catalog, which engines can share.
    #[doc(hidden)]
    #[must_use]
    pub fn tool_catalog(mut self, catalog: Arc<ToolCatalog>) -> Self {
        self.tools = catalog;
        self
    }

    /// Replaces the system clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Adds an observer that receives every event, after the observers added before it.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Sets the store for state that outlives a call; the default is in memory. Engines that share a store share limits and caches.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn StateStore>) -> Self {
        self.store = CombinedStore::new(store);
        self
    }

    /// Replaces the store of limits, for example by one that several hosts share. A later [`store`](Self::store) replaces it again.
    #[must_use]
    pub fn limit_store(mut self, limits: Arc<dyn LimitStore>) -> Self {
        self.store = self.store.with_limits(limits);
        self
    }

    /// Replaces the store of cached results: see [`CombinedStore::with_cache`]. A later [`store`](Self::store) replaces it again.
    #[must_use]
    pub fn cache_store(mut self, cache: Arc<dyn CacheStore>) -> Self {
        self.store = self.store.with_cache(cache);
        self
    }

    /// Replaces the store of calls, approvals, sessions and budgets. A later [`store`](Self::store) replaces it again.
    #[must_use]
    pub fn record_store(mut self, records: Arc<dyn RecordStore>) -> Self {
        self.store = self.store.with_records(records);
        self
    }

    /// Seeds the random number generator, so that the jitter of `retry` and `random()` in scripts are deterministic.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the server's keys. They encrypt approval requests and session state, seal answers, and key digests; a token that none of them
    /// made is rejected when it comes back. A store that processes share is used as a [`SealedStore`](crate::state::SealedStore), without
    /// an anchor unless it is a `SealedStore` already.
    ///
    /// Without keys the engine generates one that only it has: another process requests approval of a pending call again, a history does
    /// not carry the state of its session, and a store that processes share is not used.
    #[must_use]
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Validates tokens in approval answers that are not the request's own, such as one-time tokens of the host: such an answer counts
    /// only if `accepts` returns `true`.
    #[must_use]
    pub fn answer_validator(
        mut self,
        accepts: impl Fn(&ResponsePart) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.answer_validator = Some(Box::new(accepts));
        self
    }

    /// Adds a hook of the host to every session, after the hooks added before it.
    #[must_use]
    pub fn middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.hooks.push(Arc::new(middleware));
        self
    }

    /// Sets a listener that is notified of every evaluation of a policy, in all sessions.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Evaluates each completed call again under candidate rules, in the background, and notifies observers of the differences.
    /// A candidate belongs to one engine: it is ignored by a second one.
    #[must_use]
    pub fn candidate(mut self, candidate: &Candidate) -> Self {
        self.candidate = Some(candidate.clone());
        self
    }

    /// Builds the engine.
    pub fn build(self) -> Engine {
        let Self {
            chains,
            tools,
            clock,
            observers,
            store,
            seed,
            keys,
            answer_validator: accepts_answer,
            hooks,
            listener,
            candidate,
        } = self;
        let random = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let reload_history = Arc::new(ReloadHistory::begin(&*clock));
        let host = HostServices { store: Arc::new(store), keys, accepts_answer, clock, observers, random };
        let mut services = EngineServices::new(host);
        services.candidate = candidate.and_then(|candidate| candidate.attach(services.observers.clone()));
        let shared = Shared { bundle: ArcSwap::new(chains), tools, services, hooks, listener };
        let engine = Engine { shared: Arc::new(shared), reload_history };
        engine.notify_observers(&engine.revision(), RulesEvent::Loaded);
        engine
    }
}
