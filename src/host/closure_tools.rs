//! Tool executors from closures.

use std::collections::HashMap;
use std::future::Future;

use super::{BoxFuture, ToolError, ToolExecutor, ToolResponse};
use crate::call::ToolCall;
use crate::json::Value;

type ToolClosure = dyn Fn(ToolCall) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync;

/// A tool executor with one closure for each tool.
///
/// ```
/// use callgate::{ClosureTools, ToolError};
/// use callgate::json::json;
///
/// let tools = ClosureTools::new()
///     .with_tool("add", async |call| {
///         let number = |name: &str| call.input[name].as_i64().ok_or_else(|| ToolError::new(format!("no `{name}`")));
///         Ok(json!(number("a")? + number("b")?))
///     })
///     .with_tool("now", async |_| Ok(json!("noon")));
/// ```
#[derive(Default)]
pub struct ClosureTools {
    tools: HashMap<String, Box<ToolClosure>>,
}

impl std::fmt::Debug for ClosureTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

impl ClosureTools {
    /// An executor without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. It replaces one of the same name.
    #[must_use]
    pub fn with_tool<F>(
        mut self,
        name: impl Into<String>,
        tool: impl Fn(ToolCall) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.tools.insert(name.into(), Box::new(move |call| Box::pin(tool(call))));
        self
    }
}

impl ToolExecutor for ClosureTools {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        match self.tools.get(&call.tool) {
            Some(tool) => tool(call.clone()).await.map(ToolResponse::from),
            None => Err(ToolError::new(format!("unknown tool `{}`", call.tool)).with_kind("unknown_tool")),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    #[test]
    fn runs_tools_by_name_and_reports_unknown_tools_with_a_kind() {
        let tools = ClosureTools::new().with_tool("echo", async |call: ToolCall| Ok(call.input));
        let run = |tool: &str| {
            let call = ToolCall::new("c1", tool, json!({ "a": 1 }));
            let mut call = std::pin::pin!(tools.execute(&call));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            match call.as_mut().poll(&mut context) {
                std::task::Poll::Ready(answer) => answer,
                std::task::Poll::Pending => panic!("nothing is waited for"),
            }
        };
        assert_eq!(run("echo").unwrap().output, json!({ "a": 1 }));
        assert_eq!(run("other").unwrap_err().kind.as_deref(), Some("unknown_tool"));
    }
}
