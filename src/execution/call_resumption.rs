//! Resumes a call that is pending, or that the ledger knows: request + answers + ledger entry → `Outcome`.
//!
//! [`next_step`] is the transition table: it decides from what is known, and does nothing. [`CallRunner::resume_call`] is the one loop that
//! carries the steps out. Every step is strict: a request that is not provably ours does not count, an answer counts only for its own
//! request, and the call is decided again under the present rules.

use std::borrow::Cow;
use std::time::Instant;

use jiff::Timestamp;

use super::CallAttempt;
use super::approval_verification::{
    EntrySnapshot, InvalidRequest, PendingCall, ResumeContext, VerifiedRequest, refusal,
};
use super::approved_call::{ApprovedRequest, NOT_AGAIN, RunResult};
use super::call_runner::{CallRunner, OtherRunner, unavailable_ledger, unfinished};
use crate::approval::{BoundRequest, CallStage, IgnoredAnswer, LedgerEntry, LedgerError, Tally};
use crate::call::{ApprovalDecision, ApprovalRequest, Outcome, OutcomeKind, Reason, ToolCall, reason_code};
use crate::host::EngineEventKind;
use crate::host::{ToolExecutor, catch_panic};
use crate::kernel::{Effect, HeldResources};

/// How often a call is read again when others change its entry meanwhile.
const MAX_CONFLICTS: usize = 8;

/// The outcome of a call that resumed.
pub(crate) struct ResumedCall {
    pub(crate) outcome: Box<Outcome>,
    /// Answers that do not count.
    pub(crate) ignored: Vec<IgnoredAnswer>,
}

impl From<Box<Outcome>> for ResumedCall {
    fn from(outcome: Box<Outcome>) -> Self {
        Self { outcome, ignored: Vec::new() }
    }
}

/// A verified request with the tally of its answers.
struct Tallied {
    verified: VerifiedRequest,
    tally: Tally,
    ignored: Vec<IgnoredAnswer>,
}

/// What is to be done with a call that resumes.
#[derive(Debug)]
enum NextStep {
    /// Another runner has claimed or settled it.
    WaitForOther(Box<LedgerEntry>),
    /// Its request does not count.
    RequestAgain(InvalidRequest),
    /// Nobody has decided yet.
    StayPending { is_early: bool },
    /// The run was halted meanwhile.
    Cancel,
    /// The approvers denied it, ended the run, or let the request expire.
    Deny(ApprovalDecision),
    /// The approvers approved it, or answered in its place.
    Run(ApprovalDecision),
}

