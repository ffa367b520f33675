//! The names of events in logs, and how urgent they are.

use callgate::{EngineEventKind, RulesEvent};

/// The name of an event in logs.
pub fn event_name(kind: &EngineEventKind<'_>) -> &'static str {
    match kind {
        EngineEventKind::CallDecided(_) => "call_decided",
        EngineEventKind::CallStarted(_) => "call_started",
        EngineEventKind::CallCompleted(_) => "call_completed",
        EngineEventKind::ApprovalRequested(_) => "approval_requested",
        EngineEventKind::ApprovalDecided(decision)
            if decision.code == callgate::reason_code::APPROVAL_EXPIRED =>
        {
            "approval_expired"
        }
        EngineEventKind::ApprovalDecided(_) => "approval_answered",
        EngineEventKind::LimitRefused(_) => "limit_refused",
        EngineEventKind::CacheHit(_) => "cache_hit",
        EngineEventKind::RunShadow(_) => "run_shadow",
        EngineEventKind::HookFailed(_) => "hook_failed",
        EngineEventKind::StoreFailed(_) => "store_failed",
        EngineEventKind::CandidateRules(change) => match change {
            RulesEvent::Loaded => "candidate_loaded",
            RulesEvent::Applied { .. } => "candidate_reloaded",
            RulesEvent::Rejected { .. } => "candidate_rejected",
            RulesEvent::Reverted => "candidate_reverted",
            _ => "candidate_changed",
        },
        EngineEventKind::CandidateDecided(_) => "candidate_differs",
        EngineEventKind::CandidateSkipped(_) => "candidate_skipped",
        EngineEventKind::AnswerRecorded(_) => "answer_recorded",
        EngineEventKind::NotificationSent(_) => "notification_sent",
        EngineEventKind::NotificationFailed(_) => "notification_failed",
        EngineEventKind::Rules(change) => match change {
            RulesEvent::Loaded => "rules_loaded",
            RulesEvent::Applied { confirmed: true, .. } => "rules_confirmed",
            RulesEvent::Applied { .. } => "rules_reloaded",
            RulesEvent::Rejected { .. } => "rules_rejected",
            RulesEvent::Pending { .. } => "rules_pending",
            RulesEvent::Reverted => "rules_reverted",
            _ => "rules_changed",
        },
        _ => "other",
    }
}

/// How urgently a person may want to see an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSeverity {
    /// An event of normal operation, denials included.
    Info,
    /// New rules are rejected or pending, a hook failed, or events are lost.
    Warning,
    /// The state store failed.
    Error,
}

/// The severity of an event.
pub fn event_severity(kind: &EngineEventKind<'_>) -> EventSeverity {
    match kind {
        EngineEventKind::StoreFailed(_) => EventSeverity::Error,
        EngineEventKind::HookFailed(_)
        | EngineEventKind::NotificationFailed(_)
        | EngineEventKind::Rules(RulesEvent::Rejected { .. } | RulesEvent::Pending { .. }) => {
            EventSeverity::Warning
        }
        _ => EventSeverity::Info,
    }
}
