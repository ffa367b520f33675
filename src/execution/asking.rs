//! A call that waits for a person is asked about: the question is sealed and noted in the ledger. And before an approved call
//! runs, it is claimed there.

use super::{Execute, Hooked, Stopped, Turn};
use crate::approval::{
    Asker, BoundContext, Claim, Entry, GrantKey, KeptJournal, LedgerError, Name, Permit, Question,
    QuestionError,
};
use crate::call::{
    ApprovalRequest, Approved, Outcome, OutcomeKind, Reason, SessionState, ToolCall, reason_code,
};
use crate::host::{ToolExecutor, guarded};
use crate::json::{self, Digest, Value, json};
use crate::kernel::{Decision, Effect, Held};
use crate::principal::{Comparison, Named};

/// How often the same may be asked in one session.
const SAME_QUESTIONS: u64 = 5;
/// How many names are tried for a question.
const NAMES: u64 = 256;

/// What a suspended call asks.
pub(super) struct Asked {
    begins_with: Digest,
    askers: Vec<Asker>,
    journals: Vec<KeptJournal>,
    tenant: Value,
    requester: Option<String>,
    bound: BoundContext,
    repeats: u64,
}

impl<E: ToolExecutor> Execute<'_, E> {
    /// Claims a call in the ledger, where that is not done already.
    pub(super) async fn claim(&self, hooked: &Hooked, turn: &Turn) -> Result<(), Stopped> {
        if turn.holds_claim {
            return Ok(());
        }
        let ledger = self.services.ledger(self.kernel.clock, self.account(hooked.requested()));
        let entry = turn.entry(hooked.requested());
        match guarded(ledger.claim(&turn.name, &entry, entry.answers().len())).await {
            Ok(Ok(Claim::Won)) => Ok(()),
            Ok(Ok(Claim::Lost(entry))) => Err(Stopped::Elsewhere(entry)),
            Ok(Err(error)) => Err(Stopped::Ledger(error)),
            Err(_) => Err(Stopped::Ledger(LedgerError::Broken)),
        }
    }

    /// The permits of earlier approvals that apply to a suspended call, together with those that it holds: it is to be decided again
    /// with them. `None` where there are none.
    pub(crate) async fn remembered(
        &self,
        requested: &ToolCall,
        decision: &Decision<'_>,
        held: Held<'_>,
        state: &SessionState,
    ) -> Option<(Vec<Permit>, Approved)> {
        if decision.effect() != Effect::Suspend {
            return None;
        }
        // What fails here remembers nothing, and a person is asked.
        guarded(self.find_remembered(requested, decision, held, state)).await.ok().flatten()
    }

    async fn find_remembered(
        &self,
        requested: &ToolCall,
        decision: &Decision<'_>,
        held: Held<'_>,
        state: &SessionState,
    ) -> Option<(Vec<Permit>, Approved)> {
        let call = decision.call();
        let askers = self.kernel.asked(decision, state);
        // The context as the session has it, and not as hooks left it: so it is in the question that the approval answered.
        let bound = self.kernel.bound_context(requested, &askers);
        let ledger = self.services.ledger(self.kernel.clock, self.account(requested));
        let now = self.kernel.clock.now();
        let mut permits = held.permits.to_vec();
        let mut approved: Option<Approved> = None;
        for Asker { permit, remember, .. } in askers {
            let Some(remember) = remember else { continue };
            let of = Permit { about: remember.about, ..permit.clone() };
            let key =
                GrantKey { permit: &of, tool: &call.tool, server: call.server.as_deref(), bound: &bound };
            let mut granted = None;
            for name in key.names(&self.services.keys) {
                // Without the store nothing is remembered, and a person is asked.
                if let Ok(Some(grant)) = ledger.grant(&name).await {
                    granted = Some(grant);
                    break;
                }
            }
            let Some(grant) = granted else { continue };
            if grant.is_for(&key) && grant.stands(now) {
                permits.push(permit);
                let told = approved.get_or_insert_with(|| Approved {
                    approval_id: grant.approval_id.clone(),
                    by: Vec::new(),
                    remembered: true,
                    edited: false,
                    used_once_by: ledger.used_once_by(),
                });
                told.by.extend(grant.by.into_iter().filter(|by| !told.by.contains(by)).collect::<Vec<_>>());
            }
        }
        Some((permits, approved?))
    }

    /// What a suspended call asks. What was asked too often in the session is denied instead.
    pub(super) fn prepare(
        &self,
        hooked: &Hooked,
        decision: &mut Decision<'_>,
        begins_with: Option<Digest>,
        turn: &Turn,
        state: &mut SessionState,
    ) -> Option<Asked> {
        if decision.effect() != Effect::Suspend {
            return None;
        }
        let about = json::digest(decision.input());
        let begins_with = begins_with.unwrap_or(about);
        let mut askers = self.kernel.asked(decision, state);
        let call = decision.call();
        let same = same_question(call, &askers);
        let (tenant, requester) = (tenant(call), requester(call));
        // The context as the session has it, and not as hooks left it: a resumed call is compared with that.
        let bound = self.kernel.bound_context(hooked.requested(), &askers);
        // The question that stands already is not put anew.
        let asked = turn.entry.as_ref().is_some_and(|entry| entry.request.is_some());
        let stands = asked && turn.approved.is_none();
        let repeats = if stands { 0 } else { state.note_question(&same) };
        if repeats >= SAME_QUESTIONS {
            let message = format!(
                "people were asked the same {} times in this session: `{}` is not asked about again",
                repeats.min(SAME_QUESTIONS),
                call.tool
            );
            let policy = askers.into_iter().find_map(|asker| asker.permit.policy);
            let code = reason_code::ASKED_TOO_OFTEN.to_owned();
            decision.refuse(Effect::Deny, Reason { policy, code, message }, None);
            return None;
        }
        let journals = decision.take_journals();
        // What a script or a hook calls with is its own: a person can't change it.
        if !journals.is_empty() || begins_with != about {
            askers.iter_mut().for_each(|asker| asker.edits.clear());
        }
        Some(Asked { begins_with, askers, journals, tenant, requester, bound, repeats })
    }

    /// Puts the question: seals it, and notes it in the ledger, where the same one may stand already. If that can't be done,
    /// the call is denied.
    pub(super) async fn ask(
        &self,
        hooked: &Hooked,
        outcome: Outcome,
        asked: Asked,
        turn: &Turn,
        claimed: bool,
    ) -> Outcome {
        let put = guarded(self.put(hooked.requested(), &outcome, asked, turn, claimed)).await;
        match put.unwrap_or(Err(PutError::Ledger(LedgerError::Broken))) {
            Ok(request) => Outcome { approval: Some(request), ..outcome },
            Err(error) => {
                let code = match &error {
                    PutError::Ledger(error) => error.code(),
                    PutError::Elsewhere => reason_code::ASK_AGAIN,
                    PutError::Question(_) | PutError::NoName => reason_code::INTERNAL_ERROR,
                };
                let message = format!("no person can be asked about this call: {error}");
                let reason = Reason { code: code.to_owned(), message, ..outcome.reason.clone() };
                Outcome { outcome: OutcomeKind::Denied, approval: None, reason, ..outcome }
            }
        }
    }

    async fn put(
        &self,
        call: &ToolCall,
        outcome: &Outcome,
        asked: Asked,
        turn: &Turn,
        claimed: bool,
    ) -> Result<ApprovalRequest, PutError> {
        let Asked { begins_with, askers, journals, tenant, requester, bound, repeats } = asked;
        let request = outcome.approval.clone().ok_or(PutError::NoName)?;
        let known = turn.entry(call);
        let fresh = Entry::new(&call.id, &call.tool, known.call);
        let mut question = Question {
            request,
            conversation: turn.name.conversation.clone(),
            tenant,
            requester,
            bound,
            asked_at: self.kernel.clock.now(),
            call: known.call,
            begins_with,
            askers,
            held: turn.permits.clone(),
            edited: turn.edited.clone(),
            journals,
        };
        question.request.repeats = (repeats > 0).then_some(repeats);
        let keys = &self.services.keys;
        let ledger = self.services.ledger(self.kernel.clock, self.account(call));
        let mut name = turn.name.clone();
        for number in 2..NAMES {
            question.request.approval_id = format!("approval_{}", name.occurrence);
            let request = question.sealed(keys).map_err(PutError::Question)?;
            let noted = ledger.ask(&name, &fresh, &question, &request, keys, claimed).await;
            match noted.map_err(PutError::Ledger)? {
                Ok(request) => return Ok(request),
                // Under another name the question would not be found again.
                Err(_) if self.approval_scope.is_some() => return Err(PutError::Elsewhere),
                // The name is another call's, or this one's from before the history forgot it.
                Err(_) => name = Name { occurrence: format!("{}_{number}", turn.name.occurrence), ..name },
            }
        }
        Err(PutError::NoName)
    }
}

/// What makes two questions of a session the same: the tool, and all that a yes would permit.
pub(crate) fn same_question(call: &ToolCall, askers: &[Asker]) -> String {
    let permits = askers.iter().map(|asker| json!(asker.permit)).collect::<Vec<_>>();
    json::digest(&json!([call.tool, call.server, permits])).short().to_string()
}

#[derive(Debug, thiserror::Error)]
enum PutError {
    #[error("{0}")]
    Ledger(LedgerError),
    #[error("{0}")]
    Question(QuestionError),
    #[error("every name for the question is taken")]
    NoName,
    #[error("the same call was started elsewhere at the same time; make it again")]
    Elsewhere,
}

/// The tenant for whom the host says the agent acts.
fn tenant(call: &ToolCall) -> Value {
    call.context.get("tenant").cloned().unwrap_or_default()
}

/// The principal for whom the host says the agent acts, as the host writes the name; nothing where it names nobody.
fn requester(call: &ToolCall) -> Option<String> {
    match Named::from_context(&call.context, Comparison::Canonical) {
        Named::Principal(principal) => Some(principal.as_str().to_owned()),
        Named::Nobody | Named::Invalid(_) => None,
    }
}
