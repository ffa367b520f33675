//! Replays recorded calls under rules: rounds in the order of their recording → decisions.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

use callgate::call::{CallRecord, Effect};
use callgate::engine::Engine;
use callgate::host::ManualClock;
use callgate::policy::CompiledPolicies;
use callgate::session::Session;
use callgate::tools::ToolDescriptor;
use jiff::Timestamp;

use super::replay_store::{CountedUse, ReplayStore};
use crate::recorded_executor::RecordedExecutor;
use crate::recording::{CallDecision, CallStage, RecordedCall};

/// The most open sessions; beyond it, the one idle for longest is closed.
const MAX_OPEN_SESSIONS: usize = 10_000;
/// The most suspended calls whose use of limits is kept until they run.
const MAX_PENDING_CALLS: usize = 100_000;
/// Makes what is random in rules the same in each replay.
const SEED: u64 = 0;

/// Recorded calls under one version of the rules.
///
/// The course is that of the recording: a call that ran counts as having run, with its recorded result, whatever the rules decide now,
/// and a call that did not run changes nothing of its session that it did not change when it was recorded.
pub struct Replay {
    engine: Engine,
    clock: ManualClock,
    store: Arc<ReplayStore>,
    /// What suspended calls used of limits and budgets. By session and id.
    pending: HashMap<(Option<String>, String), CountedUse>,
    open: HashMap<Option<String>, OpenSession>,
    /// Time of last use → session name.
    by_last_use: BTreeMap<u64, Option<String>>,
    uses: u64,
    closed: u64,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

struct OpenSession {
    session: Session,
    run: Option<String>,
    last_used: u64,
}

impl Replay {
    /// A replay under these rules. `start` is the time of calls before the first one whose time is recorded.
    pub fn new(policies: Arc<CompiledPolicies>, tools: &[ToolDescriptor], start: Timestamp) -> Self {
        let clock = ManualClock::new(start);
        let store = Arc::new(ReplayStore::default());
        let engine = Engine::builder(policies)
            .tools(tools.iter().cloned())
            .clock(clock.clone())
            .limit_store(store.clone())
            .record_store(store.clone())
            .seed(SEED)
            .build();
        Self {
            engine,
            clock,
            store,
            pending: HashMap::new(),
            open: HashMap::new(),
            by_last_use: BTreeMap::new(),
            uses: 0,
            closed: 0,
        }
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
        let mut open = self.take_session(&name, first);
        if first.run.is_some()
            && open.run != first.run
            && mem::replace(&mut open.run, first.run.clone()).is_some()
        {
            open.session.state_mut().start_new_run();
        }
        if let Some(task) = round.iter().filter_map(|call| call.record.task()).next_back() {
            open.session.set_task(task);
        }
        let decisions = self.run_counted(&mut open.session, round);
        self.open.insert(name, open);
        decisions
    }

    /// Runs a round. A call that was suspended before uses nothing of limits and budgets that it used then.
    fn run_counted(&mut self, session: &mut Session, round: &[RecordedCall]) -> Vec<CallDecision> {
        let name = |call: &RecordedCall| (call.record.session.clone(), call.record.call.id.clone());
        let resumed = round.iter().find(|call| call.stage == CallStage::Resumed);
        let counted = resumed.and_then(|call| self.pending.remove(&name(call))).unwrap_or_default();
        self.store.begin(counted);
        let decisions = self.run(session, round);
        let limits = self.store.end();
        // Of several calls of a round it is not known which one used what.
        if let ([call], [decision]) = (round, decisions.as_slice())
            && call.was_suspended()
            && self.pending.len() < MAX_PENDING_CALLS
        {
            let counted = CountedUse { limits, budgets: decision.effect == Effect::Run };
            self.pending.insert(name(call), counted);
        }
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
    /// A new one has the context of its first call, because principals have budgets.
    fn take_session(&mut self, name: &Option<String>, first: &RecordedCall) -> OpenSession {
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
                let session = self.engine.session().with_context(first.record.call.context.clone());
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
