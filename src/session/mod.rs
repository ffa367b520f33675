//! One agent run: its calls in order, its state, and rounds that are decided as a whole before any of their
//! calls runs.

mod concurrent;
mod evaluation;
mod history_notification;
mod history_resumption;
mod history_state;
mod mirrored_session;
mod model_stream;
mod occurrence_name;
mod rounds;
mod run_end;
mod run_lifecycle;
mod sdk_session;
mod session_settings;
mod skills;

pub use concurrent::ConcurrentSession;
#[doc(hidden)]
pub use concurrent::{HandOver, HandOverError};
pub use evaluation::Evaluation;
pub use history_resumption::{ResumeError, Round};
pub use run_end::DeferredTasks;
pub use sdk_session::{SdkCallResult, SdkSession, SdkSessionGuard};
pub use skills::SkillAmendment;

use std::borrow::BorrowMut;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;

use crate::call::{Outcome, RoundPosition, SessionState, Task, ToolCall};
use crate::diagnostic::SourceMap;
use crate::execution::{
    BudgetAccount, CallContext, CallRecording, CallRunner, EngineServices, HookRunner, OfferedTools,
    RoundProgress, SessionInfo, ToolResultFormatter,
};
use crate::explain::{Explainer, Explanation};
use crate::host::{Account, EngineEvent, EngineEventKind, RunIdentity, ToolExecutor};
use crate::json::Value;
use crate::kernel::{EventListener, Kernel, Layers, is_never_called};
use crate::lifecycle::{Middleware, RunContext};
use crate::message::{CallPart, ResultPart};
use crate::policy::CompiledPolicies;
use crate::tools::{ToolCatalog, ToolDescriptor};
use occurrence_name::OccurrenceName;
use run_lifecycle::RunProgress;

/// What all sessions of an engine share.
pub(crate) struct Shared {
    pub(crate) bundle: ArcSwap<CompiledPolicies>,
    pub(crate) tools: Arc<ToolCatalog>,
    pub(crate) services: EngineServices,
    /// The engine's hooks, for every session.
    pub(crate) hooks: Vec<Arc<dyn Middleware>>,
    /// The listener of every session that has none of its own.
    pub(crate) listener: Option<Arc<dyn EventListener>>,
}

impl Shared {
    /// A kernel over these layers.
    pub(crate) fn kernel<'k>(&'k self, layers: &'k Layers) -> Kernel<'k> {
        let EngineServices { clock, keys, .. } = &self.services;
        let tools = self.tools.set();
        Kernel { layers, tools, clock: &**clock, keys, listener: None, task: &Task::NONE, round: None }
    }
}

/// One agent run.
///
/// Each round is decided under one revision of the rules, whatever is reloaded meanwhile.
pub struct Session {
    shared: Arc<Shared>,
    name: Option<String>,
    state: SessionState,
    /// The policies of the prompt and of the call, in this order.
    lower_layers: Vec<Arc<CompiledPolicies>>,
    unnamed_calls: u64,
    /// A name that no other session has, whatever the host calls it.
    unique_name: String,
    /// Makes calls that policies see of the calls of a history.
    calls: CallReader,
    /// Every call is recorded in the ledger.
    is_recorded: bool,
    /// A call that is stopped counts as having run, with its recorded result.
    keeps_recorded_course: bool,
    /// The state in its history and its store has been loaded.
    has_loaded_state: bool,
    /// The hooks of the engine, then of the session.
    hooks: Vec<Arc<dyn Middleware>>,
    /// The run as hooks see it.
    run: RunContext,
    /// How far the run is.
    progress: RunProgress,
    /// The tools of the engine, the prompt and the call, if the session adds any.
    tools: Option<Arc<ToolCatalog>>,
    /// Formats outcomes for the model.
    formatter: ToolResultFormatter,
    /// The tool by which a model loads skills.
    skill_tool: Option<String>,
    /// The tools that the model was offered last, if the host's configuration has any.
    offered: Option<Arc<OfferedTools>>,
    /// The calls of the present round that have begun, until the history has their results.
    round: RoundProgress,
    /// The listener, if there is one.
    listener: Option<Arc<dyn EventListener>>,
    /// What the user asked for.
    task: Task,
}

/// What stays the same while a call or a round runs: its rules, each layer of one revision, and its conversation.
#[derive(Clone)]
struct SessionScope {
    layers: Layers,
    conversation: String,
    recording: CallRecording,
}

/// Makes calls that policies see of the calls of a history.
#[derive(Default)]
struct CallReader {
    context: Value,
    read: Option<Box<ReadCall>>,
}

