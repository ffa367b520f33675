//! The interface for audit logs, metrics and tracing: an [`Observer`] receives every [`EngineEvent`].

use super::{BoxFuture, EngineEvent, EngineEventKind, HookFailure, ToolCallSpan, ToolCallStart};
use crate::call::{ApprovalDecision, ApprovalRequest, Outcome, OutcomeKind, RunShadowEffect};

/// Why an observer cannot record what is about to happen, as operators read it. It names neither arguments nor results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObserverError(pub String);

/// Receives every event of an engine, redacted: for audit logs, metrics and tracing. Observers are isolated: a panic in one changes
/// nothing.
///
/// Implement [`on_event`](Self::on_event) to receive everything, or leave it and implement the methods for single events, which its
/// default calls.
pub trait Observer: Send + Sync {
    /// Receives an event, on the thread on which it happens. The default calls the method of the event below, if there is one.
    fn on_event(&self, event: &EngineEvent<'_>) {
        match &event.kind {
            EngineEventKind::CallStarted(start) => self.on_tool_start(start),
            EngineEventKind::CallCompleted(span) => {
                if span.outcome.outcome != OutcomeKind::Suspended {
                    self.on_tool_end(span);
                }
                self.on_outcome(span.outcome);
            }
            EngineEventKind::ApprovalRequested(request) => self.on_request(request),
            EngineEventKind::ApprovalDecided(decision) if decision.approved => self.on_approved(decision),
            EngineEventKind::ApprovalDecided(decision) => self.on_denied(decision),
            EngineEventKind::RunShadow(shadow) => {
                self.on_run_shadow(event.run.map_or("", |run| run.request_id), shadow);
            }
            EngineEventKind::HookFailed(failure) => self.on_hook_failure(failure),
            EngineEventKind::CallDecided(_)
            | EngineEventKind::LimitRefused(_)
            | EngineEventKind::CacheHit(_)
            | EngineEventKind::StoreFailed(_)
            | EngineEventKind::Rules(_)
            | EngineEventKind::CandidateRules(_)
            | EngineEventKind::CandidateDecided(_)
            | EngineEventKind::CandidateSkipped(_)
            | EngineEventKind::AnswerRecorded(_)
            | EngineEventKind::NotificationSent(_)
            | EngineEventKind::NotificationFailed(_) => {}
        }
    }

    /// Resolves when every event received so far is recorded. Awaited when a call is decided and when it starts, before it reaches its
    /// tool, or a policy that answers in the tool's place; an error denies the call with
    /// [`LOG_UNAVAILABLE`](crate::reason_code::LOG_UNAVAILABLE). Also awaited before outcomes are returned, which an error does not
    /// change. `None`, the default, means that calls do not depend on this observer.
    fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        None
    }

    /// A call has an outcome.
    fn on_outcome(&self, _outcome: &Outcome) {}

    /// A call is about to run. Not called for calls that are denied, or answered before they reach the tool, unless it is this event that
    /// an observer cannot record.
    fn on_tool_start(&self, _start: &ToolCallStart<'_>) {}

    /// A call was settled, also one that never started. Not called for calls with a pending approval.
    fn on_tool_end(&self, _span: &ToolCallSpan<'_>) {}

    /// A policy in shadow mode would have changed or stopped the run. Reported once a run for each policy and effect. The
    /// shadow effects on a call are part of the call's outcome.
    fn on_run_shadow(&self, _request_id: &str, _shadow: &RunShadowEffect) {}

    /// A hook panicked or returned an error. Before the tool runs, this also denies the call; at every other point the run
    /// continues as if the hook were absent.
    fn on_hook_failure(&self, _failure: &HookFailure<'_>) {}

    /// Approval was requested for a call. Called once for each request, however often its session is resumed.
    fn on_request(&self, _request: &ApprovalRequest) {}

    /// A call was approved, edited or answered by its approvers. Called once for each request, before the call runs; if the
    /// store does not outlive the process, once for each history that has the answer but no result.
    fn on_approved(&self, _decision: &ApprovalDecision) {}

    /// A request was denied, cancelled with its run, or expired. Called as often as [`Self::on_approved`].
    fn on_denied(&self, _decision: &ApprovalDecision) {}
}
