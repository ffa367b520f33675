//! Reload status of an [`Engine`]: the active rules, rejected rules, rules pending confirmation, and the listeners of changes.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::Engine;
use crate::diagnostic::render;
use crate::host::{Clock, RulesEvent};
use crate::policy::{CompiledPolicies, LoadedBundle, Widening};

/// The active rules, and the result of the last reload.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReloadStatus {
    /// The digest of the active rules.
    pub revision: String,
    /// When they took effect.
    pub loaded_at: Timestamp,
    /// The newest rules, if they were rejected. `None` again once newer rules take effect or are pending, or the files match the
    /// active rules again.
    pub last_rejected: Option<RejectedReload>,
    /// The newest rules, if they are pending confirmation by [`Engine::confirm`].
    pub pending: Option<PendingReload>,
}

/// Rules whose reload was rejected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RejectedReload {
    /// When they were rejected.
    pub rejected_at: Timestamp,
    /// Their digest; `None` if they could not be read.
    pub revision: Option<String>,
    /// Why they were rejected.
    pub reason: RejectionReason,
}

/// Why a reload is rejected. `Display` gives the full report, in several lines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RejectionReason {
    /// The rules have errors, or can't be read.
    Errors(Arc<LoadedBundle>),
    /// Their own policy tests fail or have errors; the string is the report.
    TestFailures(String),
    /// They must pass policy tests, and have none.
    MissingTests,
    /// They must pass policy tests, and the host has no test runner.
    MissingTestRunner,
    /// An internal error of Callgate.
    Internal(String),
}

const NO_TESTS: &str = "the rules must pass their policy tests, but have none; add some in a file such as \
                        `rules.test.yaml` next to the rules";

const NO_TEST_RUNNER: &str = "the rules must pass their policy tests (`reload: { tests: require }`), but this program can't run them; \
                              give `Reloader::with_tests` and `reload::load` the test runner \
                              `callgate_policy_tests::PolicyTests`, or stop requiring tests";

impl RejectionReason {
    /// The reason in one line.
    pub fn summary(&self) -> String {
        match self {
            Self::Errors(built) => render::summary(&built.diagnostics, &built.sources),
            Self::TestFailures(_) => "the policy tests of the rules fail".to_owned(),
            Self::MissingTests => NO_TESTS.to_owned(),
            Self::MissingTestRunner => NO_TEST_RUNNER.to_owned(),
            Self::Internal(problem) => problem.clone(),
        }
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errors(built) => f.write_str(&render::text(&built.diagnostics, &built.sources, false)),
            Self::TestFailures(problem) | Self::Internal(problem) => f.write_str(problem),
            Self::MissingTests => f.write_str(NO_TESTS),
            Self::MissingTestRunner => f.write_str(NO_TEST_RUNNER),
        }
    }
}

/// Rules that may allow more than the active ones, pending confirmation by the host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PendingReload {
    /// Their digest, the argument of [`Engine::confirm`].
    pub revision: String,
    /// Since when they are pending.
    pub pending_since: Timestamp,
    /// What they may allow that the active rules do not.
    pub relaxations: Vec<Widening>,
}

/// A change of the rules, as listeners receive it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReloadEvent {
    /// New rules took effect.
    Applied {
        /// The digest of the rules before.
        from: String,
        /// The digest of the new rules.
        to: String,
        /// Whether they had been pending, and were confirmed.
        confirmed: bool,
    },
    /// The reload of new rules was rejected.
    Rejected(RejectedReload),
    /// New rules are pending confirmation.
    Pending(PendingReload),
    /// The rejected or pending rules are gone: the files match the active rules again.
    Reverted,
}

/// Why rules can't be confirmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// No rules are pending: they took effect, were rejected or were withdrawn in the meantime.
    #[error("no rules are pending confirmation; check the status again")]
    NothingPending,
    /// Other rules are pending by now.
    #[error(
        "the pending rules have the revision `{held}`; review what they would allow, then confirm that revision"
    )]
    OtherRevision {
        /// Their digest.
        held: String,
    },
}

/// What to do with new rules.
pub(crate) enum ReloadDecision {
    /// Nothing: they are the active ones.
    Unchanged,
    Apply(Arc<CompiledPolicies>),
    RequireConfirmation(Arc<CompiledPolicies>, Vec<Widening>),
    Reject(Option<String>, RejectionReason),
}

