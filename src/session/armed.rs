//! The regime in which a provider's SDK drives the rounds: it gets a map of armed tools, and each of its calls goes through the same
//! desk as in the regime in which Callgate drives them.

mod positions;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard, Notify};

use self::positions::Positions;

use super::Session;
use super::desk::{Desk, Known};
use super::made::is_same;
use super::offered::Offered;
use super::resume::{ResumeError, Round, of_history};
use super::rounds::decided;
use crate::call::{Outcome, SessionState, ToolCall};
use crate::execution::Hooked;
use crate::host::ToolExecutor;
use crate::json::Value;
use crate::kernel::{Decision, Effect, Layers};
use crate::lifecycle::{Config, RunContext};
use crate::message::{CallPart, History, ResultPart};
use crate::tools::ToolDescriptor;

/// How long a call waits for the SDK to make the calls before it.
const PATIENCE: Duration = Duration::from_secs(1);

/// A session whose tools an SDK drives: for each round [`tell_round`](Self::tell_round) where the SDK knows all its calls before it makes
/// them (otherwise each is decided by itself), [`call`](Self::call) for each call, and [`suspend`](Self::suspend) at its end. A call's
/// future may be dropped; it is then `indeterminate` and not run again. Clones are the same session, and its calls run one after the
/// other.
///
/// In an announced round, what a call changes in the session takes effect at the call's position in the round. A call whose decision
/// depends on the session waits for the calls before it. If the SDK makes none of them for one second, what the session has seen is
/// unknown to the call: conditions that read it are undecided, and limits of the run count as used up.
pub struct Armed<E> {
    inner: Arc<Inner<E>>,
}

impl<E> Clone for Armed<E> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<E> std::fmt::Debug for Armed<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Armed").field("run", &self.inner.run).finish_non_exhaustive()
    }
}

struct Inner<E> {
    executor: E,
    run: RunContext,
    driven: Mutex<Driven>,
    /// Notified whenever a call has been made.
    made: Notify,
}

/// The session, and how far its present round is.
struct Driven {
    session: Session,
    /// Calls that the SDK has told of and not yet made.
    told: Vec<Told>,
    /// What the calls of the present round changed, since nothing else changed the session.
    positions: Option<Positions>,
    /// The last position whose changes can't be told from others any more.
    merged: Option<usize>,
}

/// A call of a round that an SDK has told of.
struct Told {
    position: usize,
    call: ToolCall,
    turn: (Known, Hooked),
    /// What it was decided to be with its round.
    first: Option<Decision<'static>>,
    /// The rules under which the round is decided.
    layers: Layers,
}

/// What came of a call that an SDK made.
#[derive(Clone, Debug)]
pub struct Called {
    /// How it ended.
    pub outcome: Outcome,
    /// What the SDK gives its model; nothing of a call that waits for a person, on which the SDK stops its loop.
    pub result: Option<ResultPart>,
}

impl Session {
    /// Arms the session's tools for an SDK that drives the rounds. [`begin`](Self::begin) and [`resume`](Self::resume) come before.
    pub fn arm<E: ToolExecutor>(mut self, executor: E) -> Armed<E> {
        self.name_conversation(&self.conversation());
        let run = self.run.clone();
        let driven = Mutex::new(Driven { session: self, told: Vec::new(), positions: None, merged: None });
        Armed { inner: Arc::new(Inner { executor, run, driven, made: Notify::new() }) }
    }
}

impl<E: ToolExecutor> Armed<E> {
    /// Ends the run from anywhere, also while a tool runs.
    pub fn run(&self) -> &RunContext {
        &self.inner.run
    }

    /// The session again, for its next steps outside of the SDK. What other clones call from now on is
    /// halted.
    pub async fn disarm(self) -> Session {
        let mut driven = self.inner.merged().await;
        let mut spare = Session::new(Arc::clone(&driven.session.shared));
        spare.state.halt("the session is not driven from here any more");
        std::mem::replace(&mut driven.session, spare)
    }