/// Makes a call of a history's call.
type ReadCall = dyn Fn(&CallPart) -> ToolCall + Send + Sync;

impl CallReader {
    fn of(&self, part: &CallPart) -> ToolCall {
        let call = self.read.as_ref().map_or_else(|| part.to_call(), |read| read(part));
        if call.context.is_null() { call.with_context(self.context.clone()) } else { call }
    }
}

/// The name of a call among those of its history: its id, and a number from the second call of that id on.
fn occurrence_name(id: &str, count: u64) -> String {
    if count > 1 { format!("{id}_{count}") } else { id.to_owned() }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("name", &self.name)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let unique_name = shared.services.unique_name();
        let run = RunContext::new(unique_name.clone(), unique_name.clone(), Value::Null);
        Self {
            hooks: shared.hooks.clone(),
            run,
            progress: RunProgress::default(),
            tools: None,
            formatter: ToolResultFormatter::default(),
            skill_tool: None,
            offered: None,
            round: RoundProgress::default(),
            listener: shared.listener.clone(),
            unique_name,
            shared,
            name: None,
            state: SessionState::default(),
            lower_layers: Vec::new(),
            unnamed_calls: 0,
            calls: CallReader::default(),
            is_recorded: false,
            keeps_recorded_course: false,
            has_loaded_state: false,
            task: Task::NONE,
        }
    }

    /// The state of the session: labels, facts, counts.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// The state, for the host to set `conversationId`, `iteration` and the like.
    pub fn state_mut(&mut self) -> &mut SessionState {
        &mut self.state
    }

    /// Sets what the user asked for, which policies read as `$.task`, for the decisions from now on. Call it for each message of the user.
    ///
    /// Policies trust it: make it of what the user wrote, and never of what the model, a tool or an unauthenticated client sent.
    pub fn set_task(&mut self, task: Task) {
        self.task = task;
    }

    fn add_tools(&mut self, tools: impl IntoIterator<Item = ToolDescriptor>) {
        let known = self.tools.as_deref().unwrap_or(&self.shared.tools);
        self.tools = Some(Arc::new(known.with_tools(tools)));
    }

    /// The merged tools of the engine, the prompt and the call.
    pub fn tools(&self) -> &[ToolDescriptor] {
        self.tools.as_deref().unwrap_or(&self.shared.tools).descriptors()
    }

    /// Whether every call of a tool is denied, whatever its arguments.
    #[doc(hidden)]
    pub fn never_runs(&self, tool: &ToolDescriptor) -> bool {
        let server = tool.server.as_deref().unwrap_or_default();
        self.layers().iter().any(|policies| is_never_called(policies, server, &tool.name))
    }

    /// The result of an outcome for the model. Returns `None` if the call is suspended.
    pub fn result_for_model(&self, outcome: &Outcome) -> Option<ResultPart> {
        self.formatter.result(outcome)
    }

    /// The name under which the store has the session's calls: its `conversationId`, or its name, or a name
    /// that no other session has.
    pub fn conversation(&self) -> String {
        let id = self.state.document().get("conversationId").and_then(Value::as_str);
        id.or(self.name.as_deref()).unwrap_or(&self.unique_name).to_owned()
    }

    /// The account of the store to which the session is charged.
    fn account(&self) -> Account {
        Account::from_context(&self.run.context)
    }

    /// Evaluates one call against the policies, runs it if they allow it, and returns its outcome.
    ///
    /// The future may be dropped: a call whose tool was started then counts as started, and has no outcome.
    pub async fn execute(&mut self, call: ToolCall, executor: &impl ToolExecutor) -> Outcome {
        let started = Instant::now();
        let call = self.name_call(Box::new(call));
        let OccurrenceName { occurrence, is_always_recorded } = self.name_occurrence(&call);
        self.halt_if_aborted();
        let stored = self.refresh_state().await;
        let scope = self.scope();
        let mut runner = self.runner(&scope, executor);
        let prepared = runner.prepare(call, occurrence, &stored).await;
        let decision = runner.decide(&prepared);
        let outcome = runner.run_prepared(&prepared, decision, started).await;
        let outcome = runner.report(&prepared.hooked.call, outcome);
        runner.context.services.observers.record_outcomes().await;
        if !is_always_recorded {
            let occurrence = &prepared.lookup.key().occurrence_id;
            self.release_name(&prepared.hooked.requested().id, occurrence, &outcome);
        }
        *outcome
    }

    /// The same as [`execute`](Self::execute), with the explanation of the outcome. `sources`: the files of the
    /// bundle, so that positions can be named. The session's listener is not notified of this call. Returns no
    /// explanation only if Callgate itself fails to make it.
    pub async fn explain(
        &mut self,
        call: ToolCall,
        executor: &impl ToolExecutor,
        sources: &SourceMap,
    ) -> (Outcome, Option<Explanation>) {
        let explainer = Arc::new(Explainer::new(sources));
        let before = self.listener.replace(explainer.clone());
        let outcome = self.execute(call, executor).await;
        self.listener = before;
        (outcome, explainer.take_explanations().pop())
    }

    /// The runner of the session's calls.
    fn runner<'r, E: ToolExecutor>(
        &'r mut self,
        scope: &'r SessionScope,
        executor: &'r E,
    ) -> CallRunner<'r, E> {
        let SessionScope { layers, conversation, recording } = scope;
        self.name_conversation(conversation);
        let Self { shared, state, unique_name, is_recorded, hooks, run, tools, formatter, name, .. } = self;
        let Self { listener, round, offered, keeps_recorded_course, task, .. } = self;
        let catalog = tools.as_ref().unwrap_or(&shared.tools);
        let tools = catalog.set();
        let services = &shared.services;
        let EngineServices { clock, keys, .. } = services;
        let context = CallContext {
            kernel: Kernel {
                layers,
                tools,
                clock: &**clock,
                keys,
                listener: listener.as_deref(),
                task,
                round: Some(RoundPosition::ALONE),
            },
            services,
            executor,
            hooks: HookRunner { all: hooks, run, tools, observers: &services.observers },
            session: SessionInfo {
                name: name.as_deref(),
                cache_scope: if *is_recorded { conversation } else { unique_name },
                conversation,
                approval_scope: None,
                is_recorded: *is_recorded,
                keeps_recorded_course: *keeps_recorded_course,
                offered: offered.as_deref(),
                formatter,
                tools: catalog,
                recording,
            },
        };
        CallRunner { context, state, round }
    }

    /// The budgets of the session, by its policies under these layers.
    fn budgets<'s>(&'s self, scope: &'s SessionScope) -> BudgetAccount<'s> {
        let kernel = self.kernel(&scope.layers);
        let conversation = &scope.conversation;
        BudgetAccount { services: &self.shared.services, kernel, run: &self.run, conversation }
    }

    /// Sets the conversation that hooks see.
    fn name_conversation(&mut self, conversation: &str) {
        if self.run.conversation_id.as_deref() != Some(conversation) {
            self.run.conversation_id = Some(conversation.to_owned());
        }
    }

    /// The run, as observers identify it.
    fn run_identity<'a>(&'a self, conversation: &'a str) -> RunIdentity<'a> {
        RunIdentity {
            request_id: &self.run.request_id,
            iteration: self.run.iteration,
            session: self.name.as_deref(),
            conversation,
        }
    }

    /// Notifies observers of an event of the run.
    fn notify_of_run(&self, kind: EngineEventKind<'_>) {
        let observers = &self.shared.services.observers;
        if observers.is_empty() {
            return;
        }
        let (revision, conversation) = (self.shared.bundle.load().revision().to_owned(), self.conversation());
        let run = Some(self.run_identity(&conversation));
        observers.notify_all(&EngineEvent {
            time: observers.now(),
            revision: &revision,
            run,
            call: None,
            kind,
        });
    }

    /// The hooks of the session, with their arguments.
    fn hooks(&self) -> HookRunner<'_> {
        let tools = self.tools.as_deref().unwrap_or(&self.shared.tools).set();
        HookRunner { all: &self.hooks, run: &self.run, tools, observers: &self.shared.services.observers }
    }

    /// The kernel that decides about the run.
    fn kernel<'k>(&'k self, layers: &'k Layers) -> Kernel<'k> {
        Kernel { listener: self.listener.as_deref(), task: &self.task, ..self.shared.kernel(layers) }
    }

    /// The present rules and conversation of the session.
    fn scope(&self) -> SessionScope {
        let (layers, conversation) = (self.layers(), self.conversation());
        SessionScope { layers, conversation, recording: CallRecording::default() }
    }

    fn layers(&self) -> Layers {
        std::iter::once(self.shared.bundle.load_full()).chain(self.lower_layers.iter().cloned()).collect()
    }

    /// An aborted run starts nothing.
    fn halt_if_aborted(&mut self) {
        if let Some(reason) = self.run.abort_reason() {
            self.state.halt(&reason);
        }
    }

    /// Gives a call without an id one, for approvals and results need it.
    fn name_call<C: BorrowMut<ToolCall>>(&mut self, mut named: C) -> C {
        let call = named.borrow_mut();
        if call.id.is_empty() {
            self.unnamed_calls += 1;
            call.id = format!("call_{}", self.unnamed_calls);
        }
        named
    }
}
