//! A session whose calls run concurrently, as those of a gateway's client do.
//!
//! The order of arrival is a call's position. A call sees the changes of the calls before it in the session,
//! and nothing of the calls after it, whichever of them ends first. So a call that depends on the session's
//! state waits for the calls before it; every other runs at once, after those that may halt the run. A call's
//! changes take effect at its position: of two calls that set a fact, the later one counts.

mod call_queue;
mod handed_over_call;
mod run_steps;
mod rule_queries;

pub use handed_over_call::{HandOver, HandOverError};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::watch;

use self::call_queue::{CallQueue, Inner, Order, RulesOf};
use super::{Session, SessionScope};
use crate::approval::LedgerKey;
use crate::call::{Outcome, SessionState, Task, ToolCall};
use crate::execution::{
    ApprovalMessages, EntrySnapshot, HookedCall, LedgerLookup, PendingCall, PreparedCall, ResumedCall,
    RoundProgress,
};
use crate::host::{Account, StoreError, ToolExecutor};
use crate::json::Value;
use crate::kernel::{Effect, Kernel, Layers, SessionUse};
use crate::message::{RequestPart, ResponsePart};
use crate::policy::CompiledPolicies;

/// A session whose calls may run concurrently. Clones are the same session.
#[derive(Clone)]
pub struct ConcurrentSession {
    inner: Arc<Inner>,
    /// What the user asked for, for the calls that are executed through this value.
    task: Option<Task>,
}

impl std::fmt::Debug for ConcurrentSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConcurrentSession").finish_non_exhaustive()
    }
}

impl Session {
    /// Lets the calls of the session run concurrently. The state is stored in a store that processes share,
    /// under the session's name or `conversationId`, and loaded from there. There are no rounds: each call is
    /// decided when it arrives. The records of a [`recorded`](Self::with_call_recording) session are not kept either.
    pub fn concurrent(self) -> ConcurrentSession {
        self.concurrent_with(|_| None)
    }

    /// The same with rules for the calls of one server alone, as the last layer: they can only tighten the
    /// others.
    pub fn concurrent_with(
        self,
        rules_of: impl Fn(&str) -> Option<Arc<CompiledPolicies>> + Send + Sync + 'static,
    ) -> ConcurrentSession {
        self.into_concurrent(None, Box::new(rules_of))
    }

    /// The same, and approvals are found again by requester, server, tool and arguments, in every session of
    /// the requester and after a restart. A call that may need an approval gets an id of ours, the same for
    /// equal calls.
    ///
    /// `requester`: a name that no other requester in the store has. Whoever has it can use the approvals that
    /// were given under it.
    pub fn concurrent_for(
        self,
        requester: impl Into<String>,
        rules_of: impl Fn(&str) -> Option<Arc<CompiledPolicies>> + Send + Sync + 'static,
    ) -> ConcurrentSession {
        self.into_concurrent(Some(requester.into()), Box::new(rules_of))
    }

    fn into_concurrent(
        mut self,
        approval_scope: Option<String>,
        rules_of: Box<RulesOf>,
    ) -> ConcurrentSession {
        self.is_recorded = false;
        let line = Mutex::new(CallQueue {
            session: self,
            next: 0,
            under_way: BTreeMap::new(),
            ended: BTreeMap::new(),
        });
        let left = watch::Sender::new(0);
        let inner = Inner { line, approval_scope, rules_of, left, keeping: tokio::sync::Mutex::new(()) };
        ConcurrentSession { inner: Arc::new(inner), task: None }
    }

    /// Marks the state of the session so far as unknown, unless a shared store knows it: conditions that read
    /// it are undecided, so restricting policies apply. For hosts that had to forget a session. What a run that
    /// [begins](Self::begin) afterwards uses of limits and budgets is known.
    #[must_use]
    pub fn with_unknown_past(mut self) -> Self {
        if !self.shared.services.store.is_shared() {
            self.state.mark_untrusted();
            self.progress.is_past_forgotten = true;
        }
        self
    }

    /// The same session for one call, in this state. `layer`: the call's own rules.
    fn for_one_call(&self, state: SessionState, layer: Option<Arc<CompiledPolicies>>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            name: self.name.clone(),
            state,
            lower_layers: self.lower_layers.iter().cloned().chain(layer).collect(),
            unnamed_calls: self.unnamed_calls,
            unique_name: self.unique_name.clone(),
            calls: super::CallReader::default(),
            is_recorded: false,
            keeps_recorded_course: false,
            has_loaded_state: self.has_loaded_state,
            hooks: self.hooks.clone(),
            run: self.run.clone(),
            progress: super::RunProgress::default(),
            tools: self.tools.clone(),
            formatter: self.formatter.clone(),
            skill_tool: None,
            offered: self.offered.clone(),
            listener: self.listener.clone(),
            round: RoundProgress::default(),
            task: self.task.clone(),
        }
    }
}

