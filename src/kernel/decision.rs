//! The decision on one call.

use std::borrow::Cow;
use std::time::Duration;

use smallvec::SmallVec;

use super::policy_reference::{Layers, PolicyRef};
use super::trace::Trace;
use crate::approval::{ApprovalRequirement, Permit, ScriptJournal};
use crate::call::{Effect, Phase, PolicyTrace, Reason, ToolCall, Verdict, reason_code};
use crate::json::{self, Digest, Value};
use crate::middleware::LimitCharge;

/// A limit that a call must acquire before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitRequest {
    pub(crate) policy: PolicyRef,
    pub(crate) measure: LimitCharge,
    /// The call may acquire it whatever is left, because it is approved.
    pub(crate) is_approved: bool,
}

impl LimitRequest {
    /// Whether this is the same amount of the same limit.
    pub(crate) fn is_for(&self, limit: PolicyRef, measure: &LimitCharge) -> bool {
        self.policy == limit && self.measure == *measure
    }
}

/// A policy around the execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapper {
    pub(crate) policy: PolicyRef,
    /// Its place among all that can wrap a call of this tool, the outermost first. It does not depend on the
    /// arguments, so that a wrapper that changes them knows which ones are inside of it.
    pub(crate) order: u32,
}

/// A script's approval request.
#[derive(Clone, Debug)]
pub(super) struct ScriptQuestion {
    /// The script's policy.
    pub(super) policy: PolicyRef,
    pub(super) text: String,
    /// What an approval would permit.
    pub(super) about: Digest,
}

/// An approval that something other than a policy or a script requires: a hook, or earlier approvers of other arguments.
#[derive(Clone, Debug)]
pub(crate) struct ExtraApproval {
    /// Who requires it and who may answer. Its permit is bound to the final arguments of the decision.
    pub(crate) asker: ApprovalRequirement,
    /// What the approver reads.
    pub(crate) text: String,
    /// After how long the request expires.
    pub(crate) expires: Option<Duration>,
}

/// The call of a decision. On the heap if the decision has its own, for few have, and all have room for it.
#[derive(Clone, Debug)]
pub(super) enum DecidedCall<'c> {
    Borrowed(&'c ToolCall),
    Owned(Box<ToolCall>),
}

impl DecidedCall<'_> {
    fn into_owned(self) -> DecidedCall<'static> {
        DecidedCall::Owned(match self {
            Self::Borrowed(call) => Box::new(call.clone()),
            Self::Owned(call) => call,
        })
    }
}

impl std::ops::Deref for DecidedCall<'_> {
    type Target = ToolCall;

    fn deref(&self) -> &ToolCall {
        match self {
            Self::Borrowed(call) => call,
            Self::Owned(call) => call,
        }
    }
}

/// The decision on one call. It borrows the call's arguments unless a policy changed them, and names policies
/// only on request, so that a call that nothing stops costs no allocation.
#[derive(Debug)]
pub struct Decision<'c> {
    pub(super) call: DecidedCall<'c>,
    pub(super) effect: Effect,
    pub(super) reason: Option<Reason>,
    /// The policy that determines the reason, which is made when it is asked for.
    pub(super) fixed_reason: Option<PolicyRef>,
    pub(super) permitted_by: Option<PolicyRef>,
    pub(super) approved: bool,
    pub(super) approvals: SmallVec<[PolicyRef; 2]>,
    pub(super) unmatched: SmallVec<[u32; 1]>,
    pub(super) answer: Option<PolicyRef>,
    /// The limits to acquire before the call runs.
    pub(super) limits: Vec<LimitRequest>,
    /// The policies that wrap the execution, the outermost first.
    pub(super) wrappers: SmallVec<[Wrapper; 2]>,
    /// A request that a script makes.
    pub(super) question: Option<Box<ScriptQuestion>>,
    /// Required approvals beside those of policies.
    pub(super) required: Vec<ExtraApproval>,
    /// A hook's answer in the tool's place, with the hook's id.
    pub(super) given: Option<Box<(String, Value)>>,
    /// The journals of scripts around the call, the innermost first, if one of them stopped it for a person.
    pub(super) journals: Vec<ScriptJournal>,
    pub(super) retry_after: Option<Duration>,
    pub(super) input: Cow<'c, Value>,
    pub(super) trace: Trace,
    pub(super) layers: Layers,
    /// The work units that deciding took. Zero if it was decided for a running call.
    pub(super) work: u64,
}