    /// The session, for everything around the calls. Waits for a call that runs.
    pub async fn session(&self) -> ArmedSession<'_> {
        ArmedSession(self.inner.merged().await)
    }

    /// The tools that the model is shown now, as hooks and policies leave them at this moment. From now on, calls of other tools are
    /// denied with `not_offered`.
    pub async fn tools(&self) -> Vec<ToolDescriptor> {
        let mut driven = self.inner.driven.lock().await;
        let session = &mut driven.session;
        let mut config = Config { tools: session.tools().to_vec(), ..Config::default() };
        for at_init in [true, false] {
            // Nothing begins by this, so no shadow is recorded.
            (config, _) = session.configure(config, at_init);
        }
        if !session.tools().is_empty() {
            session.offered = Some(Arc::new(Offered::new(&config.tools)));
        }
        config.tools
    }

    /// Whether a call would wait for a person, as far as policies say. Runs and counts nothing.
    pub async fn needs_approval(&self, tool: &str, input: &Value) -> bool {
        let driven = self.inner.driven.lock().await;
        let session = &driven.session;
        let call = driven.call("", tool, input);
        session.shared.kernel(&session.layers()).decide(&call, &session.state).effect() == Effect::Suspend
    }

    /// Tells of all calls of a round before any of them is made. Their round is then decided as a whole, as where Callgate drives: if one
    /// halts the run, none is run, hooks see the round, and each call is as strictly decided as before any of them ran.
    ///
    /// An SDK that cannot do this has each call decided by itself when it is made: the calls before one that halts have run by then, and
    /// [`after_tool_request`](crate::lifecycle::Middleware::after_tool_request) is not asked. Whatever counts or is remembered from call to
    /// call (limits, labels, facts, budgets, approvals that are presented one at a time) is the same in both. Rules that have to stop a
    /// whole round belong on the first call that is dangerous, not on a later one.
    pub async fn tell_round(&self, calls: &[CallPart]) {
        let mut driven = self.inner.merged().await;
        driven.merged = None;
        let Driven { session, told, positions, .. } = &mut *driven;
        told.clear();
        session.made.clear();
        let calls: Vec<ToolCall> = calls
            .iter()
            .map(|part| {
                let call = session.calls.of(part);
                session.name_call(call)
            })
            .collect();
        session.requested(&calls);
        let seen = session.see_recorded().await;
        let (layers, conversation) = (session.layers(), session.conversation());
        let names: Vec<String> = calls.iter().map(|call| session.state.name_occurrence(&call.id)).collect();
        let mut desk = session.desk(&layers, &conversation, &self.inner.executor);
        for (position, (call, name)) in calls.into_iter().zip(names).enumerate() {
            let turn = desk.prepare(call.clone(), name, &seen).await;
            told.push(Told { position, call, turn, first: None, layers: layers.clone() });
        }
        let kernel = desk.kernel();
        for Told { turn, first, .. } in told.iter_mut() {
            *first = decided(&kernel, turn, desk.state).map(Decision::into_owned);
        }
        let mut decisions = told.iter().filter_map(|told| told.first.as_ref());
        if let Some(halting) = decisions.find(|decision| decision.effect() == Effect::Halt) {
            kernel.halt(halting, desk.state);
        }
        *positions = Some(Positions::new(session.state.clone()));
    }

    /// A call that the SDK makes.
    pub async fn call(&self, id: &str, tool: &str, input: Value) -> Called {
        let started = Instant::now();
        let mut driven = self.inner.turn_of(id, tool, &input).await;
        let asked = driven.call(id, tool, &input);
        let asked = driven.session.name_call(asked);
        let outcome = driven.make(&self.inner.executor, asked, started).await;
        let result = driven.session.result_for_model(&outcome);
        drop(driven);
        self.inner.made.notify_waiters();
        Called { outcome, result }
    }

    /// Puts what came of the round into the SDK's history, which has the model's calls: results that it does not have yet, and the
    /// questions of calls that wait; what the session has seen is sealed as after a round that Callgate drives. A call that the SDK
    /// did not make, because it stopped at another, is put through now. Also for the end of a round in which nobody is waited for.
    pub async fn suspend(&self, history: &mut History) -> Result<Round, ResumeError> {
        let mut driven = self.inner.driven.lock().await;
        if let Some(seen) = driven.session.unseen(history, true).await? {
            driven.take_in(|state| state.go_on_from(&seen));
            driven.session.has_seen = true;
        }
        driven.make_rest(&self.inner.executor, history).await;
        driven.told.clear();
        driven.merge();
        driven.session.round(history, &self.inner.executor).await
    }
}

