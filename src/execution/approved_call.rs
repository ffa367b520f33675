//! Runs a call that people approved: hooks and policies decide it again, and it runs with the approved arguments or not at all.

use std::borrow::Cow;
use std::time::Instant;

use super::approval_requests::same_question;
use super::approval_verification::{ApprovalMessages, ResumeContext, VerifiedRequest};
use super::argument_revalidation::Edit;
use super::call_runner::unfinished;
use super::{CallAttempt, CallRunner, ClaimError};
use crate::approval::{
    ApprovalRequirement, BoundRequest, Grant, GrantKey, Ledger, LedgerEntry, LedgerKey, Permit, Tally,
};
use crate::call::{ApprovalDecision, ApprovalRecord, Outcome, ToolCall};
use crate::host::ToolExecutor;
use crate::json::{self, Value};
use crate::kernel::{CallResponse, Effect, ExtraApproval};

/// The reason of a call that began once and may not begin again.
pub(super) const NOT_AGAIN: &str =
    "an earlier run of this call started and was never settled, and the rules do not allow another run";

/// The request if hooks or transforms make other arguments of a call than those that were approved.
const CHANGED: &str = "The arguments are not those that were approved. May the call run with these?";

/// The result of an attempt to run an approved call.
pub(super) enum RunResult {
    Ended(Box<Outcome>),
    /// Others changed the call's entry meanwhile.
    Conflict,
    /// It is claimed, and may not run any more.
    NotAllowed,
}

