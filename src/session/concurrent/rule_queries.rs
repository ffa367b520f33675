//! What the rules in effect say without a call of the session: which tools are known and may run, and what is redacted.

use std::sync::Arc;

use super::ConcurrentSession;
use crate::approval::{ApprovalRequirement, BoundRequest};
use crate::call::ToolCall;
use crate::json::Value;
use crate::kernel::is_never_called;
use crate::message::RequestPart;
use crate::middleware::PolicyKind;
use crate::policy::{CompiledPolicies, Mode};
use crate::tools::{ToolDescriptor, add_declared};

impl ConcurrentSession {
    /// Adds the tools that a server describes; of two tools of one name and server, the later one counts. Schemas that it does not give are
    /// those that the rules declare.
    pub fn add_tools(&self, server: &str, tools: impl IntoIterator<Item = ToolDescriptor>) {
        let session = &mut self.inner.queue().session;
        let (layers, own) = (session.layers(), (self.inner.rules_of)(server));
        let mut tools: Vec<ToolDescriptor> = tools.into_iter().collect();
        for rules in own.iter().chain(layers.first()) {
            add_declared(&mut tools, rules.tools(), server);
        }
        session.add_tools(tools);
    }

    /// Whether every call of a tool is denied, whatever its arguments.
    pub fn never_runs(&self, server: &str, tool: &str) -> bool {
        let layers = self.inner.queue().session.layers();
        let own = (self.inner.rules_of)(server);
        layers.iter().chain(own.as_ref()).any(|policies| is_never_called(policies, server, tool))
    }

    /// Whether policies can decide requests by an MCP method to or from a server. All others need no evaluation.
    pub fn concerns_method(&self, server: &str, method: &str) -> bool {
        let layers = self.inner.queue().session.layers();
        let own = (self.inner.rules_of)(server);
        layers.iter().chain(own.as_ref()).any(|policies| policies.concerns_method(server, method))
    }

    /// Whether a request by an MCP method is denied, whatever happened in the session.
    pub fn is_always_denied(&self, request: &ToolCall) -> bool {
        let layer = self.inner.layer_of(request);
        let session = self.inner.queue().session_for(u64::MAX, layer);
        let layers = session.layers();
        session.kernel_over(&layers).is_denied_in_any_state(request)
    }

    /// Whether an anonymous answer counts for a request of ours.
    pub fn allows_anonymous_answers(&self, request: &RequestPart) -> bool {
        self.approval_requirements(request)
            .is_some_and(|required| !required.iter().any(ApprovalRequirement::needs_approver_name))
    }

    /// The policies that made a request of ours, with their requirements on answers. Returns `None` if it is
    /// not provably ours.
    pub fn approval_requirements(&self, request: &RequestPart) -> Option<Vec<ApprovalRequirement>> {
        let shared = Arc::clone(&self.inner.queue().session.shared);
        BoundRequest::open(request, &shared.services.keys).ok().map(|bound| bound.requirements)
    }

    /// Redacts a value, such as the result of a call, by all policies. What can't be searched is withheld.
    pub fn redact(&self, call: &ToolCall, value: &mut Value) {
        let layer = (self.inner.rules_of)(call.server.as_deref().unwrap_or_default());
        let session = self.inner.queue().session_for(u64::MAX, layer);
        let layers = session.layers();
        let kernel = session.kernel_over(&layers);
        kernel.redact_value(call, value, &session.state);
    }

    /// Whether policies redact anything in results of a server's calls.
    pub fn redacts_results(&self, server: &str) -> bool {
        let layers = self.inner.queue().session.layers();
        let own = (self.inner.rules_of)(server);
        let hides = |policies: &Arc<CompiledPolicies>| {
            policies
                .policies()
                .iter()
                .any(|policy| policy.mode == Mode::Enforce && matches!(policy.kind, PolicyKind::Redact(_)))
        };
        layers.iter().chain(own.as_ref()).any(hides)
    }
}