impl<E> Inner<E> {
    /// The session for what is not a call of the round.
    async fn merged(&self) -> MutexGuard<'_, Driven> {
        let mut driven = self.driven.lock().await;
        driven.merge();
        driven
    }

    /// The session for a call, once the calls before it have been made if it depends on them, or it has waited long enough.
    async fn turn_of(&self, id: &str, tool: &str, input: &Value) -> MutexGuard<'_, Driven> {
        let driven = self.driven.lock().await;
        if !driven.waits_for_earlier(id, tool, input) {
            return driven;
        }
        let shared = Arc::clone(&driven.session.shared);
        let mut unmade = driven.told.len();
        drop(driven);
        let mut patience = shared.clock.sleep(PATIENCE);
        loop {
            // Before it is looked again: a call that is made in between must not be missed.
            let mut made = pin!(self.made.notified());
            made.as_mut().enable();
            let driven = self.driven.lock().await;
            if !driven.waits_for_earlier(id, tool, input) {
                return driven;
            }
            drop(driven);
            if !is_first(made, patience.as_mut()).await {
                let driven = self.driven.lock().await;
                // While a call runs, the SDK may have made others that wait as this one does.
                if driven.told.len() == unmade {
                    return driven;
                }
                unmade = driven.told.len();
                patience = shared.clock.sleep(PATIENCE);
            }
        }
    }
}

/// Whether `event` comes before `end`.
async fn is_first(mut event: Pin<&mut impl Future>, mut end: Pin<&mut (impl Future + ?Sized)>) -> bool {
    poll_fn(|context| match event.as_mut().poll(context) {
        Poll::Ready(_) => Poll::Ready(true),
        Poll::Pending => end.as_mut().poll(context).map(|_| false),
    })
    .await
}

/// The session of armed tools, as long as nothing else uses it.
#[derive(Debug)]
pub struct ArmedSession<'a>(MutexGuard<'a, Driven>);

impl std::ops::Deref for ArmedSession<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0.session
    }
}

impl std::ops::DerefMut for ArmedSession<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.0.session
    }
}

impl std::fmt::Debug for Driven {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driven").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Driven {
    fn call(&self, id: &str, tool: &str, input: &Value) -> ToolCall {
        self.session.calls.of(&CallPart::new(id, tool, input.clone()))
    }

    /// What has been told of a call that has not been made, with its index.
    fn told(&self, call: &ToolCall) -> Option<usize> {
        self.told.iter().position(|told| is_same(&told.call, call))
    }

    /// Whether calls before this one, which the SDK has not made, can make a difference to it.
    fn waits_for_earlier(&self, id: &str, tool: &str, input: &Value) -> bool {
        let call = self.call(id, tool, input);
        let told = self.told(&call).and_then(|index| self.told.get(index));
        told.is_some_and(|told| self.depends_on_earlier(told))
    }

    fn depends_on_earlier(&self, told: &Told) -> bool {
        let earlier = self.told.iter().filter(|other| other.position < told.position).count();
        let is_lost = self.merged.is_some_and(|merged| told.position < merged);
        (earlier > 0 || is_lost) && {
            let call = &told.turn.1.call;
            let layers = &told.layers;
            self.session.session_use(call, layers).reads || self.session.may_be_last(earlier, layers)
        }
    }

