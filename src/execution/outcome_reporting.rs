//! Reports the start and the end of a call: to `after` hooks, the ledger, the session's store, listeners and observers.

use super::{CallAttempt, CallContext, CallRunner};
use crate::approval::LedgerKey;
use crate::call::{ApprovalRequest, Outcome, OutcomeKind};
use crate::host::{Account, StoreError, ToolCallSpan, ToolCallStart, ToolExecutor, catch_panic};
use crate::kernel::{Decision, Event, notify};

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// The end of an attempt: `after` hooks see the outcome, and the ledger records it.
    pub(super) async fn finish(&mut self, attempt: &CallAttempt<'_>, mut outcome: Outcome) -> Outcome {
        let call = &attempt.hooked.call;
        if outcome.outcome != OutcomeKind::Suspended && !self.context.hooks.all.is_empty() {
            let (kernel, state) = (self.context.kernel, &*self.state);
            let redact = |outcome: &mut Outcome| kernel.redact_outcome(call, outcome, state);
            outcome = self.context.hooks.after(call, outcome, redact).await;
        }
        if self.is_in_ledger(attempt) || outcome.outcome == OutcomeKind::Suspended {
            // Whatever fails here, the outcome stays.
            let _ = catch_panic(self.record_end(attempt, &outcome)).await;
        }
        outcome
    }

    /// Whether the ledger has, or gets, an entry of the call.
    fn is_in_ledger(&self, attempt: &CallAttempt<'_>) -> bool {
        self.context.session.is_recorded || attempt.needs_claim() || attempt.entry.is_some()
    }

    async fn record_end(&self, attempt: &CallAttempt<'_>, outcome: &Outcome) {
        let ledger = self.context.ledger(attempt.requested());
        let is_recorded = self.context.session.is_recorded;
        // State first: a process that ends in between would otherwise leave a settled call whose labels and facts are lost.
        let stored = if is_recorded { self.save_state().await } else { Ok(()) };
        if outcome.outcome == OutcomeKind::Suspended {
            if let Some(request) = &outcome.approval {
                let key = LedgerKey { occurrence_id: occurrence_of(request), ..attempt.key.clone() };
                // If the store does not answer, it is better to notify twice than never.
                if ledger.mark_notified(&key, false).await.unwrap_or(true) {
                    self.context.services.notify(|observer| observer.on_request(request));
                }
            }
        } else if stored.is_ok() {
            // Without it the ledger says that nobody knows how the call ended, and it is not run again.
            let _ = ledger.record_outcome(&attempt.key, &attempt.ledger_entry(), outcome).await;
        }
    }

    /// Stores the session's state, without the occurrences of calls: every call has an entry of its own, and the list would grow with
    /// each.
    pub(super) async fn save_state(&self) -> Result<(), StoreError> {
        let state = self.state.clone().without_occurrences();
        let account = Account::from_context(&self.context.hooks.run.context);
        self.context.services.store_session(self.context.session.conversation, account, &state).await
    }

    /// Notifies listeners and observers of an outcome.
    pub(crate) fn report(&self, mut outcome: Outcome) -> Outcome {
        let CallContext { kernel, services, hooks, session, .. } = &self.context;
        outcome.session = session.name.map(str::to_owned);
        notify(kernel.listener, &Event::Ended(&outcome));
        // Observers have seen a replayed outcome before.
        if outcome.replayed || services.observers.is_empty() {
            return outcome;
        }
        if outcome.outcome != OutcomeKind::Suspended {
            let shown = session.formatter.result(&outcome).map(|result| result.output.text());
            let span = ToolCallSpan {
                request_id: &hooks.run.request_id,
                iteration: hooks.run.iteration,
                outcome: &outcome,
                shown: shown.as_deref(),
            };
            services.notify(|observer| observer.on_tool_end(&span));
        }
        services.notify(|observer| observer.on_outcome(&outcome));
        outcome
    }

    /// Notifies listeners and observers that the execution of a call starts.
    pub(super) fn report_start(&self, decision: &Decision<'_>) {
        let CallContext { kernel, services, hooks, .. } = &self.context;
        notify(kernel.listener, &Event::ExecutionStarted(decision.call()));
        if services.observers.is_empty() {
            return;
        }
        let (call, args) = (decision.call(), kernel.redacted_input(decision, self.state));
        let start = ToolCallStart {
            request_id: &hooks.run.request_id,
            iteration: hooks.run.iteration,
            call_id: &call.id,
            tool: &call.tool,
            server: call.server.as_deref(),
            args: &args,
        };
        services.notify(|observer| observer.on_tool_start(&start));
    }
}

/// The occurrence of the call of a request.
pub(crate) fn occurrence_of(request: &ApprovalRequest) -> String {
    let id = request.approval_id.as_str();
    id.strip_prefix("approval_").unwrap_or(id).to_owned()
}
