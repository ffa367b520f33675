//! The queue of a concurrent session: gives each call its position, lets it wait for earlier calls, and applies its changes in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::call::{SessionChanges, SessionState, Task, ToolCall};
use crate::execution::HookedCall;
use crate::host::with_deadline;
use crate::kernel::SessionUse;
use crate::policy::CompiledPolicies;
use crate::session::Session;

/// How long a call waits for those before it. Then the session's state is unknown, which is stricter than any
/// answer: a call whose tool itself waits for this one must not block both for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a call may wait for those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It is one of the calls of the agent.
    Queued,
    /// An earlier call waits for it.
    Nested,
}

impl Order {
    fn patience(self) -> Duration {
        match self {
            Self::Queued => PATIENCE,
            Self::Nested => Duration::ZERO,
        }
    }
}

pub(super) struct Inner {
    pub(super) line: Mutex<CallQueue>,
    /// The requester's own name, under which its approvals are found again in every conversation.
    pub(super) approval_scope: Option<String>,
    /// The rules for the calls of one server alone.
    pub(super) rules_of: Box<RulesOf>,
    /// Changes when a call ends, or is known not to halt the run.
    pub(super) left: watch::Sender<u64>,
    /// Held while the store is written to, so that an older state never replaces a later one.
    pub(super) keeping: tokio::sync::Mutex<()>,
}

/// The rules for the calls of one server alone, if there are any.
pub(super) type RulesOf = dyn Fn(&str) -> Option<Arc<CompiledPolicies>> + Send + Sync;

/// The session, and the calls that are running.
pub(super) struct CallQueue {
    /// The session, with the changes of all calls before the first one that runs.
    pub(super) session: Session,
    /// The position of the next call.
    pub(super) next: u64,
    /// The running calls, by position: whether they may halt the run.
    pub(super) under_way: BTreeMap<u64, bool>,
    /// The changes of calls that ended while an earlier call runs, by position.
    pub(super) ended: BTreeMap<u64, SessionChanges>,
}

/// The earlier calls for which a call waits.
#[derive(Clone, Copy)]
pub(super) enum WaitsFor {
    None,
    /// Those that may halt the run.
    Halting,
    All,
}

impl CallQueue {
    /// The state as a call at this position sees it.
    pub(super) fn seen_from(&self, position: u64) -> SessionState {
        let mut state = self.session.state.clone();
        self.ended.range(..position).for_each(|(_, changes)| state.apply_changes(changes));
        state
    }

    /// The session for a call at this position.
    pub(super) fn session_for(&self, position: u64, layer: Option<Arc<CompiledPolicies>>) -> Session {
        self.session.for_one_call(self.seen_from(position), layer)
    }

    pub(super) fn is_waiting_over(&self, position: u64, waits_for: WaitsFor) -> bool {
        let mut before = self.under_way.range(..position);
        match waits_for {
            WaitsFor::None => true,
            WaitsFor::Halting => !before.any(|(_, may_halt)| *may_halt),
            WaitsFor::All => before.next().is_none(),
        }
    }

    /// Ends a call: its changes take effect at its position.
    pub(super) fn leave(&mut self, position: u64, changes: SessionChanges) {
        self.under_way.remove(&position);
        let first = self.under_way.first_key_value().map_or(u64::MAX, |(first, _)| *first);
        if position < first && self.ended.is_empty() {
            return self.session.state.apply_changes(&changes);
        }
        self.ended.insert(position, changes);
        let later = self.ended.split_off(&first);
        for changes in std::mem::replace(&mut self.ended, later).values() {
            self.session.state.apply_changes(changes);
        }
    }
}

/// A running call. When it is dropped, also because its future was, its changes take effect.
pub(super) struct QueuedCall<'s> {
    pub(super) inner: &'s Inner,
    pub(super) position: u64,
    pub(super) session: Session,
    order: Order,
    /// How many calls were running when the session was copied, this one included.
    running: usize,
}

impl QueuedCall<'_> {
    /// Takes the present state of the session. The task stays that of the call.
    fn renew(&mut self, session: Session) {
        let task = std::mem::take(&mut self.session.task);
        self.session = session;
        self.session.set_task(task);
    }

    /// Whether no call came or ended since this one came, so that the session has the state that this call has.
    fn is_current(&self, line: &CallQueue) -> bool {
        line.next == self.position + 1 && line.under_way.len() == self.running
    }
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        let changes = self.session.state.take_changes();
        self.inner.queue().leave(self.position, changes);
        self.inner.wake();
    }
}

impl Inner {
    /// A panic elsewhere leaves a consistent state, for it is changed in single steps.
    pub(super) fn queue(&self) -> MutexGuard<'_, CallQueue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the calls that wait. A call that begins to wait listens before it looks at the queue.
    pub(super) fn wake(&self) {
        if self.left.receiver_count() > 0 {
            self.left.send_modify(|changes| *changes = changes.wrapping_add(1));
        }
    }

