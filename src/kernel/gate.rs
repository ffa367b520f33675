//! Gate: evaluates every policy that may match; the strictest decision counts: halt > deny > suspend > allow.

use smallvec::SmallVec;

use super::CallScope;
use super::approval_requirements::HeldResources;
use super::decision::LimitRequest;
use super::events::{MatchStatus, SkipReason};
use super::limit_requests;
use super::phase_recorder::{Evaluation, PhaseRecorder};
use super::policy_reference::{PolicyHandle, PolicyRef};
use super::redacted_call::RedactedCall;
use crate::call::Effect;
use crate::call::{CallView, Phase, Reason, Verdict, reason_code};
use crate::matcher::Truth;
use crate::middleware::{Application, CountedCalls, Limit, Missing, PolicyKind, Require, describe_missing};
use crate::policy::{Mode, ScalarEvaluator, Unmatched};
use crate::script::ScriptFinding;

/// The result of gate.
pub(super) struct GateResult {
    pub(super) effect: Effect,
    pub(super) cause: Option<DecisionCause>,
    pub(super) permitted_by: Option<PolicyRef>,
    /// An approval is part of why it may run.
    pub(super) approved: bool,
    /// The policies that require an approval: the decided ones, then those whose condition is undecided, then limits.
    pub(super) approvals: SmallVec<[PolicyRef; 2]>,
    undecided_approvals: SmallVec<[PolicyRef; 2]>,
    /// The limits that are used up and require an approval.
    limit_approvals: SmallVec<[PolicyRef; 1]>,
    /// The layers that require an approval because nothing in them permits the call.
    pub(super) unmatched: SmallVec<[u32; 1]>,
    pub(super) answer: Option<PolicyRef>,
    pub(super) limits: Vec<LimitRequest>,
}

/// Why a call does not run.
pub(super) enum DecisionCause {
    /// The arguments are invalid.
    Failure(Reason),
    /// No policy permits it.
    Unmatched,
    /// A policy stops it; with why its condition is undecided, if it is.
    Policy(PolicyRef, Option<String>),
    /// Values that a policy requires are missing.
    Missing(PolicyRef, Vec<String>),
    /// A limit is used up.
    UsedUp(PolicyRef),
}

impl DecisionCause {
    /// Whether the call does not run because a policy cannot be evaluated.
    fn is_undecided(&self) -> bool {
        matches!(self, Self::Policy(_, Some(_)))
    }
}

/// Evaluates the policies of gate. If the arguments are invalid, only those that halt or count every attempt
/// are evaluated: all others are no stricter.
pub(super) fn run(
    subject: &CallScope<'_>,
    view: CallView<'_>,
    failure: Option<Reason>,
    held: HeldResources<'_>,
    recorder: &PhaseRecorder<'_>,
) -> GateResult {
    let failed = failure.is_some();
    let mut result = GateResult::new(failure);
    for (layer, (policies, chain)) in (0u32..).zip(subject.layers.iter().zip(&subject.chains)) {
        let mut permitted = false;
        let scalars = ScalarEvaluator::new(policies.scalar_conditions(), view);
        for index in chain.gate.candidates(&view) {
            let Some(policy) = policies.policy(index) else { continue };
            if failed && !concerns_failures(&policy.kind) {
                continue;
            }
            // A listener is notified of why a condition does not hold.
            let holds = if recorder.has_listener() { None } else { scalars.holds(index) };
            let truth = match holds {
                Some(false) => continue,
                Some(true) => Truth::Yes,
                None => policy.matcher.eval(&view),
            };
            let by = PolicyHandle { reference: PolicyRef { layer, index }, policy };
            let is_decided = matches!(truth, Truth::Yes | Truth::Absent);
            let applied = result.apply_policy(by, &truth, &view, held);
            if let Some(script) = policy.kind.script().filter(|script| is_decided && script.prints()) {
                // It runs for the call as it may be shown, so that it cannot print a redacted value in another form.
                let redacted = RedactedCall::new(subject, view);
                let lines = script.printed(&redacted.view(view)).into_iter();
                recorder.note_printed(by.reference, lines.map(|line| redacted.text(&line)).collect());
            }
            let evaluation = Evaluation::new(&truth, applied.as_ref().map(|applied| applied.verdict));
            let undecided = applied.as_ref().is_some_and(|applied| applied.undecided);
            let problem = applied.as_ref().and_then(|applied| applied.problem.as_deref());
            recorder.record(by, &view, Evaluation { undecided, problem, ..evaluation });
            permitted |= applied.is_some_and(|applied| applied.permits);
        }
        if !permitted && !failed {
            match policies.defaults().unmatched_for(&subject.call.tool) {
                Unmatched::Allow => {}
                Unmatched::Approval if held.is_approved(layer, None, view.input) => result.approved = true,
                Unmatched::Approval => {
                    result.unmatched.push(layer);
                    result.tighten(Effect::Suspend, Some(DecisionCause::Unmatched));
                }
                Unmatched::Deny => result.tighten(Effect::Deny, Some(DecisionCause::Unmatched)),
            }
        }
    }
    result.approvals.append(&mut result.undecided_approvals);
    if let Some(limit) = result.limit_approvals.first().copied() {
        result.tighten(Effect::Suspend, Some(DecisionCause::UsedUp(limit)));
        result.approvals.append(&mut result.limit_approvals);
    }
    recorder.report_rest(subject, &view, |policy| match failed && !concerns_failures(&policy.kind) {
        true => MatchStatus::Skipped(SkipReason::InvalidArguments),
        false => MatchStatus::Excluded,
    });
    result
}