impl Session {
    fn kernel_over<'k>(&'k self, layers: &'k Layers) -> Kernel<'k> {
        let tools = self.tools.as_deref().unwrap_or(&self.shared.tools).set();
        Kernel { tools, task: &self.task, ..self.shared.kernel(layers) }
    }

    /// Whether this many running calls could use up a budget of the run.
    pub(super) fn may_be_last(&self, others: usize, scope: &SessionScope) -> bool {
        !self.budgets(scope).leave_calls(&self.state, others)
    }

    /// How a call depends on the session's state.
    pub(super) fn session_use(&self, call: &ToolCall, layers: &Layers) -> SessionUse {
        self.kernel_over(layers).session_use(call, &self.state, !self.hooks.is_empty())
    }

    /// Whether a call halts the run, now that the session's state is known.
    fn halts(&self, call: &ToolCall, layers: &Layers) -> bool {
        self.kernel_over(layers).decide(call, &self.state).effect() == Effect::Halt
    }
}

impl ConcurrentSession {
    /// The same session, whose policies read this as `$.task` for the calls that are executed or resumed through the result.
    ///
    /// Policies trust it: see [`Session::set_task`].
    #[must_use]
    pub fn with_task(&self, task: Task) -> Self {
        Self { inner: Arc::clone(&self.inner), task: Some(task) }
    }

    /// Evaluates one call, runs it if the policies allow it, and returns its outcome. No other call of the
    /// session may have its id: ids are not kept, for sessions of gateways are long. A call without one is
    /// given one.
    ///
    /// The future may be dropped: a call whose tool was started then counts as started, and has no outcome.
    pub async fn execute(&self, call: ToolCall, executor: &impl ToolExecutor) -> Outcome {
        self.execute_in(Order::Queued, call, executor).await
    }

    /// As [`execute`](Self::execute), for a request that an earlier call waits for, such as a server's question to the user: it never waits
    /// for earlier calls. If what it reads of the session depends on one of them, that is unknown.
    pub async fn execute_nested(&self, call: ToolCall, executor: &impl ToolExecutor) -> Outcome {
        self.execute_in(Order::Nested, call, executor).await
    }

    async fn execute_in(&self, order: Order, call: ToolCall, executor: &impl ToolExecutor) -> Outcome {
        let started = Instant::now();
        self.load().await;
        let requester = self.inner.approval_scope.as_deref();
        // Hooks may ask, and change what is asked about: the approval is looked up before they see the call.
        let recalls_first = requester.is_some() && !self.inner.queue().session.hooks.is_empty();
        let call = self.inner.queue().session.name_call(Box::new(call));
        let mut turn = self.inner.enter(&call, self.task.as_ref(), order);
        let hooked = match recalls_first {
            true => HookedCall::untouched(call),
            false => self.inner.hooked(call).await,
        };
        self.inner.begin(&mut turn, &hooked.call, recalls_first).await;
        let session = &mut turn.session;
        let scope = session.scope();
        let mut runner = session.runner(&scope, executor);
        runner.context.session.approval_scope = requester;
        let (lookup, mut hooked) = match requester {
            Some(requester) if recalls_first || runner.may_ask(&hooked.call) => {
                let (call, lookup) = runner.recall(*hooked.call, requester).await;
                match lookup {
                    LedgerLookup::New(_) => (lookup, runner.run_before_hooks(call.into()).await),
                    lookup => (lookup, HookedCall::untouched(call)),
                }
            }
            _ => (LedgerLookup::New(runner.context.call_key(hooked.call.id.clone())), hooked),
        };
        runner.refuse_unoffered(&mut hooked);
        let prepared = PreparedCall { hooked, lookup };
        let decision = runner.decide(&prepared);
        let outcome = runner.run_prepared(&prepared, decision, started).await;
        if let (LedgerLookup::Known(..), Some(requester)) = (&prepared.lookup, requester) {
            runner.pass_over(requester, &prepared.hooked.call, &outcome).await;
        }
        let outcome = runner.report(&prepared.hooked.call, outcome);
        drop(turn);
        self.record_outcome().await;
        // If the store does not answer, the next call stores it.
        let _ = self.save_state().await;
        *outcome
    }

    /// Resumes a pending call with the request as it was given out, and the answers beside those in the store.
    /// It runs if it is approved, and stays pending without an answer.
    pub async fn resume_call(
        &self,
        call: ToolCall,
        question: &RequestPart,
        answers: &[ResponsePart],
        executor: &impl ToolExecutor,
    ) -> Outcome {
        let messages = ApprovalMessages { request: Some(question), answers };
        self.resume_in(Order::Queued, call, messages, executor).await
    }

