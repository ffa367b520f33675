//! Records the end of a call in the ledger and the session's store, and notifies listeners and observers of its start and its end.

use super::{CallAttempt, CallContext, CallRunner};
use crate::approval::LedgerKey;
use crate::call::{ApprovalRequest, Outcome, OutcomeKind};
use crate::host::{Account, StoreError, ToolCallSpan, ToolCallStart, ToolExecutor};
use crate::kernel::{Decision, Event, notify};

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Records the end of an attempt in the session's store and in the ledger.
    pub(super) async fn record_end(&self, attempt: &CallAttempt<'_>, outcome: &Outcome) {
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

    /// Notifies observers of an outcome.
    pub(super) fn notify_observers(&self, outcome: &Outcome) {
        let CallContext { services, hooks, session, .. } = &self.context;
        if outcome.outcome != OutcomeKind::Suspended {
            let shown = session.formatter.result(outcome).map(|result| result.output.text());
            let span = ToolCallSpan {
                request_id: &hooks.run.request_id,
                iteration: hooks.run.iteration,
                outcome,
                shown: shown.as_deref(),
            };
            services.notify(|observer| observer.on_tool_end(&span));
        }
        services.notify(|observer| observer.on_outcome(outcome));
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
