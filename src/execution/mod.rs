//! The execution of a call that gate has decided: limits are taken, policies wrap the tool, and what comes of it is settled.
//!
//! The kernel decides and settles without ever waiting; all waiting is done here.

mod admission;
mod again;
mod asking;
mod flights;
mod hooks;
mod hosted;
mod nest;
mod scripted;
mod services;
mod turn;

pub(crate) use asking::same_question;
pub(crate) use hooks::{Hooked, Hooks};
pub(crate) use services::{AcceptsAnswer, Services};
pub(crate) use turn::Turn;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use crate::approval::{Entry, LedgerError};
use crate::call::{Outcome, OutcomeKind, SessionState, ToolCall};
use crate::host::{Account, Observer, ToolExecutor, ToolStart};
use crate::json::{self, Digest, Value};
use crate::kernel::{Decision, Effect, Ended, Event, Held, Kernel, Records, tell};
use crate::lifecycle::{Middleware, RunContext};
use crate::meter::Meter;
use admission::Taken;
use nest::Nest;

/// What the execution of calls of one session needs.
pub(crate) struct Execute<'e, E> {
    /// What decides and settles.
    pub(crate) kernel: Kernel<'e>,
    /// What all calls share.
    pub(crate) services: &'e Services,
    /// The tools.
    pub(crate) executor: &'e E,
    /// The session's own name among all sessions.
    pub(crate) session: &'e str,
    /// The host's own code, the outermost first.
    pub(crate) hooks: &'e [Arc<dyn Middleware>],
    /// What hooks know of the run.
    pub(crate) run: &'e RunContext,
    /// Where the session finds approvals by what a call is: the requester's own name. `None`: they are kept by conversation and call id.
    pub(crate) approval_scope: Option<&'e str>,
    /// Who watches.
    pub(crate) observers: &'e [Box<dyn Observer>],
}

/// Why a call was not brought to an outcome here.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// Someone else has taken it up, or its question was answered otherwise meanwhile; this is how far it is.
    Elsewhere(Box<Entry>),
    /// The ledger can't be asked.
    Ledger(LedgerError),
}

impl<'e, E: ToolExecutor> Execute<'e, E> {
    /// Whose share of the store a call is charged to.
    pub(crate) fn account(&self, call: &ToolCall) -> Account {
        let context = if call.context.is_null() { &self.run.context } else { &call.context };
        Account::from_context(context)
    }

