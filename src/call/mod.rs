//! Tool calls, the session state they read, and their outcomes: plain, serializable data for all later modules.

mod amount;
mod approval;
mod context_reads;
mod masks;
mod method_name;
mod effect;
mod former_arguments;
mod outcome;
mod call_record;
mod let_memo;
mod session_state;
mod shadow_effects;
mod call_document;
mod round_position;
mod sealed_task;
mod task;
mod trace_context;

pub use amount::Amount;
pub use approval::{ApprovalDecision, ApprovalRecord, ApprovalRequest, CardLabels, SingleUseGuarantee};
pub use call_document::{
    CallView, ElementMemo, ElementRef, ElementScope, NodeRef, ResultProblem, ResultView, Root, UnknownMember,
    WordForms,
};
pub use call_record::{CallRecord, CallRecordError, RecordedResult};
pub use context_reads::ContextReads;
pub use effect::Effect;
pub use former_arguments::FormerArguments;
pub use let_memo::{LetMemo, NamedResult};
pub use masks::Masks;
pub use method_name::{METHOD_PREFIX, method_name, qualified_method, unevaluated_method};
pub use outcome::{AuditEntry, Outcome, OutcomeKind, Phase, PolicyTrace, Reason, Verdict, reason_code};
pub use round_position::{RoundDocument, RoundPosition};
pub(crate) use session_state::SessionChanges;
pub use session_state::{MAX_SET_BYTES, OnFull, SESSION_MEMBERS, SessionState, SetBound, fact_key};
pub use shadow_effects::RunShadowEffect;

pub use task::{Task, TaskTurn};
pub use trace_context::{CallTrace, RequestTrace, TraceParent};

use serde::{Deserialize, Serialize};

use crate::json::Value;

/// One tool call, as an agent requests it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's or the host's id for this call; ids repeat in real histories.
    #[serde(default)]
    pub id: String,
    /// The tool's own name. For a request by another MCP method, `method:` and the method, as in `method:resources/read`.
    pub tool: String,
    /// The arguments. Anything but an object is denied.
    pub input: Value,
    /// The MCP server that has the tool, if any.
    #[serde(default)]
    pub server: Option<String>,
    /// What the host vouches for: principal, roles, tenant, metadata, anything. An object, or null for no context.
    #[serde(default)]
    pub context: Value,
    /// Passed through to the host's own executor. Policies do not see it; an `around` script may replace it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// The span that the call belongs to, as in the header `traceparent` (W3C Trace Context). For observers: policies do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<String>,
    /// What traces show of the call beside its parent. For observers: policies do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<CallTrace>>,
    /// The arguments that it had before something changed them.
    #[doc(hidden)]
    #[serde(skip)]
    pub former_arguments: FormerArguments,
    /// It is a request by an MCP method, as its name says. Only [`for_method`](Self::for_method) sets it: a tool whose name looks like
    /// that of a method is not evaluated as one.
    #[doc(hidden)]
    #[serde(skip)]
    pub is_method: bool,
}

impl ToolCall {
    /// A call without server and context.
    ///
    /// ```
    /// let call = callgate::ToolCall::new("c1", "sendEmail", callgate::json::json!({"to": "ana@example.com"}));
    /// assert_eq!(call.tool, "sendEmail");
    /// ```
    pub fn new(id: impl Into<String>, tool: impl Into<String>, input: Value) -> Self {
        Self {
            id: id.into(),
            tool: tool.into(),
            input,
            server: None,
            context: Value::Null,
            options: Value::Null,
            trace_parent: None,
            trace: None,
            former_arguments: FormerArguments::default(),
            is_method: false,
        }
    }

    /// A request by another MCP method than `tools/call`, such as `resources/read`. Its parameters are the input. Policies with
    /// `match: { method: … }` apply to it, and no others.
    ///
    /// ```
    /// let read = callgate::ToolCall::for_method("r1", "resources/read", callgate::json::json!({"uri": "file:///a"}));
    /// assert_eq!(read.tool, "method:resources/read");
    /// ```
    pub fn for_method(id: impl Into<String>, method: &str, params: Value) -> Self {
        Self { is_method: true, ..Self::new(id, qualified_method(method), params) }
    }

    /// A call as it was recorded, or as rules and tests name it: of a tool, or a request by a method if its name begins with `method:`.
    /// Not for names from models or servers.
    pub fn recorded(id: impl Into<String>, name: &str, input: Value) -> Self {
        match method_name(name) {
            Some(method) => Self::for_method(id, method, input),
            None => Self::new(id, name, input),
        }
    }

    /// The MCP method of a request made by [`for_method`](Self::for_method). Returns `None` for a call of a tool.
    pub fn method(&self) -> Option<&str> {
        method_name(&self.tool).filter(|_| self.is_method)
    }

    /// Whether the name is that of a method, and the call was not made as a request by a method, or the other way round.
    pub(crate) fn has_reserved_name(&self) -> bool {
        self.is_method != method_name(&self.tool).is_some()
    }

    /// The same call with other arguments. What they contain of redacted values of the present ones is redacted, too.
    #[must_use]
    pub fn with_input(&self, input: Value) -> Self {
        let former_arguments = match input == self.input {
            true => self.former_arguments.clone(),
            false => self.former_arguments.followed_by(&self.input),
        };
        Self {
            former_arguments,
            is_method: self.is_method,
            id: self.id.clone(),
            tool: self.tool.clone(),
            input,
            server: self.server.clone(),
            context: self.context.clone(),
            options: self.options.clone(),
            trace_parent: self.trace_parent.clone(),
            trace: self.trace.clone(),
        }
    }

    /// The same call in a host's context.
    #[must_use]
    pub fn with_context(mut self, context: Value) -> Self {
        self.context = context;
        self
    }

    /// The same call with options for the host's own executor.
    #[must_use]
    pub fn with_options(mut self, options: Value) -> Self {
        self.options = options;
        self
    }

    /// The same call as part of a span, named as in the header `traceparent` (W3C Trace Context).
    #[must_use]
    pub fn with_trace_parent(mut self, trace_parent: impl Into<String>) -> Self {
        self.trace_parent = Some(trace_parent.into());
        self
    }

    /// The same call on an MCP server.
    #[must_use]
    pub fn with_server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }
}