type ReloadListener = Arc<dyn Fn(&ReloadEvent) + Send + Sync>;

/// Reload history of an engine. Swapping the rules requires its lock, so that the history and the active rules agree.
pub(super) struct ReloadHistory(Mutex<ReloadState>);

struct ReloadState {
    loaded_at: Timestamp,
    last_rejected: Option<RejectedReload>,
    pending: Option<(PendingReload, Arc<CompiledPolicies>)>,
    /// Replaced rules that calls in progress may still use. Freeing thousands of policies takes a while, and should not delay the call
    /// that happens to finish last.
    retired: Vec<Arc<CompiledPolicies>>,
    listeners: Vec<ReloadListener>,
    /// Changes that the listeners have not received yet. One thread at a time notifies them, so they receive changes in order.
    events: VecDeque<ReloadEvent>,
    is_notifying: bool,
}

impl ReloadState {
    /// The pending rules, if they have this revision.
    fn pending_as(&self, revision: &str) -> Result<Arc<CompiledPolicies>, ConfirmError> {
        match &self.pending {
            None => Err(ConfirmError::NothingPending),
            Some((held, policies)) if held.revision == revision => Ok(Arc::clone(policies)),
            Some((held, _)) => Err(ConfirmError::OtherRevision { held: held.revision.clone() }),
        }
    }
}

