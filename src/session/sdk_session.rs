//! Sessions whose rounds a provider's SDK drives: the SDK gets the session's tools, and each of its calls runs
//! as in rounds that Callgate drives.

mod positions;
mod progress;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard, Notify};

use self::positions::Positions;
use self::progress::{AnnouncedCall, SdkProgress};
use super::Session;
use super::history_resumption::{ResumeError, Round};
use crate::call::{Outcome, ToolCall};
use crate::execution::OfferedTools;
use crate::host::ToolExecutor;
use crate::json::Value;
use crate::kernel::Effect;
use crate::lifecycle::{ModelConfig, RunContext};
use crate::message::{CallPart, History, ResultPart};
use crate::tools::ToolDescriptor;

/// How long a call waits for the SDK to make the calls before it.
const PATIENCE: Duration = Duration::from_secs(1);

/// A session whose rounds an SDK drives: for each round [`announce_round`](Self::announce_round) if the SDK knows all
/// its calls before it makes them (otherwise each is decided by itself), [`call`](Self::call) for each call,
/// and [`suspend`](Self::suspend) at its end. A call's future may be dropped; the call is then `indeterminate`
/// and does not run again. Clones are the same session, and its calls run one after the other.
///
/// In an announced round, what a call changes in the session takes effect at the call's position in the round.
/// A call whose decision depends on the session waits for the calls before it. If the SDK makes none of them
/// for one second, the session's state is unknown to the call: conditions that read it are undecided, and
/// limits of the run count as used up.
pub struct SdkSession<E> {
    inner: Arc<Inner<E>>,
}

impl<E> Clone for SdkSession<E> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<E> std::fmt::Debug for SdkSession<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SdkSession").field("run", &self.inner.run).finish_non_exhaustive()
    }
}

struct Inner<E> {
    executor: E,
    run: RunContext,
    driven: Mutex<SdkProgress>,
    /// Notified when a call has ended.
    made: Notify,
}

/// An ended call of an SDK.
#[derive(Clone, Debug)]
pub struct SdkCallResult {
    /// Its outcome.
    pub outcome: Outcome,
    /// The result for the SDK's model. `None` if the call is suspended: the SDK then stops its loop.
    pub result: Option<ResultPart>,
}

impl Session {
    /// Gives the session's tools to an SDK that drives the rounds. [`begin`](Self::begin) and
    /// [`resume`](Self::resume) come before.
    pub fn into_sdk_session<E: ToolExecutor>(mut self, executor: E) -> SdkSession<E> {
        self.name_conversation(&self.conversation());
        let run = self.run.clone();
        let driven =
            Mutex::new(SdkProgress { session: self, announced: Vec::new(), positions: None, merged: None });
        SdkSession { inner: Arc::new(Inner { executor, run, driven, made: Notify::new() }) }
    }
}

impl<E: ToolExecutor> SdkSession<E> {
    /// The run, which can be ended from anywhere, also while a tool runs.
    pub fn run(&self) -> &RunContext {
        &self.inner.run
    }

    /// Returns the session, for its next steps outside of the SDK. Later calls of other clones are halted.
    pub async fn into_session(self) -> Session {
        let mut driven = self.inner.merged().await;
        let mut spare = Session::new(Arc::clone(&driven.session.shared));
        spare.state.halt("the session was taken back from the SDK");
        std::mem::replace(&mut driven.session, spare)
    }

