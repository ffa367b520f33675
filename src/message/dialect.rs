//! The dialects, and the documents that they put a history in.

use super::history::{Frame, History, Message, Role, Root};
use super::part::{Content, Part, Slot};
use super::{ai_sdk, anthropic, gemini, identity, layout, openai_chat, openai_responses};
use crate::json::{MAX_DEPTH, Map, Value, deeper_than};

/// A provider's, or a library's, form of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI Chat Completions, and the many that speak it.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini's contents.
    Gemini,
    /// The model messages of Vercel's AI SDK.
    AiSdk,
}

/// Why a document is no history of a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    /// It is neither a list of messages nor a request with one.
    #[error(
        "a history in `{dialect}` is a list of messages, or an object with the list `{member}`; this is {found}"
    )]
    Shape {
        /// The dialect that was to be read.
        dialect: Dialect,
        /// The member that holds the messages of a request.
        member: &'static str,
        /// What there is instead.
        found: String,
    },
    /// It nests too deep to be walked.
    #[error("the history nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// No dialect has this name.
    #[error("there is no dialect `{name}`; there are {}", Dialect::ALL.map(|known| format!("`{known}`")).join(", "))]
    UnknownName {
        /// The name.
        name: String,
    },
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 5] =
        [Self::OpenaiChat, Self::OpenaiResponses, Self::Anthropic, Self::Gemini, Self::AiSdk];

    /// The dialect's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::AiSdk => "ai-sdk",
        }
    }

    /// The dialect of this name.
    ///
    /// ```
    /// use callgate::message::Dialect;
    /// assert_eq!(Dialect::from_name("anthropic"), Ok(Dialect::Anthropic));
    /// let error = Dialect::from_name("claude").unwrap_err().to_string();
    /// assert!(error.contains("there is no dialect `claude`"), "{error}");
    /// ```
    pub fn from_name(name: &str) -> Result<Self, DialectError> {
        let named = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        named.ok_or_else(|| DialectError::UnknownName { name: name.to_owned() })
    }

    /// The member of a request that holds the messages.
    fn list(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::Anthropic | Self::AiSdk => "messages",
            Self::OpenaiResponses => "input",
            Self::Gemini => "contents",
        }
    }

    /// The members of a request that may hold the system prompt; the first is the one to write.
    fn system(self) -> &'static [&'static str] {
        match self {
            Self::OpenaiChat => &[],
            Self::OpenaiResponses => &["instructions"],
            Self::Anthropic | Self::AiSdk => &["system"],
            Self::Gemini => &["systemInstruction", "system_instruction"],
        }
    }

    /// Whether a system prompt goes beside the messages.
    pub(super) fn keeps_system_apart(self) -> bool {
        matches!(self, Self::Anthropic | Self::Gemini)
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

    /// Whether nothing in this dialect is said by a part, whoever says it.
    pub(super) fn leaves_unknown(self, slot: Slot, part: &Value) -> bool {
        let spoken = |member: &str, value: Value| {
            Value::from(Map::from_iter([("role".to_owned(), "assistant".into()), (member.to_owned(), value)]))
        };
        let said = |role| layout::message(role, self.said(), vec![part.clone()].into());
        let messages = match slot {
            // What OpenAI's tools say is one result, not parts.
            Slot::Content if self == Self::OpenaiChat => ["user", "assistant"].map(said).to_vec(),
            Slot::Content => ["user", "assistant", "tool"].map(said).to_vec(),
            Slot::ToolCalls => vec![spoken("tool_calls", vec![part.clone()].into())],
            Slot::FunctionCall => vec![spoken("function_call", part.clone())],
            Slot::Refusal => return part.is_string(),
            Slot::Whole => vec![part.clone()],
        };
        // The AI SDK's model brings results of its provider's own tools, which are known by the call beside them.
        let unknown = |message: &Message, part: &Part| match part.content() {
            Content::Other => true,
            Content::Result(_) => self == Self::AiSdk && message.role != Role::User,
            _ => false,
        };
        let mut read = messages.iter().map(|message| self.read_message(message));
        read.all(|message| message.parts.iter().all(|part| unknown(&message, part)))
    }

    /// The member of a message that holds what is said.
    fn said(self) -> &'static str {
        match self {
            Self::Gemini => "parts",
            _ => "content",
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl History {
    /// Reads a history: a list of messages, or a whole request with one, whose system prompt then comes first and
    /// whose other members are kept. A message or part that is not understood is kept as it stands. Calls without an id
    /// are given one by their place.
    ///
    /// Errors where there is no list of messages, or where the document nests too deep.
    pub fn read(dialect: Dialect, document: &Value) -> Result<Self, DialectError> {
        if deeper_than(document, MAX_DEPTH) {
            return Err(DialectError::TooDeep);
        }
        let shape = |found| DialectError::Shape { dialect, member: dialect.list(), found };
        let mut history = match document {
            Value::Array(items) => Self::new(items.iter().map(|item| dialect.read_message(item)).collect()),
            Value::Object(request) => read_request(dialect, request)
                .ok_or_else(|| shape(format!("an object without the list `{}`", dialect.list())))?,
            other => return Err(shape(crate::json::JsonType::of(other).with_article().to_owned())),
        };
        identity::settle(&mut history.messages);
        Ok(history)
    }

    /// Writes the history. In the dialect it was read from, what was not changed is written as it was read, so the
    /// document is equal as JSON. In another, a list of messages; an object with the list and the system prompt, where the
    /// dialect has that apart (Anthropic, Gemini) and the history begins with one.
    ///
    /// This is the form to keep: approval parts, and parts that only another dialect understands, stand in it in an
    /// envelope that providers refuse. To send it, write what [`History::for_provider`] gives.
    pub fn write(&self, dialect: Dialect) -> Value {
        let leading = self.messages.iter().take_while(|message| message.role.instructs()).count();
        let (head, tail) = self.messages.split_at_checked(leading).unwrap_or_default();
        let apart = |message: &&Message| match message.own_frame(dialect) {
            Some(frame) => frame.at_root,
            None => dialect.keeps_system_apart(),
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
        let member = root.and_then(|root| root.system).or(dialect.system().first().copied());
        match (member, system) {
            (Some(member), Some(system)) => _ = request.insert(member.to_owned(), system),
            // The system prompt that was read is no longer in the history.
            (Some(member), None) if root.is_some_and(|root| root.system.is_some()) => {
                _ = request.remove(member);
            }
            _ => {}
        }
        let was_text = matches!(request.get(dialect.list()), Some(Value::String(_)));
        let text = list.first().filter(|_| was_text && list.len() == 1).and_then(|item| item.get("content"));
        let written = text.filter(|text| text.is_string()).cloned().unwrap_or_else(|| list.into());
        request.insert(dialect.list().to_owned(), written);
        request.into()
    }
}

/// A request, with its list and the system prompt taken out. `None` where it has no list of messages.
fn read_request(dialect: Dialect, request: &Map) -> Option<History> {
    let mut frame = request.clone();
    let mut messages = Vec::new();
    let mut taken = None;
    if let Some(member) = dialect.system().iter().find(|member| request.contains_key(**member))
        && let Some(system) = request.get(*member).and_then(|system| read_system(dialect, system))
    {
        frame.insert((*member).to_owned(), Value::Null);
        taken = Some(*member);
        messages.push(system);
    }
    let emptied = match request.get(dialect.list())? {
        Value::Array(items) => {
            messages.extend(items.iter().map(|item| dialect.read_message(item)));
            Value::Array(Vec::new())
        }
        Value::String(text) if dialect == Dialect::OpenaiResponses => {
            messages.push(dialect.read_message(&layout::message(
                "user",
                dialect.said(),
                text.clone().into(),
            )));
            Value::String(String::new())
        }
        _ => return None,
    };
    frame.insert(dialect.list().to_owned(), emptied);
    Some(History { messages, root: Some(Root { dialect, request: frame, system: taken }) })
}

/// A system prompt that stands beside the messages; `None` where it is not understood, and then it stays in the request.
fn read_system(dialect: Dialect, system: &Value) -> Option<Message> {
    let json = match (dialect, system) {
        (Dialect::Gemini, Value::Object(content)) if content.get("parts").is_some_and(Value::is_array) => {
            system.clone()
        }
        (Dialect::Gemini, _) => return None,
        (Dialect::Anthropic, Value::String(_) | Value::Array(_)) | (_, Value::String(_)) => {
            layout::message("system", dialect.said(), system.clone())
        }
        _ => return None,
    };
    let mut message = dialect.read_message(&json);
    message.role = Role::System;
    let Some(Frame { at_root, .. }) = &mut message.frame else { return None };
    *at_root = true;
    Some(message)
}

/// The system prompt of these messages, as it stands beside the others.
fn write_system(dialect: Dialect, system: &[&Message]) -> Option<Value> {
    let mut written = dialect.write_messages(system).into_iter();
    let first = written.next()?;
    let whole = written.fold(first, |mut whole, next| {
        layout::append(&mut whole, dialect.said(), &next);
        whole
    });
    match dialect {
        Dialect::Gemini => Some(layout::without_role(whole, system)),
        _ => whole.get(dialect.said()).cloned(),
    }
}
