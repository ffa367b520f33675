//! The regime in which a provider's SDK drives the rounds: it gets a map of armed tools, and each of its calls goes through the same
//! desk as in the regime in which Callgate drives them.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Mutex, MutexGuard};

use super::Session;
use super::desk::Known;
use super::made::is_same;
use super::offered::Offered;
use super::resume::{ResumeError, Round, of_history};
use super::rounds::decided;
use crate::call::{Outcome, ToolCall};
use crate::execution::Hooked;
use crate::host::ToolExecutor;
use crate::json::Value;
use crate::kernel::{Decision, Effect, Layers};
use crate::lifecycle::{Config, RunContext};
use crate::message::{CallPart, History, ResultPart};
use crate::tools::ToolDescriptor;

/// A session whose tools an SDK drives: for each round [`tell_round`](Self::tell_round) where the SDK knows all its calls before it makes
/// them (otherwise each is decided by itself), [`call`](Self::call) for each call, and [`suspend`](Self::suspend) at its end. A call's
/// future may be dropped; it is then `indeterminate` and not run again. Clones are the same session; calls that come at once wait for each other, for what ran before
/// in a round counts for what comes after.
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
}

/// The session, and how far its present round is.
struct Driven {
    session: Session,
    /// Calls that the SDK has told of and not yet made.
    told: Vec<Told>,
}

/// A call of a round that an SDK has told of.
struct Told {
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
        let driven = Mutex::new(Driven { session: self, told: Vec::new() });
        Armed { inner: Arc::new(Inner { executor, run, driven }) }
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
        let mut driven = self.inner.driven.lock().await;
        let mut spare = Session::new(Arc::clone(&driven.session.shared));
        spare.state.halt("the session is not driven from here any more");
        std::mem::replace(&mut driven.session, spare)
    }

    /// The session, for everything around the calls. Waits for a call that runs.
    pub async fn session(&self) -> ArmedSession<'_> {
        ArmedSession(self.inner.driven.lock().await)
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
        let mut driven = self.inner.driven.lock().await;
        let Driven { session, told } = &mut *driven;
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
        for (call, name) in calls.into_iter().zip(names) {
            let turn = desk.prepare(call.clone(), name, &seen).await;
            told.push(Told { call, turn, first: None, layers: layers.clone() });
        }
        let kernel = desk.kernel();
        for Told { turn, first, .. } in told.iter_mut() {
            *first = decided(&kernel, turn, desk.state).map(Decision::into_owned);
        }
        let mut decisions = told.iter().filter_map(|told| told.first.as_ref());
        if let Some(halting) = decisions.find(|decision| decision.effect() == Effect::Halt) {
            kernel.halt(halting, desk.state);
        }
    }

    /// A call that the SDK makes.
    pub async fn call(&self, id: &str, tool: &str, input: Value) -> Called {
        let started = Instant::now();
        let mut driven = self.inner.driven.lock().await;
        let asked = driven.call(id, tool, &input);
        let asked = driven.session.name_call(asked);
        let outcome = driven.make(&self.inner.executor, asked, started).await;
        let result = driven.session.result_for_model(&outcome);
        Called { outcome, result }
    }

    /// Puts what came of the round into the SDK's history, which has the model's calls: results that it does not have yet, and the
    /// questions of calls that wait; what the session has seen is sealed as after a round that Callgate drives. A call that the SDK
    /// did not make, because it stopped at another, is put through now. Also for the end of a round in which nobody is waited for.
    pub async fn suspend(&self, history: &mut History) -> Result<Round, ResumeError> {
        let mut driven = self.inner.driven.lock().await;
        driven.session.see(history, true).await?;
        driven.make_rest(&self.inner.executor, history).await;
        driven.told.clear();
        driven.session.round(history, &self.inner.executor).await
    }
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

    /// Brings one call to its outcome: of a round that was told as its round was decided, otherwise by itself.
    async fn make(&mut self, executor: &impl ToolExecutor, asked: ToolCall, started: Instant) -> Outcome {
        let Self { session, told } = self;
        session.halt_if_aborted();
        let place = told.iter().position(|told| is_same(&told.call, &asked));
        let known = place.map(|place| told.remove(place));
        let occurrence = match &known {
            Some(_) => String::new(),
            None => session.state.name_occurrence(&asked.id),
        };
        let seen = session.see_recorded().await;
        let conversation = session.conversation();
        let layers = known.as_ref().map_or_else(|| session.layers(), |told| told.layers.clone());
        let name = session.name.clone();
        let mut desk = session.desk(&layers, &conversation, executor);
        let (turn, first) = match known {
            Some(told) => (told.turn, told.first),
            None => (desk.prepare(asked.clone(), occurrence, &seen).await, None),
        };
        let waits = desk.made.waits();
        desk.made.begin(asked);
        let outcome = desk.put_through(&turn, first, waits, started).await;
        let outcome = desk.report(name.as_deref(), outcome);
        desk.made.end(&outcome);
        outcome
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
