//! The reason of a decision: the message of the policy that decided, redacted. One that says nothing of the call is made when it is asked for.

use std::sync::LazyLock;

use super::CallScope;
use super::decision::Decision;
use super::gate::{DecisionCause, GateResult};
use super::limit_requests;
use super::policy_reference::{Layers, PolicyRef};
use super::redacted_call::RedactedCall;
use crate::call::Effect;
use crate::call::{CallView, Reason, SessionState, reason_code};
use crate::middleware::{Limit, PolicyKind, describe_missing};
use crate::policy::Policy;
use crate::script::{ScriptFinding, ScriptRefusal};
use crate::template::Template;

/// What a reason that no session affects is made with.
static NEW_SESSION: LazyLock<SessionState> = LazyLock::new(SessionState::default);

impl GateResult {
    /// The reason of a call that does not run, from its cause.
    pub(super) fn describe(
        &self,
        cause: &DecisionCause,
        subject: &CallScope<'_>,
        view: CallView<'_>,
    ) -> Option<Reason> {
        let redacted = RedactedCall::new(subject, view);
        let (code, policy, message) = match cause {
            DecisionCause::Failure(reason) => {
                (reason.code.clone(), reason.policy.clone(), reason.message.clone())
            }
            DecisionCause::Unmatched => {
                let message = match self.effect {
                    Effect::Suspend => {
                        format!("no policy permits `{}` without an approval", subject.call.tool)
                    }
                    _ => format!("no policy permits `{}`", subject.call.tool),
                };
                (reason_code::UNMATCHED.to_owned(), None, message)
            }
            DecisionCause::UsedUp(reference) if self.effect == Effect::Suspend => (
                reason_code::APPROVAL_REQUIRED.to_owned(),
                Some(subject.policy(*reference)?.id.clone()),
                question(subject.layers, &self.approvals, redacted.view(view)),
            ),
            DecisionCause::UsedUp(reference) => {
                let mut reason = limit_requests::refusal(
                    subject,
                    subject.policy(*reference)?,
                    None,
                    &redacted.view(view),
                )?;
                reason.message = redacted.text(&reason.message);
                return Some(reason);
            }
            DecisionCause::Missing(reference, values) => {
                let policy = subject.policy(*reference)?;
                let PolicyKind::Require(require) = &policy.kind else { return None };
                let message = match (&require.refusal.message, &policy.description) {
                    (None, None) => {
                        format!("`{}` needs more: {}", subject.call.tool, describe_missing(values))
                    }
                    (template, _) => policy_message(policy, template.as_ref(), redacted.view(view)),
                };
                (require.refusal.code.clone(), Some(policy.id.clone()), message)
            }
            DecisionCause::Policy(reference, why) => {
                let policy = subject.policy(*reference)?;
                let (code, message) = match why {
                    Some(why) => (
                        reason_code::UNDECIDED.to_owned(),
                        format!("`{}` is undecided for this call, so it applies: {why}", policy.id),
                    ),
                    None if self.effect == Effect::Suspend => (
                        reason_code::APPROVAL_REQUIRED.to_owned(),
                        question(subject.layers, &self.approvals, redacted.view(view)),
                    ),
                    None => refusal(policy, redacted.view(view)),
                };
                (code, Some(policy.id.clone()), message)
            }
        };
        Some(Reason { policy, code, message: redacted.text(&message) })
    }

    /// Returns the policy that alone determines the reason, whatever the call says: it stops the call by a message without placeholders, and
    /// nothing is redacted.
    pub(super) fn policy_of_fixed_reason(
        &self,
        subject: &CallScope<'_>,
        view: CallView<'_>,
    ) -> Option<PolicyRef> {
        let Some(DecisionCause::Policy(reference, None)) = &self.cause else { return None };
        let redacts = |policy: &Policy| matches!(policy.kind, PolicyKind::Redact(_));
        if !view.session.masks().is_empty()
            || subject.policies(|chain| &chain.settle).any(|by| redacts(by.policy))
        {
            return None;
        }
        let approvals = if self.effect == Effect::Suspend { self.approvals.as_slice() } else { &[] };
        let mut asked = approvals.iter().chain([reference]);
        asked.all(|reference| subject.policy(*reference).is_some_and(has_fixed_message)).then_some(*reference)
    }
}

