//! The call document that paths, expressions and templates read, as a borrowed view that is never built as JSON.

mod element_scope;

pub use element_scope::{ElementMemo, ElementRef, ElementScope, WordForms};

use super::{LetMemo, RoundDocument, SessionState, Task, ToolCall};
use crate::json::{JsonType, Value};
use crate::time::{Moment, TimeText, TimeValue};

/// The members of the call document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Root {
    /// `$.tool`
    Tool,
    /// `$.server`
    Server,
    /// `$.id`
    Id,
    /// `$.input`
    Input,
    /// `$.output`, in settle only
    Output,
    /// `$.error`, in settle only
    Error,
    /// `$.result`, the output as data, in settle only
    Result,
    /// `$.context`
    Context,
    /// `$.session`
    Session,
    /// `$.annotations`: the server's description of the tool; untrusted
    Annotations,
    /// `$.task`: what the user asked for, as the host supplies it
    Task,
    /// `$.session.round`: the place of the call in its round. It is read as a member of the session.
    Round,
    /// `$.now`: the time of the decision, or of the end of the call
    Now,
    /// `$item`, or the name after `as`: an element of `every`, `any_of` or `none`. It is no member of the document.
    Element(ElementRef),
}

impl Root {
    /// Every member, in the order in which messages list them.
    pub const ALL: [Self; 12] = [
        Self::Tool,
        Self::Server,
        Self::Id,
        Self::Input,
        Self::Output,
        Self::Error,
        Self::Result,
        Self::Context,
        Self::Session,
        Self::Annotations,
        Self::Task,
        Self::Now,
    ];

    /// The member's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Server => "server",
            Self::Id => "id",
            Self::Input => "input",
            Self::Output => "output",
            Self::Error => "error",
            Self::Result => "result",
            Self::Context => "context",
            Self::Session => "session",
            Self::Annotations => "annotations",
            Self::Task => "task",
            Self::Round => "session.round",
            Self::Now => "now",
            Self::Element(_) => "item",
        }
    }

    /// Finds a member by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| root.name() == name)
    }

    /// Whether it is an element that comes from the arguments.
    pub fn is_argument(self) -> bool {
        matches!(self, Self::Element(ElementRef { is_argument: true, .. }))
    }

    /// Whether the member exists only in the settle phase.
    pub fn is_settle_only(self) -> bool {
        matches!(self, Self::Output | Self::Error | Self::Result)
    }
}

/// A member of the call that exists and is unknown, so that what reads it is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is unknown: {why}", root.name())]
pub struct UnknownMember {
    /// The member.
    pub root: Root,
    /// Why it is unknown.
    pub why: &'static str,
}

/// A value in the call document: JSON, or one of the call's own strings.
#[derive(Clone, Copy, Debug)]
pub enum NodeRef<'a> {
    /// A JSON value.
    Json(&'a Value),
    /// A string that is not stored as a JSON value (`$.tool`, `$.error`, …).
    Text(&'a str),
    /// A timestamp or a duration, which an expression computes. As JSON it is a string, but it is compared only with its own type.
    Time(&'a TimeText),
}

impl<'a> NodeRef<'a> {
    /// Its JSON type.
    pub fn json_type(self) -> JsonType {
        match self {
            Self::Json(value) => JsonType::from_value(value),
            Self::Text(_) | Self::Time(_) => JsonType::String,
        }
    }

    /// The string, or `None` if it is not a string.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Self::Json(value) => value.as_str(),
            Self::Text(text) => Some(text),
            Self::Time(_) => None,
        }
    }

    /// A copy as JSON.
    pub fn to_value(self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Text(text) => text.into(),
            Self::Time(time) => time.text.as_str().into(),
        }
    }

    /// The stored JSON value, or `None` if it is a plain string.
    pub fn as_json(self) -> Option<&'a Value> {
        match self {
            Self::Json(value) => Some(value),
            Self::Text(_) | Self::Time(_) => None,
        }
    }

    /// Whether both are the same JSON value.
    pub fn equals(self, other: NodeRef<'_>) -> bool {
        match (self, other) {
            (Self::Json(a), NodeRef::Json(b)) => a == b,
            (Self::Time(a), NodeRef::Time(b)) => a.value == b.value,
            (a, b) => a.as_str().is_some() && a.as_str() == b.as_str(),
        }
    }

    /// A copy as JSON.
    pub fn to_json(self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Text(text) => Value::from(text),
            Self::Time(time) => Value::from(time.text.as_str()),
        }
    }
}

/// `$.result`: the output as data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ResultView<'a> {
    /// There is no result: the tool has not run or failed, or its result has no text.
    #[default]
    Absent,
    /// The result.
    Value(&'a Value),
    /// The output cannot be read as data: everything that reads the result is undecided.
    Unreadable(ResultProblem),
}

