//! Requests an approval of a suspended call: the request is sealed and recorded in the ledger. Also grants of earlier approvals, and the
//! claim of an approved call before it runs.

use std::sync::atomic::Ordering;

use super::{CallAttempt, CallContext, CallRunner, ClaimError};
use crate::approval::{
    ApprovalRequirement, BoundContext, BoundRequest, BoundRequestError, ClaimResult, GrantKey, LedgerEntry,
    LedgerError, LedgerKey, Permit, ScriptJournal,
};
use crate::call::{
    ApprovalRecord, ApprovalRequest, Outcome, OutcomeKind, Reason, SessionState, ToolCall, reason_code,
};
use crate::host::{EngineEventKind, ToolExecutor, catch_panic};
use crate::json::{self, Digest, Value, json};
use crate::kernel::{Decision, Effect, HeldResources, Records, StoppedExecution};
use crate::principal::{PrincipalComparison, PrincipalValue};

/// How often the same may be asked in one session.
const MAX_REPEATS: u64 = 5;
/// How many ids are tried for a request.
const MAX_IDS: u64 = 256;

/// The request of a suspended call, before it is sealed.
struct RequestDraft {
    begins_with: Digest,
    askers: Vec<ApprovalRequirement>,
    journals: Vec<ScriptJournal>,
    tenant: Value,
    requester: Option<String>,
    bound: BoundContext,
    repeats: u64,
}

/// What a call has done before it is refused.
#[derive(Default)]
struct Progress {
    records: Records,
    /// The digest of the arguments with which the call began to run.
    begins_with: Option<Digest>,
    is_claimed: bool,
}

