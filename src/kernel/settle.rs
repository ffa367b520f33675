//! Settle: recover, then transform.output, then redact, then label and fact, then audit; then the outcome, redacted.
//! Decision + execution → `Outcome`. What each policy does is in `policy_effects`; calls that do not reach their tool end in
//! `refused_call`.

mod policy_effects;
mod refused_call;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::execution_result::{
    Broken, CallResponse, Execution, Records, Source, answered_by_others, answered_by_policy, cached,
};
use super::phase_recorder::PhaseRecorder;
use super::policy_reference::{PolicyHandle, PolicyRef};
use super::redacted_call::RedactedCall;
use super::trace::Trace;
use super::{CallScope, Decision, Kernel};
use crate::call::{
    CallView, LetMemo, Masks, Outcome, OutcomeKind, Phase, Reason, ResultView, SessionState, reason_code,
};
use crate::host::ToolError;
use crate::json::Value;
use crate::middleware::PolicyKind;
use crate::policy::Policy;
use crate::tool_result::ToolResult;
use crate::work_limit::{self, WorkMeter};

impl Kernel<'_> {
    /// The outcome of a call that was executed or answered.
    ///
    /// After a panic in here nothing of the result is shown: it may not be redacted yet.
    pub(crate) fn settle(
        &self,
        decision: Box<Decision<'_>>,
        execution: Execution,
        session: &mut SessionState,
        started: Instant,
    ) -> Box<Outcome> {
        let call = decision.call.clone();
        let mut meter = WorkMeter::after_decision(decision.work);
        let settle = || meter.run_nested(|| self.settle_unguarded(decision, execution, session, started));
        catch_unwind(AssertUnwindSafe(settle)).unwrap_or_else(|_| {
            let message = "the call ran, but its result is withheld: Callgate failed to settle the call";
            self.broken(&call, OutcomeKind::Failed, message, started)
        })
    }

    /// Settles a call that ran when it was recorded: its labels and facts stay, and its outcome is of no use.
    pub(crate) fn settle_recorded(
        &self,
        decision: Box<Decision<'_>>,
        result: Result<Value, ToolError>,
        session: &mut SessionState,
        started: Instant,
    ) {
        let call = decision.changed_call().unwrap_or_else(|| decision.call().clone());
        WorkMeter::after_decision(decision.work).run_nested(|| self.store_attempted_facts(&call, session));
        let response = CallResponse { result, source: Source::Tool, dry: false };
        let _ = self.settle(decision, Ok(response).into(), session, started);
    }

    fn settle_unguarded(
        &self,
        mut decision: Box<Decision<'_>>,
        mut execution: Execution,
        session: &mut SessionState,
        started: Instant,
    ) -> Box<Outcome> {
        if let Some(input) = execution.input.take() {
            decision.input = Cow::Owned(input);
        }
        let call = decision.call.clone();
        let trace = std::mem::take(&mut decision.trace);
        let subject = self.subject(&call);
        let mut outcome = OutcomeBuilder::from_execution(&subject, execution, &decision, trace);
        if outcome.records.has_sources() {
            outcome.mask_results(&decision.input, session);
        }
        for by in outcome.policies.clone() {
            outcome.apply_policy(by, &decision.input, session);
        }
        if outcome.suggests_arguments() {
            outcome.store_arguments(&decision.input, session);
        }
        if work_limit::is_exceeded() {
            outcome.withhold_unsearched();
        }
        outcome.finish(self, &decision, session, started)
    }
}