    /// The host's hooks around each call.
    pub(crate) fn hooks(&self) -> Hooks<'e> {
        Hooks { all: self.hooks, run: self.run, tools: self.kernel.tools, observers: self.observers }
    }

    /// Brings a decided call to its outcome. A call that runs at most once is claimed in the ledger before it runs, and settled
    /// there. Errors: it could not be claimed; nothing ran then.
    pub(crate) async fn run<'c>(
        &self,
        hooked: &'c Hooked,
        decision: Decision<'c>,
        turn: &Turn,
        state: &mut SessionState,
        started: Instant,
    ) -> Result<Outcome, Stopped> {
        let meter = Meter::after_decision(decision.work());
        meter.scope(self.run_metered(hooked, decision, turn, state, started)).await
    }

    async fn run_metered<'c>(
        &self,
        hooked: &'c Hooked,
        mut decision: Decision<'c>,
        turn: &Turn,
        state: &mut SessionState,
        started: Instant,
    ) -> Result<Outcome, Stopped> {
        let held = Held { limits: &[], permits: &turn.permits };
        let remembered =
            self.remembered(hooked.requested(), &decision, held, state).await.map(|(permits, approved)| {
                decision = hooked.decide(&self.kernel, state, Held { permits: &permits, ..held });
                approved
            });
        let mut taken = Taken::default();
        admission::admit(&self.kernel, self.services, &mut decision, &mut taken, state).await;
        let runs = decision.effect() == Effect::Run;
        if runs && turn.is_claimed() {
            self.claim(hooked, turn).await?;
        }
        if runs {
            tell(self.kernel.listener, &Event::Executing(decision.call()));
            self.tell_start(&decision, state);
        }
        let mut outcome = match decision.effect() {
            Effect::Run => {
                let nest = Nest::new(self, hooked.requested(), turn, &mut taken, state);
                // On the heap, as what is around a tool is large, and a tool may make calls itself.
                match Box::pin(nest.run(&mut decision)).await {
                    Ok(execution) => self.kernel.settle(decision, execution, state, started),
                    Err((inner, records)) => {
                        let begins_with = Some(json::digest(decision.input()));
                        let on_its_way = OnItsWay { records, begins_with, claimed: turn.is_claimed() };
                        self.refuse_on_its_way(hooked, *inner, turn, on_its_way, state, started).await
                    }
                }
            }
            Effect::Answer => match (decision.given(), decision.answer()) {
                (Some((by, output)), _) => {
                    self.kernel.settle(decision, Ended::Given(output, vec![by]).into(), state, started)
                }
                (None, Some((by, output))) => {
                    self.kernel.settle(decision, Ended::Answered(by, output).into(), state, started)
                }
                (None, None) => self.refuse(hooked, decision, turn, state, started).await,
            },
            Effect::Suspend | Effect::Invalid | Effect::Deny | Effect::Halt => {
                self.refuse(hooked, decision, turn, state, started).await
            }
        };
        if runs && outcome.outcome != OutcomeKind::Suspended {
            outcome.approved = turn.approved.clone().or(remembered);
        }
        Ok(outcome)
    }

    fn tell_start(&self, decision: &Decision<'_>, state: &SessionState) {
        if self.observers.is_empty() {
            return;
        }
        let (call, args) = (decision.call(), self.kernel.shown_input(decision, state));
        let start = ToolStart {
            request_id: &self.run.request_id,
            iteration: self.run.iteration,
            call_id: &call.id,
            tool: &call.tool,
            server: call.server.as_deref(),
            args: &args,
        };
        for observer in self.observers {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.on_tool_start(&start)));
        }
    }

    /// The outcome of a call that a person answered in the tool's place.
    pub(crate) async fn give(
        &self,
        hooked: &Hooked,
        decision: Decision<'_>,
        turn: &Turn,
        output: Value,
        state: &mut SessionState,
        started: Instant,
    ) -> Result<Outcome, Stopped> {
        self.claim(hooked, turn).await?;
        let by = turn.approved.as_ref().map(|approved| approved.by.clone()).unwrap_or_default();
        let mut outcome = self.kernel.settle(decision, Ended::Given(output, by).into(), state, started);
        outcome.approved = turn.approved.clone();
        Ok(outcome)
    }

    /// The outcome of a call that does not run; one that waits for a person is asked about.
    pub(crate) async fn refuse(
        &self,
        hooked: &Hooked,
        decision: Decision<'_>,
        turn: &Turn,
        state: &mut SessionState,
        started: Instant,
    ) -> Outcome {
        self.refuse_on_its_way(hooked, decision, turn, OnItsWay::default(), state, started).await
    }

    async fn refuse_on_its_way(
        &self,
        hooked: &Hooked,
        mut decision: Decision<'_>,
        turn: &Turn,
        on_its_way: OnItsWay,
        state: &mut SessionState,
        started: Instant,
    ) -> Outcome {
        let OnItsWay { records, begins_with, claimed } = on_its_way;
        let asked = self.prepare(hooked, &mut decision, begins_with, turn, state);
        let outcome = self.kernel.refuse(decision, &turn.approval_id(), records, state, started);
        match asked {
            Some(asked) if outcome.outcome == OutcomeKind::Suspended => {
                self.ask(hooked, outcome, asked, turn, claimed).await
            }
            _ => outcome,
        }
    }
}

/// What was done already for a call that policies around its execution stop before its tool is called.
#[derive(Default)]
struct OnItsWay {
    records: Records,
    /// The digest of the arguments with which the call began to run, where it did.
    begins_with: Option<Digest>,
    claimed: bool,
}
