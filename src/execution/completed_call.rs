//! A call with its outcome and what its tool returned, for rules that evaluate it again: the candidate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::call::{Outcome, RoundPosition, SessionState, Task, ToolCall};
use crate::host::{ToolError, ToolResponse};
use crate::json::Value;
use crate::policy::CompiledPolicies;
use crate::tools::ToolCatalog;

/// What a call of a tool returned, before policies changed it.
pub(crate) type ToolResult = Result<ToolResponse, ToolError>;

/// A call that has its outcome.
pub(crate) struct CompletedCall {
    /// The call as hooks left it.
    pub(crate) call: ToolCall,
    /// When it was decided.
    pub(crate) time: Timestamp,
    /// The name of its session in the state store.
    pub(crate) conversation: String,
    /// The name of its session for people, if it has one.
    pub(crate) session: Option<String>,
    /// The id of its run.
    pub(crate) run: String,
    pub(crate) iteration: u64,
    /// What the host says about the run: `conversationId` and the like.
    pub(crate) run_info: Vec<(String, Value)>,
    /// The context of the session, for calls without one.
    pub(crate) context: Value,
    /// The context of the call, redacted, for observers.
    pub(crate) shown_context: Value,
    pub(crate) task: Task,
    pub(crate) round: Option<RoundPosition>,
    /// Whether the session had labels, facts or calls before this one.
    pub(crate) has_past: bool,
    /// The layers below the bundle.
    pub(crate) lower_layers: Vec<Arc<CompiledPolicies>>,
    pub(crate) tools: Arc<ToolCatalog>,
    /// Whether a hook of the host decided it.
    pub(crate) is_decided_by_hook: bool,
    /// What each call of the tool returned, in order.
    pub(crate) results: Vec<ToolResult>,
    pub(crate) outcome: Outcome,
}

/// Receives completed calls. It must not block.
pub(crate) trait CompletedCalls: Send + Sync {
    /// Receives a call.
    fn submit(&self, call: CompletedCall);
}

/// What is recorded of a call while it runs. A clone is the recording of another call.
#[derive(Default)]
pub(crate) struct CallRecording(Mutex<RecordedExecution>);

#[derive(Default)]
pub(super) struct RecordedExecution {
    /// When the call was decided, and whether its session had a past.
    pub(super) start: Option<(Timestamp, bool)>,
    pub(super) results: Vec<ToolResult>,
}

impl Clone for CallRecording {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl CallRecording {
    /// Begins the recording of a call.
    pub(super) fn start(&self, now: Timestamp, state: &SessionState) {
        let start = Some((now, state.has_past()));
        *self.lock() = RecordedExecution { start, results: Vec::new() };
    }

    /// Records what the tool, or a cache, returned.
    pub(super) fn add(&self, result: ToolResult) {
        self.lock().results.push(result);
    }

    /// Ends the recording of a call.
    pub(super) fn take(&self) -> RecordedExecution {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, RecordedExecution> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
