//! Gate: evaluates every policy that may match; the strictest decision counts: halt > deny > suspend > allow.

use smallvec::SmallVec;

use super::CallScope;
use super::approval_requirements::HeldResources;
use super::decision::Effect;
use super::events::{Evaluation, MatchStatus, SkipReason};
use super::limit_requests::{self, LimitRequest};
use super::redacted_call::RedactedCall;
use super::trace::{PolicyHandle, PolicyRef, Trace};
use crate::call::{CallView, CardLabels, Phase, Reason, SessionState, Verdict, reason_code};
use crate::matcher::Truth;
use crate::middleware::{Application, CardTemplates, CountedCalls, Limit, LimitCharge, PolicyKind};
use crate::policy::{Mode, Policy, Unmatched};
use crate::template::Template;

/// The result of gate.
pub(super) struct GateResult {
    pub(super) effect: Effect,
    cause: DecisionCause,
    pub(super) permitted_by: Option<PolicyRef>,
    /// An approval is part of why it may run.
    pub(super) approved: bool,
    /// The policies that require an approval.
    pub(super) approvals: SmallVec<[PolicyRef; 2]>,
    /// The layers that require an approval because nothing in them permits the call.
    pub(super) unmatched: SmallVec<[u32; 1]>,
    pub(super) answer: Option<PolicyRef>,
    pub(super) limits: Vec<LimitRequest>,
}

enum DecisionCause {
    /// Nothing stops the call.
    Nothing,
    /// The arguments are invalid.
    Failure(Reason),
    /// No policy permits it.
    Unmatched,
    /// A policy stops it; with why its condition is undecided, if it is.
    Policy(PolicyRef, Option<String>),
    /// A limit is used up.
    UsedUp(PolicyRef),
}

/// Evaluates the policies of gate. If the arguments are invalid, only those that halt or count every attempt
/// are evaluated: all others are no stricter.
pub(super) fn run(
    subject: &CallScope<'_>,
    view: CallView<'_>,
    failure: Option<Reason>,
    held: HeldResources<'_>,
    trace: &mut Trace,
) -> GateResult {
    let failed = failure.is_some();
    let hearing = subject.recorder(Phase::Gate);
    let mut conclusion = GateResult::new(failure);
    for (layer, (chains, chain)) in (0u32..).zip(subject.layers.iter().zip(&subject.chains)) {
        let mut permitted = false;
        for index in chain.gate.candidates(&view) {
            let Some(policy) = chains.policy(index) else { continue };
            if failed && !concerns_failures(&policy.kind) {
                continue;
            }
            let truth = policy.matcher.eval(&view);
            let by = PolicyHandle { reference: PolicyRef { layer, index }, policy };
            let asked = conclusion.apply_policy(by, &truth, &view, held, trace);
            let verdict = asked.map(|(verdict, _)| verdict);
            hearing.report(by, &view, Evaluation::new(&truth, verdict));
            permitted |= asked.is_some_and(|(_, permits)| permits);
        }
        if !permitted && !failed {
            match chains.defaults().unmatched {
                Unmatched::Allow => {}
                Unmatched::Approval if held.is_approved(layer, None, view.input) => {
                    conclusion.approved = true
                }
                Unmatched::Approval => {
                    conclusion.unmatched.push(layer);
                    conclusion.tighten(Effect::Suspend, DecisionCause::Unmatched);
                }
                Unmatched::Deny => conclusion.tighten(Effect::Deny, DecisionCause::Unmatched),
            }
        }
    }
    hearing.report_rest(subject, &view, |policy| match failed && !concerns_failures(&policy.kind) {
        true => MatchStatus::Skipped(SkipReason::InvalidArguments),
        false => MatchStatus::Excluded,
    });
    conclusion
}

/// Whether a policy is evaluated for calls with invalid arguments.
fn concerns_failures(kind: &PolicyKind) -> bool {
    let counts_them = kind.as_limit().is_some_and(|limit| limit.counted == CountedCalls::Attempts);
    counts_them || matches!(kind, PolicyKind::Halt(_))
}

fn verdict(policy: &Policy) -> Verdict {
    match policy.kind {
        PolicyKind::Deny(_) => Verdict::Deny,
        PolicyKind::Halt(_) => Verdict::Halt,
        PolicyKind::Approval(_) => Verdict::Suspend,
        PolicyKind::Respond(_) => Verdict::Answer,
        _ => Verdict::Pass,
    }
}

impl GateResult {
    fn new(failure: Option<Reason>) -> Self {
        let (effect, cause) = match failure {
            None => (Effect::Run, DecisionCause::Nothing),
            // Arguments that are not an object are denied: nothing in them can be corrected.
            Some(reason) if reason.code == reason_code::INVALID_ARGUMENTS => {
                (Effect::Deny, DecisionCause::Failure(reason))
            }
            Some(reason) => (Effect::Invalid, DecisionCause::Failure(reason)),
        };
        Self {
            effect,
            cause,
            permitted_by: None,
            approved: false,
            approvals: SmallVec::new(),
            unmatched: SmallVec::new(),
            answer: None,
            limits: Vec::new(),
        }
    }

