//! Open sessions of a run, and their incomplete rounds.

use std::collections::{BTreeMap, HashMap, HashSet};

use tokio::runtime::Runtime;

use crate::exit::CommandError;
use crate::output::{group_digits, print_warning};
use crate::run::CallLine;
use callgate::call::{CallRecord, Outcome};
use callgate::engine::Engine;
use callgate::safe_text::escape_controls;
use callgate::session::Session;
use callgate_analysis::recorded_executor::RecordedExecutor;

/// Maximum number of open sessions; beyond it, the one idle for longest is closed.
const MAX_OPEN_SESSIONS: usize = 10_000;
/// Maximum number of calls of a round.
const MAX_ROUND_CALLS: usize = 1000;
/// Maximum total size of lines waiting for their rounds; a call beyond it completes its round.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// With a state store, the session of calls that name none.
const DEFAULT_SESSION: &str = "default";

/// Whether and how sessions are persisted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionPersistence {
    /// Not at all: they end with the run.
    Off,
    /// In a state store; each session must be new.
    NewSessions,
    /// In a state store; known sessions are resumed.
    Resume,
}

/// Receives outcomes.
type OutcomeSink<'s> = &'s mut dyn FnMut(Outcome) -> Result<(), CommandError>;

/// All sessions of a run.
pub(crate) struct OpenSessions {
    engine: Engine,
    runtime: Runtime,
    persistence: SessionPersistence,
    /// Whether calls that are stopped count as having run, with their recorded results.
    keeps_recorded_course: bool,
    /// Persisted sessions that this run has closed.
    closed: HashSet<String>,
    /// By name; calls without one share a session.
    open: HashMap<Option<String>, OpenSession>,
    /// Time of last use → session name.
    by_last_use: BTreeMap<u64, Option<String>>,
    now: u64,
    opened: usize,
    waiting_bytes: usize,
    warned_of_rounds: bool,
    warned_of_sessions: bool,
}

struct OpenSession {
    session: Session,
    last_used: u64,
    /// The run of the last call, in a log.
    run: Option<String>,
    /// Calls of an incomplete round.
    round: Vec<CallRecord>,
    /// The number of calls of that round, if a log says it.
    round_size: Option<usize>,
    round_bytes: usize,
}

impl OpenSessions {
    pub(crate) fn new(engine: Engine, runtime: Runtime, persistence: SessionPersistence) -> Self {
        Self {
            engine,
            runtime,
            persistence,
            keeps_recorded_course: false,
            closed: HashSet::new(),
            open: HashMap::new(),
            by_last_use: BTreeMap::new(),
            now: 0,
            opened: 0,
            waiting_bytes: 0,
            warned_of_rounds: false,
            warned_of_sessions: false,
        }
    }

    /// Keeps the course of the recording, whatever the policies decide.
    #[must_use]
    pub(crate) fn with_recorded_course(self, keeps_recorded_course: bool) -> Self {
        Self { keeps_recorded_course, ..self }
    }

    /// Prepares for a call: with a state store, every session must have a name, and be new or resumable.
    ///
    /// # Errors
    /// If the state store already has the session and sessions are not resumed, or if it can't be read. None of the session's calls
    /// may be run then.
    pub(crate) fn prepare_session(&mut self, record: &mut CallRecord) -> Result<(), CommandError> {
        if self.persistence == SessionPersistence::Off {
            return Ok(());
        }
        let name = record.session.get_or_insert_with(|| DEFAULT_SESSION.to_owned()).clone();
        if self.open.contains_key(&record.session) || self.closed.contains(&name) {
            return Ok(());
        }
        let session = self.engine.session().with_name(&name);
        let is_new = self
            .runtime
            .block_on(session.begin_recorded())
            .map_err(|error| CommandError::new(error.to_string()))?;
        match is_new || self.persistence == SessionPersistence::Resume {
            true => Ok(()),
            false => Err(CommandError::new(format!(
                "the session `{}` is already in the state store; add `--resume` to resume it, or use another state store; none of \
                 its calls was run",
                escape_controls(&name)
            ))),
        }
    }

    /// Number of sessions opened so far.
    pub(crate) fn opened_count(&self) -> usize {
        self.opened
    }

