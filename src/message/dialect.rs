//! Dialects: the message formats of the providers, and reading and writing whole histories in them.

use super::history::{History, Message, MessageFrame, RequestFrame, Role};
use super::part::{Part, PartContent, SourceSlot};
use super::{ai_sdk, anthropic, gemini, id_assignment, openai_chat, openai_responses, segments};
use crate::json::{MAX_DEPTH, Map, Value, is_deeper_than};

/// The message format of a provider or a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI Chat Completions and compatible APIs.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `contents`.
    Gemini,
    /// The model messages of Vercel's AI SDK.
    AiSdk,
}

/// Why a document can't be read as a history, or a name is not a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// The document is neither an array of messages nor a request with one.
    #[error(
        "a `{dialect}` history must be an array of messages, or an object with an array `{member}`; this is {found}"
    )]
    Shape {
        /// The expected dialect.
        dialect: Dialect,
        /// The member that holds the messages of a request.
        member: &'static str,
        /// The type of the document instead.
        found: String,
    },
    /// The document is nested too deeply.
    #[error("the history is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// No dialect has this name.
    #[error("unknown dialect `{name}`; use one of {}", Dialect::ALL.map(|known| format!("`{known}`")).join(", "))]
    UnknownName {
        /// The name.
        name: String,
    },
}

impl Dialect {
    /// Every dialect; the tests of all dialects iterate over it.
    pub const ALL: [Self; 5] =
        [Self::OpenaiChat, Self::OpenaiResponses, Self::Anthropic, Self::Gemini, Self::AiSdk];

