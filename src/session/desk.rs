//! One call at a time: its first turn, and every later one in which it is taken up again.

use std::time::{Duration, Instant};

use super::Shared;
use super::judged::Said;
use super::made::Made;
use super::offered::Offered;
use super::spending::Spending;
use super::told::Telling;
use crate::approval::{Entry, LedgerError, Name, Stage};
use crate::call::{
    Amount, ApprovalRequest, Outcome, OutcomeKind, Reason, SessionState, ToolCall, reason_code,
};
use crate::execution::{Execute, Hooked, Hooks, Stopped, Turn};
use crate::host::{Account, StoreError, ToolExecutor, ToolSpan, guarded};
use crate::kernel::{Decision, Effect, Ended, Event, Held, Kernel, tell};
use crate::middleware::{AtBound, Used};

/// How long a call is waited for that someone else runs.
const OTHERS_PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked at meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What one call after the other is brought to its outcome with.
pub(super) struct Desk<'d, E> {
    pub(super) shared: &'d Shared,
    pub(super) execute: Execute<'d, E>,
    pub(super) state: &'d mut SessionState,
    pub(super) conversation: &'d str,
    /// Every call is noted in the ledger, not only those that people are asked about.
    pub(super) recorded: bool,
    /// How models are told of outcomes.
    pub(super) telling: &'d Telling,
    /// The tools that the model was offered, where that is known.
    pub(super) offered: Option<&'d Offered>,
    /// What came of the calls of the present round.
    pub(super) made: &'d mut Made,
}

/// What the ledger knows of a call.
#[derive(Clone)]
pub(super) enum Known {
    /// Nothing.
    New(Name),
    /// It had a turn.
    Earlier(Name),
    /// The ledger can't be asked.
    Unknown(Name, LedgerError),
}

/// What came of a call that someone else took up.
pub(super) enum Elsewhere {
    /// It is over, or nobody knows how it ended.
    Over(Box<Outcome>),
    /// They never came back, and it may run twice: it is this one's now.
    Abandoned(Box<Entry>),
    /// Nobody knows how it ended, for this reason.
    Unknown(String),
}

