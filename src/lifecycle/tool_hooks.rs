//! Middleware from closures, for simple hooks around tool calls.

use std::future::Future;
use std::sync::Arc;

use super::middleware::{BeforeAction, ErrorAction, HookCall, Middleware, Next, ToolCallEnd};
use crate::host::{BoxFuture, ToolError};
use crate::json::Value;

type BeforeHook = dyn Fn(&HookCall<'_>) -> BoxFuture<'static, BeforeAction> + Send + Sync;
type AroundHook =
    dyn for<'a> Fn(&'a HookCall<'a>, Next<'a>) -> BoxFuture<'a, Result<Value, ToolError>> + Send + Sync;
type AfterHook = dyn Fn(&ToolCallEnd<'_>) -> BoxFuture<'static, ()> + Send + Sync;
type ErrorHook = dyn Fn(&HookCall<'_>, &ToolError) -> BoxFuture<'static, ErrorAction> + Send + Sync;
type CallFilter = dyn Fn(&HookCall<'_>) -> bool + Send + Sync;

/// Middleware from closures: `beforeExecute`, `aroundExecute`, `afterExecute` and `onError` of other frameworks.
///
/// Each hook receives a [`HookCall`]: the call, the descriptor of its tool, and the run. `before`, `after` and `on_error`
/// have a synchronous and an async form; an async closure first copies what its future needs from the arguments.
///
/// ```
/// use callgate::lifecycle::{BeforeAction, ToolHooks};
///
/// let guard = ToolHooks::new("guard")
///     .with_filter(|call| call.tool.starts_with("admin"))
///     .before(|call| match call.input.get("confirm") {
///         Some(_) => BeforeAction::Continue,
///         None => BeforeAction::Block("say `confirm`".into()),
///     });
/// ```
#[derive(Clone)]
pub struct ToolHooks {
    id: String,
    filter: Option<Arc<CallFilter>>,
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
    /// Hooks that do nothing yet. `id` names them in reasons and in the approvals that they require.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), filter: None, before: None, around: None, after: None, on_error: None }
    }

    /// Restricts the hooks to calls for which the predicate returns `true`.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Fn(&HookCall<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Restricts the hooks to calls of these tools.
    #[must_use]
    pub fn for_tools<T: Into<String>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        let tools: Vec<String> = tools.into_iter().map(Into::into).collect();
        self.with_filter(move |call| tools.contains(&call.tool))
    }

    /// Runs before a call is decided, and again when a call resumes after its approval was answered.
    #[must_use]
    pub fn before(self, before: impl Fn(&HookCall<'_>) -> BeforeAction + Send + Sync + 'static) -> Self {
        self.before_async(move |call| std::future::ready(before(call)))
    }

    /// The async form of [`before`](Self::before).
    #[must_use]
    pub fn before_async<F: Future<Output = BeforeAction> + Send + 'static>(
        mut self,
        before: impl Fn(&HookCall<'_>) -> F + Send + Sync + 'static,
    ) -> Self {
        self.before = Some(Arc::new(move |call| Box::pin(before(call))));
        self
    }

    /// Wraps the execution; the closure returns `Box::pin(async move { … })`.
    #[must_use]
    pub fn around(
        mut self,
        around: impl for<'a> Fn(&'a HookCall<'a>, Next<'a>) -> BoxFuture<'a, Result<Value, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.around = Some(Arc::new(around));
        self
    }

    /// Runs after a call has an outcome.
    #[must_use]
    pub fn after(self, after: impl Fn(&ToolCallEnd<'_>) + Send + Sync + 'static) -> Self {
        self.after_async(move |end| {
            after(end);
            std::future::ready(())
        })
    }

    /// The async form of [`after`](Self::after). The call returns to the agent when the future completes; for background
    /// work use [`RunContext::defer`](super::RunContext::defer).
    #[must_use]
    pub fn after_async<F: Future<Output = ()> + Send + 'static>(
        mut self,
        after: impl Fn(&ToolCallEnd<'_>) -> F + Send + Sync + 'static,
    ) -> Self {
        self.after = Some(Arc::new(move |end| Box::pin(after(end))));
        self
    }

    /// Runs when a tool has failed and no policy recovered the error.
    #[must_use]
    pub fn on_error(
        self,
        on_error: impl Fn(&HookCall<'_>, &ToolError) -> ErrorAction + Send + Sync + 'static,
    ) -> Self {
        self.on_error_async(move |call, error| std::future::ready(on_error(call, error)))
    }

    /// The async form of [`on_error`](Self::on_error).
    #[must_use]
    pub fn on_error_async<F: Future<Output = ErrorAction> + Send + 'static>(
        mut self,
        on_error: impl Fn(&HookCall<'_>, &ToolError) -> F + Send + Sync + 'static,
    ) -> Self {
        self.on_error = Some(Arc::new(move |call, error| Box::pin(on_error(call, error))));
        self
    }
}

impl Middleware for ToolHooks {
    fn id(&self) -> &str {
        &self.id
    }

    fn applies_to(&self, call: &HookCall<'_>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter(call))
    }

    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        match &self.before {
            Some(before) => before(call),
            None => Box::pin(std::future::ready(BeforeAction::Continue)),
        }
    }

    fn has_around(&self) -> bool {
        self.around.is_some()
    }

    fn around<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        mut next: Next<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        match &self.around {
            Some(around) => around(call, next),
            None => Box::pin(async move { next.call().await }),
        }
    }

    fn on_error<'a>(&'a self, call: &'a HookCall<'a>, error: &'a ToolError) -> BoxFuture<'a, ErrorAction> {
        match &self.on_error {
            Some(on_error) => on_error(call, error),
            None => Box::pin(std::future::ready(ErrorAction::Keep)),
        }
    }

    fn after<'a>(&'a self, end: &'a ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        match &self.after {
            Some(after) => after(end),
            None => Box::pin(std::future::ready(())),
        }
    }
}