/// A call that is being settled.
pub(super) struct OutcomeBuilder<'a> {
    pub(super) subject: &'a CallScope<'a>,
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
    /// `$.result` of the output. `None` if no policy reads it, or until the next policy that does.
    result: Option<ToolResult>,
    /// The named values of the present state of the call.
    lets: LetMemo,
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
        subject: &'a CallScope<'a>,
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
            result: None,
            lets: LetMemo::default(),
        }
    }

    /// The outcome of an execution, before policies are applied to it.
    pub(super) fn from_execution(
        subject: &'a CallScope<'a>,
        execution: Execution,
        decision: &Decision<'_>,
        trace: Trace,
    ) -> Self {
        let Execution { result, attempts, records, .. } = execution;
        let find = |reference: PolicyRef| reference.find(subject.layers);
        let id = |reference: PolicyRef| find(reference).map(|policy| policy.id.clone());
        let (mut output, mut error, mut failure) = (None, None, None);
        let (mut is_dry, mut is_thrown) = (false, false);
        let (kind, reason) = match result {
            Ok(CallResponse { result: Ok(value), source, dry }) => {
                (output, is_dry) = (Some(value), dry);
                match source {
                    Source::Tool => (OutcomeKind::Executed, decision.reason()),
                    Source::Policy(by) => (OutcomeKind::Answered, answered_by_policy(id(by))),
                    Source::Others(by) => (OutcomeKind::Answered, answered_by_others(&by)),
                    Source::Cache(by, age) => (OutcomeKind::Cached, cached(id(by), age)),
                }
            }
            Ok(CallResponse { result: Err(failed), source, .. }) => {
                let by = source.policy();
                let is_script = |policy: &Policy| matches!(policy.kind, PolicyKind::Around(_));
                is_thrown = by.and_then(find).is_some_and(is_script);
                let code = by.and_then(|_| failed.kind.clone());
                let code = code.unwrap_or_else(|| reason_code::TOOL_ERROR.to_owned());
                let message = failed.message.clone();
                (error, failure) = (Some(message.clone()), Some(failed));
                (OutcomeKind::Failed, Reason { policy: by.and_then(id), code, message })
            }
            Err(Broken { policy, reason, kind }) => {
                let policy = policy.and_then(id).or(reason.policy);
                error = (kind != OutcomeKind::Halted).then(|| reason.message.clone());
                (kind, Reason { policy, ..reason })
            }
        };
        let mut outcome = Self::new(subject, kind, reason, trace, records);
        (outcome.output, outcome.error, outcome.failure) = (output, error, failure);
        (outcome.dry, outcome.thrown, outcome.attempts) = (is_dry, is_thrown, attempts);
        outcome
    }

    pub(super) fn view<'v>(&'v self, input: &'v Value, session: &'v SessionState) -> CallView<'v> {
        CallView {
            input,
            output: self.output.as_ref(),
            error: self.error.as_deref(),
            lets: Some(&self.lets),
            result: self.result.as_ref().zip(self.output.as_ref()).map_or(ResultView::Absent, read_view),
            ..self.subject.view(session)
        }
    }

    /// Prepares for the next policy, which may see other arguments, results and facts than the one before it: forgets the named values,
    /// and reads `$.result` from the current output if a policy of the call reads it.
    pub(super) fn begin_policy(&mut self) {
        self.lets = LetMemo::default();
        if self.result.is_none() {
            self.result = self.subject.read_result(self.output.as_ref());
        }
    }

    /// Sets another output, or none.
    pub(super) fn set_output(&mut self, output: Option<Value>) {
        self.output = output;
        self.result = None;
    }

    /// Makes the audit entries and the outcome. Nothing else is done with the builder afterwards; it is taken by reference, for it is large.
    pub(super) fn finish(
        &mut self,
        kernel: &Kernel<'_>,
        decision: &Decision<'_>,
        session: &SessionState,
        started: Instant,
    ) -> Box<Outcome> {
        self.begin_policy();
        let (input, (code, message, error), approval, audit, printed) = {
            let view = self.view(&decision.input, session);
            let redacted = RedactedCall::new(self.subject, view);
            let is_searched = redacted.changes_texts() || !self.masks.is_empty();
            // `None` if it stays as it is.
            let text = |text: &String| match self.thrown {
                true => Some(self.hidden(text, &redacted, view)),
                false => is_searched.then(|| self.masks.text(&redacted.text(text)).into_owned()),
            };
            // A request of a script or a hook may contain anything.
            let is_own = decision.question.is_some() || !decision.required.is_empty();
            let message = match is_own {
                true => Some(self.hidden(&self.reason.message, &redacted, view)),
                false => text(&self.reason.message),
            };
            let code = self.thrown.then(|| text(&self.reason.code)).flatten();
            let error = self.error.as_ref().and_then(text);
            let approval = (self.kind == OutcomeKind::Suspended).then(|| {
                let reason = message.as_ref().unwrap_or(&self.reason.message);
                Box::new(self.approval_request(kernel, decision, reason, &redacted, view))
            });
            let mut audit = match self.records.entries.is_empty() {
                true => Vec::new(),
                false => self.recorded_entries(&redacted, view),
            };
            let printed = self.records.printed.iter();
            let printed: Vec<_> =
                printed.map(|(by, line)| (*by, self.hidden(line, &redacted, view))).collect();
            for by in &self.policies {
                if let PolicyKind::Audit(policy) = &by.policy.kind {
                    audit.extend(self.audit_entry(*by, policy, &redacted, view));
                }
            }
            if self.recorder.has_listener() {
                self.report_rest(view);
            }
            (redacted.input.into_owned(), (code, message, error), approval, audit, printed)
        };
        printed.into_iter().for_each(|(by, line)| self.recorder.note_printed(by, vec![line]));
        let known = &mut self.reason;
        let reason = Reason {
            policy: known.policy.take(),
            code: code.unwrap_or_else(|| std::mem::take(&mut known.code)),
            message: message.unwrap_or_else(|| std::mem::take(&mut known.message)),
        };
        Box::new(Outcome {
            id: self.subject.call.id.clone(),
            tool: self.subject.call.tool.clone(),
            session: None,
            outcome: self.kind,
            input,
            output: self.output.take(),
            error: error.or_else(|| self.error.take()),
            reason,
            policies: self.recorder.named(self.subject.layers),
            approval,
            approved: None,
            replayed: false,
            audit,
            dry: self.dry,
            attempts: (self.attempts > 1).then_some(self.attempts),
            retry_after_ms: decision.retry_after.map(millis_up),
            revision: kernel.revision(),
            duration_us: micros_since(started),
        })
    }

    /// A text that a script or a hook wrote, with all redactions of this call.
    pub(super) fn hidden(&self, text: &str, redacted: &RedactedCall<'_>, view: CallView<'_>) -> String {
        let redactions = self.subject.redactions(&view);
        let text = redacted.written_text(text);
        let text = redactions.iter().fold(text, |text, redaction| redaction.text(&text));
        self.masks.written_text(&text).into_owned()
    }
}

fn read_view<'v>((result, output): (&'v ToolResult, &'v Value)) -> ResultView<'v> {
    result.view(output)
}

/// Rounded up: a retry after this time is not refused for being too early.
fn millis_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn micros_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)
}