/// A request whose answers let its call run.
pub(super) struct ApprovedRequest {
    pub(super) question: BoundRequest,
    pub(super) tally: Tally,
    pub(super) entry: LedgerEntry,
    /// The approvers' decision, if observers are to be notified of it.
    pub(super) decided: Option<ApprovalDecision>,
    /// The call is claimed already.
    pub(super) holds_claim: bool,
}

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Runs a call that people approved, or settles it with the result that they gave in its place.
    pub(super) async fn run_approved(
        &mut self,
        resume: ResumeContext<'_>,
        approved: ApprovedRequest,
    ) -> RunResult {
        let ResumeContext { ledger, call, key, started, .. } = resume;
        let ApprovedRequest { question, tally, mut entry, mut decided, holds_claim } = approved;
        let (by, edited, output) = match tally {
            Tally::Approved { by, edited, .. } => (by, edited, None),
            Tally::Answered { by, output } => (by, None, Some(output)),
            Tally::Pending { .. } | Tally::Denied { .. } | Tally::Cancelled { .. } => {
                return RunResult::NotAllowed;
            }
        };
        let mut hooked = self.run_before_hooks(question.current_call(call).into()).await;
        let mut permits = question.granted.clone();
        let mut approved_input = question.execution_input;
        let mut input: Option<Value> = question.edited_input.clone();
        let approvals = question.requirements.iter().map(|asker| asker.permit.clone());
        match edited.as_ref().map(|given| self.edit(&hooked, &question, given)) {
            None | Some(Ok(Edit::Outdated)) => permits.extend(approvals),
            Some(Ok(Edit::Input(edited))) => {
                approved_input = json::digest(&edited);
                permits.extend(approvals.map(|permit| Permit { about: approved_input, ..permit }));
                hooked = self.run_before_hooks(call.with_input(edited.clone()).into()).await;
                input = Some(edited);
            }
            Some(Err(reason)) => {
                if let Some(decided) = &decided {
                    self.notify_of_decision(resume, &mut entry, decided).await;
                }
                let attempt = CallAttempt {
                    entry: Some(entry),
                    at_most_once: true,
                    holds_claim,
                    edited: input,
                    ..CallAttempt::new(&hooked, Cow::Borrowed(key), started)
                };
                return RunResult::Ended(self.deny(&attempt, Effect::Invalid, reason).await);
            }
        }
        let mut attempt = CallAttempt {
            entry: Some(entry),
            permits,
            journals: question.journals.clone(),
            approved: Some(ApprovalRecord {
                approval_id: question.request.approval_id.clone(),
                by: by.clone(),
                remembered: false,
                edited: input.is_some(),
                used_once_by: ledger.used_once_by(),
            }),
            edited: input,
            at_most_once: true,
            holds_claim,
            ..CallAttempt::new(&hooked, Cow::Borrowed(key), started)
        };
        let mut decision = hooked.decide(&self.context.kernel, self.state, attempt.held());
        let unfit = self.unfit(&hooked.call, decision.input());
        if unfit.is_none() && decision.is_permitted() && json::digest(decision.input()) != approved_input {
            // No policy asks about these arguments, but others were approved.
            for requirement in approvals_of_others(&question) {
                decision.require_approval(requirement, &attempt.permits);
            }
        }
        // Whatever may end without a claim would leave the decision unreported.
        let is_claimed_next = unfit.is_none()
            && match output {
                Some(_) => decision.is_permitted(),
                None => {
                    let is_bounded = decision.needs_limits() || self.context.kernel.has_run_policies();
                    decision.effect() == Effect::Run && !is_bounded
                }
            };
        if is_claimed_next {
            attempt.decided = decided.take();
        } else if let (Some(decided), Some(entry)) = (&decided, &mut attempt.entry) {
            self.notify_of_decision(resume, entry, decided).await;
        }
        if let Some(reason) = unfit {
            return match attempt.holds_claim {
                true => RunResult::NotAllowed,
                false => RunResult::Ended(self.deny(&attempt, Effect::Invalid, reason).await),
            };
        }
        if attempt.holds_claim && !decision.is_permitted() {
            return RunResult::NotAllowed;
        }
        // A person's own result is no approval to run the tool later.
        let is_reusable = edited.is_none() && output.is_none();
        let ended = match output {
            Some(output) if decision.is_permitted() => match self.context.claim(&attempt, self.state).await {
                Ok(()) => {
                    let response = CallResponse::answered(output, by.clone());
                    let kernel = self.context.kernel;
                    let mut outcome =
                        kernel.settle(decision, Ok(response).into(), self.state, attempt.started);
                    outcome.approved.clone_from(&attempt.approved);
                    Ok(outcome)
                }
                Err(error) => Err(error),
            },
            _ => self.run_decided(&attempt, decision).await,
        };
        match ended {
            Ok(outcome) => {
                if let Some(decided) = attempt.decided.as_ref().filter(|_| !attempt.has_claim())
                    && let Some(mut entry) = attempt.entry.clone()
                {
                    self.notify_of_decision(resume, &mut entry, decided).await;
                }
                if outcome.approved.is_some() {
                    self.state.reset_question(&same_question(call, &question.requirements));
                    if is_reusable {
                        self.keep_grants(ledger, call, &question, &by).await;
                    }
                }
                RunResult::Ended(self.finish(&attempt, outcome).await)
            }
            Err(ClaimError::Lost(_)) => RunResult::Conflict,
            Err(ClaimError::Ledger(error)) => {
                RunResult::Ended(self.stay_pending(resume, question.request, &error).await)
            }
        }
    }

    /// Runs an idempotent call that another runner claimed and abandoned, as people approved it then. If they or the rules do not allow
    /// that any more, nobody knows how it ended.
    pub(super) async fn run_abandoned(
        &mut self,
        call: &ToolCall,
        key: &LedgerKey,
        entry: LedgerEntry,
        started: Instant,
    ) -> Box<Outcome> {
        let result = match entry.bound_request(&self.context.services.keys) {
            // It was claimed for somebody else.
            Some(Ok((question, _))) if question.check_context(&call.context).is_err() => {
                RunResult::NotAllowed
            }
            Some(Err(_)) => RunResult::NotAllowed,
            Some(Ok((question, token))) => {
                let verified =
                    VerifiedRequest { token: token.to_owned(), answers: entry.answers(), question };
                let (tally, _) = self.context.services.tally(&verified);
                let ledger = self.context.ledger(call);
                let messages = ApprovalMessages::default();
                let resume = ResumeContext { ledger: &ledger, call, key, messages, started };
                let question = verified.question;
                let approved = ApprovedRequest { question, tally, entry, decided: None, holds_claim: true };
                self.run_approved(resume, approved).await
            }
            None => {
                let hooked = self.run_before_hooks(call.clone().into()).await;
                let attempt = CallAttempt {
                    entry: Some(entry),
                    at_most_once: true,
                    holds_claim: true,
                    ..CallAttempt::new(&hooked, Cow::Borrowed(key), started)
                };
                let decision = hooked.decide(&self.context.kernel, self.state, attempt.held());
                match decision.is_permitted() {
                    true => match self.run_decided(&attempt, decision).await {
                        Ok(outcome) => RunResult::Ended(self.finish(&attempt, outcome).await),
                        Err(_) => RunResult::Conflict,
                    },
                    false => RunResult::NotAllowed,
                }
            }
        };
        match result {
            RunResult::Ended(outcome) => outcome,
            RunResult::Conflict | RunResult::NotAllowed => {
                self.indeterminate_call(call, unfinished(NOT_AGAIN), started).await
            }
        }
    }

    /// Stores grants for later calls, if policies remember the approval. Without the store nothing is remembered.
    async fn keep_grants(
        &self,
        ledger: &Ledger<'_>,
        call: &ToolCall,
        question: &BoundRequest,
        by: &[String],
    ) {
        let from = self.context.services.clock.now();
        for ApprovalRequirement { permit, remember, .. } in &question.requirements {
            let Some(remember) = remember else { continue };
            let Ok(until) = from.checked_add(remember.duration()) else { continue };
            let permit = Permit { about: remember.about, ..permit.clone() };
            let key = GrantKey {
                permit: &permit,
                tool: &call.tool,
                server: call.server.as_deref(),
                bound: &question.bound,
            };
            let grant = Grant {
                approval_id: question.request.approval_id.clone(),
                policy: permit.policy.clone(),
                tool: call.tool.clone(),
                by: by.to_vec(),
                from,
                until,
                revoked: false,
                permit: permit.clone(),
                bound: Some(question.bound.clone()),
            };
            if let Some(name) = key.record_names(&self.context.services.keys).next() {
                let _ = ledger.save_grant(&name, &grant).await;
            }
        }
    }
}

/// The approvals that are required of other arguments than those that were approved: by the same approvers.
fn approvals_of_others(question: &BoundRequest) -> impl Iterator<Item = ExtraApproval> {
    let expires = question.lifetime();
    question.requirements.iter().enumerate().map(move |(index, asker)| ExtraApproval {
        asker: ApprovalRequirement { edits: Vec::new(), remember: None, ..asker.clone() },
        text: if index == 0 { CHANGED.to_owned() } else { String::new() },
        expires,
    })
}