    /// Applies a policy whose condition has this truth. Returns its verdict, and whether it lifts
    /// `defaults.unmatched`; `None` if it does not apply.
    fn apply_policy(
        &mut self,
        by: PolicyHandle<'_>,
        truth: &Truth,
        view: &CallView<'_>,
        held: HeldResources<'_>,
        trace: &mut Trace,
    ) -> Option<(Verdict, bool)> {
        let PolicyHandle { reference, policy } = by;
        // An `approval` whose condition is undecided stops the call, but permits nothing: it does not lift
        // `unmatched`.
        let certain = *truth == Truth::Yes;
        let why = match policy.kind.application(truth, Phase::Gate) {
            Application::No => return None,
            Application::Yes => None,
            Application::Undecided(_, why) => Some(why.to_owned()),
        };
        if let Some(limit) = policy.kind.as_limit() {
            let measured = limit_requests::measure(reference.layer, policy, limit, view);
            let holds = |measure: &LimitCharge| {
                held.limits.iter().any(|pending| pending.policy == reference && pending.measure == *measure)
            };
            if measured.as_ref().is_ok_and(holds) {
                trace.note(reference, Phase::Gate, Verdict::Pass, why.is_some());
                return Some((Verdict::Pass, false));
            }
            let verdict =
                self.apply_limit(reference, policy, measured, view.session, trace, why.is_some())?;
            return Some((verdict, false));
        }
        if let PolicyKind::Approval(_) = policy.kind
            && policy.mode != Mode::Shadow
            && held.is_approved(reference.layer, Some(policy), view.input)
        {
            trace.note(reference, Phase::Gate, Verdict::Pass, why.is_some());
            self.approved = true;
            self.permitted_by.get_or_insert(reference);
            return Some((Verdict::Pass, certain));
        }
        let verdict = verdict(policy);
        // An answer is found here, because it lifts `unmatched`, and acts in the tool's place.
        let phase = if verdict == Verdict::Answer { Phase::Execute } else { Phase::Gate };
        trace.note(reference, phase, verdict, why.is_some());
        let enforced = policy.mode != Mode::Shadow;
        let permits = enforced && self.apply_match(reference, policy, why) && certain;
        Some((verdict, permits))
    }

    /// Applies a limit. What it counts in the session is known; what it counts in the store is acquired later.
    fn apply_limit(
        &mut self,
        reference: PolicyRef,
        policy: &Policy,
        measured: Result<LimitCharge, String>,
        session: &SessionState,
        trace: &mut Trace,
        open: bool,
    ) -> Option<Verdict> {
        let limit = policy.kind.as_limit()?;
        let enforced = policy.mode != Mode::Shadow;
        let (verdict, cause, measure) = match measured {
            Ok(measure) if limit_requests::is_used_up(limit, &measure, session) => {
                (refusing(limit), Some(DecisionCause::UsedUp(reference)), Some(measure))
            }
            Ok(measure) => (Verdict::Pass, None, Some(measure)),
            // If its key or cost is unknown, it may be used up.
            Err(why) => (refusing(limit), Some(DecisionCause::Policy(reference, Some(why))), None),
        };
        trace.note(reference, Phase::Gate, verdict, open || measure.is_none());
        if let Some(cause) = cause.filter(|_| enforced) {
            self.tighten(limit_requests::effect(limit.on_exceed), cause);
        }
        self.limits.extend(measure.map(|measure| LimitRequest { policy: reference, measure }));
        Some(verdict)
    }

    /// Denies a call if it is undecided whether a policy wraps its execution.
    pub(super) fn undecided(&mut self, reference: PolicyRef, why: String) {
        self.tighten(Effect::Deny, DecisionCause::Policy(reference, Some(why)));
    }

    /// Applies a matching policy. Returns whether it lifts `defaults.unmatched`.
    fn apply_match(&mut self, reference: PolicyRef, policy: &Policy, why: Option<String>) -> bool {
        match policy.kind {
            PolicyKind::Deny(_) => self.tighten(Effect::Deny, DecisionCause::Policy(reference, why)),
            PolicyKind::Halt(_) => self.tighten(Effect::Halt, DecisionCause::Policy(reference, why)),
            PolicyKind::Approval(_) => {
                self.approvals.push(reference);
                self.tighten(Effect::Suspend, DecisionCause::Policy(reference, why));
                return true;
            }
            PolicyKind::Respond(_) => {
                self.permitted_by.get_or_insert(reference);
                self.answer.get_or_insert(reference);
                self.tighten(Effect::Answer, DecisionCause::Nothing);
                return true;
            }
            _ => {
                self.permitted_by.get_or_insert(reference);
                return true;
            }
        }
        false
    }

