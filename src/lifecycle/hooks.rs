//! Middleware out of closures, for simple hooks around tool calls.

use std::future::Future;
use std::sync::Arc;

use super::context::RunContext;
use super::middleware::{Before, Middleware, Next, OnError, ToolEnd};
use crate::call::ToolCall;
use crate::host::{BoxFuture, ToolError};
use crate::json::Value;

type BeforeHook = dyn Fn(&ToolCall) -> BoxFuture<'static, Before> + Send + Sync;
type AroundHook =
    dyn for<'a> Fn(&'a ToolCall, Next<'a>) -> BoxFuture<'a, Result<Value, ToolError>> + Send + Sync;
type AfterHook = dyn Fn(&ToolEnd<'_>) + Send + Sync;
type ErrorHook = dyn Fn(&ToolCall, &ToolError) -> OnError + Send + Sync;
type Concerns = dyn Fn(&ToolCall) -> bool + Send + Sync;

/// Middleware out of closures: `beforeExecute`, `aroundExecute`, `afterExecute` and `onError` of other frameworks.
///
/// ```
/// use callgate::lifecycle::{Before, ToolHooks};
///
/// let guard = ToolHooks::new("guard")
///     .matching(|call| call.tool.starts_with("admin"))
///     .before(|call| match call.input.get("confirm") {
///         Some(_) => Before::Continue,
///         None => Before::Block("say `confirm`".into()),
///     });
/// ```
#[derive(Clone)]
pub struct ToolHooks {
    id: String,
    concerns: Option<Arc<Concerns>>,
    before: Option<Arc<BeforeHook>>,
    around: Option<Arc<AroundHook>>,
    after: Option<Arc<AfterHook>>,
    on_error: Option<Arc<ErrorHook>>,
}

impl std::fmt::Debug for ToolHooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolHooks").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ToolHooks {
    /// Hooks that do nothing yet.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), concerns: None, before: None, around: None, after: None, on_error: None }
    }

    /// Only for calls of which this holds.
    #[must_use]
    pub fn matching(mut self, concerns: impl Fn(&ToolCall) -> bool + Send + Sync + 'static) -> Self {
        self.concerns = Some(Arc::new(concerns));
        self
    }

    /// Only for calls of these tools.
    #[must_use]
    pub fn for_tools<T: Into<String>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        let tools: Vec<String> = tools.into_iter().map(Into::into).collect();
        self.matching(move |call| tools.contains(&call.tool))
    }

    /// Before a call is decided.
    #[must_use]
    pub fn before(self, before: impl Fn(&ToolCall) -> Before + Send + Sync + 'static) -> Self {
        self.before_async(move |call| std::future::ready(before(call)))
    }

    /// The same, where it has to be waited for.
    #[must_use]
    pub fn before_async<F: Future<Output = Before> + Send + 'static>(
        mut self,
        before: impl Fn(&ToolCall) -> F + Send + Sync + 'static,
    ) -> Self {
        self.before = Some(Arc::new(move |call| Box::pin(before(call))));
        self
    }

    /// Around the execution; the closure gives `Box::pin(async move { … })`.
    #[must_use]
    pub fn around(
        mut self,
        around: impl for<'a> Fn(&'a ToolCall, Next<'a>) -> BoxFuture<'a, Result<Value, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.around = Some(Arc::new(around));
        self
    }

    /// After a call has come to an outcome.
    #[must_use]
    pub fn after(mut self, after: impl Fn(&ToolEnd<'_>) + Send + Sync + 'static) -> Self {
        self.after = Some(Arc::new(after));
        self
    }

    /// When a tool has failed.
    #[must_use]
    pub fn on_error(
        mut self,
        on_error: impl Fn(&ToolCall, &ToolError) -> OnError + Send + Sync + 'static,
    ) -> Self {
        self.on_error = Some(Arc::new(on_error));
        self
    }
}

impl Middleware for ToolHooks {
    fn id(&self) -> &str {
        &self.id
    }

    fn concerns(&self, call: &ToolCall) -> bool {
        self.concerns.as_ref().is_none_or(|concerns| concerns(call))
    }

    fn before<'a>(&'a self, _: &'a RunContext, call: &'a ToolCall) -> BoxFuture<'a, Before> {
        match &self.before {
            Some(before) => before(call),
            None => Box::pin(std::future::ready(Before::Continue)),
        }
    }

    fn wraps(&self) -> bool {
        self.around.is_some()
    }

    fn around<'a>(
        &'a self,
        _: &'a RunContext,
        call: &'a ToolCall,
        mut next: Next<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        match &self.around {
            Some(around) => around(call, next),
            None => Box::pin(async move { next.call().await }),
        }
    }

    fn on_error<'a>(
        &'a self,
        _: &'a RunContext,
        call: &'a ToolCall,
        error: &'a ToolError,
    ) -> BoxFuture<'a, OnError> {
        let fate = self.on_error.as_ref().map_or(OnError::Keep, |on_error| on_error(call, error));
        Box::pin(std::future::ready(fate))
    }

    fn after<'a>(&'a self, _: &'a RunContext, end: &'a ToolEnd<'a>) -> BoxFuture<'a, ()> {
        if let Some(after) = &self.after {
            after(end);
        }
        Box::pin(std::future::ready(()))
    }
}
