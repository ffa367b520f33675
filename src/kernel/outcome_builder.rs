//! Builds the outcome of a call: its audit entries, its approval request and the outcome itself, all redacted.

use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::events::{MatchStatus, SkipReason};
use super::execution_result::{
    Broken, CallResponse, Execution, Records, Source, answered_by_others, answered_by_policy, cached,
};
use super::redacted_call::{RedactedCall, WITHHELD};
use super::trace::{Evaluation, PhaseRecorder, PolicyHandle, PolicyRef, Trace};
use super::{CallScope, Decision, Kernel};
use crate::call::{
    AuditEntry, CallView, Masks, Outcome, OutcomeKind, Phase, Reason, Root, SessionState, ToolCall, Verdict,
    reason_code,
};
use crate::host::ToolError;
use crate::json::{Map, Value};
use crate::middleware::{Audit, PolicyKind};
use crate::path::Path;
use crate::policy::{Mode, Policy};

/// A call that is being settled.
pub(super) struct OutcomeBuilder<'a> {
    pub(super) subject: CallScope<'a>,
    /// The policies of settle, in the order in which they apply.
    pub(super) policies: SmallVec<[PolicyHandle<'a>; 4]>,
    pub(super) recorder: PhaseRecorder<'a>,
    pub(super) kind: OutcomeKind,
    pub(super) output: Option<Value>,
    pub(super) error: Option<String>,
    /// The error, as long as a policy may recover it.
    pub(super) failure: Option<ToolError>,
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
}

/// The order in which policies apply to an outcome, over all layers.
fn settle_order(kind: &PolicyKind) -> u8 {
    match kind {
        PolicyKind::Recover(_) => 0,
        PolicyKind::Transform(_) => 1,
        PolicyKind::Redact(_) => 2,
        PolicyKind::Label(_) | PolicyKind::Fact(_) => 3,
        _ => 4,
    }
}

