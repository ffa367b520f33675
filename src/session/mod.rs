//! One agent run: its calls in order, what it has seen, and whole rounds decided before any of their calls runs.

mod answered;
mod approved;
mod armed;
mod concurrent;
mod desk;
mod ending;
mod fitting;
mod judged;
mod kept;
mod made;
mod offered;
mod recalled;
mod resume;
mod rounds;
mod run;
mod skills;
mod spending;
mod streaming;
mod told;

pub use armed::{Armed, ArmedSession, Called};
pub use concurrent::ConcurrentSession;
pub use ending::Afterwork;
pub use resume::{ResumeError, Round};
pub use skills::SkillAmendment;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;

use crate::call::{Outcome, SessionState, ToolCall};
use crate::diagnostic::SourceMap;
use crate::execution::{Execute, Hooks, Services};
use crate::explain::{Explainer, Explanation};
use crate::host::{Account, Clock, Observer, ToolExecutor};
use crate::json::Value;
use crate::kernel::{Kernel, Layers, Listener};
use crate::lifecycle::{Middleware, RunContext};
use crate::message::{CallPart, Output, ResultPart};
use crate::policy::Chains;
use crate::tools::{ToolDescriptor, Tools};
use desk::Desk;
use made::Made;
use offered::Offered;
use run::Progress;
use told::Telling;

/// What all sessions of an engine share.
pub(crate) struct Shared {
    pub(crate) bundle: ArcSwap<Chains>,
    pub(crate) tools: Tools,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) observers: Vec<Box<dyn Observer>>,
    pub(crate) services: Services,
    /// The host's own code for every session.
    pub(crate) hooks: Vec<Arc<dyn Middleware>>,
    /// Who hears of every asking in every session, if anybody.
    pub(crate) listener: Option<Arc<dyn Listener>>,
}

impl Shared {
    /// A kernel over these layers.
    pub(crate) fn kernel<'k>(&'k self, layers: &'k Layers) -> Kernel<'k> {
        let keys = &self.services.keys;
        Kernel { layers, tools: self.tools.set(), clock: &*self.clock, keys, listener: None }
    }

    /// Tells every observer. One that panics changes nothing.
    fn tell(&self, tell: impl Fn(&dyn Observer)) {
        for observer in &self.observers {
            let _ = catch_unwind(AssertUnwindSafe(|| tell(&**observer)));
        }
    }
}

/// One agent run.
///
/// Each round is decided under one revision of the rules, whatever is reloaded meanwhile.
pub struct Session {
    shared: Arc<Shared>,
    name: Option<String>,
    state: SessionState,
    /// The prompt's and the call's policies, in this order.
    lower_layers: Vec<Arc<Chains>>,
    unnamed_calls: u64,
    /// Its own name among all sessions, whatever the host calls it.
    unique_name: String,
    /// How calls of a history become calls that policies see.
    calls: Calls,
    /// Every call is noted in the ledger.
    recorded: bool,
    /// What its history and its store say it has seen was taken in.
    has_seen: bool,
    /// The host's own code: the engine's, then the session's.
    hooks: Vec<Arc<dyn Middleware>>,
    /// What hooks know of the run.
    run: RunContext,
    /// Where the run is between its beginning and its end.
    progress: Progress,
    /// The tools of the prompt and the call together with the engine's, where there are any.
    tools: Option<Arc<Tools>>,
    /// How models are told of outcomes.
    telling: Telling,
    /// The tool by which a model loads skills.
    skill_tool: Option<String>,
    /// The tools that the model was offered last, where the host's configuration has any.
    offered: Option<Arc<Offered>>,
    /// What came of the present round, as long as no history has it.
    made: Made,
    /// Who hears of every asking, if anybody.
    listener: Option<Arc<dyn Listener>>,
}

/// How calls of a history become calls that policies see.
#[derive(Default)]
struct Calls {
    context: Value,
    read: Option<Box<ReadCall>>,
}

/// Makes a call of what a history has.
type ReadCall = dyn Fn(&CallPart) -> ToolCall + Send + Sync;

