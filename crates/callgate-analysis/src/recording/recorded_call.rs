//! A recorded call: its arguments, its result, and what was decided on it.

use std::sync::Arc;

use callgate::call::{CallRecord, Effect, RoundPosition, reason_code};
use jiff::Timestamp;

use super::decision::CallDecision;

/// A call of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The call with its session and its result.
    pub record: CallRecord,
    /// Where it is recorded.
    pub origin: CallOrigin,
    /// When it was decided, if that is known.
    pub time: Option<Timestamp>,
    /// The run of its session, if that is known.
    pub run: Option<String>,
    /// Its position in its round, if it is known and the round has several calls.
    pub position: Option<RoundPosition>,
    /// Which part of a call with an approval this is.
    pub stage: CallStage,
    /// What was decided.
    pub decision: RecordedDecision,
    /// Whether redaction replaced parts of the arguments or the result.
    pub is_redacted: bool,
}

/// The line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallOrigin {
    /// The file's name.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u64,
}

/// Which part of a call with an approval an outcome is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// A whole call, or the request of its approval.
    Decided,
    /// The end of an approved call, whose request was recorded before.
    Resumed,
}

/// What is known of the decision on a recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedDecision {
    /// The decision.
    Known {
        /// The decision.
        decision: CallDecision,
        /// Whether the call was approved.
        is_approved: bool,
    },
    /// The outcome depended on more than the rules and the calls, such as a store that was unavailable.
    NotReproducible(String),
    /// The call has neither an outcome nor a result.
    Unknown,
}

impl RecordedCall {
    /// Whether the call reached its tool when it was recorded.
    pub fn has_run(&self) -> bool {
        match &self.decision {
            RecordedDecision::Known { decision, .. } => decision.effect == Effect::Run,
            RecordedDecision::NotReproducible(_) | RecordedDecision::Unknown => {
                self.record.recorded.is_some()
            }
        }
    }

    /// Whether the call was suspended, and perhaps runs later.
    pub(crate) fn was_suspended(&self) -> bool {
        matches!(&self.decision, RecordedDecision::Known { decision, .. } if decision.effect == Effect::Suspend)
    }

    /// Whether the call halted its session, or was halted with it.
    pub(crate) fn was_halted(&self) -> bool {
        matches!(&self.decision, RecordedDecision::Known { decision, .. } if decision.effect == Effect::Halt)
    }
}

impl RecordedDecision {
    /// Whether a decision treats the call as this one did. An approval that was given, or denied, counts for any policy that requires
    /// one.
    pub(crate) fn is_same(&self, after: &CallDecision) -> bool {
        let Self::Known { decision, is_approved } = self else { return false };
        let was_asked = *is_approved || ANSWERED_REQUEST.contains(&decision.code.as_str());
        decision.effect == after.effect || (was_asked && after.effect == Effect::Suspend)
    }
}

/// Codes of calls for which an approval was requested, or would have been.
const ANSWERED_REQUEST: [&str; 3] =
    [reason_code::APPROVAL_DENIED, reason_code::APPROVAL_EXPIRED, reason_code::ASK_AGAIN];
