//! Executes a call: the tool in the middle, and around it the hooks and policies that wrap its execution, each calling the next one
//! inside. Decided call → [`Execution`], or the decision that stopped it before its tool was called.

mod cache;
mod hook;
mod nested_call;
mod retry;
mod script;
mod script_answer;
pub(super) mod single_flight;
mod timeout;

use std::collections::BTreeSet;

use super::admission::AcquiredLimits;
use super::{CallAttempt, CallContext, ToolResult};
use crate::call::{OutcomeKind, Reason, SessionState, ToolCall, reason_code};
use crate::host::{Account, BoxFuture, ToolError, ToolExecutor, boxed, catch_panic, with_deadline};
use crate::json::{self, Digest, Value};
use crate::kernel::{
    Broken, CallResponse, Decision, Effect, Execution, HeldResources, PolicyHandle, Records,
    StoppedExecution, Trace, Wrapper,
};
use crate::middleware::PolicyKind;

/// Why what is wrapped has no response.
pub(super) enum Interruption {
    Broken(Broken),
    /// A call that was made of this one is refused, which stops this one.
    Stopped(Box<Decision<'static>>),
}

impl From<Broken> for Interruption {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<Box<Decision<'static>>> for Interruption {
    fn from(decision: Box<Decision<'static>>) -> Self {
        Self::Stopped(decision)
    }
}

/// The response of what a wrapper wraps, or of the wrapper.
type WrapResult = Result<CallResponse, Interruption>;

/// A policy that wraps the execution of calls.
trait Wrap {
    /// Runs the policy around what is inside of it.
    fn wrap<'a, E: ToolExecutor>(&'a self, next: Next<'a, '_, E>) -> BoxFuture<'a, WrapResult>;
}

/// What is inside of one wrapper: `policy` is the wrapper's own.
struct Next<'a, 'n, E> {
    chain: &'a mut WrapperChain<'n, E>,
    policy: PolicyHandle<'a>,
    /// The wrapper's place among all that can wrap a call of this tool.
    order: u32,
    call: &'a ToolCall,
    inner: &'a [Wrapper],
}

impl<E: ToolExecutor> Next<'_, '_, E> {
    /// Runs what is inside, with the call as it is.
    fn run(&mut self) -> BoxFuture<'_, WrapResult> {
        self.chain.wrapped(self.call, self.inner)
    }
}

/// One call under execution.
pub(super) struct WrapperChain<'n, E> {
    context: &'n CallContext<'n, E>,
    attempt: &'n CallAttempt<'n>,
    limits: &'n mut AcquiredLimits,
    state: &'n mut SessionState,
    trace: &'n mut Trace,
    /// How often the tool was called.
    attempts: u32,
    /// The session has counted the call.
    is_counted: bool,
    /// The tool was called and has not returned: what it changes is unknown.
    is_outstanding: bool,
    /// The number of single flights that wait for this call.
    leads: u32,
    /// The tool's result is not the end of the call.
    is_single_use: bool,
    input: Option<Value>,
    records: Records,
    /// The arguments with which facts were stored, because the tool was about to run.
    attempted: BTreeSet<Digest>,
}

impl<'n, E: ToolExecutor> WrapperChain<'n, E> {
    pub(super) fn new(
        context: &'n CallContext<'n, E>,
        attempt: &'n CallAttempt<'n>,
        limits: &'n mut AcquiredLimits,
        state: &'n mut SessionState,
        trace: &'n mut Trace,
    ) -> Self {
        Self {
            context,
            attempt,
            limits,
            state,
            trace,
            attempts: 0,
            is_counted: false,
            is_outstanding: false,
            leads: 0,
            is_single_use: false,
            input: None,
            records: Records::default(),
            attempted: BTreeSet::new(),
        }
    }