impl<'c> Decision<'c> {
    /// A call that may run, as far as nothing else is known.
    pub(super) fn new(call: &'c ToolCall) -> Self {
        Self {
            call: DecidedCall::Borrowed(call),
            effect: Effect::Run,
            reason: None,
            fixed_reason: None,
            permitted_by: None,
            approved: false,
            approvals: SmallVec::new(),
            unmatched: SmallVec::new(),
            answer: None,
            limits: Vec::new(),
            wrappers: SmallVec::new(),
            question: None,
            required: Vec::new(),
            given: None,
            journals: Vec::new(),
            retry_after: None,
            input: Cow::Borrowed(&call.input),
            trace: Trace::default(),
            layers: Layers::new(),
            work: 0,
        }
    }

    /// A refusal by no policy.
    pub(crate) fn refused(call: &'c ToolCall, effect: Effect, code: &str, message: &str) -> Self {
        let reason = Reason { policy: None, code: code.to_owned(), message: message.to_owned() };
        Self { effect, reason: Some(reason), ..Self::new(call) }
    }

    /// What the decision does with the call.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Whether the call reaches its tool, or a policy that answers for it.
    pub fn is_permitted(&self) -> bool {
        matches!(self.effect, Effect::Run | Effect::Answer)
    }

    /// The work units that deciding took.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The final arguments.
    pub fn input(&self) -> &Value {
        &self.input
    }

