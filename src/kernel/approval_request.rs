//! The approval request of a suspended call: one request for all approvals that it needs, redacted.

use super::decision_reason::question as approval_question;
use super::policy_reference::PolicyRef;
use super::redacted_call::RedactedCall;
use super::settle::OutcomeBuilder;
use super::{CallScope, Decision, Kernel};
use crate::call::{ApprovalRequest, CallView, CardLabels};
use crate::middleware::CardTemplates;
use crate::seal::Purpose;

impl OutcomeBuilder<'_> {
    /// The one request for all approvals that the call needs. A later occurrence of a repeated id has an id of
    /// its own.
    pub(super) fn approval_request(
        &self,
        kernel: &Kernel<'_>,
        decision: &Decision<'_>,
        reason: &str,
        redacted: &RedactedCall<'_>,
        view: CallView<'_>,
    ) -> ApprovalRequest {
        let call = self.subject.call;
        let Decision { approvals, question, required, unmatched, .. } = decision;
        let question = question.as_deref();
        let requesting = || {
            let own = question.map(|own| &own.policy);
            approvals.iter().chain(own).filter_map(|reference| self.subject.policy(*reference))
        };
        let relevant = self.subject.relevant(&requesting().collect::<Vec<_>>(), &redacted.input);
        let lifetimes = requesting().filter_map(|policy| policy.kind.as_approval()?.expires);
        let lifetimes = lifetimes.chain(required.iter().filter_map(|requirement| requirement.expires));
        let policies = requesting().map(|policy| policy.id.clone());
        let others = required.iter().filter_map(|requirement| requirement.asker.permit.policy.clone());
        // If only `defaults.unmatched` requires an approval, the request is the reason.
        let message = match (approvals.as_slice(), question) {
            (_, Some(own)) => self.hidden(&own.text, redacted, view),
            ([], None) if required.is_empty() || !unmatched.is_empty() => reason.to_owned(),
            ([], None) => String::new(),
            _ => redacted.text(&approval_question(self.subject.layers, approvals, redacted.view(view))),
        };
        let texts = required.iter().map(|requirement| self.hidden(&requirement.text, redacted, view));
        let message: Vec<String> =
            std::iter::once(message).chain(texts).filter(|text| !text.is_empty()).collect();
        ApprovalRequest {
            approval_id: self.approval_id.to_owned(),
            tool_call_id: call.id.clone(),
            tool_name: call.tool.clone(),
            input: redacted.input.clone().into_owned(),
            message: Some(message.join(" ")),
            policies: policies.chain(others).collect(),
            expires_at: lifetimes
                .min()
                .and_then(|after| kernel.clock.now().checked_add(after).ok())
                .map(|time| time.to_string()),
            input_digest: kernel.keys.digest(Purpose::Arguments, view.input).to_string(),
            server: call.server.clone(),
            relevant,
            repeats: None,
            card: card_texts(self.subject, approvals, redacted.view(view), |text| redacted.text(text)),
            approval_token: None,
        }
    }
}

/// The card texts of the first policy that has some.
pub(super) fn card_texts(
    subject: &CallScope<'_>,
    approvals: &[PolicyRef],
    view: CallView<'_>,
    hide: impl Fn(&str) -> String,
) -> CardLabels {
    let cards =
        approvals.iter().filter_map(|reference| Some(&subject.policy(*reference)?.kind.as_approval()?.card));
    let mut templates = cards.filter(|card| !card.is_empty());
    let Some(CardTemplates { title, approve, deny }) = templates.next() else { return CardLabels::default() };
    let title = title.as_ref().map(|template| hide(&template.render(&view, &[]).text));
    CardLabels { title, approve: approve.clone(), deny: deny.clone() }
}
