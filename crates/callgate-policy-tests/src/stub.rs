//! Stubs: which calls they match, and what their tools answer.

use std::time::Duration;

use callgate::call::{CallView, SessionState, ToolCall};
use callgate::host::ToolError;
use callgate::json::Value;
use callgate::matcher::{Matcher, Truth};

/// A tool's answer to one run.
#[derive(Clone, Debug)]
pub(super) struct StubbedAnswer {
    /// `None` if only `takes` is given.
    pub(super) result: Option<Result<Value, ToolError>>,
    pub(super) takes: Option<Duration>,
}

/// A tool's answers to successive runs for one call; the last one repeats.
pub(super) type StubbedAnswers = Vec<StubbedAnswer>;

/// The answers of the tools of matching calls.
#[derive(Debug)]
pub(super) struct Stub {
    pub(super) matcher: Matcher,
    pub(super) answers: StubbedAnswers,
}

impl Stub {
    /// Whether the stub matches this call. Undecided conditions do not hold.
    pub(super) fn matches(&self, call: &ToolCall) -> bool {
        let session = SessionState::default();
        self.matcher.matches_tool(call.server.as_deref().unwrap_or(""), &call.tool)
            && self.matcher.eval(&CallView::new(call, &session)) == Truth::Yes
    }
}
