//! The tool in the middle, and around it the policies that wrap its execution, each calling the next one inside.

use std::borrow::Cow;
use std::time::Duration;

use super::Execute;
use super::admission::Taken;
use super::flights::{Flight, landed};
use super::turn::Turn;
use crate::call::{OutcomeKind, Reason, SessionState, ToolCall, Verdict, reason_code};
use crate::host::{
    BoxFuture, CacheEntry, CacheSpace, Lookup, ToolAnswer, ToolError, ToolExecutor, before, guarded,
};
use crate::json::Value;
use crate::kernel::{
    Decision, Effect, Ended, ErrorAsked, Event, Execution, PolicyRef, Records, Trace, Wrapper, tell,
};
use crate::middleware::{Cache, Kind, Retry, Timeout};
use crate::policy::Policy;

/// How an execution ended, or the decision that stopped it half-way: a call that a policy made of this one was refused.
pub(super) type Nested = Result<Ended, Box<Decision<'static>>>;

/// One call under execution.
pub(super) struct Nest<'n, E> {
    pub(super) execute: &'n Execute<'n, E>,
    /// The call as the session has it, before hooks.
    pub(super) requested: &'n ToolCall,
    pub(super) turn: &'n Turn,
    pub(super) taken: &'n mut Taken,
    pub(super) state: &'n mut SessionState,
    pub(super) trace: Trace,
    /// The tool was called this often.
    pub(super) attempts: u32,
    /// The session has counted the call.
    pub(super) counted: bool,
    /// The tool was called, and has not come back: what it changes is not known.
    outstanding: bool,
    /// This many flights wait for the call.
    leads: u32,
    /// What the tool gave is not the end of the call.
    pub(super) interim: bool,
    pub(super) input: Option<Value>,
    pub(super) records: Records,
}

impl<'n, E: ToolExecutor> Nest<'n, E> {
    pub(super) fn new(
        execute: &'n Execute<'n, E>,
        requested: &'n ToolCall,
        turn: &'n Turn,
        taken: &'n mut Taken,
        state: &'n mut SessionState,
    ) -> Self {
        Self {
            execute,
            requested,
            turn,
            taken,
            state,
            trace: Trace::default(),
            attempts: 0,
            counted: false,
            outstanding: false,
            leads: 0,
            interim: false,
            input: None,
            records: Records::default(),
        }
    }

    /// Executes a call that may run. Errors: the decision that stopped it before the tool was called, with what was recorded.
    pub(super) async fn run(
        mut self,
        decision: &mut Decision<'_>,
    ) -> Result<Execution, (Box<Decision<'static>>, Records)> {
        self.trace = decision.take_trace();
        let call = decision.changed_call().map_or(Cow::Borrowed(decision.call()), Cow::Owned);
        let wrappers = decision.wrappers();
        let hooks = self.execute.hooks;
        let only_asks = self.turn.only_asks.is_some();
        let nested = if wrappers.is_empty() && hooks.is_empty() && !only_asks {
            Ok(self.call_tool(&call).await)
        } else {
            // The host's clock may panic in here.
            let hosted = guarded(self.hosted(&call, hooks, wrappers)).await;
            hosted.unwrap_or_else(|_| Ok(self.panicked()))
        };
        if self.outstanding {
            self.forget(&self.execute.kernel.invalidated_by(&call)).await;
        }
        let unknown = self.outstanding && self.turn.is_claimed();
        let nested = match (&self.turn.only_asks, nested) {
            // What stands in for a result is none either.
            (Some(why), Ok(_)) => Err(self.unasked(&call, why)),
            (_, nested) => nested,
        };
        let kernel = &self.execute.kernel;
        let Self { trace, attempts, input, records, state, .. } = self;
        decision.put_trace(trace);
        let ended = match nested {
            // Of a call that must run at most once, it is not known that it did not.
            Ok(Ended::Failed(error, by)) if unknown => {
                let code = error.kind.unwrap_or_else(|| reason_code::UNFINISHED.to_owned());
                let reason = Reason { policy: None, code, message: error.message };
                Ended::Broken(by, reason, OutcomeKind::Indeterminate)
            }
            Ok(ended) => ended,
            // What a refused call has not done, this one did already: it is settled like any that ran.
            Err(mut refused) if attempts > 0 => {
                decision.put_trace(refused.take_trace());
                let (reason, halts) = (refused.reason(), refused.effect() == Effect::Halt);
                if halts {
                    kernel.halt(&refused, state);
                }
                let kind = if halts { OutcomeKind::Halted } else { OutcomeKind::Failed };
                Ended::Broken(None, reason, kind)
            }
            Err(refused) => return Err((refused, records)),
        };
        Ok(Execution { ended, attempts, input, records })
    }