    /// Something else than a call of the round is about to use or change the session: what calls changed can't be told from it any more.
    fn merge(&mut self) {
        if let Some(last) = self.positions.take().and_then(|positions| positions.last()) {
            self.merged = self.merged.max(Some(last));
        }
    }

    /// Adds to what was seen before the round.
    fn take_in(&mut self, change: impl Fn(&mut SessionState)) {
        change(&mut self.session.state);
        if let Some(positions) = &mut self.positions {
            positions.change_before(change);
        }
    }

    /// Brings one call to its outcome: of a round that was told as its round was decided, otherwise by itself.
    async fn make(&mut self, executor: &impl ToolExecutor, asked: ToolCall, started: Instant) -> Outcome {
        let seen = match self.session.recorded_elsewhere().await {
            Ok(Some(recorded)) => {
                self.take_in(|state| state.unite_with_store(&recorded));
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let Some(index) = self.told(&asked) else {
            self.merge();
            let session = &mut self.session;
            session.halt_if_aborted();
            let occurrence = session.state.name_occurrence(&asked.id);
            let (layers, conversation) = (session.layers(), session.conversation());
            let name = session.name.clone();
            let mut desk = session.desk(&layers, &conversation, executor);
            let turn = desk.prepare(asked.clone(), occurrence, &seen).await;
            return desk.make(asked, &turn, None, name.as_deref(), started).await;
        };
        let is_unknown = self.told.get(index).is_some_and(|told| self.depends_on_earlier(told));
        let told = self.told.remove(index);
        let mut driven = InPosition::new(self, told.position, is_unknown);
        let session = driven.session();
        session.halt_if_aborted();
        let conversation = session.conversation();
        let name = session.name.clone();
        let mut desk = session.desk(&told.layers, &conversation, executor);
        desk.make(asked, &told.turn, told.first, name.as_deref(), started).await
    }

    /// Makes the calls of a told round that the SDK did not make.
    async fn make_rest(&mut self, executor: &impl ToolExecutor, history: &History) {
        for found in self.session.new_calls(history) {
            let call = of_history(&self.session.calls, &found);
            if self.told.iter().any(|told| is_same(&told.call, &call)) {
                self.make(executor, call, Instant::now()).await;
            }
        }
    }
}

impl<E: ToolExecutor> Desk<'_, E> {
    /// Brings a call that an SDK made to its outcome.
    async fn make<'c>(
        &mut self,
        asked: ToolCall,
        turn: &'c (Known, Hooked),
        first: Option<Decision<'c>>,
        name: Option<&str>,
        started: Instant,
    ) -> Outcome {
        let waits = self.made.waits();
        self.made.begin(asked);
        let outcome = self.put_through(turn, first, waits, started).await;
        let outcome = self.report(name, outcome);
        self.made.end(&outcome);
        outcome
    }
}

/// One call of an announced round, with the session as the call sees it. What the call changed takes effect at its position when this is
/// dropped, also because the call was given up.
struct InPosition<'d> {
    driven: &'d mut Driven,
    position: usize,
}

impl<'d> InPosition<'d> {
    /// `is_unknown`: what the calls before it leave is not known, and can make a difference to it.
    fn new(driven: &'d mut Driven, position: usize, is_unknown: bool) -> Self {
        let Driven { session, positions, .. } = driven;
        let positions = positions.get_or_insert_with(|| Positions::new(session.state.clone()));
        session.state = positions.state_at(position);
        if is_unknown {
            session.state.distrust();
        }
        session.state.record_changes();
        Self { driven, position }
    }

    fn session(&mut self) -> &mut Session {
        &mut self.driven.session
    }
}

impl Drop for InPosition<'_> {
    fn drop(&mut self) {
        let Driven { session, positions, merged, .. } = &mut *self.driven;
        let changes = session.state.take_changes();
        if let Some(positions) = positions {
            positions.add(self.position, changes);
            session.state = positions.state();
        }
        // Later calls of the round may have set what this one set, and which of it is theirs is not known any more.
        if merged.is_some_and(|merged| self.position < merged) {
            session.state.distrust();
        }
    }
}
