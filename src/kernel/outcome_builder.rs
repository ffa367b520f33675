//! Builds the outcome of a call: its audit entries, its approval request and the outcome itself, all redacted.

use std::time::{Duration, Instant};

use super::events::{Evaluation, MatchStatus, PhaseRecorder, SkipReason};
use super::execution_result::Records;
use super::redacted_call::{RedactedCall, WITHHELD};
use super::trace::{PolicyHandle, PolicyRef, Trace};
use super::{CallScope, Decision, Kernel, gate};
use crate::call::{
    ApprovalRequest, AuditEntry, CallView, Masks, Outcome, OutcomeKind, Phase, Reason, Root, SessionState,
    ToolCall, Verdict, reason_code,
};
use crate::json::{Map, Value};
use crate::middleware::PolicyKind;
use crate::policy::Mode;
use crate::seal::Purpose;

/// A call that is being settled.
pub(super) struct OutcomeBuilder<'a> {
    pub(super) subject: CallScope<'a>,
    pub(super) trace: Trace,
    pub(super) kind: OutcomeKind,
    pub(super) output: Option<Value>,
    pub(super) error: Option<String>,
    pub(super) reason: Reason,
    /// No tool exists behind the call: its output is not transformed, and nothing is learned from it.
    pub(super) dry: bool,
    /// The id of an approval request about it.
    pub(super) approval_id: &'a str,
    /// How often the tool was called.
    pub(super) attempts: u32,
    /// The records of policies around the execution.
    pub(super) records: Records,
    /// The values that redaction changes in results: no text contains them.
    pub(super) masks: Masks,
    /// The result is what a script made of others.
    pub(super) remade: bool,
    /// The reason's code is a script's word.
    pub(super) thrown: bool,
    pub(super) hearing: PhaseRecorder<'a>,
}

impl<'a> OutcomeBuilder<'a> {
    pub(super) fn view<'v>(&'v self, input: &'v Value, session: &'v SessionState) -> CallView<'v> {
        CallView {
            input,
            output: self.output.as_ref(),
            error: self.error.as_deref(),
            ..self.subject.view(session)
        }
    }

    pub(super) fn policies(&self) -> Vec<PolicyHandle<'a>> {
        self.subject.policies(|chain| &chain.settle).collect()
    }
}

impl Kernel<'_> {
    /// The outcome of a call on which Callgate itself failed. It shows none of the call's values.
    pub(super) fn broken(
        &self,
        call: &ToolCall,
        kind: OutcomeKind,
        message: &str,
        started: Instant,
    ) -> Outcome {
        let reason = Reason {
            policy: None,
            code: reason_code::INTERNAL_ERROR.to_owned(),
            message: message.to_owned(),
        };
        Outcome {
            error: (kind == OutcomeKind::Failed).then(|| message.to_owned()),
            duration_us: micros_since(started),
            ..Outcome::new((&call.id, &call.tool), kind, WITHHELD.into(), reason, self.revision())
        }
    }
}

