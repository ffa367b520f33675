//! Plays the tools as they were recorded.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::call::{CallRecord, Recorded, ToolCall};
use crate::host::{ToolAnswer, ToolError, ToolExecutor};
use crate::json;

/// What was recorded of the calls of one round.
pub(super) struct Player {
    answers: Mutex<Vec<(ToolCall, Option<Recorded>)>>,
}

impl Player {
    /// Splits a round into its calls and the player of their tools.
    pub(super) fn split(round: Vec<CallRecord>) -> (Vec<ToolCall>, Self) {
        let answers = round.into_iter().map(|record| (record.call, record.recorded)).collect::<Vec<_>>();
        (answers.iter().map(|(call, _)| call.clone()).collect(), Self { answers: Mutex::new(answers) })
    }

    /// Takes what was recorded of a call. Ids repeat in real histories: of several calls of one id, the one with the same
    /// arguments was meant, and else the first.
    fn take(&self, call: &ToolCall) -> Option<Recorded> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |other: &ToolCall| other.id == call.id && other.tool == call.tool && other.server == call.server;
        let place = answers
            .iter()
            .position(|(other, _)| same(other) && json::equal(&other.input, &call.input))
            .or_else(|| answers.iter().position(|(other, _)| same(other)))?;
        answers.remove(place).1
    }
}

impl ToolExecutor for Player {
    async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
        match self.take(call) {
            Some(Recorded::Output(output)) => Ok(output.into()),
            Some(Recorded::Error(message)) => Err(ToolError::new(message)),
            None => Ok(ToolAnswer { output: Value::Null, dry: true }),
        }
    }
}