    /// The session, for everything around the calls. Waits for a running call.
    pub async fn session(&self) -> SdkSessionGuard<'_> {
        SdkSessionGuard(self.inner.merged().await)
    }

    /// The tools that the model is offered now, as hooks and policies leave them. From now on, calls of other
    /// tools are denied with `not_offered`.
    pub async fn tools(&self) -> Vec<ToolDescriptor> {
        let mut driven = self.inner.driven.lock().await;
        let session = &mut driven.session;
        let mut config = ModelConfig { tools: session.tools().to_vec(), ..ModelConfig::default() };
        for at_init in [true, false] {
            // No run begins by this, so nothing in shadow mode is recorded.
            (config, _) = session.configure(config, at_init);
        }
        if !session.tools().is_empty() {
            session.offered = Some(Arc::new(OfferedTools::new(&config.tools)));
        }
        config.tools
    }

    /// Whether policies would suspend a call. Runs and counts nothing.
    pub async fn needs_approval(&self, tool: &str, input: &Value) -> bool {
        let driven = self.inner.driven.lock().await;
        let session = &driven.session;
        let call = driven.call("", tool, input);
        session.shared.kernel(&session.layers()).decide(&call, &session.state).effect() == Effect::Suspend
    }

    /// Announces all calls of a round before any of them is made. The round is then decided as a whole, as in
    /// rounds that Callgate drives: if one call halts the run, none runs; hooks see the round; and each call is
    /// decided as strictly as before any of them ran.
    ///
    /// If an SDK can't announce its rounds, each call is decided by itself when it is made: the calls before
    /// one that halts have run by then, and
    /// [`after_tool_request`](crate::lifecycle::Middleware::after_tool_request) is not called. Everything that
    /// is counted or remembered from call to call (limits, labels, facts, budgets, approvals that are requested
    /// one at a time) is the same in both. A policy that must stop a whole round belongs on the first dangerous
    /// call, not on a later one.
    pub async fn announce_round(&self, calls: &[CallPart]) {
        let mut driven = self.inner.merged().await;
        driven.merged = None;
        let SdkProgress { session, announced, positions, .. } = &mut *driven;
        announced.clear();
        session.round.clear();
        let calls: Vec<ToolCall> = calls
            .iter()
            .map(|part| {
                let call = session.calls.of(part);
                session.name_call(call)
            })
            .collect();
        session.before_calls(&calls);
        let stored = session.refresh_state().await;
        let scope = session.scope();
        let occurrences: Vec<String> =
            calls.iter().map(|call| session.state.unique_call_id(&call.id)).collect();
        let mut runner = session.runner(&scope, &self.inner.executor);
        for (position, (call, occurrence)) in calls.into_iter().zip(occurrences).enumerate() {
            let prepared = runner.prepare(call.clone().into(), occurrence, &stored).await;
            announced.push(AnnouncedCall { position, call, prepared, planned: None, scope: scope.clone() });
        }
        for AnnouncedCall { prepared, planned, .. } in announced.iter_mut() {
            *planned = runner.decide(prepared).map(|decision| Box::new(decision.into_owned()));
        }
        runner.halt_by_any(announced.iter().filter_map(|call| call.planned.as_deref()));
        *positions = Some(Positions::new(session.state.clone()));
    }

    /// Runs a call that the SDK makes.
    pub async fn call(&self, id: &str, tool: &str, input: Value) -> SdkCallResult {
        let started = Instant::now();
        let mut driven = self.inner.turn_of(id, tool, &input).await;
        let call = driven.call(id, tool, &input);
        let call = driven.session.name_call(call);
        let outcome = driven.run_call(&self.inner.executor, call, started).await;
        let result = driven.session.result_for_model(&outcome);
        drop(driven);
        self.inner.made.notify_waiters();
        SdkCallResult { outcome: *outcome, result }
    }

    /// Puts the results of the round, and the approval requests of suspended calls, into the SDK's history,
    /// which has the model's calls. The session's state is sealed as after a round that Callgate drives. An
    /// announced call that the SDK did not make, because it stopped at another, runs now. Also for the end of a
    /// round without suspended calls.
    pub async fn suspend(&self, history: &mut History) -> Result<Round, ResumeError> {
        let mut driven = self.inner.driven.lock().await;
        if let Some(persisted) = driven.session.persisted_state(history, true).await? {
            driven.change_state(|state| state.restore(&persisted));
            driven.session.has_loaded_state = true;
        }
        driven.run_rest(&self.inner.executor, history).await;
        driven.announced.clear();
        driven.merge();
        driven.session.run_round(history, &self.inner.executor).await
    }
}

impl<E> Inner<E> {
    /// The session, for something else than a call of the round.
    async fn merged(&self) -> MutexGuard<'_, SdkProgress> {
        let mut driven = self.driven.lock().await;
        driven.merge();
        driven
    }

    /// The session for a call, once the calls that it depends on have been made, or it has waited long enough.
    async fn turn_of(&self, id: &str, tool: &str, input: &Value) -> MutexGuard<'_, SdkProgress> {
        let driven = self.driven.lock().await;
        if !driven.waits_for_earlier(id, tool, input) {
            return driven;
        }
        let shared = Arc::clone(&driven.session.shared);
        let mut remaining = driven.announced.len();
        drop(driven);
        let mut patience = shared.services.clock.sleep(PATIENCE);
        loop {
            // Before the check: a call that ends in between must not be missed.
            let mut notified = pin!(self.made.notified());
            notified.as_mut().enable();
            let driven = self.driven.lock().await;
            if !driven.waits_for_earlier(id, tool, input) {
                return driven;
            }
            drop(driven);
            if !is_first(notified, patience.as_mut()).await {
                let driven = self.driven.lock().await;
                // While a call runs, the SDK may have made others that wait as this one does.
                if driven.announced.len() == remaining {
                    return driven;
                }
                remaining = driven.announced.len();
                patience = shared.services.clock.sleep(PATIENCE);
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

/// The session of an SDK, as long as nothing else uses it.
#[derive(Debug)]
pub struct SdkSessionGuard<'a>(MutexGuard<'a, SdkProgress>);

impl std::ops::Deref for SdkSessionGuard<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0.session
    }
}

impl std::ops::DerefMut for SdkSessionGuard<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.0.session
    }
}
