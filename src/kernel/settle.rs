//! Settle: recover, then transform.output, then redact, then label and fact, then audit; then the outcome.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::argument_suggestions::suggestion;
use super::decision::{Decision, Effect};
use super::events::{Change, ErrorMatched, Evaluation, Event, MatchStatus, SkipReason, notify};
use super::execution_result::{Execution, OutcomeParts, Records};
use super::outcome_builder::OutcomeBuilder;
use super::redacted_call::{RedactedCall, RedactedParts, Redaction};
use super::trace::PolicyHandle;
use super::{Kernel, UNDECIDABLE};
use crate::call::{CallView, Masks, Outcome, OutcomeKind, Phase, Reason, SessionState, Verdict, reason_code};
use crate::host::ToolError;
use crate::json::{Value, json};
use crate::matcher::Truth;
use crate::middleware::{Application, ExtractedFact, PolicyKind, Redact, apply_steps};
use crate::policy::{Mode, Policy};
use crate::work_limit::{self, WorkLimitError, WorkMeter};

impl Kernel<'_> {
    /// The outcome of a call that does not reach its tool: invalid, denied, suspended or halted. A halt halts
    /// the session. The approval request of a suspended call has this id, and is not sealed yet.
    ///
    /// A panic in here denies.
    pub(crate) fn refuse(
        &self,
        decision: Decision<'_>,
        approval_id: &str,
        records: Records,
        session: &mut SessionState,
        started: Instant,
    ) -> Outcome {
        let (call, halts) = (decision.call.clone(), decision.effect == Effect::Halt);
        let meter = WorkMeter::after_decision(decision.work);
        let kind = if halts { OutcomeKind::Halted } else { OutcomeKind::Denied };
        catch_unwind(AssertUnwindSafe(|| {
            meter.run_nested(|| self.refuse_unguarded(decision, approval_id, records, session, started))
        }))
        .unwrap_or_else(|_| {
            // Even if this panicked, a halt holds for the rest of the session.
            if halts {
                session.halt(UNDECIDABLE);
            }
            self.broken(&call, kind, UNDECIDABLE, started)
        })
    }

    fn refuse_unguarded(
        &self,
        mut decision: Decision<'_>,
        approval_id: &str,
        records: Records,
        session: &mut SessionState,
        started: Instant,
    ) -> Outcome {
        let kind = match decision.effect {
            Effect::Suspend => OutcomeKind::Suspended,
            Effect::Invalid => OutcomeKind::Invalid,
            Effect::Halt => OutcomeKind::Halted,
            Effect::Deny | Effect::Run | Effect::Answer => OutcomeKind::Denied,
        };
        let reason = decision.reason();
        if kind == OutcomeKind::Halted {
            self.halt(&decision, session);
        }
        let call = decision.call.clone();
        let subject = self.subject(&call);
        let mut settling = OutcomeBuilder {
            hearing: subject.recorder(Phase::Settle),
            subject,
            trace: std::mem::take(&mut decision.trace),
            kind,
            output: None,
            error: None,
            reason,
            dry: false,
            approval_id,
            attempts: 0,
            records,
            masks: Masks::new(),
            remade: false,
            thrown: false,
        };
        settling.mask_results(&decision.input, session);
        settling.finish(self, &decision, session, started)
    }

    /// The outcome of a call that was executed or answered.
    ///
    /// After a panic in here nothing of the result is shown: it may not be redacted yet.
    pub(crate) fn settle(
        &self,
        decision: Decision<'_>,
        execution: Execution,
        session: &mut SessionState,
        started: Instant,
    ) -> Outcome {
        let call = decision.call.clone();
        let meter = WorkMeter::after_decision(decision.work);
        let settle = || meter.run_nested(|| self.settle_unguarded(decision, execution, session, started));
        catch_unwind(AssertUnwindSafe(settle)).unwrap_or_else(|_| {
            let message = "the call ran, but its result is withheld: Callgate failed to settle the call";
            self.broken(&call, OutcomeKind::Failed, message, started)
        })
    }

    fn settle_unguarded(
        &self,
        mut decision: Decision<'_>,
        execution: Execution,
        session: &mut SessionState,
        started: Instant,
    ) -> Outcome {
        let Execution { result, attempts, input, records } = execution;
        if let Some(input) = input {
            decision.input = Cow::Owned(input);
        }
        let call = decision.call.clone();
        let subject = self.subject(&call);
        let parts = OutcomeParts::from_result(result, &subject, &decision);
        let OutcomeParts { kind, output, error, reason, dry, thrown } = parts;
        let failed = output.is_none() && kind != OutcomeKind::Halted;
        let mut settling = OutcomeBuilder {
            hearing: subject.recorder(Phase::Settle),
            subject,
            trace: std::mem::take(&mut decision.trace),
            kind,
            output,
            error: failed.then(|| reason.message.clone()),
            reason,
            dry,
            approval_id: "",
            attempts,
            records,
            masks: Masks::new(),
            remade: false,
            thrown,
        };
        settling.mask_results(&decision.input, session);
        if let Some(error) = &error {
            settling.recover(error, &decision.input, session);
        }
        settling.transform(&decision.input, session);
        settling.redact(&decision.input, session);
        settling.apply_labels_and_facts(&decision.input, session);
        settling.store_successful_input(&decision.input, session);
        settling.withhold_if_work_is_exceeded();
        settling.finish(self, &decision, session, started)
    }
}