    /// The final arguments, which the call has if no policy changed them.
    pub(crate) fn into_input(self) -> Cow<'c, Value> {
        self.input
    }

    /// Whether a policy changed the arguments.
    #[doc(hidden)]
    pub fn has_changed_input(&self) -> bool {
        matches!(self.input, Cow::Owned(_))
    }

    /// The call with its final arguments, if a policy changed them.
    pub fn changed_call(&self) -> Option<ToolCall> {
        match &self.input {
            Cow::Borrowed(_) => None,
            Cow::Owned(input) => Some(self.call.with_input(input.clone())),
        }
    }

    /// The ids of the limits that are to be acquired before the call runs.
    pub fn pending(&self) -> impl Iterator<Item = &str> {
        self.limits.iter().filter_map(|pending| Some(pending.policy.find(&self.layers)?.id.as_str()))
    }

    /// The call as it was made.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    pub(crate) fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Whether limits are to be acquired before the call runs.
    pub(crate) fn needs_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    pub(crate) fn take_limits(&mut self) -> Vec<LimitRequest> {
        std::mem::take(&mut self.limits)
    }

    pub(crate) fn wrappers(&self) -> &[Wrapper] {
        &self.wrappers
    }

    /// What executes the call: the call as it was made, what wraps it, and the trace that it continues.
    pub(crate) fn execution_parts(&mut self) -> (&ToolCall, &[Wrapper], &mut Trace) {
        (&self.call, &self.wrappers, &mut self.trace)
    }

    pub(crate) fn take_trace(&mut self) -> Trace {
        std::mem::take(&mut self.trace)
    }

    pub(crate) fn put_trace(&mut self, trace: Trace) {
        self.trace = trace;
    }

    /// Corrects the verdict of a policy.
    pub(crate) fn amend(&mut self, policy: PolicyRef, verdict: Verdict) {
        self.trace.amend(policy, verdict);
    }

    /// Adds the verdict of a policy that gate does not evaluate.
    pub(crate) fn note(&mut self, policy: PolicyRef, verdict: Verdict) {
        self.trace.note(policy, Phase::Gate, verdict, false);
    }

    /// Makes the decision stricter.
    pub(crate) fn refuse(&mut self, effect: Effect, reason: Reason, retry_after: Option<Duration>) {
        if effect > self.effect {
            (self.effect, self.reason, self.retry_after) = (effect, Some(reason), retry_after);
            self.fixed_reason = None;
            // The wrappers take no part any more.
            self.trace.forget_wrappers();
        }
    }

    /// The call ran all the same: nothing stops it, answers it or wraps it.
    pub(crate) fn permit(&mut self) {
        self.effect = Effect::Run;
        (self.reason, self.fixed_reason) = (None, None);
        self.approvals.clear();
        self.unmatched.clear();
        self.wrappers.clear();
        self.required.clear();
        (self.answer, self.given, self.question) = (None, None, None);
    }

    /// Suspends the call for a policy's request that is not an `approval` policy's.
    pub(crate) fn ask(&mut self, policy: PolicyRef, reason: Reason, text: String, about: Digest) {
        self.refuse(Effect::Suspend, reason, None);
        self.question = Some(Box::new(ScriptQuestion { policy, text, about }));
    }

    /// The policies that require an approval.
    pub(crate) fn approvals(&self) -> &[PolicyRef] {
        &self.approvals
    }

    /// Requires the approval of a limit that is exceeded, after all others. `reason`: that of a call that was not suspended before.
    pub(crate) fn require_limit_approval(&mut self, limit: PolicyRef, reason: Reason) {
        if let Some(by) = self.fixed_reason.take() {
            self.reason = self.fixed_reason(by);
        }
        self.approvals.push(limit);
        match (self.effect, &mut self.reason) {
            (Effect::Suspend, Some(known)) => known.message = format!("{} {}", known.message, reason.message),
            _ => self.refuse(Effect::Suspend, reason, None),
        }
    }

    /// Requires an approval of the final arguments, unless the call has it already.
    pub(crate) fn require_approval(&mut self, requirement: ExtraApproval, permits: &[Permit]) {
        let mut requirement = requirement;
        let permit = &mut requirement.asker.permit;
        permit.about = json::digest(&self.input);
        if permits.contains(permit) {
            self.approved = true;
            return;
        }
        let reason = Reason {
            policy: permit.policy.clone(),
            code: reason_code::APPROVAL_REQUIRED.to_owned(),
            message: requirement.text.clone(),
        };
        self.refuse(Effect::Suspend, reason, None);
        self.required.push(requirement);
    }

    /// Lets a hook answer in the tool's place, if nothing stops the call.
    pub(crate) fn give(&mut self, by: String, output: Value) {
        if self.effect == Effect::Run {
            self.effect = Effect::Answer;
            self.given = Some(Box::new((by, output)));
            self.trace.forget_wrappers();
        }
    }

    /// Adds the journal of a script around the call.
    pub(crate) fn keep_journal(&mut self, journal: ScriptJournal) {
        self.journals.push(journal);
    }

    /// Takes the journals of scripts around the call.
    pub(crate) fn take_journals(&mut self) -> Vec<ScriptJournal> {
        std::mem::take(&mut self.journals)
    }

    /// The same decision with its own copies of call and arguments.
    pub(crate) fn into_owned(self) -> Decision<'static> {
        Decision {
            call: self.call.into_owned(),
            input: Cow::Owned(self.input.into_owned()),
            effect: self.effect,
            reason: self.reason,
            fixed_reason: self.fixed_reason,
            permitted_by: self.permitted_by,
            approved: self.approved,
            approvals: self.approvals,
            unmatched: self.unmatched,
            answer: self.answer,
            limits: self.limits,
            wrappers: self.wrappers,
            question: self.question,
            required: self.required,
            given: self.given,
            journals: self.journals,
            retry_after: self.retry_after,
            trace: self.trace,
            layers: self.layers,
            work: self.work,
        }
    }

    /// The reason of the decision.
    pub fn reason(&self) -> Reason {
        if let Some(reason) = &self.reason {
            return reason.clone();
        }
        if let Some(reason) = self.fixed_reason.and_then(|by| self.fixed_reason(by)) {
            return reason;
        }
        let named = |reference: Option<PolicyRef>| reference?.find(&self.layers);
        let (answer, permit) = (named(self.answer), named(self.permitted_by));
        let (code, message) = match (answer, permit) {
            (Some(policy), _) => {
                (reason_code::ANSWERED, format!("`{}` answers in the tool's place", policy.id))
            }
            (None, Some(policy)) if self.approved => {
                (reason_code::APPROVED, format!("approved, as `{}` requires", policy.id))
            }
            (None, None) if self.approved => (reason_code::APPROVED, "approved".to_owned()),
            (None, Some(policy)) => (reason_code::ALLOWED, ["`", &policy.id, "` permits it"].concat()),
            (None, None) => (reason_code::UNMATCHED, "no policy stops it".to_owned()),
        };
        Reason { policy: answer.or(permit).map(|policy| policy.id.clone()), code: code.to_owned(), message }
    }

    /// The policies that took part so far, in order.
    pub fn policies(&self) -> Vec<PolicyTrace> {
        self.trace.named(&self.layers)
    }
}
