//! The recorded course: a call that the policies stop, and that ran when it was recorded, counts as having run with its recorded result.

use super::CallContext;
use super::admission;
use super::call_attempt::CallAttempt;
use super::call_runner::CallRunner;
use crate::call::{Amount, SessionState};
use crate::host::{ToolExecutor, catch_panic};
use crate::kernel::HeldResources;
use crate::middleware::BudgetAmounts;

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Settles a call that did not run as if it had run with the result that the executor has recorded. What its refusal changed in
    /// `before`, the session before it, does not stay: a halt, for example. A call without a recorded result leaves the session as it was.
    pub(super) async fn keep_recorded_course(&mut self, attempt: &CallAttempt<'_>, before: SessionState) {
        *self.state = before;
        let call = &attempt.hooked.call;
        let Ok(result) = catch_panic(self.context.executor.recorded_result(call)).await else { return };
        let result = match result {
            Ok(response) if response.dry => return,
            Ok(response) => Ok(response.output),
            Err(error) => Err(error),
        };
        let kernel = self.silent_kernel();
        let mut decision = attempt.hooked.decide(&kernel, self.state, HeldResources::default());
        decision.permit();
        let one = BudgetAmounts { calls: Some(Amount::from_whole(1)), ..BudgetAmounts::default() };
        // What is used up already stays as it is.
        if call.method().is_none() {
            let _ = self.context.budgets().reserve(self.state, one, |_| true, &mut Vec::new()).await;
        }
        let context = CallContext { kernel: self.silent_kernel(), ..self.context };
        let output = result.as_ref().ok();
        admission::count_recorded_call(&context, &mut decision, output, self.state).await;
        if call.method().is_none() {
            self.state.count_call(&call.tool);
        }
        kernel.settle_recorded(decision, result, self.state, attempt.started);
    }
}