    /// Waits for earlier calls. Returns whether they have ended.
    async fn wait_for_earlier(&self, position: u64, waits_for: WaitsFor, order: Order) -> bool {
        let mut left = self.left.subscribe();
        let wait = async {
            while !self.queue().is_waiting_over(position, waits_for) {
                if left.changed().await.is_err() {
                    return;
                }
            }
        };
        let clock = Arc::clone(&self.queue().session.shared.services.clock);
        with_deadline(wait, || clock.sleep(order.patience())).await.is_some()
    }

    /// Runs the hooks on a new call before it is known whether it waits, for that depends on what they make of
    /// it.
    pub(super) async fn hooked(&self, call: Box<ToolCall>) -> HookedCall {
        let mut session = {
            let line = self.queue();
            if line.session.hooks.is_empty() {
                return HookedCall::untouched(call);
            }
            line.session.for_one_call(line.session.state.clone(), None)
        };
        session.name_conversation(&session.conversation());
        session.hooks().before(call).await
    }

    /// Gives a call its position. From here on it ends when it is dropped.
    pub(super) fn enter(&self, call: &ToolCall, task: Option<&Task>, order: Order) -> QueuedCall<'_> {
        let layer = self.layer_of(call);
        let mut line = self.queue();
        line.session.halt_if_aborted();
        let position = line.next;
        line.next += 1;
        let mut session = line.session_for(position, layer);
        if let Some(task) = task {
            session.set_task(task.clone());
        }
        // Before anything else can begin: calls after this one have to know.
        let may_halt = session.session_use(call, &session.layers()).may_halt;
        line.under_way.insert(position, may_halt);
        QueuedCall { inner: self, position, session, order, running: line.under_way.len() }
    }

    /// Gives a step of the run its position, after all calls before it.
    pub(super) async fn enter_run_step(&self) -> QueuedCall<'_> {
        let mut turn = {
            let mut line = self.queue();
            line.session.halt_if_aborted();
            let position = line.next;
            line.next += 1;
            line.under_way.insert(position, true);
            QueuedCall {
                inner: self,
                position,
                session: line.session_for(position, None),
                order: Order::Queued,
                running: line.under_way.len(),
            }
        };
        let is_known = self.wait_for_earlier(turn.position, WaitsFor::All, turn.order).await;
        turn.renew(self.queue().session_for(turn.position, None));
        if !is_known {
            turn.session.state.mark_untrusted();
        }
        turn
    }

    /// Begins a call, after the calls that it must wait for. `unknown`: hooks have not seen the call yet, so
    /// what it reads is unknown.
    pub(super) async fn begin(&self, turn: &mut QueuedCall<'_>, call: &ToolCall, unknown: bool) {
        let layer = self.layer_of(call);
        let (waits_for, may_halt, could_halt) = {
            let mut line = self.queue();
            // Hooks may have run since the call came, which take time and may have changed its server.
            if !turn.session.hooks.is_empty() || !turn.is_current(&line) {
                turn.renew(line.session_for(turn.position, layer.clone()));
            }
            let before = || line.under_way.range(..turn.position);
            let (others, halting) = (before().count(), before().any(|(_, may_halt)| *may_halt));
            let scope = turn.session.scope();
            let SessionUse { reads, may_halt } = turn.session.session_use(call, &scope.layers);
            let reads = unknown || reads || turn.session.may_be_last(others, &scope);
            let could_halt = line.under_way.insert(turn.position, may_halt) == Some(true) || may_halt;
            let waits_for = match (reads, halting) {
                _ if others == 0 => WaitsFor::None,
                (true, _) => WaitsFor::All,
                (false, true) => WaitsFor::Halting,
                (false, false) => WaitsFor::None,
            };
            (waits_for, may_halt, could_halt)
        };
        if !matches!(waits_for, WaitsFor::None) {
            let is_known = self.wait_for_earlier(turn.position, waits_for, turn.order).await;
            turn.renew(self.queue().session_for(turn.position, layer));
            if !is_known {
                turn.session.state.mark_untrusted();
            }
        }
        let halts =
            may_halt && (!turn.session.hooks.is_empty() || turn.session.halts(call, &turn.session.layers()));
        if halts != may_halt {
            self.queue().under_way.insert(turn.position, halts);
        }
        // Only calls that wait because this one may have halted the run have news.
        if could_halt && !halts {
            self.wake();
        }
        turn.session.state.record_changes();
    }

    pub(super) fn layer_of(&self, call: &ToolCall) -> Option<Arc<CompiledPolicies>> {
        (self.rules_of)(call.server.as_deref().unwrap_or_default())
    }
}
