//! A session whose calls come at any time and run side by side, as those of a gateway's client do.
//!
//! The order in which calls come is their position. A call sees what the calls before it left in the session, and nothing of the calls
//! after it, whichever of them end first. So a call that what the session has seen can make a difference to waits for the calls before
//! it; every other runs at once, after those that may stop the run. What a call leaves takes effect at its position: of two calls that
//! set a fact, the later one counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::Session;
use super::desk::Known;
use super::judged::Said;
use super::spending::Spending;
use crate::approval::{Asker, Name, Question};
use crate::call::{Changes, Outcome, SessionState, ToolCall};
use crate::execution::Hooked;
use crate::host::{Account, ToolExecutor};
use crate::json::Value;
use crate::kernel::{Effect, Kernel, Layers, SessionUse, is_never_called};
use crate::message::{RequestPart, ResponsePart};
use crate::middleware::Kind;
use crate::policy::{Chains, Mode};
use crate::tools::ToolDescriptor;

/// How long a call waits for those before it. Then what the session has seen counts as unknown, which is stricter than any answer: a
/// call whose tool itself waits for this one must not stop both for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session whose calls may run at once. Clones are the same session.
#[derive(Clone)]
pub struct ConcurrentSession {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for ConcurrentSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConcurrentSession").finish_non_exhaustive()
    }
}

struct Inner {
    line: Mutex<Line>,
    /// The requester's own name, under which its approvals are found again whatever the conversation.
    approval_scope: Option<String>,
    /// The rules for the calls of one server alone.
    rules_of: Box<RulesOf>,
    /// Changes whenever a call leaves, or is known not to stop the run.
    left: watch::Sender<u64>,
    /// Held while the store is written to, so that an older state never replaces a later one.
    keeping: tokio::sync::Mutex<()>,
}

/// Gives the rules for the calls of one server alone, where there are any.
type RulesOf = dyn Fn(&str) -> Option<Arc<Chains>> + Send + Sync;

/// The session, and the calls that are on their way.
struct Line {
    /// The session, which has seen what the calls before the first that is under way left.
    session: Session,
    /// The position of the next call.
    next: u64,
    /// The calls that are under way, by position: whether they may stop the run.
    under_way: BTreeMap<u64, bool>,
    /// What calls left that ended while one before them is under way, by position.
    ended: BTreeMap<u64, Changes>,
}

/// For which calls before it a call waits.
#[derive(Clone, Copy)]
enum WaitsFor {
    None,
    /// Those that may stop the run.
    Halting,
    All,
}

impl Line {
    /// What a call at this position sees.
    fn seen_from(&self, position: u64) -> SessionState {
        let mut state = self.session.state.clone();
        self.ended.range(..position).for_each(|(_, changes)| state.apply(changes));
        state
    }

    /// The session for a call at this position.
    fn session_for(&self, position: u64, layer: Option<Arc<Chains>>) -> Session {
        let mut session = self.session.for_one_call(layer);
        session.state = self.seen_from(position);
        session
    }

    fn is_waiting_over(&self, position: u64, waits_for: WaitsFor) -> bool {
        let mut before = self.under_way.range(..position);
        match waits_for {
            WaitsFor::None => true,
            WaitsFor::Halting => !before.any(|(_, may_halt)| *may_halt),
            WaitsFor::All => before.next().is_none(),
        }
    }

    /// A call is over: what it left takes effect at its position.
    fn leave(&mut self, position: u64, changes: Changes) {
        self.under_way.remove(&position);
        self.ended.insert(position, changes);
        let first = self.under_way.first_key_value().map_or(u64::MAX, |(first, _)| *first);
        let later = self.ended.split_off(&first);
        for changes in std::mem::replace(&mut self.ended, later).values() {
            self.session.state.apply(changes);
        }
    }
}

