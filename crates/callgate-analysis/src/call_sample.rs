//! Sample calls: a call with everything that its decision depends on, and where it comes from.

use callgate::call::{SessionState, Task, ToolCall};
use callgate::diagnostic::Location;
use callgate::json::{Map, Value, json};
use jiff::Timestamp;

/// Where a sample call comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleOrigin {
    /// It was generated.
    Generated,
    /// A case of the policy tests.
    PolicyTest(Location),
    /// A line of a file of recorded calls, from 1. Reports do not show its arguments, because they may be confidential.
    Recording {
        /// The file's name.
        file: String,
        /// The line.
        line: u64,
    },
}

/// A call with everything that its decision depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSample {
    /// The call.
    pub call: ToolCall,
    /// The state of its session.
    pub session: SessionState,
    /// What the user asked for.
    pub task: Task,
    /// The time of the decision.
    pub now: Timestamp,
    /// Where the call comes from.
    pub origin: SampleOrigin,
}

/// The time of samples that do not set one: that of policy tests.
const DEFAULT_TIME: Timestamp = Timestamp::constant(1_767_268_800, 0);

impl CallSample {
    /// A call in an empty session, without a task.
    pub fn new(call: ToolCall, origin: SampleOrigin) -> Self {
        Self { call, session: SessionState::default(), task: Task::NONE, now: DEFAULT_TIME, origin }
    }

    /// The time of samples that do not set one.
    pub(crate) fn default_time() -> Timestamp {
        DEFAULT_TIME
    }

    /// The call in the form of a recorded call, without members that are empty. Of a recording it has no arguments.
    pub(crate) fn call_json(&self) -> Value {
        let mut members = Map::new();
        let mut add = |name: &str, value: Value| drop(members.insert(name, value));
        add("tool", json!(self.call.tool));
        if let Some(server) = &self.call.server {
            add("server", json!(server));
        }
        if !self.is_confidential() {
            add("input", self.call.input.clone());
            if !self.call.context.is_null() {
                add("context", self.call.context.clone());
            }
            if let Some(text) = self.task.document().and_then(|task| task.get("text")) {
                add("task", text.clone());
            }
        }
        Value::Object(members)
    }

    /// The parts of the session that are not empty. Returns `None` if all are.
    pub(crate) fn session_json(&self) -> Option<Value> {
        let session = self.session.document().as_object().filter(|_| !self.is_confidential())?;
        let is_empty = |value: &Value| match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        let filled = session.iter().filter(|(_, value)| !is_empty(value));
        let filled: Map = filled.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        (!filled.is_empty()).then_some(Value::Object(filled))
    }

    /// Whether reports leave the arguments out.
    pub(crate) fn is_confidential(&self) -> bool {
        matches!(self.origin, SampleOrigin::Recording { .. })
    }
}
