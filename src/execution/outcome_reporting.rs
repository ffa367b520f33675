//! Records the end of a call in the ledger and the session's store, and notifies observers once of a request that it makes.

use super::{CallAttempt, CallRunner};
use crate::approval::LedgerKey;
use crate::call::{Outcome, OutcomeKind, reason_code};
use crate::host::{Account, EngineEventKind, StoreError, ToolExecutor};

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Records the end of an attempt in the session's store and in the ledger.
    pub(super) async fn record_end(&mut self, attempt: &CallAttempt<'_>, outcome: &Outcome) {
        let ledger = self.context.ledger(attempt.requested());
        let is_recorded = self.context.session.is_recorded;
        // State first: a process that ends in between would otherwise leave a settled call whose labels and facts are lost.
        let stored = if is_recorded { self.save_state().await } else { Ok(()) };
        if outcome.outcome == OutcomeKind::Suspended {
            if let Some(request) = &outcome.approval {
                let key = LedgerKey::of_approval(&attempt.key.conversation, &request.approval_id);
                // If the store does not answer, it is better to notify twice than never.
                if ledger.mark_notified(&key, false).await.unwrap_or(true) {
                    let call = attempt.requested();
                    self.context.observe(call, self.state, EngineEventKind::ApprovalRequested(request));
                }
            }
        } else if stored.is_ok() && !is_passing_refusal(attempt, outcome) {
            // Without it the ledger says that nobody knows how the call ended, and it is not run again.
            let (key, entry) = (&attempt.key, attempt.ledger_entry());
            let _ = match attempt.has_claim() {
                true => ledger.record_outcome(key, &entry, outcome).await,
                false => ledger.record_refusal(key, &entry, outcome).await,
            };
        }
    }

    /// Stores the session's state, without the occurrences of calls: every call has an entry of its own, and the list would grow with
    /// each.
    pub(super) async fn save_state(&mut self) -> Result<(), StoreError> {
        let mut state = self.state.clone().without_occurrences();
        let account = Account::from_context(&self.context.hooks.run.context);
        let services = self.context.services;
        services.store_session(self.context.session.conversation, account, &mut state).await?;
        self.state.mark_all_stored();
        Ok(())
    }
}

/// Whether a call that nothing is known of was denied because a store failed: sent again, it may be permitted.
fn is_passing_refusal(attempt: &CallAttempt<'_>, outcome: &Outcome) -> bool {
    outcome.outcome == OutcomeKind::Denied
        && outcome.reason.code == reason_code::STORE_UNAVAILABLE
        && attempt.entry.is_none()
        && !attempt.has_claim()
}