impl<'d, E: ToolExecutor> Desk<'d, E> {
    /// What decides.
    pub(super) fn kernel(&self) -> Kernel<'d> {
        self.execute.kernel
    }

    /// The host's own code.
    fn hooks(&self) -> Hooks<'d> {
        self.execute.hooks()
    }

    /// What hooks make of a call. Where one of them ended the run, nothing begins any more.
    pub(super) async fn hooked(&mut self, call: ToolCall) -> Hooked {
        let hooked = self.hooks().before(call).await;
        if let Some(reason) = self.execute.run.aborted() {
            self.state.halt(&reason);
        }
        hooked
    }

    /// The budgets of the session.
    pub(super) fn spending(&self) -> Spending<'d> {
        let Self { shared, conversation, .. } = *self;
        Spending { shared, kernel: self.execute.kernel, run: self.execute.run, conversation }
    }

    /// Brings a decided call to its outcome, as far as budgets let it. Only a call that may have reached its tool is counted.
    pub(super) async fn run<'c>(
        &mut self,
        hooked: &'c Hooked,
        mut decision: Decision<'c>,
        turn: &Turn,
        started: Instant,
    ) -> Result<Outcome, Stopped> {
        let spending = self.spending();
        let (mut taken, mut shadows) = (None, Vec::new());
        // What is refused anyway takes nothing; what is run again was counted when it was run first.
        if decision.effect() < Effect::Invalid && !turn.holds_claim {
            let one = Used { calls: Some(Amount::whole(1)), ..Used::default() };
            let counted = spending.take(self.state, one, |_| true, &mut shadows).await;
            for shadow in shadows {
                decision.note(shadow.policy, shadow.verdict());
            }
            match counted {
                Ok(counted) => taken = Some(counted),
                Err(used_up) => {
                    decision.note(used_up.policy, used_up.verdict());
                    let halts = used_up.at_bound == AtBound::Halt;
                    decision.refuse(if halts { Effect::Halt } else { Effect::Deny }, used_up.reason, None);
                }
            }
        }
        // On the heap: everything around a tool would else lie in each future that waits for it.
        let ended = Box::pin(self.execute.run(hooked, decision, turn, self.state, started)).await;
        let has_run = ended.as_ref().is_ok_and(|outcome| has_run(outcome.outcome));
        if let Some(taken) = taken.filter(|_| !has_run) {
            self.spending().give_back(self.state, taken).await;
        }
        ended
    }

    /// Shows an outcome to the observers.
    pub(super) fn report(&self, session: Option<&str>, mut outcome: Outcome) -> Outcome {
        outcome.session = session.map(str::to_owned);
        tell(self.execute.kernel.listener, &Event::Ended(&outcome));
        // What is only told again they have seen.
        if outcome.replayed || self.shared.observers.is_empty() {
            return outcome;
        }
        if outcome.outcome != OutcomeKind::Suspended {
            let run = self.execute.run;
            let shown = self.telling.result(&outcome).map(|result| result.output.text());
            let span = ToolSpan {
                request_id: &run.request_id,
                iteration: run.iteration,
                outcome: &outcome,
                shown: shown.as_deref(),
            };
            self.shared.tell(|observer| observer.on_tool_end(&span));
        }
        self.shared.tell(|observer| observer.on_outcome(&outcome));
        outcome
    }

    /// What the ledger knows of a call, where it notes every one. A name that is another call's is passed over.
    /// `seen`: whether the store said what the session has seen.
    pub(super) async fn look_up(
        &mut self,
        call: &ToolCall,
        occurrence: String,
        seen: &Result<(), StoreError>,
    ) -> Known {
        let mut name = self.name(occurrence);
        if !self.recorded {
            return Known::New(name);
        }
        if let Err(error) = seen {
            return Known::Unknown(name, error.clone().into());
        }
        let ledger = self.shared.services.ledger(&*self.shared.clock, self.execute.account(call));
        loop {
            match ledger.find(&name).await {
                Ok(None) => return Known::New(name),
                Ok(Some(entry)) if entry.is_of(call) => return Known::Earlier(name),
                Ok(Some(_)) => name.occurrence = self.state.name_occurrence(&call.id),
                Err(error) => return Known::Unknown(name, error),
            }
        }
    }

    /// A later turn of a call that the ledger knows, or can't be asked about.
    pub(super) async fn later(&mut self, call: &ToolCall, known: Known, started: Instant) -> Outcome {
        match known {
            Known::Unknown(name, error) => {
                let turn = Turn::first(name, false);
                let hooked = self.hooked(call.clone()).await;
                let mut decision = hooked.decide(&self.kernel(), self.state, Held::default());
                decision.refuse(Effect::Deny, unreachable_store(&error), None);
                // It is not noted as its end: for all that is known the call may have run, or waits with its answer.
                self.execute.refuse(&hooked, decision, &turn, self.state, started).await
            }
            Known::Earlier(name) | Known::New(name) => {
                self.take_up(call, &name, Said::default(), started).await.outcome
            }
        }
    }

    /// The name under which the ledger has the session's approvals.
    pub(super) fn approvals(&self) -> &'d str {
        self.execute.approval_scope.unwrap_or(self.conversation)
    }

    /// A call's name among all calls.
    pub(super) fn name(&self, occurrence: String) -> Name {
        Name { conversation: self.approvals().to_owned(), occurrence }
    }

    /// The first turn of a call that was decided.
    pub(super) async fn first<'c>(
        &mut self,
        hooked: &'c Hooked,
        decision: Decision<'c>,
        name: Name,
        started: Instant,
    ) -> Outcome {
        let tool = self.kernel().tools.get(&hooked.call);
        let once = self.recorded || tool.is_some_and(|tool| tool.descriptor.once);
        let turn = Turn::first(name, once);
        match self.run(hooked, decision, &turn, started).await {
            Ok(outcome) => self.over(hooked, &turn, outcome).await,
            Err(Stopped::Elsewhere(entry)) => match self.elsewhere(hooked.requested(), &turn, *entry).await {
                Elsewhere::Over(outcome) => *outcome,
                Elsewhere::Abandoned(entry) => {
                    Box::pin(self.run_again(hooked.requested(), &turn.name, *entry, started)).await
                }
                Elsewhere::Unknown(message) => self.unfinished(hooked, message, started),
            },
            Err(Stopped::Ledger(error)) => {
                let reason = unreachable_store(&error);
                Box::pin(self.denied(hooked, &turn, Effect::Deny, reason, started)).await
            }
        }
    }

    /// Notes how a call ended, and tells who watches.
    pub(super) async fn over(&mut self, hooked: &Hooked, turn: &Turn, mut outcome: Outcome) -> Outcome {
        let call = &hooked.call;
        if outcome.outcome != OutcomeKind::Suspended && !self.execute.hooks.is_empty() {
            let (kernel, state) = (self.kernel(), &*self.state);
            outcome = self.hooks().after(call, outcome, |outcome| kernel.hide(call, outcome, state)).await;
        }
        // Whatever fails here, the outcome stands.
        let _ = guarded(self.note_end(hooked.requested(), turn, &outcome)).await;
        outcome
    }

    async fn note_end(&self, requested: &ToolCall, turn: &Turn, outcome: &Outcome) {
        let ledger = self.shared.services.ledger(&*self.shared.clock, self.execute.account(requested));
        // A call that the ledger has as over is one whose traces in the session are kept: the other way round, a process that
        // ends in between would lose them.
        let kept = match self.recorded {
            true => self.keep_what_was_seen().await,
            false => Ok(()),
        };
        if outcome.outcome == OutcomeKind::Suspended {
            if let Some(request) = &outcome.approval {
                let name = Name { occurrence: occurrence_of(request), ..turn.name.clone() };
                // A store that does not answer can't say that they know.
                if ledger.tell_once(&name, false).await.unwrap_or(true) {
                    self.shared.tell(|observer| observer.on_request(request));
                }
            }
        } else if kept.is_ok() && (turn.is_claimed() || turn.entry.is_some() || self.recorded) {
            // Without it, the ledger says that nobody knows how the call ended: it is never run again for that.
            let _ = ledger.settle(&turn.name, &turn.entry(requested), outcome).await;
        }
    }

    /// Without which calls came: every call has an entry of its own, and the list would grow with each.
    async fn keep_what_was_seen(&self) -> Result<(), StoreError> {
        let state = self.state.clone().without_occurrences();
        let account = Account::from_context(&self.execute.run.context);
        self.shared.keep_in_store(self.conversation, account, &state).await
    }

    /// A call that does not run, for a reason that lies outside of the rules.
    pub(super) async fn denied(
        &mut self,
        hooked: &Hooked,
        turn: &Turn,
        effect: Effect,
        reason: Reason,
        started: Instant,
    ) -> Outcome {
        let mut decision = hooked.decide(&self.kernel(), self.state, Held::default());
        decision.refuse(effect, reason, None);
        let outcome = self.execute.refuse(hooked, decision, turn, self.state, started).await;
        self.over(hooked, turn, outcome).await
    }

    /// A call that someone else took up: what came of it, as soon as they say so. If they do not, nobody knows; one that may
    /// run twice is then claimed anew.
    pub(super) async fn elsewhere(&mut self, call: &ToolCall, turn: &Turn, mut entry: Entry) -> Elsewhere {
        let clock = &*self.shared.clock;
        let ledger = self.shared.services.ledger(clock, self.execute.account(call));
        let mut waited = Duration::ZERO;
        loop {
            match entry.stage {
                Stage::Settled { outcome, .. } => {
                    return Elsewhere::Over(Box::new(Outcome { replayed: true, ..*outcome }));
                }
                Stage::Claimed { at } if waited >= OTHERS_PATIENCE => {
                    let tool = self.execute.kernel.tools.get(call);
                    if tool.is_some_and(|tool| tool.descriptor.idempotent)
                        && ledger.reclaim(&turn.name, at).await == Ok(true)
                    {
                        return Elsewhere::Abandoned(Box::new(entry));
                    }
                    let message = format!(
                        "a run of this call began at {at} and never said how it ended; it is not run again, for it may have \
                         taken effect"
                    );
                    if self.recorded {
                        // Nor is it known what it has left in the session.
                        self.state.distrust();
                        let _ = self.keep_what_was_seen().await;
                    }
                    return Elsewhere::Unknown(message);
                }
                Stage::Claimed { .. } | Stage::Waiting if waited < OTHERS_PATIENCE => {}
                Stage::Claimed { .. } | Stage::Waiting => {
                    let message = "its question was answered otherwise meanwhile; take the session up again";
                    return Elsewhere::Unknown(message.to_owned());
                }
            }
            clock.sleep(LOOK_AGAIN).await;
            waited += LOOK_AGAIN;
            match ledger.find(&turn.name).await {
                Ok(Some(found)) => entry = found,
                Ok(None) | Err(_) => {
                    let message = "it is not known whether it ran: the store does not say".to_owned();
                    return Elsewhere::Unknown(message);
                }
            }
        }
    }

    /// A call of which nobody knows how it ended.
    pub(super) fn unfinished(&mut self, hooked: &Hooked, message: String, started: Instant) -> Outcome {
        let reason = Reason { policy: None, code: reason_code::UNFINISHED.to_owned(), message };
        self.indeterminate(hooked, reason, started)
    }

    /// A call of which nobody knows how it ended, for this reason.
    pub(super) fn indeterminate(&mut self, hooked: &Hooked, reason: Reason, started: Instant) -> Outcome {
        let decision = hooked.decide(&self.kernel(), self.state, Held::default());
        let ended = Ended::Broken(None, reason, OutcomeKind::Indeterminate);
        self.execute.kernel.settle(decision, ended.into(), self.state, started)
    }

    /// A call that goes on waiting under the question that stands.
    pub(super) fn waiting(&self, call: &ToolCall, request: ApprovalRequest, why: Option<String>) -> Outcome {
        let message = why.or_else(|| request.message.clone()).unwrap_or_default();
        let policy = request.policies.first().cloned();
        let reason = Reason { policy, code: reason_code::APPROVAL_REQUIRED.to_owned(), message };
        let of = (call.id.as_str(), call.tool.as_str());
        let (input, revision) = (request.input.clone(), self.execute.kernel.revision());
        Outcome {
            approval: Some(request),
            replayed: true,
            ..Outcome::new(of, OutcomeKind::Suspended, input, reason, revision)
        }
    }
}

/// Whether a call with this outcome may have reached its tool.
fn has_run(kind: OutcomeKind) -> bool {
    use OutcomeKind::{Aborted, Executed, Failed, Indeterminate, Recovered};
    matches!(kind, Executed | Failed | Recovered | Indeterminate | Aborted)
}

/// Why a call is not run whose store does not answer.
pub(super) fn unreachable_store(error: &LedgerError) -> Reason {
    let message = format!("it can't be known whether this call ran already: {error}");
    Reason { policy: None, code: error.code().to_owned(), message }
}

/// The name of a question's call.
pub(super) fn occurrence_of(request: &ApprovalRequest) -> String {
    let id = request.approval_id.as_str();
    id.strip_prefix("approval_").unwrap_or(id).to_owned()
}
