//! Replays recorded calls under rules: rounds in the order of their recording → decisions.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

use callgate::call::{CallRecord, Effect};
use callgate::engine::Engine;
use callgate::host::ManualClock;
use callgate::policy::CompiledPolicies;
use callgate::session::Session;
use callgate::state::BudgetRecords;
use callgate::tools::ToolDescriptor;
use jiff::Timestamp;

use super::decision::CallDecision;
use super::recorded_call::RecordedCall;
use crate::recorded_executor::RecordedExecutor;

/// The most open sessions; beyond it, the one idle for longest is closed.
const MAX_OPEN_SESSIONS: usize = 10_000;
/// Makes what is random in rules the same in each replay.
const SEED: u64 = 0;

/// Recorded calls under one version of the rules.
///
/// The course is that of the recording: a call that ran counts as having run, with its recorded result, whatever the rules decide now,
/// and a call that did not run changes nothing of its session that it did not change when it was recorded.
#[derive(Debug)]
pub struct Replay {
    engine: Engine,
    clock: ManualClock,
    open: HashMap<Option<String>, OpenSession>,
    /// Time of last use → session name.
    by_last_use: BTreeMap<u64, Option<String>>,
    uses: u64,
    closed: u64,
}

#[derive(Debug)]
struct OpenSession {
    session: Session,
    run: Option<String>,
    last_used: u64,
}

impl Replay {
    /// A replay under these rules. `start` is the time of calls before the first one whose time is recorded.
    pub fn new(policies: Arc<CompiledPolicies>, tools: &[ToolDescriptor], start: Timestamp) -> Self {
        let clock = ManualClock::new(start);
        let engine = Engine::builder(policies)
            .tools(tools.iter().cloned())
            .clock(clock.clone())
            .record_store(Arc::new(BudgetRecords::default()))
            .seed(SEED)
            .build();
        Self { engine, clock, open: HashMap::new(), by_last_use: BTreeMap::new(), uses: 0, closed: 0 }
    }

    /// The number of sessions that were closed because too many were open.
    pub fn closed_sessions(&self) -> u64 {
        self.closed
    }

    /// Decides the calls of a round.
    pub fn decide(&mut self, round: &[RecordedCall]) -> Vec<CallDecision> {
        let Some(first) = round.first() else { return Vec::new() };
        if let Some(time) = first.time {
            self.clock.set(time);
        }
        let name = first.record.session.clone();
        let mut open = self.take_session(&name);
        if first.run.is_some()
            && open.run != first.run
            && mem::replace(&mut open.run, first.run.clone()).is_some()
        {
            open.session.state_mut().start_new_run();
        }
        if let Some(task) = round.iter().filter_map(|call| call.record.task()).next_back() {
            open.session.set_task(task);
        }
        let decisions = self.run(&mut open.session, round);
        self.open.insert(name, open);
        decisions
    }

    fn run(&self, session: &mut Session, round: &[RecordedCall]) -> Vec<CallDecision> {
        let has_run = round.iter().any(RecordedCall::has_run);
        let before = (!has_run).then(|| session.state().clone());
        session.keep_recorded_course(has_run);
        let records: Vec<CallRecord> = round.iter().map(|call| call.record.clone()).collect();
        let (mut calls, executor) = RecordedExecutor::split_round(records);
        let outcomes = match (calls.pop(), calls.is_empty()) {
            (Some(call), true) => vec![self.clock.block_on(session.execute(call, &executor))],
            (last, _) => {
                calls.extend(last);
                self.clock.block_on(session.execute_round(calls, &executor))
            }
        };
        let decisions: Vec<_> = outcomes.iter().map(CallDecision::from_outcome).collect();
        let has = |effect: Effect| decisions.iter().any(|decision| decision.effect == effect);
        let was_halted = round.iter().any(RecordedCall::was_halted);
        let state = session.state_mut();
        match before {
            // A call that runs now has no result, and a halt that is new stops no recorded call.
            Some(before) if has(Effect::Run) || has(Effect::Halt) && !was_halted => *state = before,
            None if has(Effect::Halt) && was_halted => state.halt("the session was halted"),
            _ => {}
        }
        // No call is resumed by its name.
        *state = mem::take(state).without_occurrences();
        decisions
    }

    /// Removes and returns the session of this name, or opens it, and marks it as the most recently used.
    fn take_session(&mut self, name: &Option<String>) -> OpenSession {
        self.uses += 1;
        let last_used = self.uses;
        let open = match self.open.remove(name) {
            Some(open) => {
                self.by_last_use.remove(&open.last_used);
                OpenSession { last_used, ..open }
            }
            None => {
                if self.open.len() >= MAX_OPEN_SESSIONS
                    && let Some((_, idlest)) = self.by_last_use.pop_first()
                {
                    self.open.remove(&idlest);
                    self.closed += 1;
                }
                let session = self.engine.session();
                let session = match name {
                    Some(name) => session.with_name(name),
                    None => session,
                };
                OpenSession { session, run: None, last_used }
            }
        };
        self.by_last_use.insert(last_used, name.clone());
        open
    }
}