    /// Executes a call that may run. Errors: it was stopped before its tool was called.
    /// Leaves the chain without its records. By reference: by value, the future would have room for it twice.
    pub(super) async fn run(
        &mut self,
        call: &ToolCall,
        wrappers: &[Wrapper],
    ) -> Result<Execution, StoppedExecution> {
        let hooks = self.context.hooks.all;
        let only_asks = self.attempt.only_asks.is_some();
        let result = if wrappers.is_empty() && hooks.is_empty() && !only_asks {
            self.call_tool(call).await
        } else {
            // The host's clock may panic in here.
            let result = catch_panic(boxed(self.hooked(call, hooks, wrappers))).await;
            result.unwrap_or_else(|_| Err(self.panicked().into()))
        };
        if self.is_outstanding {
            boxed(self.invalidate(&self.context.kernel.invalidated_by(call))).await;
        }
        let is_unknown = self.is_outstanding && self.attempt.needs_claim();
        let result = match (&self.attempt.only_asks, result) {
            // What is given in place of a result is no approval request either.
            (Some(why), Ok(_) | Err(Interruption::Broken(_))) => Err(self.not_asked(call, why).into()),
            (_, result) => result,
        };
        let kernel = &self.context.kernel;
        let attempts = self.attempts;
        let (input, records) = (self.input.take(), std::mem::take(&mut self.records));
        let result = match result {
            // A call that may run only once has failed, and it is unknown whether it took effect.
            Ok(CallResponse { result: Err(error), source, .. }) if is_unknown => {
                let code = error.kind.unwrap_or_else(|| reason_code::UNFINISHED.to_owned());
                let reason = Reason { policy: None, code, message: error.message };
                Err(Broken { policy: source.policy(), reason, kind: OutcomeKind::Indeterminate })
            }
            Ok(response) => Ok(response),
            Err(Interruption::Broken(broken)) => Err(broken),
            // The tool ran before a further call of it was refused: this one is settled like any that ran.
            Err(Interruption::Stopped(mut refused)) if attempts > 0 => {
                *self.trace = refused.take_trace();
                let (reason, halts) = (refused.reason(), refused.effect() == Effect::Halt);
                if halts {
                    kernel.halt(&refused, self.state);
                }
                let kind = if halts { OutcomeKind::Halted } else { OutcomeKind::Failed };
                Err(Broken { policy: None, reason, kind })
            }
            Err(Interruption::Stopped(decision)) => return Err(StoppedExecution { decision, records }),
        };
        Ok(Execution { result, attempts, input, records })
    }