    /// As [`resume_call`](Self::resume_call), for a call that was executed by [`execute_nested`](Self::execute_nested).
    pub async fn resume_nested(
        &self,
        call: ToolCall,
        question: &RequestPart,
        answers: &[ResponsePart],
        executor: &impl ToolExecutor,
    ) -> Outcome {
        let messages = ApprovalMessages { request: Some(question), answers };
        self.resume_in(Order::Nested, call, messages, executor).await
    }

    async fn resume_in(
        &self,
        order: Order,
        call: ToolCall,
        messages: ApprovalMessages<'_>,
        executor: &impl ToolExecutor,
    ) -> Outcome {
        let started = Instant::now();
        self.load().await;
        let (call, has_hooks) = {
            let session = &mut self.inner.queue().session;
            (session.name_call(call), !session.hooks.is_empty())
        };
        let mut turn = self.inner.enter(&call, self.task.as_ref(), order);
        self.inner.begin(&mut turn, &call, has_hooks).await;
        let session = &mut turn.session;
        let scope = session.scope();
        let approval_id = messages.request.map_or("", |request| request.approval_id.as_str());
        let occurrence = approval_id.strip_prefix("approval_").unwrap_or(&call.id).to_owned();
        let mut runner = session.runner(&scope, executor);
        runner.context.session.approval_scope = self.inner.approval_scope.as_deref();
        let key = runner.context.call_key(occurrence);
        let pending = PendingCall { key: &key, messages, entry: EntrySnapshot::Unread };
        let ResumedCall { outcome, .. } = runner.resume_call(&call, pending, started).await;
        let outcome = runner.report(&call, outcome);
        drop(turn);
        self.record_outcome().await;
        // If the store does not answer, the next call stores it.
        let _ = self.save_state().await;
        *outcome
    }

    /// The request of an approval id, as it was given out. Returns `None` if the store does not have it.
    pub async fn find_request(&self, approval_id: &str) -> Option<RequestPart> {
        let (shared, conversation) = {
            let line = self.inner.queue();
            (Arc::clone(&line.session.shared), line.session.conversation())
        };
        let conversation = self.inner.approval_scope.clone().unwrap_or(conversation);
        let ledger = shared.services.ledger(Account::NOBODY);
        let entry = ledger.find(&LedgerKey::of_approval(&conversation, approval_id)).await.ok()??;
        entry.request.as_ref().map(RequestPart::from)
    }

    /// Replaces the context of the run, as for a host that has verified its caller again. Each call has its own
    /// context.
    pub fn set_context(&self, context: Value) {
        let session = &mut self.inner.queue().session;
        session.run.context.clone_from(&context);
        session.calls.context = context;
    }

    /// The state of the session.
    pub fn state(&self) -> SessionState {
        self.inner.queue().seen_from(u64::MAX)
    }

    /// Whether no call is running.
    pub fn is_idle(&self) -> bool {
        self.inner.queue().under_way.is_empty()
    }

    /// Loads, once, the state that the store has of the session. If the store does not answer, the state is
    /// unknown.
    async fn load(&self) {
        let (shared, conversation, account) = {
            let session = &self.inner.queue().session;
            if session.has_loaded_state {
                return;
            }
            (Arc::clone(&session.shared), session.conversation(), session.account())
        };
        let stored = shared.services.load_session(&conversation, account).await;
        let session = &mut self.inner.queue().session;
        if !std::mem::replace(&mut session.has_loaded_state, true) {
            match stored {
                Ok(stored) => stored.merge_into(&mut session.state),
                Err(_) => session.state.mark_untrusted(),
            }
        }
    }

    /// Waits until observers have recorded the outcome of a call.
    async fn record_outcome(&self) {
        let shared = Arc::clone(&self.inner.queue().session.shared);
        shared.services.observers.record_outcomes().await;
    }

    /// Stores the state in a shared store.
    async fn save_state(&self) -> Result<(), StoreError> {
        {
            let session = &mut self.inner.queue().session;
            if !session.shared.services.store.is_shared() {
                session.state.mark_all_stored();
                return Ok(());
            }
        }
        let _keeping = self.inner.keeping.lock().await;
        let (shared, conversation, account, mut state) = {
            let line = self.inner.queue();
            let session = &line.session;
            let (conversation, account) = (session.conversation(), session.account());
            (Arc::clone(&session.shared), conversation, account, line.seen_from(u64::MAX))
        };
        shared.services.store_session(&conversation, account, &mut state).await?;
        self.inner.queue().session.state.mark_stored(&state);
        Ok(())
    }
}