impl Decision<'_> {
    /// Whether its reason says nothing of the call, so that there is nothing to redact.
    pub(super) fn has_fixed_reason(&self) -> bool {
        self.reason.is_none() && self.fixed_reason.is_some()
    }

    /// The reason that a policy alone determines.
    pub(super) fn fixed_reason(&self, by: PolicyRef) -> Option<Reason> {
        let policy = by.find(&self.layers)?;
        let view = CallView::new(&self.call, &NEW_SESSION);
        let (code, message) = match self.effect {
            Effect::Suspend => {
                (reason_code::APPROVAL_REQUIRED.to_owned(), question(&self.layers, &self.approvals, view))
            }
            _ => refusal(policy, view),
        };
        Some(Reason { policy: Some(policy.id.clone()), code, message })
    }
}

/// Whether a policy that stops a call says the same of every call of a tool.
fn has_fixed_message(policy: &Policy) -> bool {
    let template = match &policy.kind {
        PolicyKind::Deny(deny) => deny.refusal.message.as_ref(),
        PolicyKind::Halt(halt) => halt.message.as_ref(),
        PolicyKind::Approval(approval) => approval.message.as_ref(),
        _ => return false,
    };
    policy.kind.script().is_none() && template.is_none_or(Template::is_literal)
}

/// The code and message of a policy that denies or halts.
fn refusal(policy: &Policy, view: CallView<'_>) -> (String, String) {
    let (code, template) = match &policy.kind {
        PolicyKind::Deny(deny) => (deny.refusal.code.as_str(), deny.refusal.message.as_ref()),
        PolicyKind::Halt(halt) => (reason_code::HALTED, halt.message.as_ref()),
        _ => (reason_code::DENIED, None),
    };
    let found = script_refusal(policy, &view);
    let message = found.message.unwrap_or_else(|| policy_message(policy, template, view));
    (found.code.unwrap_or_else(|| code.to_owned()), message)
}

/// What the script of a policy says of a call. It runs once more, for the call as it may be shown: a text that it computes from a redacted
/// value must not show it in another form.
fn script_refusal(policy: &Policy, view: &CallView<'_>) -> ScriptRefusal {
    match policy.kind.script().map(|script| script.evaluate(view)) {
        Some(ScriptFinding::Match(refusal)) => refusal,
        Some(ScriptFinding::NoMatch | ScriptFinding::Undecided(_)) | None => ScriptRefusal::default(),
    }
}

/// The message of the approval request: those of all policies that require one.
pub(super) fn question(layers: &Layers, approvals: &[PolicyRef], view: CallView<'_>) -> String {
    let questions = approvals.iter().filter_map(|reference| {
        let policy = reference.find(layers)?;
        if let Some(message) = script_refusal(policy, &view).message {
            return Some(message);
        }
        let approval = policy.kind.as_approval()?;
        if approval.message.is_some() || policy.description.is_some() {
            return Some(policy_message(policy, approval.message.as_ref(), view));
        }
        let (tool, id) = (&view.call.tool, &policy.id);
        Some(match policy.kind.as_limit() {
            Some(Limit { description, .. }) => {
                format!("May `{tool}` run? It exceeds `{id}`, which allows {description}.")
            }
            None => format!("May `{tool}` run? The policy `{id}` requires an approval."),
        })
    });
    questions.collect::<Vec<_>>().join(" ")
}

/// A policy's message, or a default one.
fn policy_message(policy: &Policy, template: Option<&Template>, view: CallView<'_>) -> String {
    match (template, &policy.description) {
        (Some(template), _) => template.render(&view, &[]).text,
        (None, Some(description)) => description.clone(),
        (None, None) => format!("`{}` is stopped by the policy `{}`", view.call.tool, policy.id),
    }
}