    /// Of two equally strict causes the first is kept.
    fn tighten(&mut self, effect: Effect, cause: DecisionCause) {
        if effect > self.effect {
            self.effect = effect;
            self.cause = cause;
        }
    }

    /// Why the call does not run. Returns `None` if it runs.
    pub(super) fn reason(&self, subject: &CallScope<'_>, view: CallView<'_>) -> Option<Reason> {
        let (code, policy, message) = match &self.cause {
            DecisionCause::Nothing => return None,
            DecisionCause::Failure(reason) => {
                (reason.code.as_str(), reason.policy.clone(), reason.message.clone())
            }
            DecisionCause::Unmatched => {
                let message = match self.effect {
                    Effect::Suspend => {
                        format!("no policy permits `{}` without an approval", subject.call.tool)
                    }
                    _ => format!("no policy permits `{}`", subject.call.tool),
                };
                (reason_code::UNMATCHED, None, message)
            }
            DecisionCause::UsedUp(reference) => {
                let shown = RedactedCall::new(subject, view);
                let mut reason =
                    limit_requests::refusal(subject, subject.policy(*reference)?, None, &shown.view(view))?;
                reason.message = shown.text(&reason.message);
                return Some(reason);
            }
            DecisionCause::Policy(reference, why) => {
                let policy = subject.policy(*reference)?;
                let shown = RedactedCall::new(subject, view);
                let (code, message) = match why {
                    Some(why) => (
                        reason_code::UNDECIDED,
                        format!("`{}` is undecided for this call, so it applies: {why}", policy.id),
                    ),
                    None if self.effect == Effect::Suspend => {
                        (reason_code::APPROVAL_REQUIRED, question(subject, &self.approvals, shown.view(view)))
                    }
                    None => refusal(policy, shown.view(view)),
                };
                (code, Some(policy.id.clone()), message)
            }
        };
        let message = RedactedCall::new(subject, view).text(&message);
        Some(Reason { policy, code: code.to_owned(), message })
    }
}

/// The verdict of a limit that refuses a call.
fn refusing(limit: &Limit) -> Verdict {
    match limit_requests::effect(limit.on_exceed) {
        Effect::Halt => Verdict::Halt,
        _ => Verdict::Deny,
    }
}

/// The code and message of a policy that denies or halts.
fn refusal<'p>(policy: &'p Policy, view: CallView<'_>) -> (&'p str, String) {
    let (code, template) = match &policy.kind {
        PolicyKind::Deny(deny) => (deny.code.as_str(), deny.message.as_ref()),
        PolicyKind::Halt(halt) => (reason_code::HALTED, halt.message.as_ref()),
        _ => (reason_code::DENIED, None),
    };
    (code, message(policy, template, view))
}

/// The message of the approval request: those of all policies that require one.
pub(super) fn question(subject: &CallScope<'_>, approvals: &[PolicyRef], view: CallView<'_>) -> String {
    let questions = approvals.iter().filter_map(|reference| {
        let policy = subject.policy(*reference)?;
        match &policy.kind {
            PolicyKind::Approval(approval) if approval.message.is_none() && policy.description.is_none() => {
                Some(format!(
                    "May `{}` run? The policy `{}` requires an approval.",
                    view.call.tool, policy.id
                ))
            }
            PolicyKind::Approval(approval) => Some(message(policy, approval.message.as_ref(), view)),
            _ => None,
        }
    });
    questions.collect::<Vec<_>>().join(" ")
}

/// The card texts of the first policy that has some.
pub(super) fn card_texts(
    subject: &CallScope<'_>,
    approvals: &[PolicyRef],
    view: CallView<'_>,
    hide: impl Fn(&str) -> String,
) -> CardLabels {
    let mut templates = approvals.iter().filter_map(|reference| match &subject.policy(*reference)?.kind {
        PolicyKind::Approval(approval) if !approval.card.is_empty() => Some(&approval.card),
        _ => None,
    });
    let Some(CardTemplates { title, approve, deny }) = templates.next() else { return CardLabels::default() };
    let title = title.as_ref().map(|template| hide(&template.render(&view, &[]).text));
    CardLabels { title, approve: approve.clone(), deny: deny.clone() }
}

/// A policy's message, or a default one.
fn message(policy: &Policy, template: Option<&Template>, view: CallView<'_>) -> String {
    match (template, &policy.description) {
        (Some(template), _) => template.render(&view, &[]).text,
        (None, Some(description)) => description.clone(),
        (None, None) => format!("`{}` is stopped by the policy `{}`", view.call.tool, policy.id),
    }
}
