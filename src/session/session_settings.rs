//! What a host sets before the first call of a session: its name, layers, hooks, tools, context, and what is recorded.

use std::sync::Arc;

use super::Session;
use crate::call::{Outcome, ToolCall};
use crate::execution::ToolResultFormatter;
use crate::json::Value;
use crate::kernel::EventListener;
use crate::lifecycle::Middleware;
use crate::message::{CallPart, ResultOutput};
use crate::policy::CompiledPolicies;
use crate::tools::{ToolCatalog, ToolDescriptor};

impl Session {
    /// Names the session, for outcomes.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a layer of policies below the present ones: first the prompt's, then the call's. A lower layer can
    /// add denials, approvals and limits to the layers above it, and lift none of them.
    #[must_use]
    pub fn with_layer(mut self, policies: Arc<CompiledPolicies>) -> Self {
        self.lower_layers.push(policies);
        self
    }

    /// Sets the listener of the session's calls and run, in place of the engine's listener.
    #[must_use]
    pub fn with_listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Adds a hook after the present ones: first the prompt's, then the call's.
    #[must_use]
    pub fn with_middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.hooks.push(Arc::new(middleware));
        self
    }

    /// Adds tools: first the prompt's, then the call's. Of two tools of one name and server, the later one
    /// counts.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolDescriptor>) -> Self {
        self.add_tools(tools);
        self
    }

    /// Replaces all tools by a catalog, which sessions can share.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tool_catalog(mut self, catalog: Arc<ToolCatalog>) -> Self {
        self.tools = Some(catalog);
        self
    }

    /// Sets a closure that formats results for the model. Where it returns `None`, the plain result is used. It
    /// is called only for calls that have a result, which is redacted already; observers see both.
    #[must_use]
    pub fn with_result_formatter(
        mut self,
        shape: impl Fn(&Outcome) -> Option<ResultOutput> + Send + Sync + 'static,
    ) -> Self {
        self.formatter = ToolResultFormatter::new(shape);
        self
    }

    /// The tool by which the model loads skills: see [`apply_skill_loads`](Self::apply_skill_loads).
    #[must_use]
    pub fn with_skill_tool(mut self, tool: impl Into<String>) -> Self {
        self.skill_tool = Some(tool.into());
        self
    }

    /// Sets the context that the host vouches for in calls of a history: principal, roles, tenant, anything. In
    /// a store, the session is charged to the caller that is named here.
    #[must_use]
    pub fn with_context(mut self, context: Value) -> Self {
        self.run.context.clone_from(&context);
        self.calls.context = context;
        self
    }

    /// Sets how a call of a history becomes one that policies see, if that is more than its name and arguments:
    /// tools of several servers under prefixed names, a context of its own.
    #[must_use]
    pub fn with_call_reader(mut self, read: impl Fn(&CallPart) -> ToolCall + Send + Sync + 'static) -> Self {
        self.calls.read = Some(Box::new(read));
        self
    }

    /// Records every call in the store before and after it runs, not only those that need an approval. A call
    /// that the store knows as settled returns its recorded outcome and does not run again (idempotent replay);
    /// one that started and never settled does not run again either. The state of the session is stored with
    /// each call, and read again before the next. For this the session needs a name, or a `conversationId`,
    /// which [`begin`](Self::begin) makes sure that no earlier one had.
    ///
    /// A call is identified by its id, its tool, its server and its arguments. If a call started and never
    /// ended, the state that it left is unknown, so policies that read the session are undecided from then on.
    #[must_use]
    pub fn with_call_recording(mut self) -> Self {
        self.is_recorded = true;
        self
    }
}
