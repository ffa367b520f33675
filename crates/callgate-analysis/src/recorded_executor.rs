//! A [`ToolExecutor`] that replays recorded results.

use std::sync::{Mutex, PoisonError};

use callgate::call::{CallRecord, RecordedResult, ToolCall};
use callgate::host::{ToolError, ToolExecutor, ToolResponse};
use callgate::json::Value;

/// Replays the recorded results of one round's calls.
#[derive(Debug)]
pub struct RecordedExecutor {
    recordings: Mutex<Vec<Recording>>,
}

#[derive(Debug)]
struct Recording {
    call: ToolCall,
    recorded: Option<RecordedResult>,
    is_replayed: bool,
}

impl RecordedExecutor {
    /// Splits a round into its calls and the executor that replays their results.
    pub fn split_round(round: Vec<CallRecord>) -> (Vec<ToolCall>, Self) {
        let calls = round.iter().map(|record| record.call.clone()).collect();
        let answers = round.into_iter().map(|record| Recording {
            call: record.call,
            recorded: record.recorded,
            is_replayed: false,
        });
        (calls, Self { recordings: Mutex::new(answers.collect()) })
    }

    /// Returns the recorded result of a call. Ids repeat in real histories: of several calls with one id, those not replayed yet come
    /// first, then those with the same arguments, then the first. If the tool is called again for one call, it returns the same result.
    fn replay(&self, call: &ToolCall) -> Option<RecordedResult> {
        let mut answers = self.recordings.lock().unwrap_or_else(PoisonError::into_inner);
        let meant = answers.iter_mut().filter(|recording| {
            let other = &recording.call;
            other.id == call.id && other.tool == call.tool && other.server == call.server
        });
        let recording =
            meant.min_by_key(|recording| (recording.is_replayed, recording.call.input != call.input))?;
        recording.is_replayed = true;
        recording.recorded.clone()
    }
}

impl ToolExecutor for RecordedExecutor {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        match self.replay(call) {
            Some(RecordedResult::Output(output)) => Ok(output.into()),
            Some(RecordedResult::Error { message, kind }) => Err(ToolError { message, kind }),
            None => Ok(ToolResponse { dry: true, ..Value::Null.into() }),
        }
    }
}
