//! What the embedding program supplies: the tools, a clock, and eyes.

use std::future::Future;

use jiff::Timestamp;
use serde_json::Value;

use crate::call::{Outcome, ToolCall};

/// Why a tool gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// For the model.
    pub message: String,
    /// A word that policies can match, such as `timeout`.
    pub kind: Option<String>,
}

impl ToolError {
    /// An error with a message and no kind.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: None }
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// The result.
    pub output: Value,
    /// No tool stood behind the call: the output says nothing.
    pub dry: bool,
}

impl From<Value> for ToolAnswer {
    fn from(output: Value) -> Self {
        Self { output, dry: false }
    }
}

/// Runs tools. Only calls that passed every policy get here, with their final arguments.
pub trait ToolExecutor {
    /// Runs one call to its end.
    fn execute(&self, call: &ToolCall) -> impl Future<Output = Result<ToolAnswer, ToolError>> + Send;
}

/// Tells the time, so that tests can set it.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Sees every outcome, redacted. Observers are isolated: one that panics changes nothing.
pub trait Observer: Send + Sync {
    /// A call came to an outcome.
    fn on_outcome(&self, outcome: &Outcome);
}