impl<'a> OutcomeBuilder<'a> {
    /// The first policy that recovers this error, and has not done so too often, turns it into a message.
    fn recover(&mut self, error: &ToolError, input: &Value, session: &mut SessionState) {
        for by in self.policies() {
            let PolicyHandle { reference, policy } = by;
            let PolicyKind::Recover(recover) = &policy.kind else { continue };
            let asked = ErrorMatched { policy, layer: reference.layer, error };
            notify(self.subject.listener, &Event::ErrorMatched(asked));
            let invitations = session.recoveries(&policy.id, &self.subject.call.tool);
            let view = self.view(input, session);
            let truth = recover.on.matches(error).then(|| policy.matcher.eval(&view));
            let (said, acts) = match &truth {
                None => (MatchStatus::Skipped(SkipReason::OtherError), false),
                Some(Truth::Yes) if invitations >= recover.attempts => {
                    (MatchStatus::Skipped(SkipReason::AttemptsExhausted), false)
                }
                Some(truth) => (MatchStatus::Truth(truth), *truth == Truth::Yes),
            };
            self.hearing.report(by, &view, Evaluation::skipped(said, acts.then_some(Verdict::Rewrite)));
            if !acts {
                continue;
            }
            self.trace.note(reference, Phase::Settle, Verdict::Rewrite, false);
            if policy.mode == Mode::Shadow {
                continue;
            }
            let schema = self.subject.tool.and_then(|tool| tool.schema.as_ref()?.as_ref().ok());
            let message = {
                // The message shows the arguments redacted.
                let view = self.view(input, session);
                let shown = RedactedCall::new(&self.subject, view);
                let suggestion =
                    suggestion(schema, &shown.input, session.successful_inputs(&self.subject.call.tool));
                let error = shown.text(&error.message);
                recover.message_for(
                    &error,
                    &suggestion,
                    &CallView { error: Some(&error), ..shown.view(view) },
                )
            };
            session.count_recovery(&policy.id, &self.subject.call.tool);
            self.kind = OutcomeKind::Recovered;
            self.output = Some(Value::from(message));
            self.error = None;
            self.reason = Reason {
                policy: Some(policy.id.clone()),
                code: reason_code::RECOVERED.to_owned(),
                message: error.message.clone(),
            };
            return;
        }
    }

