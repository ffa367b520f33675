//! The parts of a message, each with what its dialect said beyond the canonical fields.

use super::approval::{RequestPart, ResponsePart, StatePart};
use super::dialect::Dialect;
use crate::call::ToolCall;
use crate::json::Value;

/// One part of a message: what it says, and the JSON it was read from.
///
/// The two stay together: a part is replaced as a whole, so that what is written in the dialect it came from is never
/// older than what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    content: Content,
    source: Option<Source>,
}

/// What a part says, in every dialect.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text that the model or a person wrote.
    Text(String),
    /// The model asks for a tool.
    Call(CallPart),
    /// What became of a call.
    Result(ResultPart),
    /// The question put to a person.
    Request(RequestPart),
    /// The person's answer.
    Response(ResponsePart),
    /// What the session has seen.
    State(StatePart),
    /// Anything else (images, reasoning, a provider's own tools), as it stood: see [`Part::source`].
    Other,
}

/// A tool call in a history.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPart {
    /// The call's id. Ids repeat in real histories: an [`Occurrence`](super::Occurrence) is what is unique.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments; `{}` where the model sent none, `null` or an empty string. Text that is not JSON, or has a duplicate key, stands
    /// here as a string: no tool takes one.
    pub input: Value,
}

impl CallPart {
    /// A call as a model sends it: `null` and an empty string are no arguments, `{}`.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Self { id: id.into(), name: name.into(), input: super::blocks::arguments(Some(&input)) }
    }

    /// The call as policies see it.
    pub fn to_call(&self) -> ToolCall {
        ToolCall::new(self.id.clone(), self.name.clone(), self.input.clone())
    }
}

/// The result of a tool call in a history.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultPart {
    /// The id of the call that it answers.
    pub call_id: String,
    /// The tool's name; empty where neither the result nor its call says it.
    pub name: String,
    /// What the model is given.
    pub output: Output,
    /// How the call ended, as far as the dialect can say it.
    pub settled: Settled,
}

/// What a tool gave, as the model is given it.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Plain text.
    Text(String),
    /// A JSON value that is no string.
    Json(Value),
    /// Texts and other parts in a row. Only [`Content::Text`] and [`Content::Other`] stand here.
    Parts(Vec<Part>),
}

impl Output {
    /// The output of a tool's JSON result: a string is text.
    pub fn of(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            other => Self::Json(other),
        }
    }

    /// The output as text, which is what dialects without structured results are given: JSON in its shortest form,
    /// the texts of parts one after the other.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Json(value) => value.to_string(),
            Self::Parts(parts) => parts.iter().filter_map(Part::as_text).collect(),
        }
    }
}

/// How a result says that its call ended. OpenAI's dialects can't tell the three apart, Anthropic and Gemini have
/// no denial of their own and say error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The tool, or something in its place, answered.
    Output,
    /// The call failed.
    Error,
    /// The call was refused.
    Denied,
}

/// The JSON a part was read from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Source {
    pub(super) dialect: Dialect,
    pub(super) slot: Slot,
    pub(super) json: Value,
}

/// Where in a message of its dialect a part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// In the list of the message's contents.
    Content,
    /// In OpenAI's `tool_calls`.
    ToolCalls,
    /// OpenAI's older `function_call`.
    FunctionCall,
    /// OpenAI's `refusal`.
    Refusal,
    /// The part is the whole message or item.
    Whole,
}

impl Slot {
    pub(super) const ALL: [Self; 5] =
        [Self::Content, Self::ToolCalls, Self::FunctionCall, Self::Refusal, Self::Whole];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::ToolCalls => "tool_calls",
            Self::FunctionCall => "function_call",
            Self::Refusal => "refusal",
            Self::Whole => "message",
        }
    }
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, source: None }
    }
}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }

    /// A tool call.
    pub fn call(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Content::Call(CallPart::new(id, name, input)).into()
    }

    /// A result.
    pub fn result(result: ResultPart) -> Self {
        Content::Result(result).into()
    }

    /// A part that only `dialect` understands; `json` is a member of its list of contents.
    pub fn other(dialect: Dialect, json: Value) -> Self {
        Self::read(dialect, Slot::Content, json, Content::Other)
    }

    /// What the part says.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The JSON the part was read from, and its dialect.
    pub fn source(&self) -> Option<(Dialect, &Value)> {
        self.source.as_ref().map(|source| (source.dialect, &source.json))
    }

    /// The text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn read(dialect: Dialect, slot: Slot, json: Value, content: Content) -> Self {
        Self { content, source: Some(Source { dialect, slot, json }) }
    }

    pub(super) fn foreign_to(&self, dialect: Dialect) -> bool {
        self.source.as_ref().is_some_and(|source| source.dialect != dialect)
    }

    /// The source, where it is one of this dialect.
    pub(super) fn own(&self, dialect: Dialect) -> Option<&Source> {
        self.source.as_ref().filter(|source| source.dialect == dialect)
    }

    pub(super) fn any_source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// The content, to name what the source leaves unnamed. The source stays, so nothing else may change.
    pub(super) fn content_to_name(&mut self) -> &mut Content {
        &mut self.content
    }
}
