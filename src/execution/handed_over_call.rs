//! Settles a call whose tool another process ran: call + reported result → `Outcome`. It was decided and counted when it was handed over.

use super::{CallAttempt, CallRunner, LedgerLookup};
use crate::approval::{CallStage, LedgerEntry};
use crate::call::{Outcome, ToolCall};
use crate::host::{ToolError, ToolExecutor, ToolResponse};
use crate::json::Value;
use crate::kernel::{CallResponse, Execution, HeldResources};

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// The ledger's entry of a call that was claimed and has no outcome. `None` if there is none, or the ledger does not answer.
    pub(crate) async fn find_claimed(&self, call: &ToolCall, lookup: &LedgerLookup) -> Option<LedgerEntry> {
        let LedgerLookup::Known(key, _) = lookup else { return None };
        let entry = self.context.ledger(call).find(key).await.ok()??;
        matches!(entry.stage, CallStage::Claimed { .. }).then_some(entry)
    }

    /// Settles a call that ran elsewhere with these arguments. It is decided again for its settle policies alone: nothing stops it any more.
    pub(crate) async fn complete_elsewhere(
        &mut self,
        attempt: &CallAttempt<'_>,
        input: Value,
        result: Result<ToolResponse, ToolError>,
    ) -> Box<Outcome> {
        let kernel = self.silent_kernel();
        let mut decision = attempt.hooked.decide(&kernel, self.state, HeldResources::default());
        decision.permit();
        let response = match result {
            Ok(response) => CallResponse::executed(response.output, response.dry),
            Err(error) => CallResponse::failed(error),
        };
        let execution = Execution { input: Some(input), ..Ok(response).into() };
        let outcome = self.context.kernel.settle(decision, execution, self.state, attempt.started);
        self.finish(attempt, outcome).await
    }
}