impl Session {
    /// Lets the calls of the session run side by side. What the session has seen is kept in a store that others share, by the session's
    /// name or `conversationId`, and goes on from there. What calls of a round share is not for them: each is decided when it comes.
    /// What a [`recorded`](Self::recorded) session keeps with each call is not kept either.
    pub fn concurrent(self) -> ConcurrentSession {
        self.concurrent_with(|_| None)
    }

    /// The same with rules for the calls of one server alone, as the last layer: they tighten those of all.
    pub fn concurrent_with(
        self,
        rules_of: impl Fn(&str) -> Option<Arc<Chains>> + Send + Sync + 'static,
    ) -> ConcurrentSession {
        self.into_concurrent(None, Box::new(rules_of))
    }

    /// The same, and approvals are found again by what a call is: its requester, server, tool and arguments, in every session of the
    /// requester and after a restart. A call that may need an approval gets an id of ours, the same for equal calls.
    ///
    /// `requester`: a name that no other requester in the store has. Who has it can use the approvals that were given under it.
    pub fn concurrent_for(
        self,
        requester: impl Into<String>,
        rules_of: impl Fn(&str) -> Option<Arc<Chains>> + Send + Sync + 'static,
    ) -> ConcurrentSession {
        self.into_concurrent(Some(requester.into()), Box::new(rules_of))
    }

    fn into_concurrent(
        mut self,
        approval_scope: Option<String>,
        rules_of: Box<RulesOf>,
    ) -> ConcurrentSession {
        self.recorded = false;
        let line =
            Mutex::new(Line { session: self, next: 0, under_way: BTreeMap::new(), ended: BTreeMap::new() });
        let left = watch::Sender::new(0);
        let inner = Inner { line, approval_scope, rules_of, left, keeping: tokio::sync::Mutex::new(()) };
        ConcurrentSession { inner: Arc::new(inner) }
    }

    /// What the session has seen so far is unknown, unless a store that others share knows it: conditions that read it are undecided, so
    /// restricting policies match. For hosts that had to forget a session.
    #[must_use]
    pub fn with_unknown_past(mut self) -> Self {
        if !self.shared.services.store.is_shared() {
            self.state.distrust();
        }
        self
    }

    /// The same session for one call, which sees what was seen so far. `layer`: the call's own rules.
    fn for_one_call(&self, layer: Option<Arc<Chains>>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            name: self.name.clone(),
            state: self.state.clone(),
            lower_layers: self.lower_layers.iter().cloned().chain(layer).collect(),
            unnamed_calls: self.unnamed_calls,
            unique_name: self.unique_name.clone(),
            calls: super::Calls::default(),
            recorded: false,
            has_seen: self.has_seen,
            hooks: self.hooks.clone(),
            run: self.run.clone(),
            progress: super::Progress::default(),
            tools: self.tools.clone(),
            telling: self.telling.clone(),
            skill_tool: None,
            offered: self.offered.clone(),
            listener: self.listener.clone(),
            made: super::Made::default(),
        }
    }
}

/// One call on its way. When it leaves, also because it was given up, what it changed takes effect.
struct Turn<'s> {
    inner: &'s Inner,
    position: u64,
    session: Session,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let changes = self.session.state.take_changes();
        self.inner.line().leave(self.position, changes);
        self.inner.tell();
    }
}

