//! What is active, what was refused, what waits for the host's word, and who is told of it.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::Engine;
use crate::diagnostic::render;
use crate::host::Clock;
use crate::policy::{Built, Chains, Widening};

/// Which rules decide, and what became of newer ones.
#[derive(Clone, Debug)]
pub struct Status {
    /// The digest of the rules that decide now.
    pub revision: String,
    /// Since when they do.
    pub loaded_at: Timestamp,
    /// The newest rules, where they were refused. Nothing once newer ones were taken in or wait, or the files say again
    /// what is active.
    pub last_refused: Option<Refused>,
    /// The newest rules, where they wait for [`Engine::confirm`].
    pub held: Option<Held>,
}

/// Rules that were not taken in.
#[derive(Clone, Debug)]
pub struct Refused {
    /// When.
    pub at: Timestamp,
    /// Their digest; none where they could not be read.
    pub revision: Option<String>,
    /// Why.
    pub why: Refusal,
}

/// Why rules are not taken in. Shown, it is everything that there is to say, in several lines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// They hold errors, or can't be read.
    Errors(Arc<Built>),
    /// Their own policy tests fail or hold errors, which the text shows.
    Tests(String),
    /// They have to pass policy tests, and have none.
    NoTests,
    /// Callgate failed to judge them.
    Failure(String),
}

const NO_TESTS: &str = "their policy tests have to pass, and they have none; write some into a file such as \
                        `rules.test.yaml` beside the rules";

impl Refusal {
    /// The same in one line.
    pub fn summary(&self) -> String {
        match self {
            Self::Errors(built) => render::summary(&built.diagnostics, &built.sources),
            Self::Tests(_) => "their own policy tests fail".to_owned(),
            Self::NoTests => NO_TESTS.to_owned(),
            Self::Failure(problem) => problem.clone(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errors(built) => f.write_str(&render::text(&built.diagnostics, &built.sources, false)),
            Self::Tests(problem) | Self::Failure(problem) => f.write_str(problem),
            Self::NoTests => f.write_str(NO_TESTS),
        }
    }
}

/// Rules that may allow more than those that are active, and wait for the host's word.
#[derive(Clone, Debug)]
pub struct Held {
    /// Their digest, to be confirmed.
    pub revision: String,
    /// Since when they wait.
    pub since: Timestamp,
    /// What they may allow.
    pub widenings: Vec<Widening>,
}

/// News of the rules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// Other rules decide now.
    TakenIn {
        /// The digest of those that decided before.
        from: String,
        /// Theirs.
        to: String,
    },
    /// New rules were refused.
    Refused(Refused),
    /// New rules wait for the host's word.
    Held(Held),
    /// What was refused or waited is gone: the files say again what is active.
    Restored,
}

/// Why rules can't be confirmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// Nothing waits: it was taken in, refused or withdrawn meanwhile.
    #[error("no rules wait to be confirmed; look at the status again")]
    NothingHeld,
    /// Something else waits by now.
    #[error(
        "the rules that wait have the revision `{held}`; look at what they would allow, and confirm that one"
    )]
    OtherHeld {
        /// Its digest.
        held: String,
    },
}

/// What is to become of new rules.
pub(crate) enum Verdict {
    /// They are those that are active.
    Same,
    TakeIn(Arc<Chains>),
    Hold(Arc<Chains>, Vec<Widening>),
    Refuse(Option<String>, Refusal),
}

type Listener = Arc<dyn Fn(&Change) + Send + Sync>;

/// The story of an engine's rules. Whoever swaps them holds its lock, so that the story and the rules agree.
pub(super) struct Story(Mutex<State>);

struct State {
    loaded_at: Timestamp,
    last_refused: Option<Refused>,
    held: Option<(Held, Arc<Chains>)>,
    /// Rules that may still decide calls that began under them. Freeing thousands of policies takes a while, and is not to
    /// fall to a call that happens to be the last.
    retired: Vec<Arc<Chains>>,
    listeners: Vec<Listener>,
    /// What the listeners were not told yet. Only one thread at a time tells them, so they hear it in order.
    news: VecDeque<Change>,
    telling: bool,
}

impl State {
    /// The rules that wait, if they are of this revision.
    fn held_as(&self, revision: &str) -> Result<Arc<Chains>, ConfirmError> {
        match &self.held {
            None => Err(ConfirmError::NothingHeld),
            Some((held, chains)) if held.revision == revision => Ok(Arc::clone(chains)),
            Some((held, _)) => Err(ConfirmError::OtherHeld { held: held.revision.clone() }),
        }
    }
}

