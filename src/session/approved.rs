//! A call that people approved: decided again by hooks and policies, and run with the arguments that were approved or not at all.

use std::time::Instant;

use super::desk::Desk;
use super::fitting::Edit;
use super::judged::{Case, Put, Said};
use crate::approval::{Asker, Entry, Grant, GrantKey, Ledger, Name, Permit, Question, Standing};
use crate::call::{Approved, Outcome, ToolCall};
use crate::execution::{Stopped, Turn, same_question};
use crate::host::ToolExecutor;
use crate::json;
use crate::kernel::{Effect, Held, Requirement};

/// Told of a call that began once and may not begin again.
pub(super) const NOT_AGAIN: &str =
    "a run of this call began and never said how it ended, and by now it may not run again";

/// Asked where hooks or transforms make other arguments of a call than those that were approved.
const CHANGED: &str = "The arguments are not those that were approved. May the call run with these?";

impl<E: ToolExecutor> Desk<'_, E> {
    /// A call that people approved, or answered themselves: hooks and policies decide it anew, and it runs with the arguments that were
    /// approved or not at all. `None` where others changed what is known of it meanwhile.
    pub(super) async fn approved(
        &mut self,
        case: Case<'_>,
        mut turn: Turn,
        question: Question,
        standing: Standing,
    ) -> Option<Outcome> {
        let Case { ledger, call, started, .. } = case;
        let (by, edited, output) = match standing {
            Standing::Approved { by, edited, .. } => (by, edited, None),
            Standing::Answered { by, output } => (by, None, Some(output)),
            Standing::Open { .. } | Standing::Denied { .. } | Standing::Cancelled { .. } => return None,
        };
        let mut hooked = self.hooked(question.call_now(call)).await;
        let mut permits = question.held.clone();
        let mut approved_input = question.begins_with;
        let approvals = question.askers.iter().map(|asker| asker.permit.clone());
        turn.edited = question.edited.clone();
        match edited.as_ref().map(|given| self.edit(&hooked, &question, given)) {
            None | Some(Ok(Edit::Outdated)) => permits.extend(approvals),
            Some(Ok(Edit::Input(input))) => {
                approved_input = json::digest(&input);
                permits.extend(approvals.map(|permit| Permit { about: approved_input, ..permit }));
                hooked = self.hooked(call.with_input(input.clone())).await;
                turn.edited = Some(input);
            }
            Some(Err(reason)) => {
                return Some(self.denied(&hooked, &turn, Effect::Invalid, reason, started).await);
            }
        }
        turn.permits = permits;
        turn.journals = question.journals.clone();
        turn.approved = Some(Approved {
            approval_id: question.request.approval_id.clone(),
            by: by.clone(),
            remembered: false,
            edited: turn.edited.is_some(),
            used_once_by: ledger.used_once_by(),
        });
        let held = Held { limits: &[], permits: &turn.permits };
        let mut decision = hooked.decide(&self.kernel(), self.state, held);
        if let Some(reason) = self.unfit(&hooked.call, decision.input()) {
            if turn.holds_claim {
                return None;
            }
            return Some(self.denied(&hooked, &turn, Effect::Invalid, reason, started).await);
        }
        if decision.is_permitted() && json::digest(decision.input()) != approved_input {
            // Nobody asks about these arguments, but others were approved.
            for requirement in approvals_of_others(&question) {
                decision.require_approval(requirement, &turn.permits);
            }
        }
        if turn.holds_claim && !decision.is_permitted() {
            return None;
        }
        // A person's own result is no yes to run the tool later.
        let remembers = edited.is_none() && output.is_none();
        let ended = match output {
            Some(output) if decision.is_permitted() => {
                self.execute.give(&hooked, decision, &turn, output, self.state, started).await
            }
            _ => self.run(&hooked, decision, &turn, started).await,
        };
        match ended {
            Ok(outcome) => {
                if outcome.approved.is_some() {
                    self.state.note_yes(&same_question(call, &question.askers));
                }
                if remembers && outcome.approved.is_some() {
                    self.remember(ledger, call, &question, &by).await;
                }
                Some(self.over(&hooked, &turn, outcome).await)
            }
            // Whoever took it up, or answered, is seen when it is looked at anew.
            Err(Stopped::Elsewhere(_)) => None,
            Err(Stopped::Ledger(error)) => {
                Some(self.without_store(call, question.request, &error, started).await)
            }
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
        let question = match entry.question(&self.shared.services.keys) {
            // It was claimed for somebody else.
            Some(Ok((question, _))) if question.check_context(&call.context).is_err() => {
                let hooked = self.hooked(call.clone()).await;
                return self.unfinished(&hooked, NOT_AGAIN.to_owned(), started);
            }
            Some(Ok((question, token))) => {
                Some(Put { token: token.to_owned(), answers: entry.answers(), question })
            }
            Some(Err(_)) => {
                let hooked = self.hooked(call.clone()).await;
                return self.unfinished(&hooked, NOT_AGAIN.to_owned(), started);
            }
            None => None,
        };
        let turn = Turn { holds_claim: true, entry: Some(entry), ..Turn::first(name.clone(), true) };
        let outcome = match question {
            Some(put) => {
                let (standing, _) = self.shared.standing(&put);
                let ledger = self.shared.services.ledger(&*self.shared.clock, self.execute.account(call));
                let case = Case { ledger: &ledger, call, name, said: Said::default(), started };
                self.approved(case, turn, put.question, standing).await
            }
            None => {
                let hooked = self.hooked(call.clone()).await;
                let decision = hooked.decide(&self.kernel(), self.state, Held::default());
                match decision.is_permitted() {
                    true => match self.run(&hooked, decision, &turn, started).await {
                        Ok(outcome) => Some(self.over(&hooked, &turn, outcome).await),
                        Err(_) => None,
                    },
                    false => None,
                }
            }
        };
        match outcome {
            Some(outcome) => outcome,
            None => {
                let hooked = self.hooked(call.clone()).await;
                self.unfinished(&hooked, NOT_AGAIN.to_owned(), started)
            }
        }
    }

    /// Keeps the yes for later calls, where policies say so. A store that does not answer remembers nothing.
    async fn remember(&self, ledger: &Ledger<'_>, call: &ToolCall, question: &Question, by: &[String]) {
        let from = self.shared.clock.now();
        for Asker { permit, remember, .. } in &question.askers {
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
            if let Some(name) = key.names(&self.shared.services.keys).next() {
                let _ = ledger.keep_grant(&name, &grant).await;
            }
        }
    }
}

/// What those who asked about other arguments require of these: the same again.
fn approvals_of_others(question: &Question) -> impl Iterator<Item = Requirement> {
    let expires = question.lifetime();
    question.askers.iter().enumerate().map(move |(place, asker)| Requirement {
        asker: Asker { edits: Vec::new(), remember: None, ..asker.clone() },
        text: if place == 0 { CHANGED.to_owned() } else { String::new() },
        expires,
    })
}