    /// Runs the call inside of these wrappers.
    fn wrapped<'a>(&'a mut self, call: &'a ToolCall, wrappers: &'a [Wrapper]) -> BoxFuture<'a, WrapResult> {
        let Some((wrapper, inner)) = wrappers.split_first() else {
            return Box::pin(async move {
                match &self.attempt.only_asks {
                    None => self.call_tool(call).await,
                    Some(why) => Err(self.not_asked(call, why).into()),
                }
            });
        };
        let Some(policy) = PolicyHandle::find(wrapper.policy, self.context.kernel.layers) else {
            return self.wrapped(call, inner);
        };
        let next = Next { chain: self, policy, order: wrapper.order, call, inner };
        // One future for each policy, and none around it: many policies may wrap one call.
        match &policy.policy.kind {
            PolicyKind::Cache(cache) => cache.wrap(next),
            PolicyKind::Around(around) => around.wrap(next),
            PolicyKind::Retry(retry) => retry.wrap(next),
            PolicyKind::Timeout(timeout) => timeout.wrap(next),
            // Kinds that are not active in execution are not selected.
            PolicyKind::Deny(_)
            | PolicyKind::Require(_)
            | PolicyKind::Allow(_)
            | PolicyKind::Halt(_)
            | PolicyKind::Validate(_)
            | PolicyKind::RateLimit(_)
            | PolicyKind::Concurrency(_)
            | PolicyKind::Approval(_)
            | PolicyKind::Transform(_)
            | PolicyKind::Redact(_)
            | PolicyKind::Respond(_)
            | PolicyKind::Recover(_)
            | PolicyKind::Label(_)
            | PolicyKind::Fact(_)
            | PolicyKind::Audit(_)
            | PolicyKind::Model(_)
            | PolicyKind::Stream(_)
            | PolicyKind::Budget(_) => next.chain.wrapped(call, inner),
        }
    }

    /// Calls the tool once.
    async fn call_tool(&mut self, call: &ToolCall) -> WrapResult {
        let run = self.context.hooks.run;
        let aborted = |message: String, kind: OutcomeKind| {
            let reason = Reason { policy: None, code: reason_code::ABORTED.to_owned(), message };
            Broken { policy: None, reason, kind }
        };
        if let Some(why) = run.abort_reason() {
            let message = format!("the run was ended before `{}` was called ({why})", call.tool);
            return Err(aborted(message, OutcomeKind::Aborted).into());
        }
        // On the heap, here and below: few calls need them, and the future of every call has room for what it contains.
        if self.context.kernel.has_attempted_facts(call) {
            boxed(self.store_attempted_facts(call)).await?;
        }
        if !self.is_counted && call.method().is_none() {
            // Before it runs: a call that is given up half-way has run all the same.
            self.state.count_call(&call.tool);
            self.is_counted = true;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.is_outstanding = true;
        // Before, for a call that is given up may have changed something; and after, for what was read meanwhile is outdated.
        let changed = self.context.kernel.invalidated_by(call);
        if !changed.is_empty() {
            boxed(self.invalidate(&changed)).await;
        }
        // On the heap: a tool may be large, and each future that waits for it would have room for it, and its stack for copies of that.
        let execution = Box::pin(self.context.executor.execute(call));
        let answer = with_deadline(catch_panic(execution), || async {
            run.wait_for_abort().await;
        })
        .await;
        if !changed.is_empty() {
            boxed(self.invalidate(&changed)).await;
        }
        let Some(answer) = answer else {
            let why = run.abort_reason().unwrap_or_default();
            let message =
                format!("the run was ended while `{}` ran ({why}); it may have taken effect", call.tool);
            let is_claimed = self.attempt.needs_claim();
            let kind = if is_claimed { OutcomeKind::Indeterminate } else { OutcomeKind::Aborted };
            return Err(aborted(message, kind).into());
        };
        self.is_outstanding = false;
        self.record_result(|| {
            let panicked = || Err(ToolError::new("the tool panicked").with_kind("panic"));
            answer.as_ref().map_or_else(|_| panicked(), Clone::clone)
        });
        if let Ok(Ok(answer)) = &answer
            && !answer.dry
            && !answer.interim
            && self.limits.has_estimates()
        {
            let context = self.context;
            boxed(self.limits.correct_costs(context, call, &answer.output, self.state)).await;
        }
        Ok(match answer {
            Ok(Ok(answer)) => {
                self.is_single_use |= answer.interim || answer.single_use;
                CallResponse::executed(answer.output, answer.dry)
            }
            Ok(Err(error)) => CallResponse::failed(error),
            Err(_) => CallResponse::failed(ToolError::new("the tool panicked").with_kind("panic")),
        })
    }

    /// Stores the facts of a call whose tool is about to run, once for each arguments: also in the session's store, so that they outlast a
    /// process that ends while the tool runs. A call whose start cannot be stored does not start.
    async fn store_attempted_facts(&mut self, call: &ToolCall) -> Result<(), Interruption> {
        let CallContext { kernel, services, session, hooks, .. } = self.context;
        if !self.attempted.insert(json::digest(&call.input)) {
            return Ok(());
        }
        let mut started = self.state.clone();
        // Only what starts here: what the session has changed before is stored at its own time.
        started.mark_all_stored();
        started.record_changes();
        self.trace.append(kernel.store_attempted_facts(call, &mut started));
        let changes = started.take_changes();
        if changes.is_empty() {
            return Ok(());
        }
        self.state.apply_changes(&changes);
        let mut started = started.without_occurrences();
        let account = Account::from_context(&hooks.run.context);
        let stored = services.store_session(session.conversation, account, &mut started).await;
        stored.map_err(|error| {
            let message = format!("the facts that this call stores when it starts can't be stored: {error}");
            let decision = Decision::refused(call, Effect::Deny, error.code(), &message);
            self.refused(Box::new(decision)).into()
        })
    }

    /// The refusal of a call that may only be asked about again, when nothing asks about it.
    fn not_asked(&self, call: &ToolCall, why: &str) -> Box<Decision<'static>> {
        let mut decision = self.context.kernel.decide_holding(call, self.state, self.held());
        let code = reason_code::APPROVAL_INVALID.to_owned();
        decision.refuse(Effect::Deny, Reason { policy: None, code, message: why.to_owned() }, None);
        self.refused(decision)
    }

    /// Callgate itself failed around the tool.
    fn panicked(&self) -> Broken {
        let when = if self.attempts > 0 { "after" } else { "before" };
        let message = format!("Callgate failed {when} the tool was called");
        let reason = Reason { policy: None, code: reason_code::INTERNAL_ERROR.to_owned(), message };
        let kind = if self.is_outstanding { OutcomeKind::Indeterminate } else { OutcomeKind::Failed };
        Broken { policy: None, reason, kind }
    }

    /// Clears these caches, of what a tool changes. If the store does not answer, entries stay until they expire.
    async fn invalidate(&self, caches: &[PolicyHandle<'_>]) {
        let services = self.context.services;
        for by in caches {
            if let PolicyKind::Cache(cache) = &by.policy.kind {
                let space = space_name(*by, cache.identity());
                let _ = services.ask(|| services.store.cache_clear(&space)).await;
            }
        }
    }

    /// What the call holds already.
    fn held(&self) -> HeldResources<'_> {
        HeldResources { limits: self.limits.held(), permits: &self.attempt.permits }
    }
}

impl<E> WrapperChain<'_, E> {
    /// Records what the tool or a cache returned, if there are candidate rules.
    fn record_result(&self, result: impl FnOnce() -> ToolResult) {
        let CallContext { services, session, .. } = self.context;
        if services.candidate.is_some() {
            session.recording.add(result());
        }
    }
}

/// The name of what a policy keeps in the store.
fn space_name(by: PolicyHandle<'_>, identity: &str) -> String {
    format!("{}/{}/{identity}", by.layer(), by.policy.id)
}
