//! Calls whose tool another process runs: `hand_over` decides, counts and claims a call, and ends where its tool would begin; a later
//! `complete_handed_over`, also in another process over the same store, settles it with the tool's result.

use std::borrow::Cow;
use std::future::pending;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use super::ConcurrentSession;
use super::call_queue::Order;
use crate::call::{Outcome, ToolCall};
use crate::execution::{CallAttempt, HookedCall, LedgerLookup};
use crate::host::{StoreError, ToolError, ToolExecutor, ToolResponse, with_deadline};
use crate::json::Value;
use crate::message::{RequestPart, ResponsePart};
use crate::middleware::PolicyKind;
use crate::policy::Mode;

/// The result of handing a call over.
#[derive(Clone, Debug)]
pub enum HandOver {
    /// The call may run: run this call, which has the final arguments, and nothing else.
    Run(Box<ToolCall>),
    /// It must not run: it was refused, is suspended, or a policy answered in the tool's place.
    Ended(Box<Outcome>),
}

/// Why a call can't be handed over. It must not run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HandOverError {
    /// A policy of a kind that must stay with the call while its tool runs.
    #[error("`{policy}` is an `{kind}` policy, which can't act on a call that another process runs")]
    Unsupported {
        /// The policy.
        policy: String,
        /// Its kind.
        kind: &'static str,
    },
    /// The state of the session can't be stored, so the call would not count for later ones.
    #[error("the session can't be stored: {0}")]
    Store(#[from] StoreError),
}

/// An executor that takes a call and never returns.
#[derive(Default)]
struct CallCapture {
    call: Mutex<Option<ToolCall>>,
    is_reached: Notify,
}

impl ToolExecutor for CallCapture {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(call.clone());
        self.is_reached.notify_one();
        pending().await
    }
}

impl ConcurrentSession {
    /// Decides, counts and claims a call as [`execute`](Self::execute) does, up to where its tool would run. `approval`: the request of an
    /// earlier outcome of this call, with the answers to it.
    ///
    /// From then on the call counts as started, whether its result ever arrives or not: limits and budgets are used, facts with
    /// `when: attempted` are stored, and an approval is claimed.
    ///
    /// # Errors
    /// An `around` or `concurrency` policy can match the tool, or the state can't be stored. The call must not run then.
    #[doc(hidden)]
    pub async fn hand_over(
        &self,
        call: ToolCall,
        approval: Option<(&RequestPart, &[ResponsePart])>,
    ) -> Result<HandOver, HandOverError> {
        self.check_hand_over(&call)?;
        let capture = CallCapture::default();
        let run = async {
            match approval {
                None => Box::pin(self.execute(call, &capture)).await,
                Some((request, answers)) => {
                    Box::pin(self.resume_call(call, request, answers, &capture)).await
                }
            }
        };
        // Dropping the future of a started call keeps what it has changed so far.
        let ended = with_deadline(run, || capture.is_reached.notified()).await;
        self.save_state().await?;
        let started = capture.call.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(match (started, ended) {
            (Some(call), None) => HandOver::Run(Box::new(call)),
            (_, Some(outcome)) => HandOver::Ended(Box::new(outcome)),
            (None, None) => return Err(StoreError::Unavailable("the call was lost".to_owned()).into()),
        })
    }

    /// Settles a call that was handed over: redacts its result, learns labels and facts from it, and records its end. `call`: the call as it was
    /// handed over; `input`: the arguments with which its tool ran.
    #[doc(hidden)]
    pub async fn complete_handed_over(
        &self,
        call: ToolCall,
        input: Value,
        result: Result<ToolResponse, ToolError>,
    ) -> Result<Outcome, StoreError> {
        let started = Instant::now();
        self.load().await;
        let mut turn = self.inner.enter(&call, self.task.as_ref(), Order::Queued);
        self.inner.begin(&mut turn, &call, false).await;
        let session = &mut turn.session;
        let scope = session.scope();
        let capture = CallCapture::default();
        let mut runner = session.runner(&scope, &capture);
        let requester = self.inner.approval_scope.as_deref();
        runner.context.session.approval_scope = requester;
        let (recalled, lookup) = match requester {
            Some(requester) => runner.recall(call.clone(), requester).await,
            None => (call.clone(), LedgerLookup::New(runner.context.call_key(call.id.clone()))),
        };
        let entry = runner.find_claimed(&recalled, &lookup).await;
        let hooked = HookedCall::untouched(if entry.is_some() { recalled } else { call });
        let (LedgerLookup::New(key) | LedgerLookup::Known(key, _) | LedgerLookup::Unavailable(key, _)) =
            lookup;
        // It was claimed when it was handed over.
        let attempt =
            CallAttempt { entry, holds_claim: true, ..CallAttempt::new(&hooked, Cow::Owned(key), started) };
        let outcome = runner.complete_elsewhere(&attempt, input, result).await;
        let outcome = runner.report(&hooked.call, outcome);
        drop(turn);
        self.record_outcome().await;
        self.save_state().await?;
        Ok(*outcome)
    }

    /// Policies that have to stay with a call while its tool runs can't act on one that is handed over.
    fn check_hand_over(&self, call: &ToolCall) -> Result<(), HandOverError> {
        let server = call.server.as_deref().unwrap_or_default();
        let layers = self.inner.queue().session_for(u64::MAX, self.inner.layer_of(call)).layers();
        for policies in &layers {
            let indices = policies.matching_call(server, &call.tool);
            let mut matching = indices.iter().filter_map(|index| policies.policy(*index));
            let unsupported = matching.find_map(|policy| match (&policy.kind, policy.mode) {
                (PolicyKind::Around(_), Mode::Enforce) => Some((policy, "around")),
                (PolicyKind::Concurrency(_), Mode::Enforce) => Some((policy, "concurrency")),
                _ => None,
            });
            if let Some((policy, kind)) = unsupported {
                return Err(HandOverError::Unsupported { policy: policy.id.clone(), kind });
            }
        }
        Ok(())
    }
}