    /// Adds a call, and shows the outcomes of the round that it completes, and its own outcome unless it waits for its own round.
    /// `bytes` is the size of the call in memory.
    pub(crate) fn add_call(
        &mut self,
        line: CallLine,
        bytes: usize,
        show: OutcomeSink<'_>,
    ) -> Result<(), CommandError> {
        let name = line.record.session.clone();
        let mut open = self.take_session(&name, show)?;
        if !open.is_in_round(&line) {
            self.run_round(&mut open, show)?;
        }
        open.enter_run(line.run);
        // Of a logged round it is known when it is complete.
        let is_complete = line.position.is_some_and(|position| position.index + 1 >= position.size);
        let in_round = line.record.round.is_some() || line.position.is_some() && !is_complete;
        open.round_size = line.position.map(|position| position.size);
        open.round.push(line.record);
        open.round_bytes += bytes;
        self.waiting_bytes += bytes;
        let full = open.round.len() >= MAX_ROUND_CALLS || self.waiting_bytes > MAX_WAITING_BYTES;
        if in_round && full && !self.warned_of_rounds {
            self.warned_of_rounds = true;
            print_warning(format!(
                "a round is decided in parts: at most {} calls of a round, and {} MiB of calls of all rounds, can wait",
                group_digits(MAX_ROUND_CALLS),
                MAX_WAITING_BYTES >> 20
            ));
        }
        if !in_round || full {
            self.run_round(&mut open, show)?;
        }
        self.open.insert(name, open);
        Ok(())
    }

    /// Completes and shows all remaining rounds.
    pub(crate) fn finish(&mut self, show: OutcomeSink<'_>) -> Result<(), CommandError> {
        while self.close_idlest(show)? {}
        Ok(())
    }

    /// Removes and returns the session of this name, or opens it, and marks it as the most recently used.
    fn take_session(
        &mut self,
        name: &Option<String>,
        show: OutcomeSink<'_>,
    ) -> Result<OpenSession, CommandError> {
        self.now += 1;
        let open = match self.open.remove(name) {
            Some(open) => {
                self.by_last_use.remove(&open.last_used);
                OpenSession { last_used: self.now, ..open }
            }
            None => {
                if self.open.len() >= MAX_OPEN_SESSIONS {
                    if !self.warned_of_sessions {
                        self.warned_of_sessions = true;
                        print_warning(format!(
                            "more than {} sessions are open at once: those idle for longest are closed, and a later call of one {}",
                            group_digits(MAX_OPEN_SESSIONS),
                            match self.persistence {
                                SessionPersistence::Off => "begins a new, empty session",
                                SessionPersistence::NewSessions | SessionPersistence::Resume => "resumes it",
                            }
                        ));
                    }
                    self.close_idlest(show)?;
                }
                self.opened += 1;
                let session = match name {
                    Some(name) => self.engine.session().with_name(name),
                    None => self.engine.session(),
                };
                let session = if self.persistence == SessionPersistence::Off {
                    session
                } else {
                    session.with_call_recording()
                };
                let mut session = session;
                session.keep_recorded_course(self.keeps_recorded_course);
                OpenSession {
                    session,
                    last_used: self.now,
                    run: None,
                    round: Vec::new(),
                    round_size: None,
                    round_bytes: 0,
                }
            }
        };
        self.by_last_use.insert(self.now, name.clone());
        Ok(open)
    }

    /// Completes the round of the session idle for longest, and closes it. Returns whether there was one.
    fn close_idlest(&mut self, show: OutcomeSink<'_>) -> Result<bool, CommandError> {
        let Some((_, name)) = self.by_last_use.pop_first() else { return Ok(false) };
        if let Some(mut open) = self.open.remove(&name) {
            self.run_round(&mut open, show)?;
            if self.persistence != SessionPersistence::Off {
                self.closed.extend(name);
            }
        }
        Ok(true)
    }

    /// Runs the calls of a session's round.
    fn run_round(&mut self, open: &mut OpenSession, show: OutcomeSink<'_>) -> Result<(), CommandError> {
        if open.round.is_empty() {
            return Ok(());
        }
        self.waiting_bytes = self.waiting_bytes.saturating_sub(std::mem::take(&mut open.round_bytes));
        if let Some(task) = open.round.iter().filter_map(CallRecord::task).next_back() {
            open.session.set_task(task);
        }
        let (calls, player) = RecordedExecutor::split_round(std::mem::take(&mut open.round));
        let outcomes = self.runtime.block_on(open.session.execute_round(calls, &player));
        outcomes.into_iter().try_for_each(show)
    }
}

impl OpenSession {
    /// Whether a call belongs to the waiting calls.
    fn is_in_round(&self, line: &CallLine) -> bool {
        if let (Some(size), Some(position)) = (self.round_size, line.position) {
            return position.size == size && position.index == self.round.len();
        }
        let waiting = self.round.first().and_then(|record| record.round.as_ref());
        matches!((waiting, &line.record.round), (Some(waiting), Some(round)) if waiting == round)
    }

    /// Begins a run of the session, if the log says that the next call belongs to another one.
    fn enter_run(&mut self, run: Option<String>) {
        if run.is_some() && self.run != run && std::mem::replace(&mut self.run, run).is_some() {
            self.session.state_mut().start_new_run();
        }
    }
}
