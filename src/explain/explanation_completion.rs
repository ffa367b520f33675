//! The final pass over an explanation, after the call has ended: adds policies without events, the final verdicts, the decisive step and
//! the texts, and applies late redactions.

use super::effect_phrases::{self, CallEnd};
use super::explanation::Explanation;
use super::explanation_redaction;
use super::step::PolicyStep;
use crate::call::{Masks, Outcome, Phase, Root, Verdict};
use crate::diagnostic::SourceMap;
use crate::json::Value;
use crate::kernel::{Layers, SkipReason, reads_yaml, redact_result};
use crate::middleware::{PolicyKind, Redact};

impl Explanation {
    /// Adds the policies that were not evaluated: policies of the run, and all policies if the session is halted.
    pub(super) fn add_unevaluated(&mut self, layers: &Layers, sources: Option<&SourceMap>) {
        for (layer, policies) in (0u32..).zip(layers) {
            for (index, policy) in (0u32..).zip(policies.policies()) {
                let policy_index = (layer, index);
                if self.steps.iter().any(|step| step.policy_index == policy_index) {
                    continue;
                }
                let phases = [Phase::Normalise, Phase::Gate, Phase::Execute, Phase::Settle];
                let phase = phases.into_iter().find(|phase| policy.kind.is_active_in(*phase));
                self.steps.push(PolicyStep::not_evaluated(
                    policy,
                    policy_index,
                    phase,
                    SkipReason::NotRun,
                    sources,
                ));
            }
        }
    }

    /// Replaces verdicts by the final ones of the outcome, which differ for policies that wrap the execution or count calls.
    pub(super) fn apply_final_verdicts(&mut self, outcome: &Outcome) {
        for step in self.steps.iter_mut().filter(|step| step.verdict.is_some()) {
            let phase = if step.kind == "respond" { Some(Phase::Execute) } else { step.phase };
            let known =
                outcome.policies.iter().find(|known| known.id == step.policy && Some(known.phase) == phase);
            if let Some(known) = known {
                step.verdict = Some(known.verdict);
            }
        }
    }

    /// Marks the step that gave the reason, among those of the policy that gave it.
    pub(super) fn mark_decisive(&mut self) {
        let Some(policy) = &self.reason.policy else { return };
        let of_policy = |step: &PolicyStep| step.policy == *policy && !step.shadow;
        let has_non_pass_verdict =
            |step: &PolicyStep| of_policy(step) && !matches!(step.verdict, None | Some(Verdict::Pass));
        let acts = |step: &PolicyStep| of_policy(step) && step.verdict.is_some();
        let kinds: [&dyn Fn(&PolicyStep) -> bool; 3] = [&has_non_pass_verdict, &acts, &of_policy];
        // A nested call of a script may have been the one that was stopped.
        let again = self.again.iter_mut().rev().flat_map(|again| &mut again.steps);
        let mut steps: Vec<&mut PolicyStep> = self.steps.iter_mut().chain(again).collect();
        let position = kinds.iter().find_map(|matches| steps.iter().position(|step| matches(step)));
        if let Some(step) = position.and_then(|position| steps.get_mut(position)) {
            step.decisive = true;
            self.at.clone_from(&step.at);
        }
    }

    /// Applies the redactions that matched the call only at its end.
    pub(super) fn apply_late_redactions(&mut self, redactions: &[(u32, u32)], layers: &Layers) {
        let redacts: Vec<&Redact> = redactions
            .iter()
            .filter_map(|(layer, index)| match &layers.get(*layer as usize)?.policy(*index)?.kind {
                PolicyKind::Redact(redact) => Some(&**redact),
                _ => None,
            })
            .collect();
        if redacts.is_empty() {
            return;
        }
        let is_yaml = reads_yaml(layers, &self.call.tool);
        let value = |root: Root, value: &mut Value| {
            let is_yaml = is_yaml && root == Root::Output;
            for redact in redacts.iter().filter(|redact| explanation_redaction::applies_to(redact, root)) {
                if redact_result(&redact.redactor, value, is_yaml).is_none() {
                    *value = Value::from(explanation_redaction::WITHHELD);
                }
            }
        };
        let before = self.call.input.clone();
        value(Root::Input, &mut self.call.input);
        let mut masks = Masks::new();
        masks.add_changes(&before, &self.call.input);
        let text = |text: &mut String| {
            for redact in &redacts {
                *text = redact.redactor.redact_text(text).into_owned();
            }
            *text = masks.text(text).into_owned();
        };
        value(Root::Input, &mut self.input);
        for again in &mut self.again {
            value(Root::Input, &mut again.input);
            text(&mut again.reason.message);
        }
        let steps = self.steps.iter_mut().chain(self.again.iter_mut().flat_map(|again| &mut again.steps));
        for step in steps {
            step.problem.iter_mut().for_each(text);
            for change in &mut step.changes {
                let root = if step.phase == Some(Phase::Settle) { Root::Output } else { Root::Input };
                value(root, &mut change.before);
                value(root, &mut change.after);
                text(&mut change.path);
            }
            for used in &mut step.lets {
                used.why.iter_mut().for_each(text);
                used.roots.iter().for_each(|root| value(*root, &mut used.value));
                for shown in &mut used.values {
                    shown.roots.iter().for_each(|root| value(*root, &mut shown.value));
                }
            }
            let Some(condition) = &mut step.condition else { continue };
            condition.each_mut(&mut |part| {
                part.why.iter_mut().for_each(text);
                for shown in &mut part.values {
                    shown.roots.iter().for_each(|root| value(*root, &mut shown.value));
                }
                if let Some(elements) = &mut part.elements
                    && let Some(deciding) = &mut elements.deciding
                {
                    elements.roots.iter().for_each(|root| value(*root, &mut deciding.value));
                }
                if let Some(shell) = &mut part.shell {
                    for root in &shell.roots {
                        shell.commands.iter_mut().for_each(|command| value(*root, &mut command.text));
                    }
                }
                let Some(test) = &mut part.test else { return };
                test.misfit.iter_mut().for_each(text);
                for root in &test.roots {
                    test.found.iter_mut().for_each(|found| value(*root, &mut found.value));
                }
                for operator in &mut test.operators {
                    for root in &operator.operand_roots {
                        value(*root, &mut operator.operand);
                    }
                }
            });
        }
    }

    /// Writes the texts of all steps and of the explanation.
    pub(super) fn write_texts(&mut self, executed: bool) {
        let ended =
            self.outcome.map(|outcome| CallEnd { outcome, was_executed: executed, attempts: self.attempts });
        for step in &mut self.steps {
            step.words = effect_phrases::describe_step(step, ended);
        }
        for step in self.again.iter_mut().flat_map(|again| &mut again.steps) {
            step.words = effect_phrases::describe_step(step, None);
        }
        self.why = effect_phrases::describe_conclusion(self);
    }
}