    fn transform(&mut self, input: &Value, session: &SessionState) {
        if self.dry {
            return;
        }
        for by in self.policies() {
            let PolicyHandle { reference, policy } = by;
            let PolicyKind::Transform(transform) = &policy.kind else { continue };
            let Some(mut output) = self.output.clone() else { return };
            let view = self.view(input, session);
            let truth = policy.matcher.eval(&view);
            let application = policy.kind.application(&truth, Phase::Settle);
            let open = application.is_undecided();
            let changed = match application {
                Application::No => {
                    self.hearing.report(by, &view, Evaluation::new(&truth, None));
                    continue;
                }
                Application::Undecided(_, why) => Err(format!("it is undecided whether it applies: {why}")),
                // Values that it puts into the result are redacted.
                Application::Yes => {
                    let shown = RedactedCall::new(&self.subject, view);
                    apply_steps(&transform.output, &view, &shown.view(view), &mut output)
                }
            };
            let verdict = if changed == Ok(false) { Verdict::Pass } else { Verdict::Rewrite };
            let before = view.output.filter(|_| changed == Ok(true));
            let evaluation = Evaluation {
                change: before.map(|before| Change { before, after: &output }),
                problem: changed.as_ref().err().map(String::as_str),
                ..Evaluation::new(&truth, Some(verdict))
            };
            self.hearing.report(by, &view, evaluation);
            self.trace.note(reference, Phase::Settle, verdict, open);
            match changed {
                _ if policy.mode == Mode::Shadow => {}
                Ok(false) => {}
                Ok(true) => self.output = Some(output),
                Err(problem) => self.withhold(policy, &problem),
            }
        }
    }

    /// Redacts the result and the error.
    fn redact(&mut self, input: &Value, session: &SessionState) {
        if let Some(output) = &mut self.output
            && self.remade
        {
            self.masks.value(output);
        }
        for by in self.policies() {
            let PolicyHandle { reference, policy } = by;
            let PolicyKind::Redact(redact) = &policy.kind else { continue };
            let truth = policy.matcher.eval(&self.view(input, session));
            let application = policy.kind.application(&truth, Phase::Settle);
            if self.hearing.has_listener() {
                self.report_redaction(by, redact, &truth, &self.view(input, session));
            }
            if !application.takes_part() {
                continue;
            }
            let open = application.is_undecided();
            self.trace.note(reference, Phase::Settle, Verdict::Rewrite, open);
            if policy.mode == Mode::Shadow || !redact.output {
                continue;
            }
            let redaction = Redaction::new(redact, self.subject.keys);
            let ending = RedactedParts {
                output: self.output.as_mut(),
                error: self.error.as_mut(),
                message: &mut self.reason.message,
                masks: &mut self.masks,
            };
            if !redaction.ending(input, ending) {
                self.withhold(policy, "the result is nested too deeply to be searched");
            }
            if self.thrown {
                self.reason.code = self.masks.text(&redaction.text(&self.reason.code)).into_owned();
            }
        }
    }

    /// Masks the values that are redacted in results that scripts received, whatever the scripts make of them.
    fn mask_results(&mut self, input: &Value, session: &SessionState) {
        if self.records.results.is_empty() {
            return;
        }
        let view = self.view(input, session);
        let mut masks = Masks::new();
        for redaction in self.subject.redactions(&view).iter().filter(|redaction| redaction.output) {
            self.records.results.iter().for_each(|result| masks.merge(&redaction.changes(result)));
        }
        self.masks = masks;
        self.remade = self.records.results.iter().all(|result| self.output.as_ref() != Some(&**result));
    }

    /// Reports a redaction before it is made.
    fn report_redaction(&self, by: PolicyHandle<'_>, redact: &Redact, truth: &Truth, view: &CallView<'_>) {
        let applies = by.policy.kind.application(truth, Phase::Settle).takes_part();
        let mut after = self.output.clone().filter(|_| redact.output && applies);
        let redaction = Redaction::new(redact, self.subject.keys);
        let hidden = after.as_mut().is_some_and(|after| redaction.value(after));
        let change = self.output.as_ref().zip(after.as_ref()).filter(|_| hidden);
        let evaluation = Evaluation {
            change: change.map(|(before, after)| Change { before, after }),
            ..Evaluation::new(truth, applies.then_some(Verdict::Rewrite))
        };
        self.hearing.report(by, view, evaluation);
    }