/// Whether a policy is evaluated for calls with invalid arguments.
fn concerns_failures(kind: &PolicyKind) -> bool {
    let counts_them = kind.as_limit().is_some_and(|limit| limit.counted == CountedCalls::Attempts);
    counts_them || matches!(kind, PolicyKind::Halt(_))
}

/// What a policy does in gate.
struct AppliedPolicy {
    verdict: Verdict,
    /// It lifts `defaults.unmatched`.
    permits: bool,
    /// It applies because it can't be evaluated.
    undecided: bool,
    /// What it found, beside its condition.
    problem: Option<String>,
}

impl GateResult {
    fn new(failure: Option<Reason>) -> Self {
        let (effect, cause) = match failure {
            None => (Effect::Run, None),
            // Arguments that are not an object are denied: nothing in them can be corrected.
            Some(reason) if reason.code == reason_code::INVALID_ARGUMENTS => {
                (Effect::Deny, Some(DecisionCause::Failure(reason)))
            }
            Some(reason) => (Effect::Invalid, Some(DecisionCause::Failure(reason))),
        };
        Self {
            effect,
            cause,
            permitted_by: None,
            approved: false,
            approvals: SmallVec::new(),
            undecided_approvals: SmallVec::new(),
            limit_approvals: SmallVec::new(),
            unmatched: SmallVec::new(),
            answer: None,
            limits: Vec::new(),
        }
    }

    /// Applies a policy whose condition has this truth. Returns `None` if it does not apply.
    fn apply_policy(
        &mut self,
        by: PolicyHandle<'_>,
        truth: &Truth,
        view: &CallView<'_>,
        held: HeldResources<'_>,
    ) -> Option<AppliedPolicy> {
        let PolicyHandle { reference, policy } = by;
        let why = match policy.kind.application(truth, Phase::Gate) {
            Application::No => return None,
            Application::Yes => None,
            Application::Undecided(_, why) => Some(why.to_owned()),
        };
        let finding = policy.kind.script().filter(|_| why.is_none()).map(|script| script.evaluate(view));
        let problem = match &finding {
            Some(ScriptFinding::NoMatch) => {
                let problem = Some("its script returns no match".to_owned());
                return Some(AppliedPolicy {
                    verdict: Verdict::Pass,
                    permits: false,
                    undecided: false,
                    problem,
                });
            }
            Some(ScriptFinding::Undecided(why)) => Some(why.clone()),
            Some(ScriptFinding::Match(_)) | None => None,
        };
        let is_matched = *truth == Truth::Yes && problem.is_none();
        let why = why.or_else(|| problem.clone());
        let undecided = why.is_some();
        if let Some(limit) = policy.kind.as_limit() {
            return Some(self.apply_limit(by, limit, view, held, undecided));
        }
        let is_enforced = policy.mode != Mode::Shadow;
        if let (PolicyKind::Require(require), None) = (&policy.kind, &why) {
            return self.apply_require(by, require, view);
        }
        let verdict = match policy.kind {
            PolicyKind::Deny(_) | PolicyKind::Require(_) => Verdict::Deny,
            PolicyKind::Halt(_) => Verdict::Halt,
            PolicyKind::Approval(_)
                if is_enforced && held.is_approved(reference.layer, Some(policy), view.input) =>
            {
                self.approved = true;
                Verdict::Pass
            }
            PolicyKind::Approval(_) => Verdict::Suspend,
            PolicyKind::Respond(_) => Verdict::Answer,
            _ => Verdict::Pass,
        };
        if is_enforced {
            let cause = Some(DecisionCause::Policy(reference, why));
            match verdict {
                Verdict::Deny => self.tighten(Effect::Deny, cause),
                Verdict::Halt => self.tighten(Effect::Halt, cause),
                Verdict::Suspend => {
                    match undecided {
                        true => self.undecided_approvals.push(reference),
                        false => self.approvals.push(reference),
                    }
                    self.tighten(Effect::Suspend, cause);
                }
                Verdict::Answer => {
                    self.permitted_by.get_or_insert(reference);
                    self.answer.get_or_insert(reference);
                    self.tighten(Effect::Answer, None);
                }
                Verdict::Pass | Verdict::Rewrite => {
                    self.permitted_by.get_or_insert(reference);
                }
            }
        }
        // An `approval` whose condition is undecided stops the call, but permits nothing: it does not lift
        // `unmatched`.
        let lifts = !matches!(verdict, Verdict::Deny | Verdict::Halt) && is_matched;
        Some(AppliedPolicy { verdict, permits: is_enforced && lifts, undecided, problem })
    }