/// The next step of a call, from its ledger entry, its request with the answers, and whether the run is halted.
fn next_step(
    entry: Option<&LedgerEntry>,
    request: Result<&Tallied, InvalidRequest>,
    is_halted: bool,
    now: Timestamp,
) -> NextStep {
    if let Some(entry) = entry
        && !matches!(entry.stage, CallStage::Waiting)
    {
        return NextStep::WaitForOther(Box::new(entry.clone()));
    }
    let Tallied { verified, tally, .. } = match request {
        Ok(tallied) => tallied,
        Err(why) => return NextStep::RequestAgain(why),
    };
    match verified.decision(tally, now) {
        _ if is_halted => NextStep::Cancel,
        None => NextStep::StayPending { is_early: verified.is_early(now) },
        Some(decision) if decision.approved => NextStep::Run(decision),
        Some(decision) => NextStep::Deny(decision),
    }
}

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Resumes a call that is pending, or that the ledger knows. If Callgate itself fails, nobody knows how far the call came.
    pub(crate) async fn resume_call(
        &mut self,
        call: &ToolCall,
        pending: PendingCall<'_>,
        started: Instant,
    ) -> ResumedCall {
        let ledger = self.context.ledger(call);
        let PendingCall { key, messages, entry } = pending;
        let resume = ResumeContext { ledger: &ledger, call, key, messages, started };
        match catch_panic(Box::pin(self.resume_guarded(resume, entry))).await {
            Ok(resumed) => resumed,
            Err(_) => {
                let reason = unfinished("Callgate failed while it resumed this call");
                self.indeterminate_call(call, reason, started).await.into()
            }
        }
    }

    async fn resume_guarded(
        &mut self,
        resume: ResumeContext<'_>,
        mut snapshot: EntrySnapshot,
    ) -> ResumedCall {
        let ResumeContext { ledger, call, key, messages, started } = resume;
        for _ in 0..MAX_CONFLICTS {
            let (found, is_earlier) = match std::mem::take(&mut snapshot) {
                EntrySnapshot::Read(entry) => (Ok(entry.map(|entry| *entry)), true),
                EntrySnapshot::Unread => (ledger.find(key).await, false),
            };
            let entry = match found {
                Ok(entry) => entry.filter(|entry| entry.is_for_call(call)),
                Err(error) => return self.without_ledger(resume, &error).await,
            };
            let services = self.context.services;
            let request = services
                .verify_request(self.context.approval_conversation(), call, messages, entry.as_ref())
                .map(|verified| {
                    let (tally, ignored) = services.tally(&verified);
                    Tallied { verified, tally, ignored }
                });
            let (request, step) = match request {
                Ok(tallied) => {
                    let is_halted = self.state.halt_message().is_some();
                    let step = next_step(entry.as_ref(), Ok(&tallied), is_halted, services.clock.now());
                    (Some(tallied), step)
                }
                Err(why) => (None, next_step(entry.as_ref(), Err(why), false, services.clock.now())),
            };
            // Whatever compares no version is decided by the present entry.
            if is_earlier && !matches!(step, NextStep::Run(_)) {
                continue;
            }
            let result = match (step, request) {
                (NextStep::WaitForOther(entry), _) => {
                    return self.resume_after_other(resume, *entry).await.into();
                }
                (NextStep::RequestAgain(why), _) => return self.request_again(resume, &why).await,
                (step, Some(tallied)) => self.apply_answers(resume, entry, step, tallied).await,
                (_, None) => Err(Conflict),
            };
            if let Ok(resumed) = result {
                return resumed;
            }
        }
        let reason =
            unfinished("the call was changed by too many writers while it resumed; resume the session again");
        self.indeterminate_call(call, reason, started).await.into()
    }

    async fn resume_after_other(&mut self, resume: ResumeContext<'_>, entry: LedgerEntry) -> Box<Outcome> {
        let ResumeContext { call, key, started, .. } = resume;
        let hooked = super::HookedCall::untouched(call.clone());
        let attempt = CallAttempt {
            entry: Some(entry.clone()),
            at_most_once: true,
            ..CallAttempt::new(&hooked, Cow::Borrowed(key), started)
        };
        match self.wait_for_other_runner(&attempt, entry).await {
            OtherRunner::Ended(outcome) => outcome,
            OtherRunner::Abandoned(entry) => self.run_abandoned(call, key, *entry, started).await,
            OtherRunner::Unknown(message) => {
                self.indeterminate_call(call, unfinished(message), started).await
            }
        }
    }

    /// Records the answers, and carries out what they result in. Errors: others changed the call's entry meanwhile.
    async fn apply_answers(
        &mut self,
        resume: ResumeContext<'_>,
        entry: Option<LedgerEntry>,
        step: NextStep,
        tallied: Tallied,
    ) -> Result<ResumedCall, Conflict> {
        let ResumeContext { ledger, call, key, started, .. } = resume;
        let Tallied { verified, tally, ignored } = tallied;
        let resumed = |outcome: Box<Outcome>| ResumedCall { outcome, ignored: ignored.clone() };
        if let NextStep::StayPending { is_early } = step {
            let why =
                is_early.then(|| "the approval request was made later than the present time".to_owned());
            return Ok(resumed(self.pending(call, verified.request(), why)));
        }
        // Answers are recorded before anything is done about them.
        let mut entry = match self.context.services.record_answers(resume, entry, &verified, &ignored).await {
            Ok(Some(entry)) => entry,
            Ok(None) => return Err(Conflict),
            Err(error) => return Ok(resumed(self.stay_pending(resume, verified.request(), &error).await)),
        };
        if let NextStep::Deny(decision) = &step {
            self.notify_of_decision(resume, &mut entry, decision).await;
        }
        let (decision, effect) = match step {
            NextStep::Run(decision) => {
                let question = verified.question;
                let decided = Some(decision).filter(|_| !self.context.services.observers.is_empty());
                let approved = ApprovedRequest { question, tally, entry, decided, holds_claim: false };
                return match self.run_approved(resume, approved).await {
                    RunResult::Ended(outcome) => Ok(resumed(outcome)),
                    RunResult::Conflict | RunResult::NotAllowed => Err(Conflict),
                };
            }
            NextStep::Deny(decision) if decision.code == reason_code::CANCELLED => {
                (Some(decision), Effect::Halt)
            }
            NextStep::Deny(decision) => (Some(decision), Effect::Deny),
            NextStep::Cancel => (None, Effect::Halt),
            NextStep::StayPending { .. } | NextStep::WaitForOther(_) | NextStep::RequestAgain(_) => {
                return Err(Conflict);
            }
        };
        let reason = match &decision {
            Some(decision) => {
                refusal(&verified.question, &decision.code, &decision.by, decision.reason.clone())
            }
            None => refusal(&verified.question, reason_code::CANCELLED, &[], None),
        };
        let hooked = self.run_before_hooks(verified.question.current_call(call).into()).await;
        let attempt = CallAttempt {
            entry: Some(entry),
            at_most_once: true,
            ..CallAttempt::new(&hooked, Cow::Borrowed(key), started)
        };
        let mut outcome = self.deny(&attempt, effect, reason).await;
        // Who ends the run aborts this call; its other calls are halted.
        if decision.is_some() && effect == Effect::Halt && outcome.outcome == OutcomeKind::Halted {
            outcome.outcome = OutcomeKind::Aborted;
            let _ = ledger.record_refusal(key, &attempt.ledger_entry(), &outcome).await;
        }
        Ok(resumed(outcome))
    }

    /// Notifies observers of the approvers' decision, once.
    pub(super) async fn notify_of_decision(
        &mut self,
        resume: ResumeContext<'_>,
        entry: &mut LedgerEntry,
        decision: &ApprovalDecision,
    ) {
        let ResumeContext { ledger, call, key, .. } = resume;
        if self.context.services.observers.is_empty() || entry.decision_told {
            return;
        }
        if self.context.services.is_new_decision(ledger, key).await {
            self.context.observe(call, self.state, EngineEventKind::ApprovalDecided(decision));
        }
        entry.forget_version();
    }

    /// A call whose request does not count: it is asked about again, or denied. It does not run by rules that would not ask any more, for
    /// nobody knows who wrote the request into the history.
    async fn request_again(&mut self, resume: ResumeContext<'_>, why: &InvalidRequest) -> ResumedCall {
        let ResumeContext { call, key, started, .. } = resume;
        let hooked = self.run_before_hooks(call.clone().into()).await;
        let mut decision = hooked.decide(&self.context.kernel, self.state, HeldResources::default());
        let message = format!("the approval request of this call is invalid: {why}");
        // What the ledger knows under the key is not about this request.
        let only_asks = Some(message.clone());
        let attempt = CallAttempt { only_asks, ..CallAttempt::new(&hooked, Cow::Borrowed(key), started) };
        // A request that is not ours starts no script: nobody knows who wrote it.
        let may_ask = matches!(why, InvalidRequest::OtherContext(_))
            && decision.effect() == Effect::Run
            && !decision.wrappers().is_empty();
        if decision.is_permitted() && !may_ask {
            let code = reason_code::APPROVAL_INVALID.to_owned();
            decision.refuse(Effect::Deny, Reason { policy: None, code, message }, None);
        }
        let outcome = match may_ask {
            // A script around it may ask again.
            true => match self.run_decided(&attempt, decision).await {
                Ok(outcome) => outcome,
                Err(_) => self.indeterminate(&attempt, unfinished(NOT_AGAIN)),
            },
            false => self.refuse(&attempt, decision).await,
        };
        let ignored = IgnoredAnswer {
            index: 0,
            approval_id: attempt.approval_id(),
            code: "invalid_question",
            why: why.to_string(),
        };
        ResumedCall { outcome: self.finish(&attempt, outcome).await, ignored: vec![ignored] }
    }

    /// A call that stays pending under its request.
    fn pending(&self, call: &ToolCall, request: ApprovalRequest, why: Option<String>) -> Box<Outcome> {
        let message = why.or_else(|| request.message.clone()).unwrap_or_default();
        let policy = request.policies.first().cloned();
        let reason = Reason { policy, code: reason_code::APPROVAL_REQUIRED.to_owned(), message };
        let of = (call.id.as_str(), call.tool.as_str());
        let (input, revision) = (request.input.clone(), self.context.kernel.revision());
        Box::new(Outcome {
            approval: Some(Box::new(request)),
            replayed: true,
            ..Outcome::new(of, OutcomeKind::Suspended, input, reason, revision)
        })
    }

    /// A call that stays pending as long as the ledger does not answer. If the store was altered, nobody knows whether it ran.
    pub(super) async fn stay_pending(
        &mut self,
        resume: ResumeContext<'_>,
        request: ApprovalRequest,
        error: &LedgerError,
    ) -> Box<Outcome> {
        let reason = unavailable_ledger(error);
        if reason.code == reason_code::STATE_ALTERED {
            return self.indeterminate_call(resume.call, reason, resume.started).await;
        }
        self.pending(resume.call, request, Some(reason.message))
    }

    /// A call whose ledger does not answer: it stays pending if its request is ours, and is denied otherwise.
    async fn without_ledger(&mut self, resume: ResumeContext<'_>, error: &LedgerError) -> ResumedCall {
        let ResumeContext { call, key, messages, started, .. } = resume;
        let keys = &self.context.services.keys;
        match messages.request.and_then(|request| BoundRequest::open(request, keys).ok().zip(Some(request))) {
            _ if error.code() == reason_code::STATE_ALTERED => {
                self.indeterminate_call(call, unavailable_ledger(error), started).await.into()
            }
            Some((question, request)) => {
                let token = request.approval_token.clone();
                let request = ApprovalRequest { approval_token: token, ..question.request };
                self.stay_pending(resume, request, error).await.into()
            }
            None => self.deny_unavailable(call, key, error, started).await.into(),
        }
    }
}

/// Others changed the call's entry meanwhile: it is read again.
struct Conflict;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{self, json};

    fn entry(stage: CallStage) -> LedgerEntry {
        let mut entry = LedgerEntry::new("c1", "pay", json::digest(&json!({})));
        entry.stage = stage;
        entry
    }

    #[test]
    fn started_call_is_waited_for_whatever_its_request() {
        let now = Timestamp::UNIX_EPOCH;
        let invalid = || Err(InvalidRequest::NotOurs("forged".to_owned()));
        let claimed = entry(CallStage::Claimed { at: now });
        for is_halted in [true, false] {
            let step = next_step(Some(&claimed), invalid(), is_halted, now);
            assert!(matches!(step, NextStep::WaitForOther(_)), "{step:?}");
        }
    }

    #[test]
    fn invalid_request_is_made_again_and_never_runs_its_call() {
        let now = Timestamp::UNIX_EPOCH;
        for known in [None, Some(entry(CallStage::Waiting))] {
            let step =
                next_step(known.as_ref(), Err(InvalidRequest::NotOurs("forged".to_owned())), true, now);
            assert!(matches!(step, NextStep::RequestAgain(_)), "{step:?}");
        }
    }
}
