//! Calls in a file, one JSON object a line: the call with its session and the recorded answer of its tool → [`CallRecord`].

use super::{Task, ToolCall};
use crate::json::{self, Value};

/// The recorded answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedResult {
    /// Its result.
    Output(Value),
    /// Its error.
    Error {
        /// The message for the model.
        message: String,
        /// An error kind that policies can match, such as `timeout`.
        kind: Option<String>,
    },
}

impl RecordedResult {
    /// Reads a string, or an object with `message` and `kind`; any other value is itself the message.
    fn error(error: Value) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        match (&error, text("message")) {
            (Value::String(message), _) => Self::Error { message: message.clone(), kind: None },
            (_, Some(message)) => Self::Error { message, kind: text("kind") },
            (other, None) => Self::Error { message: other.to_string(), kind: None },
        }
    }
}

/// One line of a calls file.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// The call; its id is empty if the line has none.
    pub call: ToolCall,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// Calls of one session with the same round are evaluated together.
    pub round: Option<Value>,
    /// What the user asked for, from this call of the session on.
    pub task: Option<Value>,
    /// The tool's answer, if it is known.
    pub recorded: Option<RecordedResult>,
}

/// Why a line is not a valid call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallRecordError {
    /// Not JSON, or JSON with a duplicate key.
    #[error("not a JSON object: {0}")]
    Json(#[from] json::ParseError),
    /// JSON, but not an object.
    #[error("a call must be a JSON object, this is {0}")]
    NotAnObject(&'static str),
    /// No `tool`.
    #[error("`tool` is missing: the tool's name, a string")]
    NoTool,
    /// A member of the wrong type.
    #[error("`{member}` must be {wanted}, this is {found}")]
    WrongType {
        /// The member.
        member: &'static str,
        /// What it must be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
}

impl CallRecord {
    /// What the user asked for. Returns `None` if the line says nothing of it.
    pub fn task(&self) -> Option<Task> {
        let task = self.task.as_ref()?;
        Some(Task::from_json(task).unwrap_or_else(|_| Task::unknown("it has another form")))
    }

    /// Parses one line. Unknown members are ignored.
    pub fn parse(line: &str) -> Result<Self, CallRecordError> {
        Self::from_json(json::parse(line)?)
    }

    /// Reads a call from a JSON object. Unknown members are ignored.
    pub fn from_json(document: Value) -> Result<Self, CallRecordError> {
        let mut members = match document {
            Value::Object(members) => members,
            other => {
                return Err(CallRecordError::NotAnObject(json::JsonType::from_value(&other).with_article()));
            }
        };
        let mut text = |member: &'static str| match members.remove(member) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(member, "a string", &other)),
        };
        let (id, tool, server, session) = (text("id")?, text("tool")?, text("server")?, text("session")?);
        let context = match members.remove("context") {
            None => Value::Null,
            Some(context @ (Value::Null | Value::Object(_))) => context,
            Some(other) => return Err(wrong_type("context", "an object", &other)),
        };
        let recorded = match members.remove("recorded") {
            None | Some(Value::Null) => None,
            Some(Value::Object(mut recorded)) => {
                match (recorded.remove("error"), recorded.remove("output")) {
                    (Some(error), _) if !error.is_null() => Some(RecordedResult::error(error)),
                    (_, Some(output)) => Some(RecordedResult::Output(output)),
                    (_, None) => None,
                }
            }
            Some(other) => return Err(wrong_type("recorded", "an object", &other)),
        };
        let task = match members.remove("task") {
            None => None,
            Some(task) => match Task::from_json(&task) {
                Ok(_) => Some(task),
                Err(wanted) => return Err(wrong_type("task", wanted, &task)),
            },
        };
        let (id, input) = (id.unwrap_or_default(), members.remove("input").unwrap_or(Value::Null));
        let call = ToolCall::recorded(id, &tool.ok_or(CallRecordError::NoTool)?, input);
        Ok(Self {
            task,
            call: ToolCall { server, context, ..call },
            session,
            round: members.remove("round").filter(|round| !round.is_null()),
            recorded,
        })
    }
}

fn wrong_type(member: &'static str, wanted: &'static str, found: &Value) -> CallRecordError {
    CallRecordError::WrongType { member, wanted, found: json::JsonType::from_value(found).with_article() }
}
