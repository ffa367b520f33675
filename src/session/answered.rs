//! A call that waited for a person is taken up again: what was asked, what was answered, and what becomes of it now.
//!
//! Every step is strict: a question that is not provably ours counts for nothing, an answer counts only for what was asked, and
//! the call goes through gate again under the rules of now.

use std::borrow::Cow;
use std::time::Instant;

use super::desk::{Desk, Elsewhere, unreachable_store};
use super::judged::{Case, Put, Said, refusal, verdict};
use crate::approval::{
    Asker, Entry, Grant, GrantKey, Ignored, Ledger, LedgerError, Name, Permit, Question, Stage, Standing,
};
use crate::call::{ApprovalRequest, Approved, Outcome, OutcomeKind, Reason, ToolCall, reason_code};
use crate::execution::{Stopped, Turn, requester, same_question, tenant};
use crate::host::{ToolExecutor, guarded};
use crate::json;
use crate::kernel::{Effect, Held};

/// How often a call is looked at anew when others change what is known of it.
const TRIES: usize = 8;

/// Told of a call that began once and may not begin again.
const NOT_AGAIN: &str =
    "a run of this call began and never said how it ended, and by now it may not run again";

/// What came of a call that was taken up.
pub(super) struct TakenUp {
    pub(super) outcome: Outcome,
    /// Answers that do not count.
    pub(super) ignored: Vec<Ignored>,
}

impl From<Outcome> for TakenUp {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, ignored: Vec::new() }
    }
}

