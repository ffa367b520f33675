//! Histories, their messages and roles.

use super::dialect::Dialect;
use super::part::{Part, PartContent};
use crate::json::Map;

/// A conversation: the messages of an agent, its model, its tools and its users, in order.
///
/// ```
/// use callgate::message::{Dialect, History};
/// use callgate::json::json;
///
/// let messages = json!([
///     {"role": "user", "content": "refund order 7"},
///     {"role": "assistant", "content": null, "tool_calls": [
///         {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": "{\"order\":7}"}}]},
///     {"role": "tool", "tool_call_id": "c1", "content": "refunded"}
/// ]);
/// let history = History::read(Dialect::OpenaiChat, &messages)?;
/// assert!(history.calls_without_result().is_empty());
/// assert_eq!(history.write(Dialect::OpenaiChat), messages);
/// assert_eq!(history.write(Dialect::Anthropic)[1]["content"][0]["input"], json!({"order": 7}));
/// # Ok::<(), callgate::message::DialectError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub(super) messages: Vec<Message>,
    pub(super) root: Option<RequestFrame>,
}

/// The request around the messages, without them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestFrame {
    pub(super) dialect: Dialect,
    pub(super) request: Map,
    /// The member that held the system prompt, which is now a message.
    pub(super) system: Option<&'static str>,
}

impl History {
    /// A history with these messages.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, root: None }
    }

    /// The messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    pub(super) fn part(&self, position: PartPosition) -> Option<&Part> {
        self.messages.get(position.message)?.parts.get(position.part)
    }
}

/// The position of a part in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartPosition {
    /// The message's index.
    pub message: usize,
    /// The part's index in the message.
    pub part: usize,
}

/// One message. Dialects differ in how they split a turn into messages; the order of the parts is the same in all.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub(super) role: Role,
    pub(super) parts: Vec<Part>,
    pub(super) frame: Option<MessageFrame>,
}

/// The members of a dialect's message besides its parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageFrame {
    pub(super) dialect: Dialect,
    pub(super) json: Map,
    /// The message is the system prompt, a member of the request beside the messages.
    pub(super) at_root: bool,
}

impl Message {
    /// A message with these parts.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, frame: None }
    }

    /// The role.
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Adds a part at the end.
    pub fn push(&mut self, part: Part) {
        self.parts.push(part);
    }

    pub(super) fn with_frame(dialect: Dialect, role: Role, json: Map, parts: Vec<Part>) -> Self {
        Self { role, parts, frame: Some(MessageFrame { dialect, json, at_root: false }) }
    }

    /// The frame, if it belongs to this dialect.
    pub(super) fn frame_in(&self, dialect: Dialect) -> Option<&MessageFrame> {
        self.frame.as_ref().filter(|frame| frame.dialect == dialect)
    }

    pub(super) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.content(), PartContent::Call(_)))
    }
}

/// The role of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions of the agent's operator.
    System,
    /// The same in OpenAI's newer dialects; written as `system` in dialects without this role.
    Developer,
    /// The agent's user.
    User,
    /// The model.
    Assistant,
    /// Results of tools and answers of approvers.
    Tool,
    /// Any other role, as read; empty if the message had none.
    Other(String),
}

impl Role {
    /// The role with this name in any dialect.
    pub fn from_name(name: &str) -> Self {
        match name {
            "system" => Self::System,
            "developer" => Self::Developer,
            "user" => Self::User,
            "assistant" | "model" => Self::Assistant,
            "tool" | "function" => Self::Tool,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The role's name.
    pub fn name(&self) -> &str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other(name) => name,
        }
    }

    /// Whether the message contains instructions of the agent's operator.
    pub fn is_instruction(&self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}