impl ReloadHistory {
    pub(super) fn begin(clock: &dyn Clock) -> Self {
        Self(Mutex::new(ReloadState {
            loaded_at: current_time(clock),
            last_rejected: None,
            pending: None,
            retired: Vec::new(),
            listeners: Vec::new(),
            events: VecDeque::new(),
            is_notifying: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, ReloadState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host's time. A clock that panics must not prevent a reload.
fn current_time(clock: &dyn Clock) -> Timestamp {
    catch_unwind(AssertUnwindSafe(|| clock.now())).unwrap_or_else(|_| Timestamp::now())
}

impl Engine {
    /// Returns the active rules' revision, and the result of the last reload.
    pub fn status(&self) -> ReloadStatus {
        let state = self.reload_history.lock();
        ReloadStatus {
            revision: self.revision(),
            loaded_at: state.loaded_at,
            last_rejected: state.last_rejected.clone(),
            pending: state.pending.as_ref().map(|(held, _)| held.clone()),
        }
    }

    /// Activates the pending rules if they have this revision, which is the one that the host has reviewed.
    ///
    /// # Errors
    /// [`ConfirmError`] if no rules are pending, or rules of another revision.
    pub fn confirm(&self, revision: &str) -> Result<(), ConfirmError> {
        let now = current_time(&*self.shared.services.clock);
        // Outside the lock, as it takes a while; the pending rules may change in the meantime.
        let policies = self.reload_history.lock().pending_as(revision)?;
        policies.prewarm_from(&self.active_policies());
        let mut state = self.reload_history.lock();
        let policies = state.pending_as(revision)?;
        self.swap_policies(&mut state, policies, now);
        drop(state);
        self.free_retired();
        self.notify_listeners();
        Ok(())
    }

    /// Adds a listener that is called at every change, on the thread that makes the change, in the order of the changes. It must not
    /// block for long, as the next change waits for it. A panic in it is ignored.
    pub fn on_change(&self, listener: impl Fn(&ReloadEvent) + Send + Sync + 'static) {
        self.reload_history.lock().listeners.push(Arc::new(listener));
    }

    /// Activates new rules, whether or not others were rejected or are pending. Calls and rounds in progress finish under the rules
    /// that they started with.
    pub fn replace(&self, policies: Arc<CompiledPolicies>) {
        let now = current_time(&*self.shared.services.clock);
        policies.prewarm_from(&self.active_policies());
        self.swap_policies(&mut self.reload_history.lock(), policies, now);
        self.free_retired();
        self.notify_listeners();
    }

    pub(crate) fn active_policies(&self) -> Arc<CompiledPolicies> {
        self.shared.bundle.load_full()
    }

    /// Applies a verdict that was reached while `active` was active. Returns `false`, and changes nothing, if other rules have
    /// become active since.
    pub(crate) fn apply_decision(&self, active: &Arc<CompiledPolicies>, verdict: ReloadDecision) -> bool {
        let now = current_time(&*self.shared.services.clock);
        if let ReloadDecision::Apply(policies) = &verdict {
            policies.prewarm_from(active);
        }
        let mut state = self.reload_history.lock();
        if !Arc::ptr_eq(active, &*self.shared.bundle.load()) {
            return false;
        }
        match verdict {
            ReloadDecision::Unchanged => {
                if state.last_rejected.take().is_some() | state.pending.take().is_some() {
                    state.events.push_back(ReloadEvent::Reverted);
                }
            }
            ReloadDecision::Apply(policies) => self.swap_policies(&mut state, policies, now),
            ReloadDecision::RequireConfirmation(policies, widenings) => {
                state.last_rejected = None;
                if state.pending.as_ref().is_none_or(|(held, _)| held.revision != policies.revision()) {
                    let held = PendingReload {
                        revision: policies.revision().to_owned(),
                        pending_since: now,
                        relaxations: widenings,
                    };
                    state.events.push_back(ReloadEvent::Pending(held.clone()));
                    state.pending = Some((held, policies));
                }
            }
            ReloadDecision::Reject(revision, why) => {
                // They are newer than the pending rules, which the files no longer contain.
                state.pending = None;
                let text = why.to_string();
                let known = state.last_rejected.as_ref();
                if known.is_none_or(|known| known.revision != revision || known.reason.to_string() != text) {
                    let refused = RejectedReload { rejected_at: now, revision, reason: why };
                    state.events.push_back(ReloadEvent::Rejected(refused.clone()));
                    state.last_rejected = Some(refused);
                }
            }
        }
        drop(state);
        self.free_retired();
        self.notify_listeners();
        true
    }

    /// Frees replaced rules that no call uses any more, on this thread and without the lock.
    pub(crate) fn free_retired(&self) {
        let free: Vec<Arc<CompiledPolicies>> = self
            .reload_history
            .lock()
            .retired
            .extract_if(.., |policies| Arc::strong_count(policies) == 1)
            .collect();
        drop(free);
    }

    fn swap_policies(&self, state: &mut ReloadState, policies: Arc<CompiledPolicies>, now: Timestamp) {
        let to = policies.revision().to_owned();
        let before = self.shared.bundle.swap(policies);
        if before.revision() != to {
            let (from, confirmed) = (before.revision().to_owned(), state.pending_as(&to).is_ok());
            state.events.push_back(ReloadEvent::Applied { from, to, confirmed });
        }
        state.loaded_at = now;
        state.last_rejected = None;
        state.pending = None;
        state.retired.push(before);
    }

    /// Notifies observers of a change.
    fn notify_observers_of(&self, change: &ReloadEvent) {
        match change {
            ReloadEvent::Applied { from, to, confirmed } => {
                self.notify_observers(to, RulesEvent::Applied { from, confirmed: *confirmed });
            }
            ReloadEvent::Rejected(rejected) => {
                let (revision, summary) = (rejected.revision.as_deref(), &rejected.reason.summary());
                self.notify_observers(&self.revision(), RulesEvent::Rejected { revision, summary });
            }
            ReloadEvent::Pending(pending) => {
                let relaxations: Vec<String> = pending.relaxations.iter().map(ToString::to_string).collect();
                let (revision, relaxations) = (&*pending.revision, &*relaxations);
                self.notify_observers(&self.revision(), RulesEvent::Pending { revision, relaxations });
            }
            ReloadEvent::Reverted => self.notify_observers(&self.revision(), RulesEvent::Reverted),
        }
    }

    /// Notifies the listeners of changes. If another thread is notifying them, or a listener itself makes a change, the loop that is
    /// already running delivers it.
    fn notify_listeners(&self) {
        let mut state = self.reload_history.lock();
        if std::mem::replace(&mut state.is_notifying, true) {
            return;
        }
        while let Some(change) = state.events.pop_front() {
            let listeners = state.listeners.clone();
            drop(state);
            for listener in listeners {
                let _ = catch_unwind(AssertUnwindSafe(|| listener(&change)));
            }
            self.notify_observers_of(&change);
            state = self.reload_history.lock();
        }
        state.is_notifying = false;
    }
}