impl<E: ToolExecutor> Desk<'_, E> {
    /// Takes a call up that waits, or that the ledger knows. If Callgate itself fails, it is not known how far it came.
    pub(super) async fn take_up(
        &mut self,
        call: &ToolCall,
        name: &Name,
        said: Said<'_>,
        started: Instant,
    ) -> TakenUp {
        match guarded(self.look_at(call, name, said, started)).await {
            Ok(taken_up) => taken_up,
            Err(_) => {
                let message = "Callgate failed while it took this call up".to_owned();
                self.unfinished(call, message, started).into()
            }
        }
    }

    async fn look_at(&mut self, call: &ToolCall, name: &Name, said: Said<'_>, started: Instant) -> TakenUp {
        for _ in 0..TRIES {
            let ledger = self.shared.services.ledger(&*self.shared.clock);
            let entry = match ledger.find(name).await {
                Ok(entry) => entry,
                Err(error) => return self.still_waiting(call, name, said, &error, started).await,
            };
            let own = entry.filter(|entry| entry.is_of(call));
            if let Some(entry) = &own
                && !matches!(entry.stage, Stage::Waiting)
            {
                let turn = Turn { entry: own.clone(), ..Turn::first(name.clone(), true) };
                return match self.elsewhere(call, &turn, entry.clone(), started).await {
                    Elsewhere::Over(outcome) => (*outcome).into(),
                    Elsewhere::Abandoned(entry) => self.run_again(call, name, *entry, started).await.into(),
                };
            }
            let put = match self.shared.put(self.conversation, call, said, own.as_ref()) {
                Ok(put) => put,
                Err(why) => return self.ask_anew(call, name, own, &why, started).await,
            };
            let case = Case { ledger: &ledger, call, name, said, started };
            if let Some(taken_up) = self.judge(case, own, put).await {
                return taken_up;
            }
        }
        let message = "it kept being changed by others while it was taken up; take the session up again";
        self.unfinished(call, message.to_owned(), started).into()
    }

    /// What becomes of a call by the answers so far; nothing where others changed what is known of it meanwhile.
    async fn judge(&mut self, case: Case<'_>, own: Option<Entry>, put: Put) -> Option<TakenUp> {
        let Case { ledger, call, name, started, .. } = case;
        let (standing, ignored) = self.shared.standing(&put);
        let now = self.shared.clock.now();
        let with = |outcome: Outcome| Some(TakenUp { outcome, ignored: ignored.clone() });
        let early = put.is_early(now);
        let decision = verdict(&put.question, &standing, put.is_expired(now)).filter(|_| !early);
        if self.state.halted().is_none() && decision.is_none() {
            let why = early.then(|| "it was asked later than the clock says it is now".to_owned());
            return with(self.waiting(call, put.request(), why));
        }
        // Answers are noted before anything is done about them.
        let entry = match self.shared.note(case, own, &put, &ignored).await {
            Ok(Some(entry)) => entry,
            Ok(None) => return None,
            Err(error) => {
                return with(self.without_store(call, put.request(), &error, started));
            }
        };
        let turn = Turn { entry: Some(entry), ..Turn::first(name.clone(), true) };
        if self.state.halted().is_some() {
            let reason = refusal(&put.question, reason_code::CANCELLED, &[], None);
            return with(self.denied(call, &turn, Effect::Halt, reason, started).await);
        }
        let decision = decision?;
        self.shared.tell_decision(ledger, &turn.name, &decision).await;
        if !decision.approved {
            let cancelled = decision.code == reason_code::CANCELLED;
            let effect = if cancelled { Effect::Halt } else { Effect::Deny };
            let reason = refusal(&put.question, &decision.code, &decision.by, decision.reason);
            let mut outcome = self.denied(call, &turn, effect, reason, started).await;
            if cancelled && outcome.outcome == OutcomeKind::Halted {
                outcome.outcome = OutcomeKind::Aborted;
                let _ = ledger.settle(&turn.name, &turn.entry(call), &outcome).await;
            }
            return with(outcome);
        }
        self.approved(ledger, call, turn, put.question, standing, started)
            .await
            .map(|outcome| TakenUp { outcome, ignored })
    }

    /// A call to which people said yes, or which they answered themselves.
    async fn approved(
        &mut self,
        ledger: &Ledger<'_>,
        call: &ToolCall,
        mut turn: Turn,
        question: Question,
        standing: Standing,
        started: Instant,
    ) -> Option<Outcome> {
        let (by, given, output) = match standing {
            Standing::Approved { by, edited, .. } => (by, edited, None),
            Standing::Answered { by, output } => (by, None, Some(output)),
            Standing::Open { .. } | Standing::Denied { .. } | Standing::Cancelled { .. } => return None,
        };
        let mut base = match &question.edited {
            Some(input) => Cow::Owned(call.with_input(input.clone())),
            None => Cow::Borrowed(call),
        };
        let mut permits = question.held.clone();
        let yes = question.askers.iter().map(|asker| asker.permit.clone());
        match &given {
            None => permits.extend(yes),
            Some(given) => match self.edit(&base, &question, given) {
                Ok(input) => {
                    let about = json::digest(&input);
                    permits.extend(yes.map(|permit| Permit { about, ..permit }));
                    turn.edited = Some(input.clone());
                    base = Cow::Owned(call.with_input(input));
                }
                Err(reason) => {
                    return Some(self.denied(call, &turn, Effect::Invalid, reason, started).await);
                }
            },
        }
        turn.edited = turn.edited.or(question.edited.clone());
        turn.permits = permits;
        turn.journals = question.journals.clone();
        turn.approved = Some(Approved {
            approval_id: question.request.approval_id.clone(),
            by: by.clone(),
            remembered: false,
            edited: turn.edited.is_some(),
            used_once_by: ledger.used_once_by(),
        });
        if let Some(reason) = self.unfit(&base) {
            if turn.holds_claim {
                return None;
            }
            return Some(self.denied(call, &turn, Effect::Invalid, reason, started).await);
        }
        let held = Held { limits: &[], permits: &turn.permits };
        let kernel = self.kernel();
        let decided = kernel.decide_holding(&base, self.state, held);
        if turn.holds_claim && !decided.is_permitted() {
            return None;
        }
        // A person's own result is no yes to run the tool later.
        let remembers = given.is_none() && output.is_none();
        let ended = match output {
            Some(output) if decided.is_permitted() => {
                self.execute.give(&base, decided, &turn, output, self.state, started).await
            }
            _ => self.run(&base, decided, &turn, started).await,
        };
        match ended {
            Ok(outcome) => {
                if outcome.approved.is_some() {
                    self.state.note_yes(&same_question(call, &question.askers));
                }
                if remembers && outcome.approved.is_some() {
                    self.remember(ledger, call, &question, &by).await;
                }
                Some(self.over(call, &turn, outcome).await)
            }
            // Whoever took it up, or answered, is seen when it is looked at anew.
            Err(Stopped::Elsewhere(_)) => None,
            Err(Stopped::Ledger(error)) => Some(self.without_store(call, question.request, &error, started)),
        }
    }

    /// A call that may run twice, and whose first run nobody came back from: it runs as people let it run then. Where they or
    /// the rules do not any more, it stays unknown how it ended.
    pub(super) async fn run_again(
        &mut self,
        call: &ToolCall,
        name: &Name,
        entry: Entry,
        started: Instant,
    ) -> Outcome {
        let question = match entry.question(self.shared.services.keys.as_ref()) {
            Some(Ok((question, token))) => {
                Some(Put { token: token.to_owned(), answers: entry.answers(), question })
            }
            Some(Err(_)) => return self.unfinished(call, NOT_AGAIN.to_owned(), started),
            None => None,
        };
        let turn = Turn { holds_claim: true, entry: Some(entry), ..Turn::first(name.clone(), true) };
        let outcome = match question {
            Some(put) => {
                let (standing, _) = self.shared.standing(&put);
                let ledger = self.shared.services.ledger(&*self.shared.clock);
                self.approved(&ledger, call, turn, put.question, standing, started).await
            }
            None => {
                let decision = self.execute.kernel.decide(call, self.state);
                match decision.is_permitted() {
                    true => match self.run(call, decision, &turn, started).await {
                        Ok(outcome) => Some(self.over(call, &turn, outcome).await),
                        Err(_) => None,
                    },
                    false => None,
                }
            }
        };
        match outcome {
            Some(outcome) => outcome,
            None => self.unfinished(call, NOT_AGAIN.to_owned(), started),
        }
    }

    /// Keeps the yes for later calls, where policies say so. A store that does not answer remembers nothing.
    async fn remember(&self, ledger: &Ledger<'_>, call: &ToolCall, question: &Question, by: &[String]) {
        let from = self.shared.clock.now();
        let (tenant, requester) = (tenant(call), requester(call));
        for Asker { permit, remember, .. } in &question.askers {
            let Some(remember) = remember else { continue };
            let Ok(until) = from.checked_add(remember.duration()) else { continue };
            let permit = Permit { about: remember.about, ..permit.clone() };
            let key = GrantKey {
                permit: &permit,
                tool: &call.tool,
                server: call.server.as_deref(),
                tenant: &tenant,
                requester: requester.as_deref(),
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
            };
            let _ = ledger.keep_grant(&key.name(), &grant).await;
        }
    }

    /// A call whose question counts for nothing: it is asked about anew, or refused. It does not run by rules that would not ask
    /// any more, for nobody knows who wrote it into the history.
    async fn ask_anew(
        &mut self,
        call: &ToolCall,
        name: &Name,
        entry: Option<Entry>,
        why: &str,
        started: Instant,
    ) -> TakenUp {
        let kernel = self.kernel();
        let mut decision = kernel.decide(call, self.state);
        if decision.is_permitted() {
            let message = format!("the question about this call counts for nothing: {why}");
            let code = reason_code::APPROVAL_INVALID.to_owned();
            decision.refuse(Effect::Deny, Reason { policy: None, code, message }, None);
        }
        // What is known under its name is not about this question.
        drop(entry);
        let turn = Turn::first(name.clone(), false);
        let outcome = self.execute.refuse(call, decision, &turn, self.state, started).await;
        let ignored = Ignored { place: 0, approval_id: turn.approval_id(), why: why.to_owned() };
        TakenUp { outcome: self.over(call, &turn, outcome).await, ignored: vec![ignored] }
    }

    /// A call that waits on under its question, as long as its store does not answer. Where the store was altered, nobody knows
    /// whether the call ran.
    fn without_store(
        &mut self,
        call: &ToolCall,
        request: ApprovalRequest,
        error: &LedgerError,
        started: Instant,
    ) -> Outcome {
        let reason = unreachable_store(error);
        match reason.code == reason_code::STATE_ALTERED {
            true => self.indeterminate(call, reason, started),
            false => self.waiting(call, request, Some(reason.message)),
        }
    }

    /// A call of which it is not known how far it is, for its store does not say.
    async fn still_waiting(
        &mut self,
        call: &ToolCall,
        name: &Name,
        said: Said<'_>,
        error: &LedgerError,
        started: Instant,
    ) -> TakenUp {
        let reason = unreachable_store(error);
        if reason.code == reason_code::STATE_ALTERED {
            return self.indeterminate(call, reason, started).into();
        }
        match said
            .request
            .and_then(|request| Question::open(request, self.shared.services.keys.as_ref()).ok())
        {
            Some(question) => {
                let token = said.request.and_then(|request| request.approval_token.clone());
                let request = ApprovalRequest { approval_token: token, ..question.request };
                self.waiting(call, request, Some(reason.message)).into()
            }
            None => {
                let turn = Turn::first(name.clone(), false);
                let mut decision = self.execute.kernel.decide(call, self.state);
                decision.refuse(Effect::Deny, reason, None);
                self.execute.refuse(call, decision, &turn, self.state, started).await.into()
            }
        }
    }
}