    /// Withholds the result of a tool that ran, because it can't be given the form that a policy requires.
    fn withhold(&mut self, policy: &Policy, problem: &str) {
        let message = format!("the tool ran, but its result is withheld: {problem}");
        self.kind = OutcomeKind::Failed;
        self.output = None;
        self.error = Some(message.clone());
        self.reason = Reason {
            policy: Some(policy.id.clone()),
            code: reason_code::OUTPUT_WITHHELD.to_owned(),
            message,
        };
    }

    /// Withholds a result that was not searched completely: it may contain values that policies redact.
    fn withhold_if_work_is_exceeded(&mut self) {
        if !work_limit::is_exceeded() {
            return;
        }
        let message = format!("the call ended, but its result is withheld: {WorkLimitError}");
        if self.kind != OutcomeKind::Indeterminate && self.kind != OutcomeKind::Halted {
            self.kind = OutcomeKind::Failed;
        }
        self.output = None;
        self.error = Some(message.clone());
        self.thrown = false;
        self.reason = Reason { policy: None, code: reason_code::WORK_EXCEEDED.to_owned(), message };
    }

    /// Stores redacted arguments that worked, if a policy may suggest them later.
    fn store_successful_input(&self, input: &Value, session: &mut SessionState) {
        let suggests = || {
            self.policies()
                .iter()
                .any(|by| by.policy.mode != Mode::Shadow && matches!(by.policy.kind, PolicyKind::Recover(_)))
        };
        if self.kind == OutcomeKind::Executed && !self.dry && suggests() {
            let shown = RedactedCall::new(&self.subject, self.view(input, session)).input.into_owned();
            session.add_successful_input(&self.subject.call.tool, shown);
        }
    }

    /// Applies labels of calls that ran, and facts of calls that succeeded.
    fn apply_labels_and_facts(&mut self, input: &Value, session: &mut SessionState) {
        for by in self.policies() {
            let PolicyHandle { reference, policy } = by;
            let acts = match &policy.kind {
                PolicyKind::Label(_) => true,
                // A cached result is one that the tool gave a short while ago.
                PolicyKind::Fact(_) => {
                    matches!(self.kind, OutcomeKind::Executed | OutcomeKind::Cached) && !self.dry
                }
                _ => false,
            };
            if !acts {
                continue;
            }
            let view = self.view(input, session);
            let truth = policy.matcher.eval(&view);
            let application = policy.kind.application(&truth, Phase::Settle);
            let applies = application.takes_part();
            let open = application.is_undecided();
            self.hearing.report(by, &view, Evaluation::new(&truth, applies.then_some(Verdict::Pass)));
            if !applies {
                continue;
            }
            self.trace.note(reference, Phase::Settle, Verdict::Pass, open);
            if policy.mode == Mode::Shadow {
                continue;
            }
            match &policy.kind {
                PolicyKind::Label(label) if open => label.mark_unknown(session),
                PolicyKind::Label(label) => label.apply(session),
                PolicyKind::Fact(fact) if open => fact.mark_unknown(session),
                PolicyKind::Fact(fact) => {
                    let view = self.view(input, session);
                    let found = fact.extract(&view);
                    let masks = match &found {
                        ExtractedFact::Value(key, value) => {
                            RedactedCall::new(&self.subject, view).masks().matching(&json!([key, value]))
                        }
                        ExtractedFact::Absent | ExtractedFact::Unknown => Masks::new(),
                    };
                    fact.store(found, session);
                    session.add_masks(&masks);
                }
                _ => {}
            }
        }
    }
}
