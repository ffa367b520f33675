//! A call that another runner has claimed: its ledger entry → its outcome, or that it is abandoned or unknown.

use std::time::Duration;

use super::CallRunner;
use super::refusals::{unavailable_ledger, unfinished};
use crate::approval::{CallStage, LedgerEntry};
use crate::call::Outcome;
use crate::execution::{CallAttempt, ClaimError};
use crate::host::ToolExecutor;
use crate::kernel::Effect;

/// How long another runner is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often its entry is read meanwhile.
const INTERVAL: Duration = Duration::from_millis(100);

/// The end of a call that another runner has claimed.
pub(in crate::execution) enum OtherRunner {
    Ended(Box<Outcome>),
    /// It never ended there, and its tool may run twice: the claim is this runner's now.
    Abandoned(Box<LedgerEntry>),
    /// Nobody knows, for this reason.
    Unknown(String),
}

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// The outcome of a new call that could not be claimed.
    pub(super) async fn run_unclaimed(
        &mut self,
        attempt: &CallAttempt<'_>,
        error: ClaimError,
    ) -> Box<Outcome> {
        match error {
            ClaimError::Lost(entry) => match self.wait_for_other_runner(attempt, *entry).await {
                OtherRunner::Ended(outcome) => outcome,
                OtherRunner::Abandoned(entry) => {
                    let (call, key) = (attempt.requested(), &attempt.key);
                    self.run_abandoned(call, key, *entry, attempt.started).await
                }
                OtherRunner::Unknown(message) => self.indeterminate(attempt, unfinished(message)),
            },
            ClaimError::Ledger(error) => self.deny(attempt, Effect::Deny, unavailable_ledger(&error)).await,
        }
    }

    /// Waits for the outcome of a call that another runner has claimed. An idempotent call that it abandoned is claimed again.
    pub(in crate::execution) async fn wait_for_other_runner(
        &mut self,
        attempt: &CallAttempt<'_>,
        mut entry: LedgerEntry,
    ) -> OtherRunner {
        let call = attempt.requested();
        let clock = &*self.context.services.clock;
        let ledger = self.context.ledger(call);
        let mut waited = Duration::ZERO;
        loop {
            match entry.stage {
                CallStage::Settled { outcome, .. } => {
                    return OtherRunner::Ended(Box::new(Outcome { replayed: true, ..*outcome }));
                }
                CallStage::Claimed { at } if waited >= PATIENCE => {
                    let tool = self.context.kernel.tools.get(call);
                    if tool.is_some_and(|tool| tool.descriptor.idempotent)
                        && ledger.reclaim(&attempt.key, at).await == Ok(true)
                    {
                        return OtherRunner::Abandoned(Box::new(entry));
                    }
                    let message = format!(
                        "a run of this call started at {at} and was never settled; it does not run again, because it may have \
                         taken effect"
                    );
                    if self.context.session.is_recorded {
                        // What it left in the session is unknown as well.
                        self.state.mark_untrusted();
                        let _ = self.save_state().await;
                    }
                    return OtherRunner::Unknown(message);
                }
                CallStage::Claimed { .. } | CallStage::Waiting if waited < PATIENCE => {}
                CallStage::Claimed { .. } | CallStage::Waiting => {
                    let message =
                        "its request was answered otherwise in the meantime; resume the session again";
                    return OtherRunner::Unknown(message.to_owned());
                }
            }
            clock.sleep(INTERVAL).await;
            waited += INTERVAL;
            match ledger.find(&attempt.key).await {
                Ok(Some(found)) => entry = found,
                Ok(None) | Err(_) => {
                    let message = "it is unknown whether it ran: the store does not answer".to_owned();
                    return OtherRunner::Unknown(message);
                }
            }
        }
    }
}