/// Why an output cannot be read as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultProblem {
    /// It is declared to be JSON and is not.
    NotJson,
    /// It is declared to be YAML and is not.
    NotYaml,
    /// JSON that other parsers read differently.
    AmbiguousJson,
    /// The text is too long to be parsed.
    TooLong,
    /// Patterns of the bundle declare different formats for the tool.
    ConflictingFormats,
    /// An MCP result has members or parts that may contain a text which is not read.
    UnknownParts,
    /// An MCP result has structured content and a text with other data.
    DifferentTexts,
    /// The tool has an `outputSchema` that the result does not fit.
    SchemaMismatch,
    /// The work units of the call are used up.
    TooMuchWork,
}

impl ResultProblem {
    /// The problem, for messages.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotJson => "the tool's result is declared as `json` and is not valid JSON",
            Self::NotYaml => "the tool's result is declared as `yaml` and is not valid YAML",
            Self::AmbiguousJson => {
                "the tool's result is JSON with duplicate keys, lone surrogates or too many levels"
            }
            Self::TooLong => "the tool's result is longer than 16 MiB",
            Self::ConflictingFormats => {
                "two patterns under `results` declare different formats for this tool"
            }
            Self::UnknownParts => {
                "the tool's result has members or parts, such as embedded resources, that may contain other texts"
            }
            Self::DifferentTexts => "the texts of the tool's result differ from its structured content",
            Self::SchemaMismatch => "the tool's result does not fit the tool's `outputSchema`",
            Self::TooMuchWork => "reading the tool's result exceeds the work limit of one call",
        }
    }
}

/// One call at one phase, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct CallView<'a> {
    /// The call as it was requested.
    pub call: &'a ToolCall,
    /// The current arguments.
    pub input: &'a Value,
    /// The result, in settle.
    pub output: Option<&'a Value>,
    /// The error, in settle.
    pub error: Option<&'a str>,
    /// The result as data, in settle.
    pub result: ResultView<'a>,
    /// The session state.
    pub session: &'a SessionState,
    /// The server's description of the tool.
    pub annotations: Option<&'a Value>,
    /// The results of named values for this state of the call. Without a memo they are evaluated each time.
    #[doc(hidden)]
    pub lets: Option<&'a LetMemo>,
    /// What the user asked for.
    #[doc(hidden)]
    pub task: Option<&'a Task>,
    /// The place of the call in its round.
    #[doc(hidden)]
    pub round: Option<&'a RoundDocument>,
    /// The time. Without one, it is unknown.
    #[doc(hidden)]
    pub now: Option<&'a Moment<'a>>,
    /// The current element, in a condition on elements.
    #[doc(hidden)]
    pub elements: Option<&'a ElementScope<'a>>,
}

impl<'a> CallView<'a> {
    /// A call before it ran, with its own arguments.
    pub fn new(call: &'a ToolCall, session: &'a SessionState) -> Self {
        Self {
            call,
            input: &call.input,
            output: None,
            error: None,
            result: ResultView::Absent,
            session,
            annotations: None,
            lets: None,
            task: None,
            round: None,
            now: None,
            elements: None,
        }
    }

    /// A member of the call document, or `None` if it is absent.
    pub fn member(&self, root: Root) -> Option<NodeRef<'a>> {
        match root {
            Root::Tool => Some(NodeRef::Text(&self.call.tool)),
            Root::Server => self.call.server.as_deref().map(NodeRef::Text),
            Root::Id => Some(NodeRef::Text(&self.call.id)),
            Root::Input => Some(NodeRef::Json(self.input)),
            Root::Output => self.output.map(NodeRef::Json),
            Root::Error => self.error.map(NodeRef::Text),
            Root::Result => match self.result {
                ResultView::Value(value) => Some(NodeRef::Json(value)),
                ResultView::Absent | ResultView::Unreadable(_) => None,
            },
            Root::Context => Some(&self.call.context).filter(|context| !context.is_null()).map(NodeRef::Json),
            Root::Session => Some(NodeRef::Json(self.session.document())),
            Root::Annotations => self.annotations.map(NodeRef::Json),
            Root::Task => self.task?.document().map(NodeRef::Json),
            Root::Round => self.round?.value().map(NodeRef::Json),
            Root::Now => self.now?.text().map(NodeRef::Text),
            Root::Element(element) => self.elements?.find(element),
        }
    }

    /// Checks that members of the call can be read.
    ///
    /// # Errors
    /// One of them exists and is unknown: its name, and why.
    pub fn check_known(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), UnknownMember> {
        for root in roots {
            let unknown = match root {
                Root::Now if self.now.is_none_or(|now| now.timestamp().is_none()) => Some("the clock failed"),
                Root::Task => self.task.and_then(Task::unknown_reason),
                _ => None,
            };
            if let Some(why) = unknown {
                return Err(UnknownMember { root, why });
            }
            if let (Root::Result, ResultView::Unreadable(problem)) = (root, self.result) {
                return Err(UnknownMember { root, why: problem.text() });
            }
        }
        Ok(())
    }

    /// The time, as a value of expressions. Returns `None` if it is unknown.
    pub fn time(&self) -> Option<TimeValue> {
        self.now?.timestamp().map(TimeValue::Timestamp)
    }
}
