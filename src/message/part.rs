//! Message parts: the canonical content, and the JSON that a part was read from.

use super::approval_parts::{RequestPart, ResponsePart, StatePart};
use super::call_arguments;
use super::dialect::Dialect;
use crate::call::ToolCall;
use crate::json::Value;

/// One part of a message: its content, and the JSON that it was read from.
///
/// A part is replaced only as a whole, so that its source JSON always matches its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    content: PartContent,
    source: Option<PartSource>,
}

/// The content of a part, independent of the dialect.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PartContent {
    /// Text from the model or a person.
    Text(String),
    /// A tool call by the model.
    Call(CallPart),
    /// The result of a tool call.
    Result(ResultPart),
    /// A request for approval.
    Request(RequestPart),
    /// The answer to a request for approval.
    Response(ResponsePart),
    /// The sealed state of the session.
    State(StatePart),
    /// Anything else (images, reasoning, a provider's own tools), unchanged: see [`Part::source`].
    Other,
}

/// A tool call in a history.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPart {
    /// The call's id. Real histories repeat ids: only an [`CallOccurrence`](super::CallOccurrence) is unique.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments; `{}` if the model sent none, `null` or an empty string. Text that is not JSON, or has a duplicate
    /// key, is a string here, which no tool accepts.
    pub input: Value,
}

impl CallPart {
    /// A call as the model sends it. `null` and an empty string mean no arguments: `{}`.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Self { id: id.into(), name: name.into(), input: call_arguments::read(Some(&input)) }
    }

    /// The call in the form that policies check.
    pub fn to_call(&self) -> ToolCall {
        ToolCall::new(self.id.clone(), self.name.clone(), self.input.clone())
    }
}

/// The result of a tool call in a history.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultPart {
    /// The id of the call.
    pub call_id: String,
    /// The tool's name; empty if neither the result nor its call has one.
    pub name: String,
    /// The output that the model receives.
    pub output: ResultOutput,
    /// How the call ended, as far as the dialect can express it.
    pub status: ResultStatus,
}

/// The output of a tool, as the model receives it.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultOutput {
    /// Plain text.
    Text(String),
    /// A JSON value that is not a string.
    Json(Value),
    /// A sequence of texts and other parts: only [`PartContent::Text`] and [`PartContent::Other`].
    Parts(Vec<Part>),
}

impl ResultOutput {
    /// Converts a tool's JSON result; a string becomes text.
    pub fn from_value(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            other => Self::Json(other),
        }
    }

    /// The output as text, for dialects without structured results: compact JSON, or the texts of the parts concatenated.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Json(value) => value.to_string(),
            Self::Parts(parts) => parts.iter().filter_map(Part::as_text).collect(),
        }
    }
}

/// How a call ended according to its result. OpenAI's dialects do not distinguish the three; Anthropic and Gemini represent
/// a denial as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResultStatus {
    /// The tool, or a replacement for it, returned a result.
    Output,
    /// The call failed.
    Error,
    /// The call was denied.
    Denied,
}

/// The JSON that a part was read from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartSource {
    pub(super) dialect: Dialect,
    pub(super) slot: SourceSlot,
    pub(super) json: Value,
}

/// The position of a part in a message of its dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceSlot {
    /// In the array of the message's contents.
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

impl SourceSlot {
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

impl From<PartContent> for Part {
    fn from(content: PartContent) -> Self {
        Self { content, source: None }
    }
}

impl From<StatePart> for Part {
    fn from(state: StatePart) -> Self {
        PartContent::State(state).into()
    }
}

impl From<RequestPart> for Part {
    fn from(request: RequestPart) -> Self {
        PartContent::Request(request).into()
    }
}

impl From<ResponsePart> for Part {
    fn from(response: ResponsePart) -> Self {
        PartContent::Response(response).into()
    }
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        PartContent::Text(text.into()).into()
    }

    /// A tool call part.
    pub fn call(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        PartContent::Call(CallPart::new(id, name, input)).into()
    }

    /// A result part.
    pub fn result(result: ResultPart) -> Self {
        PartContent::Result(result).into()
    }

    /// A part of one dialect that has no canonical form; `json` is an element of that dialect's array of contents.
    pub fn other(dialect: Dialect, json: Value) -> Self {
        Self::from_source(dialect, SourceSlot::Content, json, PartContent::Other)
    }

    /// The content of the part.
    pub fn content(&self) -> &PartContent {
        &self.content
    }

    /// The JSON that the part was read from, and its dialect.
    pub fn source(&self) -> Option<(Dialect, &Value)> {
        self.source.as_ref().map(|source| (source.dialect, &source.json))
    }

    /// The text of a text part. Returns `None` for other parts.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn from_source(dialect: Dialect, slot: SourceSlot, json: Value, content: PartContent) -> Self {
        Self { content, source: Some(PartSource { dialect, slot, json }) }
    }

    pub(super) fn is_foreign_to(&self, dialect: Dialect) -> bool {
        self.source.as_ref().is_some_and(|source| source.dialect != dialect)
    }

    /// The source, if it belongs to this dialect.
    pub(super) fn source_in(&self, dialect: Dialect) -> Option<&PartSource> {
        self.source.as_ref().filter(|source| source.dialect == dialect)
    }

    pub(super) fn original_source(&self) -> Option<&PartSource> {
        self.source.as_ref()
    }

    /// Mutable access to the content, only for adding the id or name that the source lacks, and for taking parts of a result
    /// out of their envelopes. The source stays as it is, so nothing else may change.
    pub(super) fn content_mut(&mut self) -> &mut PartContent {
        &mut self.content
    }
}
