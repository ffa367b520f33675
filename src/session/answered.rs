//! A call that waited for a person is taken up again: what was asked, what was answered, and what becomes of it now.
//!
//! Every step is strict: a question that is not provably ours counts for nothing, an answer counts only for what was asked, and
//! the call goes through gate again under the rules of now.

use std::time::Instant;

use super::approved::NOT_AGAIN;
use super::desk::{Desk, Elsewhere, unreachable_store};
use super::judged::{Case, InvalidQuestion, Put, Said, refusal, verdict};
use crate::approval::{Entry, Ignored, LedgerError, Name, Question, Stage};
use crate::call::{ApprovalRequest, Outcome, OutcomeKind, Reason, ToolCall, reason_code};
use crate::execution::Turn;
use crate::host::{ToolExecutor, guarded};
use crate::kernel::{Effect, Held};

/// How often a call is looked at anew when others change what is known of it.
const TRIES: usize = 8;

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
        match guarded(Box::pin(self.look_at(call, name, said, started))).await {
            Ok(taken_up) => taken_up,
            Err(_) => {
                let message = "Callgate failed while it took this call up".to_owned();
                let hooked = self.hooked(call.clone()).await;
                self.unfinished(&hooked, message, started).into()
            }
        }
    }

    async fn look_at(&mut self, call: &ToolCall, name: &Name, said: Said<'_>, started: Instant) -> TakenUp {
        for _ in 0..TRIES {
            let ledger = self.shared.services.ledger(&*self.shared.clock, self.execute.account(call));
            let entry = match ledger.find(name).await {
                Ok(entry) => entry,
                Err(error) => return self.still_waiting(call, name, said, &error, started).await,
            };
            let own = entry.filter(|entry| entry.is_of(call));
            if let Some(entry) = &own
                && !matches!(entry.stage, Stage::Waiting)
            {
                let turn = Turn { entry: own.clone(), ..Turn::first(name.clone(), true) };
                return match self.elsewhere(call, &turn, entry.clone()).await {
                    Elsewhere::Over(outcome) => (*outcome).into(),
                    Elsewhere::Abandoned(entry) => self.run_again(call, name, *entry, started).await.into(),
                    Elsewhere::Unknown(message) => {
                        let hooked = self.hooked(call.clone()).await;
                        self.unfinished(&hooked, message, started).into()
                    }
                };
            }
            let put = match self.shared.put(self.approvals(), call, said, own.as_ref()) {
                Ok(put) => put,
                Err(why) => return self.ask_anew(call, name, &why, started).await,
            };
            let case = Case { ledger: &ledger, call, name, said, started };
            if let Some(taken_up) = self.judge(case, own, put).await {
                return taken_up;
            }
        }
        let message = "it kept being changed by others while it was taken up; take the session up again";
        let hooked = self.hooked(call.clone()).await;
        self.unfinished(&hooked, message.to_owned(), started).into()
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
                return with(self.without_store(call, put.request(), &error, started).await);
            }
        };
        let turn = Turn { entry: Some(entry), ..Turn::first(name.clone(), true) };
        if self.state.halted().is_some() {
            let reason = refusal(&put.question, reason_code::CANCELLED, &[], None);
            let hooked = self.hooked(put.question.call_now(call)).await;
            return with(self.denied(&hooked, &turn, Effect::Halt, reason, started).await);
        }
        let decision = decision?;
        self.shared.tell_decision(ledger, &turn.name, &decision).await;
        if !decision.approved {
            let cancelled = decision.code == reason_code::CANCELLED;
            let effect = if cancelled { Effect::Halt } else { Effect::Deny };
            let reason = refusal(&put.question, &decision.code, &decision.by, decision.reason);
            let hooked = self.hooked(put.question.call_now(call)).await;
            let mut outcome = self.denied(&hooked, &turn, effect, reason, started).await;
            if cancelled && outcome.outcome == OutcomeKind::Halted {
                outcome.outcome = OutcomeKind::Aborted;
                let _ = ledger.settle(&turn.name, &turn.entry(call), &outcome).await;
            }
            return with(outcome);
        }
        self.approved(case, turn, put.question, standing).await.map(|outcome| TakenUp { outcome, ignored })
    }

    /// A call whose question counts for nothing: it is asked about anew, or refused. It does not run by rules that would not ask
    /// any more, for nobody knows who wrote it into the history.
    async fn ask_anew(
        &mut self,
        call: &ToolCall,
        name: &Name,
        why: &InvalidQuestion,
        started: Instant,
    ) -> TakenUp {
        let hooked = self.hooked(call.clone()).await;
        let mut decision = hooked.decide(&self.kernel(), self.state, Held::default());
        // What is known under its name is not about this question.
        let message = format!("the question about this call counts for nothing: {why}");
        let turn = Turn { only_asks: Some(message.clone()), ..Turn::first(name.clone(), false) };
        // Nobody knows who wrote a question that is not ours: it makes no script run.
        let may_ask = matches!(why, InvalidQuestion::OtherContext(_))
            && decision.effect() == Effect::Run
            && !decision.wrappers().is_empty();
        if decision.is_permitted() && !may_ask {
            let code = reason_code::APPROVAL_INVALID.to_owned();
            decision.refuse(Effect::Deny, Reason { policy: None, code, message }, None);
        }
        let outcome = match may_ask {
            // A script around it may ask again.
            true => match self.execute.run(&hooked, decision, &turn, self.state, started).await {
                Ok(outcome) => outcome,
                Err(_) => self.unfinished(&hooked, NOT_AGAIN.to_owned(), started),
            },
            false => self.execute.refuse(&hooked, decision, &turn, self.state, started).await,
        };
        let ignored = Ignored {
            place: 0,
            approval_id: turn.approval_id(),
            code: "invalid_question",
            why: why.to_string(),
        };
        TakenUp { outcome: self.over(&hooked, &turn, outcome).await, ignored: vec![ignored] }
    }

    /// A call that stays pending under its question, as long as its store does not answer. Where the store was altered, nobody
    /// knows whether the call ran.
    pub(super) async fn without_store(
        &mut self,
        call: &ToolCall,
        request: ApprovalRequest,
        error: &LedgerError,
        started: Instant,
    ) -> Outcome {
        let reason = unreachable_store(error);
        if reason.code == reason_code::STATE_ALTERED {
            let hooked = self.hooked(call.clone()).await;
            return self.indeterminate(&hooked, reason, started);
        }
        self.waiting(call, request, Some(reason.message))
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
            let hooked = self.hooked(call.clone()).await;
            return self.indeterminate(&hooked, reason, started).into();
        }
        match said.request.and_then(|request| Question::open(request, &self.shared.services.keys).ok()) {
            Some(question) => {
                let token = said.request.and_then(|request| request.approval_token.clone());
                let request = ApprovalRequest { approval_token: token, ..question.request };
                self.waiting(call, request, Some(reason.message)).into()
            }
            None => {
                let turn = Turn::first(name.clone(), false);
                let hooked = self.hooked(call.clone()).await;
                let mut decision = hooked.decide(&self.kernel(), self.state, Held::default());
                decision.refuse(Effect::Deny, reason, None);
                self.execute.refuse(&hooked, decision, &turn, self.state, started).await.into()
            }
        }
    }
}
