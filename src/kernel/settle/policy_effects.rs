//! What each policy of settle does to the outcome so far, and to the session, or why it was skipped.

use super::OutcomeBuilder;
use crate::call::{
    AuditEntry, CallView, Masks, OutcomeKind, Phase, Reason, ResultView, Root, SessionState, Verdict,
    reason_code,
};
use crate::host::ToolError;
use crate::json::{Map, Value};
use crate::kernel::argument_suggestions::suggestion;
use crate::kernel::attempted_facts;
use crate::kernel::events::{Change, ErrorMatched, Event, MatchStatus, SkipReason, notify};
use crate::kernel::phase_recorder::Evaluation;
use crate::kernel::policy_reference::{PolicyHandle, PolicyRef};
use crate::kernel::redacted_call::{RedactedCall, RedactedParts, Redaction, WITHHELD};
use crate::matcher::Truth;
use crate::middleware::{
    Application, Audit, Fact, Label, PolicyKind, Recover, Redact, Transform, apply_steps,
};
use crate::path::Path;
use crate::policy::{Mode, Policy};
use crate::tool_result;
use crate::work_limit::WorkLimitError;

impl OutcomeBuilder<'_> {
    /// Applies a policy of settle to the outcome so far. Audit policies come last, when it is finished.
    pub(super) fn apply_policy(&mut self, by: PolicyHandle<'_>, input: &Value, session: &mut SessionState) {
        // A cached result is one that the tool gave a short while ago.
        let has_result = matches!(self.kind, OutcomeKind::Executed | OutcomeKind::Cached) && !self.dry;
        self.begin_policy();
        match &by.policy.kind {
            PolicyKind::Recover(recover) => {
                if let Some(error) = self.failure.take() {
                    self.recover(by, recover, &error, input, session);
                }
            }
            PolicyKind::Transform(transform) if !self.dry => self.transform(by, transform, input, session),
            PolicyKind::Redact(redact) => self.redact(by, redact, input, session),
            PolicyKind::Label(label) => self.label(by, label, input, session),
            PolicyKind::Fact(fact) if has_result => self.store_fact(by, fact, input, session),
            _ => {}
        }
    }

    /// Recovers an error, if the policy is for it and has not done so too often: a message takes its place.
    /// Otherwise the next policy may recover it.
    fn recover(
        &mut self,
        by: PolicyHandle<'_>,
        recover: &Recover,
        error: &ToolError,
        input: &Value,
        session: &mut SessionState,
    ) {
        let PolicyHandle { reference, policy } = by;
        let matched = ErrorMatched { policy, layer: reference.layer, error };
        notify(self.subject.listener, &Event::ErrorMatched(matched));
        let invitations = session.recoveries(&policy.id, &self.subject.call.tool);
        let view = self.view(input, session);
        let truth = recover.on.matches(error).then(|| policy.matcher.eval(&view));
        let evaluation = match &truth {
            None => Evaluation::skipped(MatchStatus::Skipped(SkipReason::OtherError)),
            Some(Truth::Yes) if invitations >= recover.attempts => {
                Evaluation::skipped(MatchStatus::Skipped(SkipReason::AttemptsExhausted))
            }
            Some(truth) => Evaluation::new(truth, (*truth == Truth::Yes).then_some(Verdict::Rewrite)),
        };
        self.recorder.record(by, &view, evaluation);
        if evaluation.verdict.is_none() || policy.mode == Mode::Shadow {
            self.failure = Some(error.clone());
            return;
        }
        let schema = self.subject.tool.and_then(|tool| tool.schema.as_ref()?.as_ref().ok());
        // The message shows the arguments redacted.
        let redacted = RedactedCall::new(self.subject, view);
        let arguments = session.successful_inputs(&self.subject.call.tool);
        let suggestion = suggestion(schema, &redacted.input, arguments);
        let redacted_error = redacted.text(&error.message);
        let redacted_view = CallView { error: Some(&redacted_error), ..redacted.view(view) };
        let message = recover.message_for(&redacted_error, &suggestion, &redacted_view);
        drop(redacted);
        session.count_recovery(&policy.id, &self.subject.call.tool);
        self.kind = OutcomeKind::Recovered;
        self.set_output(Some(Value::from(message)));
        self.error = None;
        self.reason = Reason {
            policy: Some(policy.id.clone()),
            code: reason_code::RECOVERED.to_owned(),
            message: error.message.clone(),
        };
    }

    /// Transforms the result, or withholds it if that is impossible.
    fn transform(
        &mut self,
        by: PolicyHandle<'_>,
        transform: &Transform,
        input: &Value,
        session: &SessionState,
    ) {
        let Some(mut output) = self.output.clone() else { return };
        let view = self.view(input, session);
        let truth = by.policy.matcher.eval(&view);
        let changed = match by.policy.kind.application(&truth, Phase::Settle) {
            Application::No => {
                self.recorder.record(by, &view, Evaluation::new(&truth, None));
                return;
            }
            Application::Undecided(_, why) => Err(format!("it is undecided whether it applies: {why}")),
            // Values that it puts into the result are redacted.
            Application::Yes => {
                let redacted = RedactedCall::new(self.subject, view);
                self.apply_output_steps(transform, view, &redacted.view(view), &mut output)
            }
        };
        let verdict = if changed == Ok(false) { Verdict::Pass } else { Verdict::Rewrite };
        let before = view.output.filter(|_| changed == Ok(true));
        let evaluation = Evaluation {
            change: before.map(|before| Change { before, after: &output }),
            problem: changed.as_ref().err().map(String::as_str),
            ..Evaluation::new(&truth, Some(verdict))
        };
        self.recorder.record(by, &view, evaluation);
        match changed {
            _ if by.policy.mode == Mode::Shadow => {}
            Ok(false) => {}
            Ok(true) => self.set_output(Some(output)),
            Err(problem) => self.withhold(by.policy, &problem),
        }
    }

    /// Applies steps to the output, or to the result that it contains.
    fn apply_output_steps(
        &self,
        transform: &Transform,
        view: CallView<'_>,
        rendered: &CallView<'_>,
        output: &mut Value,
    ) -> Result<bool, String> {
        if !transform.changes_result() {
            return apply_steps(&transform.output, &view, rendered, output);
        }
        let mut result = match view.result {
            ResultView::Value(result) => result.clone(),
            ResultView::Absent => {
                return Err("the tool's result has no text and no structured content".to_owned());
            }
            ResultView::Unreadable(problem) => return Err(problem.text().to_owned()),
        };
        let is_changed = apply_steps(&transform.output, &view, rendered, &mut result)?;
        if is_changed {
            let declaration =
                self.subject.result_declaration().map_err(|problem| problem.text().to_owned())?;
            tool_result::replace(output, result, declaration).map_err(|problem| problem.to_string())?;
        }
        Ok(is_changed)
    }

    /// Redacts the result and the error.
    fn redact(&mut self, by: PolicyHandle<'_>, redact: &Redact, input: &Value, session: &SessionState) {
        // Once, before the first redaction: what redactions change below is not what scripts received.
        if std::mem::take(&mut self.remade)
            && let Some(output) = &mut self.output
        {
            self.masks.value(output);
            self.result = None;
        }
        self.begin_policy();
        let view = self.view(input, session);
        let truth = by.policy.matcher.eval(&view);
        let applies = by.policy.kind.application(&truth, Phase::Settle).takes_part();
        let redaction = Redaction::new(redact, self.subject);
        let evaluation = Evaluation::new(&truth, applies.then_some(Verdict::Rewrite));
        // A listener sees the change, which is made on a copy.
        let reports = self.recorder.has_listener() && applies && redact.output;
        let mut after = self.output.clone().filter(|_| reports);
        let is_changed = after.as_mut().is_some_and(|after| redaction.result(after).is_some());
        let change = self.output.as_ref().zip(after.as_ref()).filter(|_| is_changed);
        let change = change.map(|(before, after)| Change { before, after });
        self.recorder.record(by, &view, Evaluation { change, ..evaluation });
        if !applies || by.policy.mode == Mode::Shadow || !redact.output {
            return;
        }
        let of_input = redaction.argument_changes(self.subject.layers, view);
        let ending = RedactedParts {
            output: self.output.as_mut(),
            error: self.error.as_mut(),
            message: &mut self.reason.message,
            masks: &mut self.masks,
        };
        let is_searched = redaction.ending(&of_input, ending);
        self.result = None;
        if !is_searched {
            self.withhold(by.policy, "the result is nested too deeply to be searched");
        }
        if self.thrown {
            self.reason.code = self.masks.text(&redaction.text(&self.reason.code)).into_owned();
        }
    }

    /// Adds the labels of a call that ran.
    fn label(&mut self, by: PolicyHandle<'_>, label: &Label, input: &Value, session: &mut SessionState) {
        match self.evaluate_enforced(by, input, session) {
            Some(true) => label.mark_unknown(session),
            Some(false) => label.apply(session),
            None => {}
        }
    }

    /// Stores the fact of a call that succeeded.
    fn store_fact(&mut self, by: PolicyHandle<'_>, fact: &Fact, input: &Value, session: &mut SessionState) {
        let Some(is_undecided) = self.evaluate_enforced(by, input, session) else { return };
        if is_undecided {
            fact.mark_unknown(session);
            return;
        }
        let view = self.view(input, session);
        let (found, masks) = attempted_facts::read(self.subject, fact, view);
        attempted_facts::store_entries(self.subject, by, fact, found, session);
        session.add_masks(&masks);
    }

    /// Evaluates and records a policy that changes only the session. Returns whether it is undecided; `None` if it
    /// does not apply, or only in shadow mode.
    fn evaluate_enforced(&self, by: PolicyHandle<'_>, input: &Value, session: &SessionState) -> Option<bool> {
        let view = self.view(input, session);
        let truth = by.policy.matcher.eval(&view);
        let application = by.policy.kind.application(&truth, Phase::Settle);
        let verdict = application.takes_part().then_some(Verdict::Pass);
        self.recorder.record(by, &view, Evaluation::new(&truth, verdict));
        (application.takes_part() && by.policy.mode != Mode::Shadow).then(|| application.is_undecided())
    }

    /// Masks the values that are redacted in results that scripts received, whatever the scripts make of them.
    pub(super) fn mask_results(&mut self, input: &Value, session: &SessionState) {
        let view = self.view(input, session);
        let mut masks = Masks::new();
        for policy in self.subject.result_redacting_policies() {
            let Some(redaction) = Redaction::of(policy, &view, self.subject) else { continue };
            self.records.results.iter().for_each(|result| masks.merge(&redaction.result_changes(result)));
            self.records.inherited.of(policy).into_iter().for_each(|inherited| masks.merge(inherited));
        }
        self.masks = masks;
        self.remade = self.output.as_ref().is_none_or(|output| self.records.is_made(output));
    }

    /// Withholds the result of a tool that ran, because it can't be given the form that a policy requires.
    fn withhold(&mut self, policy: &Policy, problem: &str) {
        let message = format!("the tool ran, but its result is withheld: {problem}");
        self.kind = OutcomeKind::Failed;
        self.set_output(None);
        self.error = Some(message.clone());
        self.reason = Reason {
            policy: Some(policy.id.clone()),
            code: reason_code::OUTPUT_WITHHELD.to_owned(),
            message,
        };
    }

    /// Withholds a result that was not searched completely: it may contain values that policies redact.
    pub(super) fn withhold_unsearched(&mut self) {
        let message = format!("the call ended, but its result is withheld: {WorkLimitError}");
        if self.kind != OutcomeKind::Indeterminate && self.kind != OutcomeKind::Halted {
            self.kind = OutcomeKind::Failed;
        }
        self.set_output(None);
        self.error = Some(message.clone());
        self.thrown = false;
        self.reason = Reason { policy: None, code: reason_code::WORK_EXCEEDED.to_owned(), message };
    }

    /// Whether a policy may suggest the arguments of this call later, because they worked.
    pub(super) fn suggests_arguments(&self) -> bool {
        let suggests = |by: &PolicyHandle<'_>| {
            by.policy.mode != Mode::Shadow && matches!(by.policy.kind, PolicyKind::Recover(_))
        };
        self.kind == OutcomeKind::Executed && !self.dry && self.policies.iter().any(suggests)
    }

    /// Stores the redacted arguments of a call that worked.
    pub(super) fn store_arguments(&self, input: &Value, session: &mut SessionState) {
        let redacted = RedactedCall::new(self.subject, self.view(input, session)).input.into_owned();
        session.add_successful_input(&self.subject.call.tool, redacted);
    }

    /// The audit entries of policies around the execution. They may contain arguments and results in any place,
    /// so all redactions of this call apply.
    pub(super) fn recorded_entries(
        &self,
        redacted: &RedactedCall<'_>,
        view: CallView<'_>,
    ) -> Vec<AuditEntry> {
        let redactions = self.subject.redactions(&view);
        let entry = |(by, fields): &(PolicyRef, Map)| {
            let mut value = Value::Object(fields.clone());
            let hidden = redactions.iter().all(|redaction| redaction.value(&mut value));
            self.masks.written_value(&mut value);
            redacted.masks().written_value(&mut value);
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
    pub(super) fn audit_entry(
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

    /// Reports the policies of settle that were skipped, and why.
    pub(super) fn report_rest(&self, view: CallView<'_>) {
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
        self.recorder.report_rest(self.subject, &view, |policy| {
            MatchStatus::Skipped(match policy.kind {
                _ if !ran => SkipReason::NotRun,
                PolicyKind::Recover(_) if recovered => SkipReason::RecoveredBefore,
                PolicyKind::Recover(_) => SkipReason::NoError,
                _ => SkipReason::NoResult,
            })
        });
    }
}
