//! The call of events: `ToolCall` + run + rules → what observers identify it by.

use std::borrow::Cow;

use super::CallContext;
use crate::call::{RoundPosition, SessionState, Task, ToolCall};
use crate::host::{CallIdentity, EngineEvent, EngineEventKind, RunIdentity};
use crate::json::Value;
use crate::kernel::Kernel;

/// The call of events, with its run and its rules.
pub(crate) struct CallOrigin<'a> {
    revision: String,
    pub(super) run: RunIdentity<'a>,
    call: &'a ToolCall,
    context: Cow<'a, Value>,
    task: &'a Task,
    round: Option<RoundPosition>,
}

impl<'a> CallOrigin<'a> {
    pub(crate) fn new(
        kernel: &Kernel<'a>,
        run: RunIdentity<'a>,
        (call, context): (&'a ToolCall, &'a Value),
        state: &SessionState,
    ) -> Self {
        let context = kernel.redact_context(call, context, state);
        Self { revision: kernel.revision(), run, call, context, task: kernel.task, round: kernel.round }
    }

    fn identity(&self) -> CallIdentity<'_> {
        CallIdentity {
            id: &self.call.id,
            tool: &self.call.tool,
            server: self.call.server.as_deref(),
            context: &self.context,
            task: self.task,
            round: self.round,
            trace_parent: self.call.trace_parent.as_deref(),
            trace: self.call.trace.as_deref(),
        }
    }
}

impl super::Observers {
    /// Notifies every observer of an event of a call.
    pub(crate) fn notify_of_call(&self, origin: &CallOrigin<'_>, kind: EngineEventKind<'_>) {
        self.notify_all(&EngineEvent {
            time: self.now(),
            revision: &origin.revision,
            run: Some(origin.run),
            call: Some(origin.identity()),
            kind,
        });
    }
}

impl<'r, E> CallContext<'r, E> {
    /// The call of events. `None` if nobody receives them.
    pub(super) fn origin<'a>(&'a self, call: &'a ToolCall, state: &SessionState) -> Option<CallOrigin<'a>>
    where
        'r: 'a,
    {
        if self.services.observers.is_empty() {
            return None;
        }
        let context = if call.context.is_null() { &self.hooks.run.context } else { &call.context };
        let run = RunIdentity {
            request_id: &self.hooks.run.request_id,
            iteration: self.hooks.run.iteration,
            session: self.session.name,
            conversation: self.session.conversation,
        };
        Some(CallOrigin::new(&self.kernel, run, (call, context), state))
    }

    /// Notifies observers of an event of a call.
    pub(super) fn observe(&self, call: &ToolCall, state: &SessionState, kind: EngineEventKind<'_>) {
        if let Some(origin) = self.origin(call, state) {
            self.services.observers.notify_of_call(&origin, kind);
        }
    }
}