    /// The name of the dialect.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::AiSdk => "ai-sdk",
        }
    }

    /// The dialect with this name.
    ///
    /// ```
    /// use callgate::message::Dialect;
    /// assert_eq!(Dialect::from_name("anthropic"), Ok(Dialect::Anthropic));
    /// let error = Dialect::from_name("claude").unwrap_err().to_string();
    /// assert!(error.contains("unknown dialect `claude`"), "{error}");
    /// ```
    pub fn from_name(name: &str) -> Result<Self, DialectError> {
        let named = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        named.ok_or_else(|| DialectError::UnknownName { name: name.to_owned() })
    }

    /// The member of a request that holds the messages.
    fn messages_key(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::Anthropic | Self::AiSdk => "messages",
            Self::OpenaiResponses => "input",
            Self::Gemini => "contents",
        }
    }

    /// The members of a request that may hold the system prompt; the first one is written.
    fn system_keys(self) -> &'static [&'static str] {
        match self {
            Self::OpenaiChat => &[],
            Self::OpenaiResponses => &["instructions"],
            Self::Anthropic | Self::AiSdk => &["system"],
            Self::Gemini => &["systemInstruction", "system_instruction"],
        }
    }

    /// Whether the system prompt is a member of the request, beside the messages.
    pub(super) fn has_separate_system(self) -> bool {
        match self {
            Self::Anthropic | Self::Gemini => true,
            Self::OpenaiChat | Self::OpenaiResponses | Self::AiSdk => false,
        }
    }

    fn read_message(self, json: &Value) -> Message {
        match self {
            Self::OpenaiChat => openai_chat::read(json),
            Self::OpenaiResponses => openai_responses::read(json),
            Self::Anthropic => anthropic::read(json),
            Self::Gemini => gemini::read(json),
            Self::AiSdk => ai_sdk::read(json),
        }
    }

    fn write_messages(self, messages: &[&Message]) -> Vec<Value> {
        match self {
            Self::OpenaiChat => openai_chat::write(messages),
            Self::OpenaiResponses => openai_responses::write(messages),
            Self::Anthropic => anthropic::write(messages),
            Self::Gemini => gemini::write(messages),
            Self::AiSdk => ai_sdk::write(messages),
        }
    }

    /// Whether this dialect gives a part no meaning, whatever the role of its message.
    pub(super) fn is_unknown_part(self, slot: SourceSlot, part: &Value) -> bool {
        let model_message = |member: &str, value: Value| {
            Value::from(Map::from_iter([("role".to_owned(), "assistant".into()), (member.to_owned(), value)]))
        };
        let content_message =
            |role| segments::message_json(role, self.content_key(), vec![part.clone()].into());
        let messages = match slot {
            // The content of an OpenAI tool message is one result, not parts.
            SourceSlot::Content if self == Self::OpenaiChat => {
                ["user", "assistant"].map(content_message).to_vec()
            }
            SourceSlot::Content => ["user", "assistant", "tool"].map(content_message).to_vec(),
            SourceSlot::ToolCalls => vec![model_message("tool_calls", vec![part.clone()].into())],
            SourceSlot::FunctionCall => vec![model_message("function_call", part.clone())],
            SourceSlot::Refusal => return part.is_string(),
            SourceSlot::Whole => vec![part.clone()],
        };
        // AI SDK model messages contain results of the provider's own tools; these are recognised by the call beside them.
        let unknown = |message: &Message, part: &Part| match part.content() {
            PartContent::Other => true,
            PartContent::Result(_) => self == Self::AiSdk && message.role != Role::User,
            _ => false,
        };
        let mut read = messages.iter().map(|message| self.read_message(message));
        read.all(|message| message.parts.iter().all(|part| unknown(&message, part)))
    }

    /// The member of a message that holds its content.
    fn content_key(self) -> &'static str {
        match self {
            Self::Gemini => "parts",
            Self::OpenaiChat | Self::OpenaiResponses | Self::Anthropic | Self::AiSdk => "content",
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl History {
    /// Reads a history: an array of messages, or a whole request. The system prompt of a request becomes the first message;
    /// its other members are preserved. Unknown messages and parts are preserved unchanged. Calls without an id get one
    /// from their position.
    ///
    /// # Errors
    /// If the document has no array of messages, or is nested too deeply.
    pub fn read(dialect: Dialect, document: &Value) -> Result<Self, DialectError> {
        if is_deeper_than(document, MAX_DEPTH) {
            return Err(DialectError::TooDeep);
        }
        let shape = |found| DialectError::Shape { dialect, member: dialect.messages_key(), found };
        let mut history = match document {
            Value::Array(items) => Self::new(items.iter().map(|item| dialect.read_message(item)).collect()),
            Value::Object(request) => read_request(dialect, request)
                .ok_or_else(|| shape(format!("an object without the array `{}`", dialect.messages_key())))?,
            other => return Err(shape(crate::json::JsonType::from_value(other).with_article().to_owned())),
        };
        id_assignment::assign_missing_ids(&mut history.messages);
        Ok(history)
    }

    /// Writes the history. In the dialect that it was read from, unchanged messages are written as they were read, so the
    /// document is equal as JSON. In another dialect, the result is an array of messages; if that dialect has a separate
    /// system prompt (Anthropic, Gemini) and the history begins with one, it is an object with the array and the system
    /// prompt.
    ///
    /// Use this form for storage: it contains approval parts, and the parts of other dialects in an envelope, which
    /// providers reject. To send a history, write the result of [`History::for_provider`].
    pub fn write(&self, dialect: Dialect) -> Value {
        let leading = self.messages.iter().take_while(|message| message.role.is_instruction()).count();
        let (head, tail) = self.messages.split_at_checked(leading).unwrap_or_default();
        let apart = |message: &&Message| match message.frame_in(dialect) {
            Some(frame) => frame.at_root,
            None => dialect.has_separate_system(),
        };
        let (system, rest): (Vec<&Message>, Vec<&Message>) = head.iter().partition(apart);
        let messages: Vec<&Message> = rest.into_iter().chain(tail).collect();
        let system = write_system(dialect, &system);
        let list = dialect.write_messages(&messages);
        let root = self.root.as_ref().filter(|root| root.dialect == dialect);
        if root.is_none() && system.is_none() {
            return list.into();
        }
        let mut request = root.map(|root| root.request.clone()).unwrap_or_default();
        let member = root.and_then(|root| root.system).or(dialect.system_keys().first().copied());
        match (member, system) {
            (Some(member), Some(system)) => _ = request.insert(member.to_owned(), system),
            // The history no longer contains the system prompt that was read.
            (Some(member), None) if root.is_some_and(|root| root.system.is_some()) => {
                _ = request.remove(member);
            }
            _ => {}
        }
        let was_text = matches!(request.get(dialect.messages_key()), Some(Value::String(_)));
        let text = list.first().filter(|_| was_text && list.len() == 1).and_then(|item| item.get("content"));
        let written = text.filter(|text| text.is_string()).cloned().unwrap_or_else(|| list.into());
        request.insert(dialect.messages_key().to_owned(), written);
        request.into()
    }
}

/// Reads a request, and takes its messages and the system prompt out. Returns `None` if it has no array of messages.
fn read_request(dialect: Dialect, request: &Map) -> Option<History> {
    let mut frame = request.clone();
    let mut messages = Vec::new();
    let mut system_key = None;
    if let Some(member) = dialect.system_keys().iter().find(|member| request.contains_key(**member))
        && let Some(system) = request.get(*member).and_then(|system| read_system(dialect, system))
    {
        frame.insert((*member).to_owned(), Value::Null);
        system_key = Some(*member);
        messages.push(system);
    }
    let emptied = match request.get(dialect.messages_key())? {
        Value::Array(items) => {
            messages.extend(items.iter().map(|item| dialect.read_message(item)));
            Value::Array(Vec::new())
        }
        Value::String(text) if dialect == Dialect::OpenaiResponses => {
            messages.push(dialect.read_message(&segments::message_json(
                "user",
                dialect.content_key(),
                text.clone().into(),
            )));
            Value::String(String::new())
        }
        _ => return None,
    };
    frame.insert(dialect.messages_key().to_owned(), emptied);
    Some(History { messages, root: Some(RequestFrame { dialect, request: frame, system: system_key }) })
}

/// Reads a separate system prompt. Returns `None` if its form is unknown; then it stays in the request.
fn read_system(dialect: Dialect, system: &Value) -> Option<Message> {
    let json = match (dialect, system) {
        (Dialect::Gemini, Value::Object(content)) if content.get("parts").is_some_and(Value::is_array) => {
            system.clone()
        }
        (Dialect::Gemini, _) => return None,
        (Dialect::Anthropic, Value::String(_) | Value::Array(_)) | (_, Value::String(_)) => {
            segments::message_json("system", dialect.content_key(), system.clone())
        }
        _ => return None,
    };
    let mut message = dialect.read_message(&json);
    message.role = Role::System;
    let Some(MessageFrame { at_root, .. }) = &mut message.frame else { return None };
    *at_root = true;
    Some(message)
}

/// The separate system prompt from these messages.
fn write_system(dialect: Dialect, system: &[&Message]) -> Option<Value> {
    let mut written = dialect.write_messages(system).into_iter();
    let first = written.next()?;
    let whole = written.fold(first, |mut whole, next| {
        segments::append_content(&mut whole, dialect.content_key(), &next);
        whole
    });
    match dialect {
        Dialect::Gemini => Some(segments::without_role(whole, system)),
        _ => whole.get(dialect.content_key()).cloned(),
    }
}