    /// Denies a call that lacks values which a policy requires, or for which that is unknown. Returns `None` if it has them.
    fn apply_require(
        &mut self,
        by: PolicyHandle<'_>,
        require: &Require,
        view: &CallView<'_>,
    ) -> Option<AppliedPolicy> {
        let missing = require.find_missing(view);
        let applied =
            AppliedPolicy { verdict: Verdict::Deny, permits: false, undecided: false, problem: None };
        let (cause, applied) = match missing {
            Missing::Nothing => return None,
            Missing::Values(values) => {
                let problem = Some(describe_missing(&values));
                (DecisionCause::Missing(by.reference, values), AppliedPolicy { problem, ..applied })
            }
            Missing::Undecided(why) => {
                let cause = DecisionCause::Policy(by.reference, Some(why.clone()));
                (cause, AppliedPolicy { undecided: true, problem: Some(why), ..applied })
            }
        };
        if by.policy.mode != Mode::Shadow {
            self.tighten(Effect::Deny, Some(cause));
        }
        Some(applied)
    }

    /// Applies a limit. What it counts in the session is known; what it counts in the store is acquired later.
    fn apply_limit(
        &mut self,
        by: PolicyHandle<'_>,
        limit: &Limit,
        view: &CallView<'_>,
        held: HeldResources<'_>,
        undecided: bool,
    ) -> AppliedPolicy {
        let PolicyHandle { reference, policy } = by;
        let applied =
            |verdict, undecided| AppliedPolicy { verdict, permits: false, undecided, problem: None };
        let is_enforced = policy.mode != Mode::Shadow;
        let is_approved = is_enforced
            && policy.kind.as_approval().is_some()
            && held.is_approved(reference.layer, Some(policy), view.input);
        let (effect, cause, measure) = match limit_requests::measure(reference.layer, policy, limit, view) {
            Ok(measure) if held.holds_limit(reference, &measure) => return applied(Verdict::Pass, undecided),
            Ok(measure) if limit_requests::is_unknown(limit, view.session) => {
                let effect = limit_requests::undecided_effect(&limit.on_exceed);
                (effect, Some(DecisionCause::UsedUp(reference)), Some(measure))
            }
            Ok(measure) if !is_approved && limit_requests::is_used_up(limit, &measure, view.session) => {
                let effect = limit_requests::effect(&limit.on_exceed);
                (effect, Some(DecisionCause::UsedUp(reference)), Some(measure))
            }
            Ok(measure) => (Effect::Run, None, Some(measure)),
            // If its key or cost is unknown, it may be used up.
            Err(why) => {
                let effect = limit_requests::undecided_effect(&limit.on_exceed);
                (effect, Some(DecisionCause::Policy(reference, Some(why))), None)
            }
        };
        let verdict = if cause.is_some() { limit_requests::verdict(effect) } else { Verdict::Pass };
        match cause {
            Some(_) if !is_enforced => {}
            // It joins the approvals that other policies require.
            Some(_) if effect == Effect::Suspend => self.limit_approvals.push(reference),
            Some(_) => self.tighten(effect, cause),
            None if is_approved => {
                self.approved = true;
                self.permitted_by.get_or_insert(reference);
            }
            None => {}
        }
        let undecided = undecided || measure.is_none();
        self.limits.extend(measure.map(|measure| LimitRequest { policy: reference, measure, is_approved }));
        applied(verdict, undecided)
    }

    /// Denies a call if it is undecided whether a policy wraps its execution.
    pub(super) fn refuse_undecided(&mut self, reference: PolicyRef, why: String) {
        self.tighten(Effect::Deny, Some(DecisionCause::Policy(reference, Some(why))));
    }

    /// Of two equally strict causes a decided one is kept before an undecided one, and then the first. A limit is no clearer than an
    /// undecided cause: it counts as used up, too, if it is unknown how much was used.
    fn tighten(&mut self, effect: Effect, cause: Option<DecisionCause>) {
        let is_undecided =
            |cause: &Option<DecisionCause>| cause.as_ref().is_some_and(DecisionCause::is_undecided);
        let is_clear = !is_undecided(&cause) && !matches!(cause, Some(DecisionCause::UsedUp(_)));
        let is_clearer = effect == self.effect && is_undecided(&self.cause) && is_clear;
        if effect > self.effect || is_clearer {
            self.effect = effect;
            self.cause = cause;
        }
    }
}