    /// Callgate itself failed around the tool.
    fn panicked(&self) -> Ended {
        let when = if self.attempts > 0 { "after" } else { "before" };
        let message = format!("Callgate failed {when} the tool was called");
        let reason = Reason { policy: None, code: reason_code::INTERNAL_ERROR.to_owned(), message };
        let kind = if self.outstanding { OutcomeKind::Indeterminate } else { OutcomeKind::Failed };
        Ended::Broken(None, reason, kind)
    }

    /// The call inside these wrappers.
    pub(super) fn wrapped<'a>(
        &'a mut self,
        call: &'a ToolCall,
        wrappers: &'a [Wrapper],
    ) -> BoxFuture<'a, Nested> {
        let Some((wrapper, inner)) = wrappers.split_first() else {
            return Box::pin(async move {
                match &self.turn.only_asks {
                    None => Ok(self.call_tool(call).await),
                    Some(why) => Err(self.unasked(call, why)),
                }
            });
        };
        let by = wrapper.policy;
        let Some(policy) = by.find(self.execute.kernel.layers) else { return self.wrapped(call, inner) };
        // One future for each policy, and none around it: many policies may wrap one call.
        match &policy.kind {
            Kind::Cache(cache) => Box::pin(self.cached(by, policy, cache, call, inner)),
            Kind::Around(around) => Box::pin(self.scripted(*wrapper, policy, around, call, inner)),
            Kind::Retry(retry) => Box::pin(self.retried((by, policy), retry, call, inner)),
            Kind::Timeout(timeout) => Box::pin(self.timed(by, timeout, call, inner)),
            _ => self.wrapped(call, inner),
        }
    }

    /// The refusal of a call that may only be asked about again, and about which nothing asks.
    fn unasked(&self, call: &ToolCall, why: &str) -> Box<Decision<'static>> {
        let mut decision = self.execute.kernel.decide_holding(call, self.state, self.held());
        let code = reason_code::APPROVAL_INVALID.to_owned();
        decision.refuse(Effect::Deny, Reason { policy: None, code, message: why.to_owned() }, None);
        self.refused(decision)
    }

    async fn call_tool(&mut self, call: &ToolCall) -> Ended {
        if let Some(why) = self.execute.run.aborted() {
            let message = format!("the run was ended before `{}` was called ({why})", call.tool);
            let reason = Reason { policy: None, code: reason_code::ABORTED.to_owned(), message };
            return Ended::Broken(None, reason, OutcomeKind::Aborted);
        }
        if !self.counted {
            // Before it runs: a call that is given up half-way has run all the same.
            self.state.count_call(&call.tool);
            self.counted = true;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.outstanding = true;
        // Before, for a call that is given up may have changed something; and after, for what was read meanwhile is old.
        let changed = self.execute.kernel.invalidated_by(call);
        self.forget(&changed).await;
        let run = self.execute.run;
        let answer = before(guarded(self.execute.executor.execute(call)), || async {
            run.until_aborted().await;
        })
        .await;
        self.forget(&changed).await;
        let Some(answer) = answer else {
            let why = run.aborted().unwrap_or_default();
            let message =
                format!("the run was ended while `{}` ran ({why}); it may have taken effect", call.tool);
            let reason = Reason { policy: None, code: reason_code::ABORTED.to_owned(), message };
            let kind = if self.turn.is_claimed() { OutcomeKind::Indeterminate } else { OutcomeKind::Aborted };
            return Ended::Broken(None, reason, kind);
        };
        self.outstanding = false;
        match answer {
            Ok(Ok(answer)) => {
                self.interim |= answer.interim;
                Ended::Ran(answer)
            }
            Ok(Err(error)) => Ended::Failed(error, None),
            Err(_) => Ended::Failed(ToolError::new("the tool panicked").of_kind("panic"), None),
        }
    }

    /// Empties these caches, of what a tool changes. A store that does not answer keeps what it has until it expires.
    async fn forget(&self, changed: &[(PolicyRef, &Policy)]) {
        let Execute { kernel, services, .. } = self.execute;
        for (by, policy) in changed {
            if let Kind::Cache(cache) = &policy.kind {
                let space = space_name(*by, policy, cache.identity());
                let _ = services.ask(kernel.clock, || services.store.cache_clear(&space)).await;
            }
        }
    }

    async fn cached(
        &mut self,
        by: PolicyRef,
        policy: &Policy,
        cache: &Cache,
        call: &ToolCall,
        inner: &[Wrapper],
    ) -> Nested {
        let Execute { kernel, services, session, .. } = self.execute;
        let key = cache.key(&kernel.view(call, self.state), session);
        let Some(key) = key.filter(|_| self.turn.only_asks.is_none()) else {
            return self.wrapped(call, inner).await;
        };
        let name = space_name(by, policy, cache.identity());
        let account = self.execute.account(call);
        let space = CacheSpace { name: &name, max_entries: cache.max_entries, account };
        let look_up =
            || services.ask(kernel.clock, || services.store.cache_get(kernel.clock.now(), space, &key));
        let Ok(mut found) = look_up().await else { return self.wrapped(call, inner).await };
        if let Some(hit) = self.hit(by, &found) {
            return Ok(hit);
        }
        let flight = services.flights.join(&format!("{name}/{key}"));
        let lead = match flight {
            Flight::Lead(lead) => Some(lead),
            // Who is waited for does not wait: under rules that nest caches otherwise, two would wait for each other.
            Flight::Follow(_) if self.leads > 0 => None,
            Flight::Follow(landing) => {
                landed(landing).await;
                None
            }
        };
        // Whoever led may have brought something by now; if it did not, this call goes itself and does not queue again.
        match look_up().await {
            Ok(now) => found = now,
            Err(_) => return self.wrapped(call, inner).await,
        }
        if let Some(hit) = self.hit(by, &found) {
            return Ok(hit);
        }
        self.leads += u32::from(lead.is_some());
        let ended = self.wrapped(call, inner).await;
        self.leads -= u32::from(lead.is_some());
        if let Ok(Ended::Ran(ToolAnswer { output, dry: false, .. })) = &ended
            && !self.interim
        {
            let stored_at = kernel.clock.now();
            let expires_at = cache.ttl.map_or(Ok(jiff::Timestamp::MAX), |ttl| stored_at.checked_add(ttl));
            if let Ok(expires_at) = expires_at {
                let entry = CacheEntry { output: output.clone(), stored_at, expires_at };
                let put = || services.store.cache_put(space, &key, entry, found.generation);
                let _ = services.ask(kernel.clock, put).await;
            }
        }
        drop(lead);
        ended
    }

    fn hit(&mut self, by: PolicyRef, found: &Lookup) -> Option<Ended> {
        let CacheEntry { output, stored_at, .. } = found.entry.as_ref()?;
        self.trace.amend(by, Verdict::Answer);
        let age = self.execute.kernel.clock.now().duration_since(*stored_at);
        Some(Ended::Cached(by, output.clone(), Duration::try_from(age).unwrap_or_default()))
    }

    async fn retried(
        &mut self,
        (by, policy): (PolicyRef, &Policy),
        retry: &Retry,
        call: &ToolCall,
        inner: &[Wrapper],
    ) -> Nested {
        let Execute { kernel, services, .. } = self.execute;
        let attempts = if retry.is_harmless_for(kernel.tools.get(call)) { retry.attempts } else { 1 };
        let concerns = |error: &ToolError| {
            tell(kernel.listener, &Event::Error(ErrorAsked { policy, layer: by.layer(), error }));
            retry.on.concern(error)
        };
        let mut attempt = 1;
        loop {
            let nested = self.wrapped(call, inner).await;
            match &nested {
                Ok(Ended::Failed(error, _)) if attempt < attempts && concerns(error) => {}
                _ => return nested,
            }
            kernel.clock.sleep(retry.pause(attempt, services.chance())).await;
            attempt += 1;
        }
    }

    async fn timed(
        &mut self,
        by: PolicyRef,
        timeout: &Timeout,
        call: &ToolCall,
        inner: &[Wrapper],
    ) -> Nested {
        let (clock, leads) = (self.execute.kernel.clock, self.leads);
        if let Some(nested) = before(self.wrapped(call, inner), || clock.sleep(timeout.after)).await {
            return nested;
        }
        // What led inside was given up with the rest.
        self.leads = leads;
        self.trace.amend(by, Verdict::Deny);
        let message = format!(
            "`{}` took longer than {} and was given up; it may have taken effect all the same",
            call.tool, timeout.words
        );
        Ok(Ended::Failed(ToolError::new(message).of_kind("timeout"), Some(by)))
    }
}

/// The name of what a policy keeps in the store.
pub(super) fn space_name(by: PolicyRef, policy: &Policy, identity: &str) -> String {
    format!("{}/{}/{identity}", by.layer(), policy.id)
}
