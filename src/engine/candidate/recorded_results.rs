//! A [`ToolExecutor`] that returns what the tools of completed calls returned, and calls no tool.

use std::sync::{Mutex, PoisonError};

use crate::call::ToolCall;
use crate::execution::{CompletedCall, ToolResult};
use crate::host::{ToolExecutor, ToolResponse};
use crate::json::Value;

/// The results of the calls of one round.
pub(super) struct RecordedResults(Mutex<Vec<CallResults>>);

struct CallResults {
    call: ToolCall,
    results: Vec<ToolResult>,
    /// The number of results that were returned.
    used: usize,
}

impl RecordedResults {
    pub(super) fn new(round: &[CompletedCall]) -> Self {
        let of_call = |completed: &CompletedCall| CallResults {
            call: completed.call.clone(),
            results: completed.results.clone(),
            used: 0,
        };
        Self(Mutex::new(round.iter().map(of_call).collect()))
    }

    /// A result of a call. Ids repeat: of several calls with one id, those with the same arguments come first, then those that were asked
    /// least.
    fn find(&self, call: &ToolCall, pick: impl FnOnce(&mut CallResults) -> Option<ToolResult>) -> ToolResult {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &&mut CallResults| {
            let known = &known.call;
            known.id == call.id && known.tool == call.tool && known.server == call.server
        };
        let same = calls.iter_mut().filter(is_same);
        let found = same.min_by_key(|known| (known.call.input != call.input, known.used));
        found.and_then(pick).unwrap_or_else(|| Ok(ToolResponse { dry: true, ..Value::Null.into() }))
    }
}

impl ToolExecutor for RecordedResults {
    /// The next result of the call, and the last one again when there are no more.
    async fn execute(&self, call: &ToolCall) -> ToolResult {
        self.find(call, |known| {
            let result = known.results.get(known.used).or(known.results.last()).cloned();
            known.used += 1;
            result
        })
    }

    /// The last result of the call.
    async fn recorded_result(&self, call: &ToolCall) -> ToolResult {
        self.find(call, |known| {
            known.used += 1;
            known.results.last().cloned()
        })
    }
}
