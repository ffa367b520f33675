//! Candidate rules: a bundle that evaluates completed calls beside the active rules, in the background, and changes nothing.

mod comparison;
mod counters;
mod queue;
mod queue_status;
mod recorded_results;
mod replay;
mod worker;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;

use super::Engine;
use crate::execution::{CompletedCalls, Observers};
use crate::host::{EngineEvent, EngineEventKind, ManualClock, Observer};
use crate::policy::{self, CompiledPolicies};
use crate::state::BudgetRecords;
use counters::CandidateCounters;
use queue::CandidateQueue;
use worker::CandidateWorker;

/// Makes what is random in the rules repeatable.
const SEED: u64 = 0;
/// The rules of a candidate that is not loaded.
const NO_RULES: &str = "policies: []";

/// What happens with a call while the queue of a candidate is full, because its rules are slower than the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFullQueue {
    /// The candidate does not evaluate it. Observers are notified of how many calls it skipped, and what it knows of the sessions of
    /// these calls is unknown from then on.
    #[default]
    Skip,
    /// The call waits. For programs that evaluate recorded calls.
    Wait,
}

/// Options of a candidate.
#[derive(Clone, Copy, Debug, Default)]
pub struct CandidateOptions {
    /// What happens while the queue is full.
    pub on_full: OnFullQueue,
}

/// Candidate rules, which evaluate every completed call of an engine again, without any effect on it. Clones are the same candidate.
///
/// The candidate has state of its own: limits, caches, labels, facts. It never calls a tool and never asks anyone: a call that ran counts
/// as having run under the candidate, with what its tool returned. A thread of its own evaluates the calls, so no call waits for it.
/// Observers receive the comparison as [`EngineEventKind::CandidateDecided`].
///
/// ```
/// use callgate::json::json;
/// use callgate::{Candidate, CandidateOptions, ClosureTools, Engine, ToolCall, load_text};
///
/// let candidate = Candidate::new(
///     load_text("policies: [ { id: no-mail, match: mail, deny: {} } ]")?,
///     CandidateOptions::default(),
/// );
/// let engine = Engine::builder(load_text("policies: []")?).candidate(&candidate).build();
/// let tools = ClosureTools::new().with_tool("mail", async |_| Ok(json!("sent")));
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// engine.session().execute(ToolCall::new("c1", "mail", json!({})), &tools).await;
/// # });
/// candidate.finish();
/// assert_eq!(candidate.summary().stricter, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Candidate {
    shared: Arc<CandidateShared>,
}

struct CandidateShared {
    engine: Engine,
    clock: ManualClock,
    options: CandidateOptions,
    /// The revision of the rules that stand for a candidate that is not loaded.
    unloaded: Option<String>,
    /// The observers of the engine that has the candidate.
    observers: Arc<OnceLock<Observers>>,
    queue: OnceLock<Arc<CandidateQueue>>,
    counters: Arc<CandidateCounters>,
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate").field("engine", &self.shared.engine).finish_non_exhaustive()
    }
}

/// How many calls a candidate has compared, by difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CandidateSummary {
    /// Calls whose decisions were compared.
    pub compared: u64,
    /// Those that it treats less strictly.
    pub looser: u64,
    /// Those that it treats otherwise, and equally strictly.
    pub different: u64,
    /// Those that it treats more strictly.
    pub stricter: u64,
    /// Those that it runs with other arguments.
    pub arguments: u64,
    /// Those of which the model would see another result.
    pub result: u64,
    /// Calls that something else than the rules decided, and calls of sessions of which the candidate lacks a part that it reads.
    pub not_compared: u64,
    /// Calls that were not evaluated, because the queue was full.
    pub skipped: u64,
}

impl Candidate {
    /// A candidate with these rules.
    pub fn new(policies: Arc<CompiledPolicies>, options: CandidateOptions) -> Self {
        Self::with_rules(policies, None, options)
    }

    /// A candidate whose rules can't be loaded at present. It evaluates no call until a [`Reloader`](crate::reload::Reloader) of its
    /// [`engine`](Self::engine) has loaded them.
    pub fn unloaded(options: CandidateOptions) -> Option<Self> {
        let policies = Arc::new(policy::build_texts([("rules.yaml", NO_RULES)]).policies?);
        let revision = policies.revision().to_owned();
        Some(Self::with_rules(policies, Some(revision), options))
    }

    fn with_rules(
        policies: Arc<CompiledPolicies>,
        unloaded: Option<String>,
        options: CandidateOptions,
    ) -> Self {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let observers = Arc::default();
        let engine = Engine::builder(policies)
            .clock(clock.clone())
            .record_store(Arc::new(BudgetRecords::default()))
            .observer(RulesForwarder { observers: Arc::clone(&observers) })
            .seed(SEED)
            .build();
        let (queue, counters) = (OnceLock::new(), Arc::default());
        Self {
            shared: Arc::new(CandidateShared {
                engine,
                clock,
                options,
                unloaded,
                observers,
                queue,
                counters,
            }),
        }
    }

    /// The engine with the candidate rules, to reload them and to read their status. Its sessions have nothing to do with the calls that
    /// the candidate evaluates.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Whether the candidate has rules.
    pub fn is_loaded(&self) -> bool {
        self.shared.unloaded.as_ref() != Some(&self.shared.engine.revision())
    }

    /// Waits until every call so far is evaluated, also those whose rounds are not complete.
    pub fn finish(&self) {
        self.finish_within(Duration::MAX);
    }

    /// The same for at most this time. Returns whether every call is evaluated.
    pub fn finish_within(&self, timeout: Duration) -> bool {
        self.shared.queue.get().is_none_or(|queue| queue.finish(timeout))
    }

    /// How many calls were compared so far.
    pub fn summary(&self) -> CandidateSummary {
        self.shared.counters.summary()
    }

    /// Starts to evaluate the calls of an engine. Returns `None` if another engine has the candidate, or no thread can be started.
    pub(super) fn attach(&self, observers: Observers) -> Option<Arc<dyn CompletedCalls>> {
        let CandidateShared { engine, clock, options, counters, .. } = &*self.shared;
        self.shared.observers.set(observers.clone()).ok()?;
        let unloaded = self.shared.unloaded.clone();
        let worker =
            CandidateWorker::new(engine.clone(), clock.clone(), observers.clone(), Arc::clone(counters));
        let queue = CandidateQueue::start(worker.with_unloaded(unloaded), options.on_full)?;
        let _ = self.shared.queue.set(Arc::clone(&queue));
        if self.is_loaded() {
            observers
                .notify(&engine.revision(), EngineEventKind::CandidateRules(crate::host::RulesEvent::Loaded));
        }
        Some(queue)
    }
}

/// Notifies the observers of the active engine of changes of the candidate's rules.
struct RulesForwarder {
    observers: Arc<OnceLock<Observers>>,
}

impl Observer for RulesForwarder {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if let (EngineEventKind::Rules(change), Some(observers)) = (&event.kind, self.observers.get()) {
            observers.notify(event.revision, EngineEventKind::CandidateRules(*change));
        }
    }
}
