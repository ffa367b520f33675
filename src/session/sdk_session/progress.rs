//! The progress of a session that an SDK drives: its announced calls, and one call at a time with the session as it sees it.

use std::time::Instant;

use super::positions::Positions;
use crate::call::{Outcome, SessionState, ToolCall};
use crate::execution::{CallRunner, PreparedCall, is_same_call};
use crate::host::ToolExecutor;
use crate::json::Value;
use crate::kernel::Decision;
use crate::message::{CallPart, History};
use crate::session::history_resumption::history_call;
use crate::session::{Session, SessionScope};

/// The session, and the progress of its present round.
pub(super) struct SdkProgress {
    pub(super) session: Session,
    /// Announced calls that the SDK has not made yet.
    pub(super) announced: Vec<AnnouncedCall>,
    /// The changes of the calls of the present round, since something else changed the session last.
    pub(super) positions: Option<Positions>,
    /// The last position whose changes can't be told from others any more.
    pub(super) merged: Option<usize>,
}

/// A call of an announced round.
pub(super) struct AnnouncedCall {
    pub(super) position: usize,
    pub(super) call: ToolCall,
    pub(super) prepared: PreparedCall,
    /// The decision on it with its round.
    pub(super) planned: Option<Box<Decision<'static>>>,
    /// The rules under which the round is decided.
    pub(super) scope: SessionScope,
}

impl std::fmt::Debug for SdkProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SdkProgress").field("session", &self.session).finish_non_exhaustive()
    }
}

impl SdkProgress {
    pub(super) fn call(&self, id: &str, tool: &str, input: &Value) -> ToolCall {
        self.session.calls.of(&CallPart::new(id, tool, input.clone()))
    }

    /// The index of an announced call that has not been made.
    pub(super) fn announced_index(&self, call: &ToolCall) -> Option<usize> {
        self.announced.iter().position(|announced| is_same_call(&announced.call, call))
    }

    /// Whether a call depends on earlier calls that the SDK has not made.
    pub(super) fn waits_for_earlier(&self, id: &str, tool: &str, input: &Value) -> bool {
        let call = self.call(id, tool, input);
        let announced = self.announced_index(&call).and_then(|index| self.announced.get(index));
        announced.is_some_and(|announced| self.depends_on_earlier(announced))
    }

    pub(super) fn depends_on_earlier(&self, announced: &AnnouncedCall) -> bool {
        let earlier = self.announced.iter().filter(|other| other.position < announced.position).count();
        let is_lost = self.merged.is_some_and(|merged| announced.position < merged);
        (earlier > 0 || is_lost) && {
            let call = &announced.prepared.hooked.call;
            let scope = &announced.scope;
            self.session.session_use(call, &scope.layers).reads || self.session.may_be_last(earlier, scope)
        }
    }

    /// Something else than a call of the round is about to use or change the session: the calls' changes can't
    /// be told from it any more.
    pub(super) fn merge(&mut self) {
        if let Some(last) = self.positions.take().and_then(|positions| positions.last()) {
            self.merged = self.merged.max(Some(last));
        }
    }

    /// Changes the session's state, and that before the round.
    pub(super) fn change_state(&mut self, change: impl Fn(&mut SessionState)) {
        change(&mut self.session.state);
        if let Some(positions) = &mut self.positions {
            positions.change_before(change);
        }
    }

    /// Brings one call to its outcome: an announced one as its round was decided, any other by itself.
    pub(super) async fn run_call(
        &mut self,
        executor: &impl ToolExecutor,
        call: ToolCall,
        started: Instant,
    ) -> Box<Outcome> {
        let stored = match self.session.stored_state().await {
            Ok(Some(stored)) => {
                self.change_state(|state| stored.merge_into(state));
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let Some(index) = self.announced_index(&call) else {
            self.merge();
            let session = &mut self.session;
            session.halt_if_aborted();
            let occurrence = session.state.unique_call_id(&call.id);
            let scope = session.scope();
            let mut runner = session.runner(&scope, executor);
            let prepared = runner.prepare(call.clone().into(), occurrence, &stored).await;
            let decision = runner.decide(&prepared);
            return runner.run_sdk_call(call, &prepared, decision, started).await;
        };
        let is_unknown =
            self.announced.get(index).is_some_and(|announced| self.depends_on_earlier(announced));
        let AnnouncedCall { position, prepared, planned, scope, .. } = self.announced.remove(index);
        let mut driven = InPosition::new(self, position, is_unknown);
        let session = driven.session();
        session.halt_if_aborted();
        let mut runner = session.runner(&scope, executor);
        let decision = planned.map(|planned| runner.decide_again(&prepared, planned));
        runner.run_sdk_call(call, &prepared, decision, started).await
    }

    /// Runs the announced calls that the SDK did not make.
    pub(super) async fn run_rest(&mut self, executor: &impl ToolExecutor, history: &History) {
        for found in self.session.new_calls(history) {
            let call = history_call(&self.session.calls, &found);
            if self.announced.iter().any(|announced| is_same_call(&announced.call, &call)) {
                self.run_call(executor, call, Instant::now()).await;
            }
        }
    }
}

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Brings a call of an SDK to its outcome.
    async fn run_sdk_call<'c>(
        &mut self,
        call: ToolCall,
        prepared: &'c PreparedCall,
        mut decision: Option<Box<Decision<'c>>>,
        started: Instant,
    ) -> Box<Outcome> {
        if let Some(decision) = &mut decision {
            self.defer_if_suspended(decision);
        }
        self.round.start(call);
        let outcome = self.run_prepared(prepared, decision, started).await;
        let outcome = self.report(&prepared.hooked.call, outcome);
        self.round.end(&outcome);
        self.context.services.observers.record_outcomes().await;
        outcome
    }
}

/// One call of an announced round, with the session as the call sees it. When this is dropped, also because the
/// call was given up, the call's changes take effect at its position.
pub(super) struct InPosition<'d> {
    driven: &'d mut SdkProgress,
    position: usize,
}

impl<'d> InPosition<'d> {
    /// `is_unknown`: the call depends on earlier calls that have not been made.
    fn new(driven: &'d mut SdkProgress, position: usize, is_unknown: bool) -> Self {
        let SdkProgress { session, positions, .. } = driven;
        let positions = positions.get_or_insert_with(|| Positions::new(session.state.clone()));
        session.state = positions.state_at(position);
        if is_unknown {
            session.state.mark_untrusted();
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
        let SdkProgress { session, positions, merged, .. } = &mut *self.driven;
        let changes = session.state.take_changes();
        if let Some(positions) = positions {
            positions.add(self.position, changes);
            session.state = positions.state();
        }
        // Later calls of the round may have set the same facts, and it is unknown which values are theirs.
        if merged.is_some_and(|merged| self.position < merged) {
            session.state.mark_untrusted();
        }
    }
}