/// Rounded up: a retry after this time is not refused for being too early.
fn millis_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn micros_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl OutcomeBuilder<'_> {
    /// Makes the audit entries and the outcome.
    pub(super) fn finish(
        mut self,
        kernel: &Kernel<'_>,
        decision: &Decision<'_>,
        session: &SessionState,
        started: Instant,
    ) -> Outcome {
        let (input, (code, message, error), approval, (audit, audited)) = {
            let view = self.view(&decision.input, session);
            let shown = RedactedCall::new(&self.subject, view);
            let message = self.masks.text(&shown.text(&self.reason.message)).into_owned();
            // A request of a script or a hook may contain anything.
            let is_own = decision.question.is_some() || !decision.required.is_empty();
            let message = if is_own { self.hidden(&message, view) } else { message };
            let code = match self.thrown {
                true => self.masks.text(&shown.text(&self.reason.code)).into_owned(),
                false => self.reason.code.clone(),
            };
            let error = self.error.as_ref();
            let error = error.map(|error| self.masks.text(&shown.text(error)).into_owned());
            let approval = (self.kind == OutcomeKind::Suspended)
                .then(|| self.request(kernel, decision, &message, &shown, view));
            let mut entries = self.recorded(&shown, view);
            let (audited, by) = self.audit(&shown, view);
            entries.extend(audited);
            if self.hearing.has_listener() {
                self.account_for_rest(view);
            }
            (shown.input.clone().into_owned(), (code, message, error), approval, (entries, by))
        };
        for (reference, open) in audited {
            self.trace.note(reference, Phase::Settle, Verdict::Pass, open);
        }
        Outcome {
            id: self.subject.call.id.clone(),
            tool: self.subject.call.tool.clone(),
            session: None,
            outcome: self.kind,
            input,
            output: self.output,
            error,
            reason: Reason { code, message, ..self.reason },
            policies: self.trace.named(self.subject.layers),
            approval,
            approved: None,
            replayed: false,
            audit,
            dry: self.dry,
            attempts: (self.attempts > 1).then_some(self.attempts),
            retry_after_ms: decision.retry_after.map(millis_up),
            revision: kernel.revision(),
            duration_us: micros_since(started),
        }
    }

    /// Reports the policies of settle that were skipped, and why.
    fn account_for_rest(&self, view: CallView<'_>) {
        use OutcomeKind::{Denied, Halted, Invalid, Recovered, Suspended};
        let ran =
            !matches!(self.kind, Denied | Invalid | Suspended) && (self.kind != Halted || self.attempts > 0);
        for by in self.policies() {
            // The redaction of a call that does not run is reported all the same.
            if let PolicyKind::Redact(_) = by.policy.kind
                && !self.hearing.has_reported(by.reference)
            {
                let truth = by.policy.matcher.eval(&view);
                let applies = by.policy.kind.application(&truth, Phase::Settle).takes_part();
                self.hearing.report(by, &view, Evaluation::new(&truth, applies.then_some(Verdict::Rewrite)));
            }
        }
        let recovered = self.kind == Recovered;
        self.hearing.report_rest(&self.subject, &view, |policy| {
            MatchStatus::Skipped(match policy.kind {
                _ if !ran => SkipReason::NotRun,
                PolicyKind::Recover(_) if recovered => SkipReason::RecoveredBefore,
                PolicyKind::Recover(_) => SkipReason::NoError,
                _ => SkipReason::NoResult,
            })
        });
    }

    /// The one request for all approvals that the call needs. A later occurrence of a repeated id has an id of
    /// its own.
    fn request(
        &self,
        kernel: &Kernel<'_>,
        decision: &Decision<'_>,
        reason: &str,
        shown: &RedactedCall<'_>,
        view: CallView<'_>,
    ) -> ApprovalRequest {
        let call = self.subject.call;
        let Decision { approvals, question, required, unmatched, .. } = decision;
        let question = question.as_deref();
        let asking = || {
            let own = question.map(|own| &own.policy);
            approvals.iter().chain(own).filter_map(|reference| self.subject.policy(*reference))
        };
        let relevant = self.subject.relevant(&asking().collect::<Vec<_>>(), &shown.input);
        let lifetimes = asking().filter_map(|policy| match &policy.kind {
            PolicyKind::Approval(approval) => approval.expires,
            _ => None,
        });
        let lifetimes = lifetimes.chain(required.iter().filter_map(|requirement| requirement.expires));
        let policies = asking().map(|policy| policy.id.clone());
        let others = required.iter().filter_map(|requirement| requirement.asker.permit.policy.clone());
        // If only `defaults.unmatched` requires an approval, the request is the reason.
        let message = match (approvals.as_slice(), question) {
            (_, Some(own)) => self.hidden(&shown.text(&own.text), view),
            ([], None) if required.is_empty() || !unmatched.is_empty() => reason.to_owned(),
            ([], None) => String::new(),
            _ => shown.text(&gate::question(&self.subject, approvals, shown.view(view))),
        };
        let texts = required.iter().map(|requirement| self.hidden(&shown.text(&requirement.text), view));
        let message: Vec<String> =
            std::iter::once(message).chain(texts).filter(|text| !text.is_empty()).collect();
        ApprovalRequest {
            approval_id: self.approval_id.to_owned(),
            tool_call_id: call.id.clone(),
            tool_name: call.tool.clone(),
            input: shown.input.clone().into_owned(),
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
            card: gate::card_texts(&self.subject, approvals, shown.view(view), |text| shown.text(text)),
            approval_token: None,
        }
    }

    /// A text with all redactions of this call.
    fn hidden(&self, text: &str, view: CallView<'_>) -> String {
        let redactions = self.subject.redactions(&view);
        let redacted = redactions.iter().fold(text.to_owned(), |text, redaction| redaction.text(&text));
        self.masks.text(&redacted).into_owned()
    }

    /// The audit entries of policies around the execution. They may contain arguments and results in any place,
    /// so all redactions of this call apply.
    fn recorded(&self, shown: &RedactedCall<'_>, view: CallView<'_>) -> Vec<AuditEntry> {
        let redactions = self.subject.redactions(&view);
        let entry = |(by, fields): &(PolicyRef, Map)| {
            let mut value = Value::Object(fields.clone());
            let hidden = redactions.iter().all(|redaction| redaction.value(&mut value));
            self.masks.value(&mut value);
            let fields = match shown.value(value) {
                Value::Object(fields) if hidden => fields,
                _ => Map::from_iter([(WITHHELD.to_owned(), Value::Null)]),
            };
            Some(AuditEntry { policy: self.subject.policy(*by)?.id.clone(), fields })
        };
        self.records.entries.iter().filter_map(entry).collect()
    }

    /// The entries of audit policies, and the policies. Conditions see the real call, entries its redacted
    /// form; an undecided policy records.
    fn audit(
        &self,
        shown: &RedactedCall<'_>,
        view: CallView<'_>,
    ) -> (Vec<AuditEntry>, Vec<(PolicyRef, bool)>) {
        let (mut entries, mut audited) = (Vec::new(), Vec::new());
        for by in self.policies() {
            let PolicyHandle { reference, policy } = by;
            let PolicyKind::Audit(audit) = &policy.kind else { continue };
            let truth = policy.matcher.eval(&view);
            let application = policy.kind.application(&truth, Phase::Settle);
            let applies = application.takes_part();
            self.hearing.report(by, &view, Evaluation::new(&truth, applies.then_some(Verdict::Pass)));
            if !applies {
                continue;
            }
            audited.push((reference, application.is_undecided()));
            if policy.mode != Mode::Shadow {
                let fields = audit.recorded_values(shown.view(view)).map(|(path, value)| {
                    let value = match (path.root(), value) {
                        // Facts of earlier calls may contain values that only this call redacts.
                        (Root::Session, value) => shown.value(value),
                        // An error may repeat arguments and results.
                        (Root::Error, Value::String(error)) => {
                            Value::from(self.masks.text(&shown.text(&error)).into_owned())
                        }
                        (_, value) => value,
                    };
                    (path.text().to_owned(), value)
                });
                let fields = fields.collect();
                entries.push(AuditEntry { policy: policy.id.clone(), fields });
            }
        }
        (entries, audited)
    }
}