impl Calls {
    fn of(&self, part: &CallPart) -> ToolCall {
        let call = self.read.as_ref().map_or_else(|| part.to_call(), |read| read(part));
        if call.context.is_null() { call.with_context(self.context.clone()) } else { call }
    }
}

/// The name of a call among those of its history: its id, and of a repeated id from the second on its number.
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
            progress: Progress::default(),
            tools: None,
            telling: Telling::default(),
            skill_tool: None,
            offered: None,
            made: Made::default(),
            listener: shared.listener.clone(),
            unique_name,
            shared,
            name: None,
            state: SessionState::default(),
            lower_layers: Vec::new(),
            unnamed_calls: 0,
            calls: Calls::default(),
            recorded: false,
            has_seen: false,
        }
    }

    /// Names the session, for outcomes.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a layer of policies below those that are there: first the prompt's, then the call's. A lower layer can add
    /// denials, approvals and limits to the layers above it, and lift none of them.
    #[must_use]
    pub fn with_layer(mut self, chains: Arc<Chains>) -> Self {
        self.lower_layers.push(chains);
        self
    }

    /// Lets someone hear of every asking of a policy, in the calls of this session and in its run, instead of who hears the engine's.
    #[must_use]
    pub fn heard_by(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// What the session has seen.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Lets the host say where the run stands: `conversationId`, `iteration`, and so on.
    pub fn state_mut(&mut self) -> &mut SessionState {
        &mut self.state
    }

    /// Adds the host's own code, after what is there: first the prompt's, then the call's.
    #[must_use]
    pub fn with_middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.hooks.push(Arc::new(middleware));
        self
    }

    /// Adds tools to those that are there: first the prompt's, then the call's. Of two of one name and server the later one stands.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        self.add_tools(tools);
        self
    }

    fn add_tools(&mut self, tools: impl IntoIterator<Item = ToolDescriptor>) {
        let known = self.tools.as_deref().unwrap_or(&self.shared.tools);
        self.tools = Some(Arc::new(known.with(tools)));
    }

    /// The engine's tools, the prompt's and the call's, merged.
    pub fn tools(&self) -> &[ToolDescriptor] {
        self.tools.as_deref().unwrap_or(&self.shared.tools).descriptors()
    }

    /// Shapes results for the model: what it is given instead of the plain result, where the closure says something. Asked only about
    /// calls that have a result, which is redacted already; observers see both.
    #[must_use]
    pub fn shaping_results(
        mut self,
        shape: impl Fn(&Outcome) -> Option<Output> + Send + Sync + 'static,
    ) -> Self {
        self.telling = Telling::by(shape);
        self
    }

    /// The tool by which the model loads skills: see [`apply_skill_loads`](Self::apply_skill_loads).
    #[must_use]
    pub fn with_skill_tool(mut self, tool: impl Into<String>) -> Self {
        self.skill_tool = Some(tool.into());
        self
    }

    /// What the model is told of an outcome; nothing of a call that waits for a person.
    pub fn result_for_model(&self, outcome: &Outcome) -> Option<ResultPart> {
        self.telling.result(outcome)
    }

    /// What the host vouches for of calls that a history has: principal, roles, tenant, anything. In a store, the session is charged to
    /// the caller that is named here.
    #[must_use]
    pub fn with_context(mut self, context: Value) -> Self {
        self.run.context.clone_from(&context);
        self.calls.context = context;
        self
    }

    /// How a call of a history becomes one that policies see, where that is more than its name and arguments: tools of several
    /// servers under prefixed names, a context of its own.
    #[must_use]
    pub fn reading_calls(mut self, read: impl Fn(&CallPart) -> ToolCall + Send + Sync + 'static) -> Self {
        self.calls.read = Some(Box::new(read));
        self
    }

    /// Notes every call in the store before and after it runs, not only those that people are asked about: a call that the
    /// store knows as settled is told again, and not run; one of which it is not known how it ended is not run either. What the
    /// session has seen is kept there with each call, and read again before the next. For this the session needs a name, or a
    /// `conversationId`, which [`begin`](Self::begin) makes sure that no earlier one had.
    ///
    /// A call is known again by its id, its tool, its server and its arguments. Of a call that began and never ended it is not
    /// known what the session has seen of it, so policies that read the session are undecided from then on.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        self.recorded = true;
        self
    }

    /// What the session's calls are kept under in the store: its `conversationId`, or its name, or a name that no other session
    /// has.
    pub fn conversation(&self) -> String {
        let id = self.state.document().get("conversationId").and_then(Value::as_str);
        id.or(self.name.as_deref()).unwrap_or(&self.unique_name).to_owned()
    }

    /// Whose share of the store the session is charged to.
    fn account(&self) -> Account {
        Account::from_context(&self.run.context)
    }

    /// Puts one call through its whole life.
    ///
    /// The future may be dropped: a call whose tool was started then counts as started, and has no outcome.
    pub async fn execute(&mut self, call: ToolCall, executor: &impl ToolExecutor) -> Outcome {
        let started = Instant::now();
        let call = self.name_call(call);
        let occurrence = self.state.name_occurrence(&call.id);
        self.halt_if_aborted();
        let seen = self.see_recorded().await;
        let (layers, conversation) = (self.layers(), self.conversation());
        let name = self.name.clone();
        let mut desk = self.desk(&layers, &conversation, executor);
        let turn = desk.prepare(call, occurrence, &seen).await;
        let outcome = desk.put_through(&turn, None, false, started).await;
        desk.report(name.as_deref(), outcome)
    }

    /// The same as [`execute`](Self::execute), with the explanation of the outcome. `sources`: the files of the bundle, so that places can
    /// be named. Whoever else hears the session does not hear of this call. No explanation only if Callgate itself fails on it.
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
        (outcome, explainer.take().pop())
    }

    /// What brings calls to their outcomes.
    fn desk<'d, E: ToolExecutor>(
        &'d mut self,
        layers: &'d Layers,
        conversation: &'d str,
        executor: &'d E,
    ) -> Desk<'d, E> {
        self.name_conversation(conversation);
        let Self { shared, state, unique_name, recorded, hooks, run, tools, telling, .. } = self;
        let Self { listener, made, offered, .. } = self;
        let tools = tools.as_deref().unwrap_or(&shared.tools).set();
        let execute = Execute {
            kernel: Kernel { tools, listener: listener.as_deref(), ..shared.kernel(layers) },
            services: &shared.services,
            executor,
            session: unique_name,
            hooks,
            run,
            approval_scope: None,
            observers: &shared.observers,
        };
        Desk {
            shared,
            execute,
            state,
            conversation,
            recorded: *recorded,
            telling,
            offered: offered.as_deref(),
            made,
        }
    }

    /// Lets hooks know the conversation.
    fn name_conversation(&mut self, conversation: &str) {
        if self.run.conversation_id.as_deref() != Some(conversation) {
            self.run.conversation_id = Some(conversation.to_owned());
        }
    }

    /// The hooks of the session, with what they are given.
    fn hooks(&self) -> Hooks<'_> {
        let tools = self.tools.as_deref().unwrap_or(&self.shared.tools).set();
        Hooks { all: &self.hooks, run: &self.run, tools, observers: &self.shared.observers }
    }

    /// What decides about the run.
    fn kernel<'k>(&'k self, layers: &'k Layers) -> Kernel<'k> {
        Kernel { listener: self.listener.as_deref(), ..self.shared.kernel(layers) }
    }

    fn layers(&self) -> Layers {
        std::iter::once(self.shared.bundle.load_full()).chain(self.lower_layers.iter().cloned()).collect()
    }

    /// Approvals and results need a name for their call.
    fn name_call(&mut self, mut call: ToolCall) -> ToolCall {
        if call.id.is_empty() {
            self.unnamed_calls += 1;
            call.id = format!("call_{}", self.unnamed_calls);
        }
        call
    }
}