impl Story {
    pub(super) fn begin(clock: &dyn Clock) -> Self {
        Self(Mutex::new(State {
            loaded_at: time(clock),
            last_refused: None,
            held: None,
            retired: Vec::new(),
            listeners: Vec::new(),
            news: VecDeque::new(),
            telling: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host's time. That its clock fails must not keep rules from being taken in.
fn time(clock: &dyn Clock) -> Timestamp {
    catch_unwind(AssertUnwindSafe(|| clock.now())).unwrap_or_else(|_| Timestamp::now())
}

impl Engine {
    /// Which rules decide, and what became of newer ones.
    pub fn status(&self) -> Status {
        let state = self.story.lock();
        Status {
            revision: self.revision(),
            loaded_at: state.loaded_at,
            last_refused: state.last_refused.clone(),
            held: state.held.as_ref().map(|(held, _)| held.clone()),
        }
    }

    /// Takes in the rules that wait, if they are of this revision: those that the host has looked at, and no others.
    pub fn confirm(&self, revision: &str) -> Result<(), ConfirmError> {
        let now = time(&*self.shared.services.clock);
        // Outside of the lock, for it takes a while; what waits may change meanwhile.
        let chains = self.story.lock().held_as(revision)?;
        chains.expect_tools_of(&self.active());
        let mut state = self.story.lock();
        let chains = state.held_as(revision)?;
        self.swap(&mut state, chains, now);
        drop(state);
        self.free_retired();
        self.tell();
        Ok(())
    }

    /// Has this called at every change, on the thread that brings it about, in the order of the changes. It may not wait
    /// for long: the next change waits for it. One that panics changes nothing.
    pub fn on_change(&self, listener: impl Fn(&Change) + Send + Sync + 'static) {
        self.story.lock().listeners.push(Arc::new(listener));
    }

    /// Takes in new rules, whatever became of others before. Calls and rounds that are under way end under the rules that
    /// they began with.
    pub fn replace(&self, chains: Arc<Chains>) {
        let now = time(&*self.shared.services.clock);
        chains.expect_tools_of(&self.active());
        self.swap(&mut self.story.lock(), chains, now);
        self.free_retired();
        self.tell();
    }

    pub(crate) fn active(&self) -> Arc<Chains> {
        self.shared.bundle.load_full()
    }

    /// Follows a verdict that was found while `active` was active. If other rules have become active since, it is none:
    /// `false`.
    pub(crate) fn follow(&self, active: &Arc<Chains>, verdict: Verdict) -> bool {
        let now = time(&*self.shared.services.clock);
        if let Verdict::TakeIn(chains) = &verdict {
            chains.expect_tools_of(active);
        }
        let mut state = self.story.lock();
        if !Arc::ptr_eq(active, &*self.shared.bundle.load()) {
            return false;
        }
        match verdict {
            Verdict::Same => {
                if state.last_refused.take().is_some() | state.held.take().is_some() {
                    state.news.push_back(Change::Restored);
                }
            }
            Verdict::TakeIn(chains) => self.swap(&mut state, chains, now),
            Verdict::Hold(chains, widenings) => {
                state.last_refused = None;
                if state.held.as_ref().is_none_or(|(held, _)| held.revision != chains.revision()) {
                    let held = Held { revision: chains.revision().to_owned(), since: now, widenings };
                    state.news.push_back(Change::Held(held.clone()));
                    state.held = Some((held, chains));
                }
            }
            Verdict::Refuse(revision, why) => {
                // They are newer than what waited: that is no longer what the files say.
                state.held = None;
                let text = why.to_string();
                let known = state.last_refused.as_ref();
                if known.is_none_or(|known| known.revision != revision || known.why.to_string() != text) {
                    let refused = Refused { at: now, revision, why };
                    state.news.push_back(Change::Refused(refused.clone()));
                    state.last_refused = Some(refused);
                }
            }
        }
        drop(state);
        self.free_retired();
        self.tell();
        true
    }

    /// Frees the rules that no call is under any more, on this thread and without the lock.
    pub(crate) fn free_retired(&self) {
        let free: Vec<Arc<Chains>> =
            self.story.lock().retired.extract_if(.., |chains| Arc::strong_count(chains) == 1).collect();
        drop(free);
    }

    fn swap(&self, state: &mut State, chains: Arc<Chains>, now: Timestamp) {
        let to = chains.revision().to_owned();
        let before = self.shared.bundle.swap(chains);
        if before.revision() != to {
            state.news.push_back(Change::TakenIn { from: before.revision().to_owned(), to });
        }
        state.loaded_at = now;
        state.last_refused = None;
        state.held = None;
        state.retired.push(before);
    }

    /// Tells the listeners what is new. Where another thread is at it, or a listener brings about a change, that goes on
    /// telling.
    fn tell(&self) {
        let mut state = self.story.lock();
        if std::mem::replace(&mut state.telling, true) {
            return;
        }
        while let Some(change) = state.news.pop_front() {
            let listeners = state.listeners.clone();
            drop(state);
            for listener in listeners {
                let _ = catch_unwind(AssertUnwindSafe(|| listener(&change)));
            }
            state = self.story.lock();
        }
        state.telling = false;
    }
}