impl Inner {
    /// A panic elsewhere leaves a whole state: it is changed in single steps.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those that wait that something has changed.
    fn tell(&self) {
        self.left.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Waits for calls before this one. Says whether they are over.
    async fn others(&self, position: u64, waits_for: WaitsFor) -> bool {
        let mut left = self.left.subscribe();
        let wait = async {
            while !self.line().is_waiting_over(position, waits_for) {
                if left.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.is_ok()
    }

    /// What hooks make of a new call, before it is known whether it waits: that depends on what they make of it.
    async fn hooked(&self, call: ToolCall) -> Hooked {
        let mut session = {
            let line = self.line();
            if line.session.hooks.is_empty() {
                return Hooked::untouched(call);
            }
            line.session.for_one_call(None)
        };
        session.name_conversation(&session.conversation());
        session.hooks().before(call).await
    }

    /// Gives a call its position. From here on it leaves the line whatever happens to it.
    fn enter(&self, call: &ToolCall) -> Turn<'_> {
        let layer = self.layer_of(call);
        let mut line = self.line();
        line.session.halt_if_aborted();
        let position = line.next;
        line.next += 1;
        let session = line.session_for(position, layer);
        // Before anything else can begin: calls after this one have to know.
        let may_halt = session.session_use(call, &session.layers()).may_halt;
        line.under_way.insert(position, may_halt);
        Turn { inner: self, position, session }
    }

    /// Begins a call: waits for those before it where it must. `unknown`: hooks have yet to see the call, so what it reads is not known.
    async fn begin(&self, turn: &mut Turn<'_>, call: &ToolCall, unknown: bool) {
        let layer = self.layer_of(call);
        let (waits_for, may_halt) = {
            let mut line = self.line();
            turn.session = line.session_for(turn.position, layer.clone());
            let before = || line.under_way.range(..turn.position);
            let (others, halting) = (before().count(), before().any(|(_, may_halt)| *may_halt));
            let layers = turn.session.layers();
            let SessionUse { reads, may_halt } = turn.session.session_use(call, &layers);
            let reads = unknown || reads || turn.session.may_be_last(others, &layers);
            line.under_way.insert(turn.position, may_halt);
            let waits_for = match (reads, halting) {
                _ if others == 0 => WaitsFor::None,
                (true, _) => WaitsFor::All,
                (false, true) => WaitsFor::Halting,
                (false, false) => WaitsFor::None,
            };
            (waits_for, may_halt)
        };
        if !matches!(waits_for, WaitsFor::None) {
            let is_known = self.others(turn.position, waits_for).await;
            turn.session = self.line().session_for(turn.position, layer);
            if !is_known {
                turn.session.state.distrust();
            }
        }
        let halts =
            may_halt && (!turn.session.hooks.is_empty() || turn.session.halts(call, &turn.session.layers()));
        self.line().under_way.insert(turn.position, halts);
        self.tell();
        turn.session.state.record_changes();
    }

    fn layer_of(&self, call: &ToolCall) -> Option<Arc<Chains>> {
        (self.rules_of)(call.server.as_deref().unwrap_or_default())
    }
}

impl Session {
    fn kernel_over<'k>(&'k self, layers: &'k Layers) -> Kernel<'k> {
        let tools = self.tools.as_deref().unwrap_or(&self.shared.tools).set();
        Kernel { tools, ..self.shared.kernel(layers) }
    }

    /// Whether so many calls under way could use up what a budget of the run leaves.
    pub(super) fn may_be_last(&self, others: usize, layers: &Layers) -> bool {
        let kernel = self.kernel_over(layers);
        let conversation = self.conversation();
        let spending = Spending { shared: &self.shared, kernel, run: &self.run, conversation: &conversation };
        !spending.leave_calls(&self.state, others)
    }

    /// What a call has to do with what the session has seen.
    pub(super) fn session_use(&self, call: &ToolCall, layers: &Layers) -> SessionUse {
        self.kernel_over(layers).session_use(call, &self.state, !self.hooks.is_empty())
    }

    /// Whether a call stops the run, now that it is known what the session has seen.
    fn halts(&self, call: &ToolCall, layers: &Layers) -> bool {
        self.kernel_over(layers).decide(call, &self.state).effect() == Effect::Halt
    }
}

impl ConcurrentSession {
    /// Puts one call through its whole life. Its id is one that no other call of the session has: which ids have come is not kept, for
    /// sessions of gateways are long. A call without one is given one.
    ///
    /// The future may be dropped: a call whose tool was started then counts as started, and has no outcome.
    pub async fn execute(&self, call: ToolCall, executor: &impl ToolExecutor) -> Outcome {
        let started = Instant::now();
        self.see().await;
        let scope = self.inner.approval_scope.as_deref();
        // Hooks may ask, and change what is asked about: the question is looked for before they see the call.
        let recalls_first = scope.is_some() && !self.inner.line().session.hooks.is_empty();
        let call = self.inner.line().session.name_call(call);
        let mut turn = self.inner.enter(&call);
        let hooked = match recalls_first {
            true => Hooked::untouched(call),
            false => self.inner.hooked(call).await,
        };
        self.inner.begin(&mut turn, &hooked.call, recalls_first).await;
        let session = &mut turn.session;
        let (layers, conversation) = (session.layers(), session.conversation());
        let name = session.name.clone();
        let mut desk = session.desk(&layers, &conversation, executor);
        desk.execute.approval_scope = scope;
        let (known, mut hooked) = match scope {
            Some(requester) if recalls_first || desk.may_ask(&hooked.call) => {
                let (call, known) = desk.recall(hooked.call, requester).await;
                match known {
                    Known::New(_) => {
                        let hooked = desk.hooked(call).await;
                        (known, hooked)
                    }
                    known => (known, Hooked::untouched(call)),
                }
            }
            _ => (Known::New(desk.name(hooked.call.id.clone())), hooked),
        };
        desk.refuse_unoffered(&mut hooked);
        let made = (known, hooked);
        let outcome = desk.put_through(&made, None, false, started).await;
        if let (Known::Earlier(_), Some(requester)) = (&made.0, scope) {
            desk.pass_over(requester, &made.1.call, &outcome).await;
        }
        let outcome = desk.report(name.as_deref(), outcome);
        drop(turn);
        self.keep().await;
        outcome
    }

    /// Takes up a call that waits for people: the question that was put, as it was given out, and what they answered, beside what the
    /// store knows. It runs if they said yes, and goes on waiting while they say nothing.
    pub async fn take_up(
        &self,
        call: ToolCall,
        question: &RequestPart,
        answers: &[ResponsePart],
        executor: &impl ToolExecutor,
    ) -> Outcome {
        let started = Instant::now();
        self.see().await;
        let (call, has_hooks) = {
            let session = &mut self.inner.line().session;
            (session.name_call(call), !session.hooks.is_empty())
        };
        let mut turn = self.inner.enter(&call);
        self.inner.begin(&mut turn, &call, has_hooks).await;
        let session = &mut turn.session;
        let (layers, conversation) = (session.layers(), session.conversation());
        let label = session.name.clone();
        let occurrence = question.approval_id.strip_prefix("approval_").unwrap_or(&call.id).to_owned();
        let mut desk = session.desk(&layers, &conversation, executor);
        desk.execute.approval_scope = self.inner.approval_scope.as_deref();
        let name = desk.name(occurrence);
        let said = Said { request: Some(question), answers };
        let taken_up = desk.take_up(&call, &name, said, started).await;
        let outcome = desk.report(label.as_deref(), taken_up.outcome);
        drop(turn);
        self.keep().await;
        outcome
    }

    /// The question about a call that was approved, as it was given out. `None` if the store does not have it.
    pub async fn question(&self, approval_id: &str) -> Option<RequestPart> {
        let (shared, conversation) = {
            let line = self.inner.line();
            (Arc::clone(&line.session.shared), line.session.conversation())
        };
        let conversation = self.inner.approval_scope.clone().unwrap_or(conversation);
        let occurrence = approval_id.strip_prefix("approval_").unwrap_or(approval_id).to_owned();
        let ledger = shared.services.ledger(&*shared.clock, Account::NOBODY);
        let entry = ledger.find(&Name { conversation, occurrence }).await.ok()??;
        entry.request.as_ref().map(RequestPart::from)
    }

    /// Replaces what is vouched for of the run as a whole, as by a host that has verified its caller again. Each call has its own context.
    pub fn set_context(&self, context: Value) {
        let session = &mut self.inner.line().session;
        session.run.context.clone_from(&context);
        session.calls.context = context;
    }

    /// Adds tools to those that are known; of two of one name and server the later one stands.
    pub fn add_tools(&self, tools: impl IntoIterator<Item = ToolDescriptor>) {
        self.inner.line().session.add_tools(tools);
    }

    /// Whether every call of a tool is denied, whatever its arguments.
    pub fn never_runs(&self, server: &str, tool: &str) -> bool {
        let layers = self.inner.line().session.layers();
        let own = (self.inner.rules_of)(server);
        layers.iter().chain(own.as_ref()).any(|chains| is_never_called(chains, server, tool))
    }

    /// Whether an answer without a name counts for a question of ours.
    pub fn anyone_may_answer(&self, question: &RequestPart) -> bool {
        self.askers(question).is_some_and(|askers| !askers.iter().any(Asker::needs_name))
    }

    /// The policies that ask a question of ours, with what they demand of answers. `None` if it is not provably ours.
    pub fn askers(&self, question: &RequestPart) -> Option<Vec<Asker>> {
        let shared = Arc::clone(&self.inner.line().session.shared);
        Question::open(question, &shared.services.keys).ok().map(|question| question.askers)
    }

    /// Hides in a value, as in the result of a call, all that policies hide. What can't be searched is withheld.
    pub fn hide(&self, call: &ToolCall, value: &mut Value) {
        let layer = (self.inner.rules_of)(call.server.as_deref().unwrap_or_default());
        let session = self.inner.line().session_for(u64::MAX, layer);
        let layers = session.layers();
        let kernel = session.kernel_over(&layers);
        kernel.hide_in(call, value, &session.state);
    }

    /// Whether policies hide anything of what calls of a server come to.
    pub fn hides_results(&self, server: &str) -> bool {
        let layers = self.inner.line().session.layers();
        let own = (self.inner.rules_of)(server);
        let hides = |chains: &Arc<Chains>| {
            chains
                .policies()
                .iter()
                .any(|policy| policy.mode == Mode::Enforce && matches!(policy.kind, Kind::Redact(_)))
        };
        layers.iter().chain(own.as_ref()).any(hides)
    }

    /// What the session has seen.
    pub fn state(&self) -> SessionState {
        self.inner.line().seen_from(u64::MAX)
    }

    /// Whether calls are on their way.
    pub fn is_idle(&self) -> bool {
        self.inner.line().under_way.is_empty()
    }

    /// Takes in, once, what the store has of the session. Where that can't be known, what the session has seen is not known either.
    async fn see(&self) {
        let (shared, conversation, account) = {
            let session = &self.inner.line().session;
            if session.has_seen {
                return;
            }
            (Arc::clone(&session.shared), session.conversation(), session.account())
        };
        let seen = shared.seen_in_store(&conversation, account).await;
        let session = &mut self.inner.line().session;
        if !std::mem::replace(&mut session.has_seen, true) {
            match seen {
                Ok(seen) => session.state.unite(&seen),
                Err(_) => session.state.distrust(),
            }
        }
    }

    /// Keeps what the session has seen in a store that others share. Where that does not answer, the next call keeps it.
    async fn keep(&self) {
        if !self.inner.line().session.shared.services.store.is_shared() {
            return;
        }
        let _keeping = self.inner.keeping.lock().await;
        let (shared, conversation, account, state) = {
            let line = self.inner.line();
            let session = &line.session;
            let (conversation, account) = (session.conversation(), session.account());
            (Arc::clone(&session.shared), conversation, account, line.seen_from(u64::MAX))
        };
        let _ = shared.keep_in_store(&conversation, account, &state).await;
    }
}
