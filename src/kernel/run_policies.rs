//! Policies of the run around the calls: those that apply to it now, and what they change.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Kernel, PolicyHandle, PolicyRef};
use crate::call::{CallView, Reason, RunShadowEffect, SessionState, ToolCall, Verdict, reason_code};
use crate::json::Value;
use crate::lifecycle::ModelConfig;
use crate::matcher::Truth;
use crate::middleware::{Budget, Model, PolicyKind};
use crate::policy::{CompiledPolicies, Mode, Policy, Unmatched};

impl<'k> Kernel<'k> {
    /// The policies of the run that apply now, in order, with those in shadow mode. Each of them restricts, so
    /// an undecided one applies.
    fn run_policies(&self, context: &Value, session: &SessionState) -> Vec<(PolicyRef, &'k Policy)> {
        let call = run_as_call(context);
        let now = self.moment();
        let view = CallView { now: Some(&now), task: Some(self.task), ..CallView::new(&call, session) };
        let mut matching = Vec::new();
        for (layer, policies) in (0u32..).zip(self.layers) {
            for index in policies.run_policies() {
                let Some(policy) = policies.policy(*index) else { continue };
                // A condition that panics is undecided.
                let truth = catch_unwind(AssertUnwindSafe(|| policy.matcher.eval(&view)));
                let reference = PolicyRef { layer, index: *index };
                let by = PolicyHandle { reference, policy };
                self.report_run_policy(by, view, truth.as_ref().ok());
                if truth.map_or(true, |truth| truth != Truth::No) {
                    matching.push((reference, policy));
                }
            }
        }
        matching
    }

    /// Whether there are policies of the run.
    pub(crate) fn has_run_policies(&self) -> bool {
        self.layers.iter().any(|layer| !layer.run_policies().is_empty())
    }

    /// Changes the configuration of the model. The bundle comes last, so that no lower layer loosens its
    /// bounds; tools whose calls are always denied are removed. Returns the changes that policies in shadow
    /// mode would have made.
    pub(crate) fn configure(
        &self,
        config: &mut ModelConfig,
        context: &Value,
        session: &SessionState,
        at_init: bool,
    ) -> Vec<RunShadowEffect> {
        let call = run_as_call(context);
        // Values in prompts are redacted.
        let redacted_session = session.redacted();
        let now = self.moment();
        let view =
            CallView { now: Some(&now), task: Some(self.task), ..CallView::new(&call, &redacted_session) };
        let mut models: Vec<(u32, &Policy, &Model)> = Vec::new();
        for (reference, policy) in self.run_policies(context, session) {
            if let PolicyKind::Model(model) = &policy.kind
                && model.at_init == at_init
            {
                models.push((reference.layer(), policy, model));
            }
        }
        models.sort_by_key(|(layer, ..)| std::cmp::Reverse(*layer));
        let mut shadows = Vec::new();
        // No policy changes messages, so they are not copied for shadow mode.
        let messages = std::mem::take(&mut config.messages);
        for (_, policy, model) in models {
            if policy.mode == Mode::Shadow {
                let mut other = config.clone();
                model.apply(&mut other, &view);
                shadows.extend((other != *config).then(|| shadow(policy, Verdict::Rewrite, None)));
            } else {
                model.apply(config, &view);
            }
        }
        config.messages = messages;
        config.tools.retain(|tool| {
            let server = tool.server.as_deref().unwrap_or("");
            !self.layers.iter().any(|policies| is_never_called(policies, server, &tool.name))
        });
        shadows
    }

    /// The budgets of the run, with those in shadow mode.
    pub(crate) fn budgets(
        &self,
        context: &Value,
        session: &SessionState,
    ) -> Vec<(PolicyRef, &'k Policy, &'k Budget)> {
        let budget = |(reference, policy): (PolicyRef, &'k Policy)| match &policy.kind {
            PolicyKind::Budget(budget) => Some((reference, policy, &**budget)),
            _ => None,
        };
        self.run_policies(context, session).into_iter().filter_map(budget).collect()
    }

    /// The reason of the first `halt` policy that applies to the run now, apart from any call, and the policies
    /// in shadow mode that would halt it.
    pub(crate) fn halts_run(
        &self,
        context: &Value,
        session: &SessionState,
    ) -> (Option<Reason>, Vec<RunShadowEffect>) {
        let call = run_as_call(context);
        let redacted_session = session.redacted();
        let now = self.moment();
        let view =
            CallView { now: Some(&now), task: Some(self.task), ..CallView::new(&call, &redacted_session) };
        let (mut halted, mut shadows) = (None, Vec::new());
        for (_, policy) in self.run_policies(context, session) {
            let PolicyKind::Halt(halt) = &policy.kind else { continue };
            if policy.mode == Mode::Enforce && halted.is_some() {
                continue;
            }
            let message = match (&halt.message, &policy.description) {
                (Some(template), _) => template.render(&view, &[]).text,
                (None, Some(description)) => description.clone(),
                (None, None) => format!("the run is stopped by the policy `{}`", policy.id),
            };
            let code = reason_code::HALTED.to_owned();
            let reason = Reason { policy: Some(policy.id.clone()), code, message };
            match policy.mode {
                Mode::Shadow => shadows.push(shadow(policy, Verdict::Halt, Some(reason))),
                _ => halted = Some(reason),
            }
        }
        (halted, shadows)
    }
}

/// What a policy in shadow mode would have done.
pub(crate) fn shadow(policy: &Policy, verdict: Verdict, reason: Option<Reason>) -> RunShadowEffect {
    RunShadowEffect { id: policy.id.clone(), kind: policy.kind.definition().name.to_owned(), verdict, reason }
}

/// The call that policies of the run see: context and session, and nothing else.
fn run_as_call(context: &Value) -> ToolCall {
    ToolCall::new("", "", Value::Object(crate::json::Map::new())).with_context(context.clone())
}

/// Whether every call of a tool is denied, whatever its arguments.
pub(crate) fn is_never_called(policies: &CompiledPolicies, server: &str, tool: &str) -> bool {
    let matching = || {
        let enforced = policies.policies().iter().filter(|policy| policy.mode == Mode::Enforce);
        enforced.filter(|policy| policy.matcher.matches_tool(server, tool))
    };
    let denied = |policy: &Arc<Policy>| {
        matches!(&policy.kind, PolicyKind::Deny(deny) if deny.script.is_none())
            && policy.matcher.condition.is_none()
    };
    let is_denied_unmatched = policies.defaults().unmatched_for(tool) == Unmatched::Deny;
    matching().any(denied) || is_denied_unmatched && !matching().any(|policy| policy.kind.permits())
}