impl<E: ToolExecutor> CallContext<'_, E> {
    /// Claims a call in the ledger, unless it is claimed already, and notifies observers of the decision that it runs by, once.
    pub(super) async fn claim(
        &self,
        attempt: &CallAttempt<'_>,
        state: &SessionState,
    ) -> Result<(), ClaimError> {
        if attempt.holds_claim {
            return Ok(());
        }
        let ledger = self.ledger(attempt.requested());
        let entry = attempt.ledger_entry();
        let claimed = catch_panic(ledger.claim(&attempt.key, &entry, attempt.decided.is_some())).await;
        let (notifies, claimed) = match claimed.unwrap_or(Err(LedgerError::Internal)) {
            Ok(ClaimResult::Won { was_notified }) => {
                attempt.has_claimed.store(true, Ordering::Relaxed);
                (!was_notified, Ok(()))
            }
            // Whoever has changed the entry notifies observers, or this process does when it reads the entry again.
            Ok(ClaimResult::Lost(entry)) => (false, Err(ClaimError::Lost(entry))),
            // The claim may have been written: it is better to notify twice than never.
            Err(error) => (true, Err(ClaimError::Ledger(error))),
        };
        if let Some(decision) = attempt.decided.as_ref().filter(|_| notifies) {
            self.observe(attempt.requested(), state, EngineEventKind::ApprovalDecided(decision));
        }
        claimed
    }

    /// The permits of grants that apply to a suspended call, together with those that it holds: it is to be decided again with them.
    /// `None` if no grant applies.
    pub(super) async fn find_grants(
        &self,
        attempt: &CallAttempt<'_>,
        decision: &Decision<'_>,
        held: HeldResources<'_>,
        state: &SessionState,
    ) -> Option<(Vec<Permit>, ApprovalRecord)> {
        // If this fails, a person is asked.
        catch_panic(self.find_grants_guarded(attempt, decision, held, state)).await.ok().flatten()
    }

    async fn find_grants_guarded(
        &self,
        attempt: &CallAttempt<'_>,
        decision: &Decision<'_>,
        held: HeldResources<'_>,
        state: &SessionState,
    ) -> Option<(Vec<Permit>, ApprovalRecord)> {
        let call = decision.call();
        let askers = self.kernel.approvers(decision, state);
        // The context as the session has it, and not as hooks left it: the approved request has that one.
        let bound = self.kernel.bound_context(attempt.requested(), &askers);
        let ledger = self.ledger(attempt.requested());
        let now = self.services.clock.now();
        let mut permits = held.permits.to_vec();
        let mut approved: Option<ApprovalRecord> = None;
        for ApprovalRequirement { permit, remember, .. } in askers {
            let Some(remember) = remember else { continue };
            let of = Permit { about: remember.about, ..permit.clone() };
            let key =
                GrantKey { permit: &of, tool: &call.tool, server: call.server.as_deref(), bound: &bound };
            let mut granted = None;
            for name in key.record_names(&self.services.keys) {
                // If the store does not answer, a person is asked.
                if let Ok(Some(grant)) = ledger.grant(&name).await {
                    granted = Some(grant);
                    break;
                }
            }
            let Some(grant) = granted else { continue };
            if grant.applies_to(&key) && grant.is_active(now) {
                permits.push(permit);
                let approved = approved.get_or_insert_with(|| ApprovalRecord {
                    approval_id: grant.approval_id.clone(),
                    by: Vec::new(),
                    remembered: true,
                    edited: false,
                    used_once_by: ledger.used_once_by(),
                });
                let new = |by: &String| !approved.by.contains(by);
                let new = grant.by.into_iter().filter(new).collect::<Vec<_>>();
                approved.by.extend(new);
            }
        }
        Some((permits, approved?))
    }
}

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// The outcome of a call that does not run. If it is suspended, an approval is requested.
    pub(super) async fn refuse(
        &mut self,
        attempt: &CallAttempt<'_>,
        decision: Box<Decision<'_>>,
    ) -> Box<Outcome> {
        self.refuse_after(attempt, decision, Progress::default()).await
    }

    /// The same for a call that what wraps its tool stopped before the tool was called. `began_with`: the arguments with which the call
    /// began to run.
    pub(super) async fn refuse_started(
        &mut self,
        attempt: &CallAttempt<'_>,
        stopped: StoppedExecution,
        began_with: &Value,
    ) -> Box<Outcome> {
        let StoppedExecution { decision, records } = stopped;
        let begins_with = Some(json::digest(began_with));
        let progress = Progress { records, begins_with, is_claimed: attempt.needs_claim() };
        self.refuse_after(attempt, decision, progress).await
    }

    async fn refuse_after(
        &mut self,
        attempt: &CallAttempt<'_>,
        mut decision: Box<Decision<'_>>,
        progress: Progress,
    ) -> Box<Outcome> {
        let Progress { records, begins_with, is_claimed } = progress;
        let draft = self.draft_request(attempt, &mut decision, begins_with);
        let kernel = &self.context.kernel;
        let approval_id = attempt.approval_id();
        let outcome = kernel.refuse(decision, &approval_id, records, self.state, attempt.started);
        match draft {
            Some(draft) if outcome.outcome == OutcomeKind::Suspended => {
                self.publish_request(attempt, outcome, draft, is_claimed).await
            }
            _ => outcome,
        }
    }

    /// The request of a suspended call. What was asked too often in the session is denied instead.
    fn draft_request(
        &mut self,
        attempt: &CallAttempt<'_>,
        decision: &mut Decision<'_>,
        begins_with: Option<Digest>,
    ) -> Option<RequestDraft> {
        let kernel = &self.context.kernel;
        let about = json::digest(decision.input());
        let begins_with = begins_with.unwrap_or(about);
        let mut askers = kernel.approvers(decision, self.state);
        let call = decision.call();
        let same = same_question(call, &askers);
        let (tenant, requester) = (tenant(call), requester(call));
        // The context as the session has it, and not as hooks left it: a resumed call is compared with that.
        let bound = kernel.bound_context(attempt.requested(), &askers);
        // A request that was made already does not count as a repetition.
        let has_request = attempt.entry.as_ref().is_some_and(|entry| entry.request.is_some());
        let is_repeated = !has_request || attempt.approved.is_some();
        let repeats = if is_repeated { self.state.count_question(&same) } else { 0 };
        if repeats >= MAX_REPEATS {
            let message = format!(
                "the same approval was requested {} times in this session: `{}` is not requested again",
                repeats.min(MAX_REPEATS),
                call.tool
            );
            let policy = askers.into_iter().find_map(|asker| asker.permit.policy);
            let code = reason_code::ASKED_TOO_OFTEN.to_owned();
            decision.refuse(Effect::Deny, Reason { policy, code, message }, None);
            return None;
        }
        let journals = decision.take_journals();
        // A person can't change what a script or a hook calls with.
        if !journals.is_empty() || begins_with != about {
            askers.iter_mut().for_each(|asker| asker.edits.clear());
        }
        Some(RequestDraft { begins_with, askers, journals, tenant, requester, bound, repeats })
    }

    /// Seals the request and records it in the ledger, which may have the same one already. If that fails, the call is denied.
    async fn publish_request(
        &self,
        attempt: &CallAttempt<'_>,
        mut outcome: Box<Outcome>,
        draft: RequestDraft,
        is_claimed: bool,
    ) -> Box<Outcome> {
        let recorded = catch_panic(self.record_request(attempt, &outcome, draft, is_claimed)).await;
        match recorded.unwrap_or(Err(RequestError::Ledger(LedgerError::Internal))) {
            Ok(request) => outcome.approval = Some(Box::new(request)),
            Err(error) => {
                let code = match &error {
                    RequestError::Ledger(error) => error.code(),
                    RequestError::Elsewhere => reason_code::ASK_AGAIN,
                    RequestError::Question(_) | RequestError::NoId => reason_code::INTERNAL_ERROR,
                };
                let message = format!("no approval can be requested for this call: {error}");
                (outcome.outcome, outcome.approval) = (OutcomeKind::Denied, None);
                (outcome.reason.code, outcome.reason.message) = (code.to_owned(), message);
            }
        }
        outcome
    }

    async fn record_request(
        &self,
        attempt: &CallAttempt<'_>,
        outcome: &Outcome,
        draft: RequestDraft,
        is_claimed: bool,
    ) -> Result<ApprovalRequest, RequestError> {
        let RequestDraft { begins_with, askers, journals, tenant, requester, bound, repeats } = draft;
        let request = outcome.approval.as_deref().cloned().ok_or(RequestError::NoId)?;
        let call = attempt.requested();
        let known = attempt.ledger_entry();
        let new = LedgerEntry::new(&call.id, &call.tool, known.call);
        let mut question = BoundRequest {
            request,
            conversation: attempt.key.conversation.clone(),
            tenant,
            requester,
            bound,
            asked_at: self.context.services.clock.now(),
            call: known.call,
            execution_input: begins_with,
            requirements: askers,
            granted: attempt.permits.clone(),
            edited_input: attempt.edited.clone(),
            journals,
        };
        question.request.repeats = (repeats > 0).then_some(repeats);
        let keys = &self.context.services.keys;
        let ledger = self.context.ledger(call);
        let mut key = attempt.key.clone().into_owned();
        for number in 2..MAX_IDS {
            question.request.approval_id = format!("approval_{}", key.occurrence_id);
            let request = question.seal(keys).map_err(RequestError::Question)?;
            let recorded = ledger.record_request(&key, &new, &question, &request, keys, is_claimed).await;
            match recorded.map_err(RequestError::Ledger)? {
                Ok(request) => return Ok(request),
                // Under another key the request would not be found again.
                Err(_) if self.context.session.approval_scope.is_some() => {
                    return Err(RequestError::Elsewhere);
                }
                // The key is another call's, or this one's from before the history lost it.
                Err(_) => {
                    key =
                        LedgerKey { occurrence_id: format!("{}_{number}", attempt.key.occurrence_id), ..key };
                }
            }
        }
        Err(RequestError::NoId)
    }
}

/// What makes two requests of a session the same: the tool, and everything that an approval would permit.
pub(super) fn same_question(call: &ToolCall, askers: &[ApprovalRequirement]) -> String {
    let permits = askers.iter().map(|asker| json!(asker.permit)).collect::<Vec<_>>();
    json::digest(&json!([call.tool, call.server, permits])).short_hex().to_string()
}

#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("{0}")]
    Ledger(LedgerError),
    #[error("{0}")]
    Question(BoundRequestError),
    #[error("every id for the request is in use")]
    NoId,
    #[error("the same call was started elsewhere at the same time; make it again")]
    Elsewhere,
}

/// The tenant for whom the host says the agent acts.
fn tenant(call: &ToolCall) -> Value {
    call.context.get("tenant").cloned().unwrap_or_default()
}

/// The principal for whom the host says the agent acts, as the host writes the name. `None` if it names nobody.
fn requester(call: &ToolCall) -> Option<String> {
    match PrincipalValue::from_context(&call.context, PrincipalComparison::Canonical) {
        PrincipalValue::Principal(principal) => Some(principal.as_str().to_owned()),
        PrincipalValue::Missing | PrincipalValue::Invalid(_) => None,
    }
}