impl<'a> OutcomeBuilder<'a> {
    /// An outcome of this kind that has no result.
    pub(super) fn new(
        subject: CallScope<'a>,
        kind: OutcomeKind,
        reason: Reason,
        trace: Trace,
        records: Records,
    ) -> Self {
        let mut policies: SmallVec<_> = subject.policies(|chain| &chain.settle).collect();
        policies.sort_by_key(|by: &PolicyHandle<'_>| settle_order(&by.policy.kind));
        Self {
            policies,
            recorder: PhaseRecorder::new(subject.listener, Phase::Settle, trace),
            subject,
            kind,
            output: None,
            error: None,
            failure: None,
            reason,
            dry: false,
            approval_id: "",
            attempts: 0,
            records,
            masks: Masks::new(),
            remade: false,
            thrown: false,
        }
    }

    /// The outcome of an execution, before policies are applied to it.
    pub(super) fn from_execution(
        subject: CallScope<'a>,
        execution: Execution,
        decision: &Decision<'_>,
        trace: Trace,
    ) -> Self {
        let Execution { result, attempts, records, .. } = execution;
        let new =
            |subject, kind, reason| Self { attempts, ..Self::new(subject, kind, reason, trace, records) };
        let find = |reference: PolicyRef| reference.find(subject.layers);
        let id = |reference: PolicyRef| find(reference).map(|policy| policy.id.clone());
        match result {
            Ok(CallResponse { result: Ok(output), source, dry }) => {
                let (kind, reason) = match source {
                    Source::Tool => (OutcomeKind::Executed, decision.reason()),
                    Source::Policy(by) => (OutcomeKind::Answered, answered_by_policy(id(by))),
                    Source::Others(by) => (OutcomeKind::Answered, answered_by_others(&by)),
                    Source::Cache(by, age) => (OutcomeKind::Cached, cached(id(by), age)),
                };
                Self { output: Some(output), dry, ..new(subject, kind, reason) }
            }
            Ok(CallResponse { result: Err(error), source, .. }) => {
                let by = source.policy();
                let is_script = |policy: &Policy| matches!(policy.kind, PolicyKind::Around(_));
                let thrown = by.and_then(find).is_some_and(is_script);
                let code = by.and_then(|_| error.kind.clone());
                let code = code.unwrap_or_else(|| reason_code::TOOL_ERROR.to_owned());
                let reason = Reason { policy: by.and_then(id), code, message: error.message.clone() };
                let message = Some(error.message.clone());
                let outcome = new(subject, OutcomeKind::Failed, reason);
                Self { error: message, failure: Some(error), thrown, ..outcome }
            }
            Err(Broken { policy, reason, kind }) => {
                let policy = policy.and_then(id).or(reason.policy);
                let error = (kind != OutcomeKind::Halted).then(|| reason.message.clone());
                Self { error, ..new(subject, kind, Reason { policy, ..reason }) }
            }
        }
    }

    pub(super) fn view<'v>(&'v self, input: &'v Value, session: &'v SessionState) -> CallView<'v> {
        CallView {
            input,
            output: self.output.as_ref(),
            error: self.error.as_deref(),
            ..self.subject.view(session)
        }
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
        self,
        kernel: &Kernel<'_>,
        decision: &Decision<'_>,
        session: &SessionState,
        started: Instant,
    ) -> Outcome {
        let (input, (code, message, error), approval, audit) = {
            let view = self.view(&decision.input, session);
            let redacted = RedactedCall::new(&self.subject, view);
            let message = self.masks.text(&redacted.text(&self.reason.message)).into_owned();
            // A request of a script or a hook may contain anything.
            let is_own = decision.question.is_some() || !decision.required.is_empty();
            let message = if is_own { self.hidden(&message, view) } else { message };
            let code = match self.thrown {
                true => self.masks.text(&redacted.text(&self.reason.code)).into_owned(),
                false => self.reason.code.clone(),
            };
            let error = self.error.as_ref();
            let error = error.map(|error| self.masks.text(&redacted.text(error)).into_owned());
            let approval = (self.kind == OutcomeKind::Suspended)
                .then(|| self.approval_request(kernel, decision, &message, &redacted, view));
            let mut audit = match self.records.entries.is_empty() {
                true => Vec::new(),
                false => self.recorded_entries(&redacted, view),
            };
            for by in &self.policies {
                if let PolicyKind::Audit(policy) = &by.policy.kind {
                    audit.extend(self.audit_entry(*by, policy, &redacted, view));
                }
            }
            if self.recorder.has_listener() {
                self.report_rest(view);
            }
            (redacted.input.into_owned(), (code, message, error), approval, audit)
        };
        Outcome {
            id: self.subject.call.id.clone(),
            tool: self.subject.call.tool.clone(),
            session: None,
            outcome: self.kind,
            input,
            output: self.output,
            error,
            reason: Reason { code, message, ..self.reason },
            policies: self.recorder.into_trace().named(self.subject.layers),
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
    fn report_rest(&self, view: CallView<'_>) {
        use OutcomeKind::{Denied, Halted, Invalid, Recovered, Suspended};
        let ran =
            !matches!(self.kind, Denied | Invalid | Suspended) && (self.kind != Halted || self.attempts > 0);
        for by in &self.policies {
            // The redaction of a call that does not run is reported all the same.
            if let PolicyKind::Redact(_) = by.policy.kind
                && !self.recorder.has_reported(by.reference)
            {
                let truth = by.policy.matcher.eval(&view);
                let applies = by.policy.kind.application(&truth, Phase::Settle).takes_part();
                self.recorder.report(
                    *by,
                    &view,
                    Evaluation::new(&truth, applies.then_some(Verdict::Rewrite)),
                );
            }
        }
        let recovered = self.kind == Recovered;
        self.recorder.report_rest(&self.subject, &view, |policy| {
            MatchStatus::Skipped(match policy.kind {
                _ if !ran => SkipReason::NotRun,
                PolicyKind::Recover(_) if recovered => SkipReason::RecoveredBefore,
                PolicyKind::Recover(_) => SkipReason::NoError,
                _ => SkipReason::NoResult,
            })
        });
    }

    /// A text with all redactions of this call.
    pub(super) fn hidden(&self, text: &str, view: CallView<'_>) -> String {
        let redactions = self.subject.redactions(&view);
        let redacted = redactions.iter().fold(text.to_owned(), |text, redaction| redaction.text(&text));
        self.masks.text(&redacted).into_owned()
    }

    /// The audit entries of policies around the execution. They may contain arguments and results in any place,
    /// so all redactions of this call apply.
    fn recorded_entries(&self, redacted: &RedactedCall<'_>, view: CallView<'_>) -> Vec<AuditEntry> {
        let redactions = self.subject.redactions(&view);
        let entry = |(by, fields): &(PolicyRef, Map)| {
            let mut value = Value::Object(fields.clone());
            let hidden = redactions.iter().all(|redaction| redaction.value(&mut value));
            self.masks.value(&mut value);
            let fields = match redacted.value(value) {
                Value::Object(fields) if hidden => fields,
                _ => Map::from_iter([(WITHHELD.to_owned(), Value::Null)]),
            };
            Some(AuditEntry { policy: self.subject.policy(*by)?.id.clone(), fields })
        };
        self.records.entries.iter().filter_map(entry).collect()
    }

    /// The entry of an audit policy, if it applies. Its condition sees the real call, the entry its redacted form; an
    /// undecided policy records.
    fn audit_entry(
        &self,
        by: PolicyHandle<'_>,
        audit: &Audit,
        redacted: &RedactedCall<'_>,
        view: CallView<'_>,
    ) -> Option<AuditEntry> {
        let policy = by.policy;
        let truth = policy.matcher.eval(&view);
        let applies = policy.kind.application(&truth, Phase::Settle).takes_part();
        self.recorder.record(by, &view, Evaluation::new(&truth, applies.then_some(Verdict::Pass)));
        if !applies || policy.mode == Mode::Shadow {
            return None;
        }
        let fields = audit.recorded_values(redacted.view(view)).map(|(source, value)| {
            let value = match (source.as_path().map(Path::root), value) {
                // A computed value may have parts of anything.
                (None, mut value) => {
                    self.masks.value(&mut value);
                    redacted.value(value)
                }
                // Facts of earlier calls may contain values that only this call redacts.
                (Some(Root::Session), value) => redacted.value(value),
                // An error may repeat arguments and results.
                (Some(Root::Error), Value::String(error)) => {
                    Value::from(self.masks.text(&redacted.text(&error)).into_owned())
                }
                (_, value) => value,
            };
            (source.text().to_owned(), value)
        });
        Some(AuditEntry { policy: policy.id.clone(), fields: fields.collect() })
    }
}
