//! What a session has seen, kept for when its conversation goes on: encrypted in the history, and in a store that others share.
//!
//! A history is held by clients. What is sealed is believed only together with the calls that it is of: one whose calls were
//! cut or changed since leaves the policies that read the session undecided, which is stricter than any answer.

use super::{Session, Shared};
use crate::approval::LedgerError;
use crate::call::SessionState;
use crate::host::{Account, RecordKey, StoreError, WhenFull, Write, in_time, space};
use crate::json::{self, Value, json};
use crate::message::{Content, History, Occurrence, StatePart};
use crate::seal::Purpose;

/// How often a write is tried again when others were quicker.
const TRIES: usize = 16;

/// All calls of a history: their names, arguments and results. Before a round, without the new ones that it is for. Calls that
/// wait count, so that one which ran does not pass for one that did not when its result is taken away.
fn known_calls(history: &History, before_round: bool) -> Vec<Value> {
    let calls = history.occurrences();
    let last = calls.last().map(|call| call.round);
    let is_new = |call: &Occurrence<'_>| {
        before_round && Some(call.round) == last && call.result.is_none() && call.request.is_none()
    };
    let known = calls.iter().filter(|call| !is_new(call)).map(|call| {
        let result = call.result.map(|result| result.output.text());
        json!([call.call.id, call.call.name, call.digest.to_string(), result])
    });
    known.collect()
}

/// What the state of a session is bound to.
fn context(conversation: &str, calls: Vec<Value>) -> Value {
    json!([conversation, json::digest(&calls.into()).to_string()])
}

/// What a store has of a session.
enum InStore {
    /// This, in this version.
    Known(Box<SessionState>, u64),
    /// There is no such session.
    Nothing,
    /// Sessions of its caller were evicted or refused, and this may be one of them: what it has seen is unknown.
    Unknown,
}

impl InStore {
    /// What is to be believed of the session, and the version of what stands there.
    fn into_state(self) -> (SessionState, Option<u64>) {
        let mut state = SessionState::default();
        match self {
            Self::Known(state, version) => return (*state, Some(version)),
            Self::Nothing => {}
            Self::Unknown => state.distrust(),
        }
        (state, None)
    }
}

impl Shared {
    /// What the session has seen by what its history says, and its store. Without keys a history is not believed; with keys,
    /// one that has calls and no unbroken seal leaves open what was seen, unless the store knows.
    pub(super) async fn seen(
        &self,
        conversation: &str,
        history: &History,
        before_round: bool,
        account: Account,
    ) -> Result<SessionState, StoreError> {
        let mut state = match self.services.keys_last {
            true => self.sealed_in(conversation, history, before_round),
            false => Some(SessionState::default()),
        };
        let kept = match self.services.store.is_shared() {
            true => self.kept_in_store(conversation, account).await?,
            false => InStore::Nothing,
        };
        match (kept, &mut state) {
            (InStore::Known(kept, _), Some(state)) => state.unite(&kept),
            (InStore::Known(kept, _), None) => state = Some(*kept),
            (InStore::Unknown, Some(state)) => state.distrust(),
            (InStore::Unknown, None) | (InStore::Nothing, _) => {}
        }
        let mut state = match state {
            // No call of the run before waits: this is another run.
            Some(mut state) if !state.is_suspended() => {
                state.begin_anew();
                state
            }
            Some(state) => state,
            None => {
                let mut unknown = SessionState::default();
                unknown.distrust();
                unknown
            }
        };
        let mut counts: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
        let occurrences = history.occurrences();
        for call in &occurrences {
            *counts.entry(&call.call.id).or_default() += 1;
        }
        for (id, count) in counts {
            state.note_occurrences(id, count);
        }
        Ok(state)
    }

    /// Nothing where the history has calls and no seal that fits them.
    fn sealed_in(&self, conversation: &str, history: &History, before_round: bool) -> Option<SessionState> {
        let calls = known_calls(history, before_round);
        let parts = history.messages().iter().flat_map(|message| message.parts());
        let mut states = parts.filter_map(|part| match part.content() {
            Content::State(state) => Some(state),
            _ => None,
        });
        match states.next_back() {
            Some(StatePart { sealed }) => {
                let context = context(conversation, calls);
                let state = self.services.keys.decrypt(Purpose::Session, &context, sealed).ok()?;
                SessionState::of_json(json::parse(&String::from_utf8(state).ok()?).ok()?)
            }
            None => calls.is_empty().then(SessionState::default),
        }
    }

    /// Seals what the session has seen into its history, in the place of what was there.
    pub(super) fn seal_into(&self, conversation: &str, history: &mut History, state: &SessionState) {
        // What is not known for certain is not vouched for.
        if !self.services.keys_last || state.is_distrusted() {
            return;
        }
        let context = context(conversation, known_calls(history, false));
        let state = state.to_json().to_string();
        // Without a state that fits, policies that read the session are undecided.
        if let Ok(sealed) = self.services.keys.encrypt(Purpose::Session, &context, state.as_bytes()) {
            history.keep_state(StatePart { sealed });
        }
    }

    /// What the store has of the session, for one that has no history.
    pub(super) async fn seen_in_store(
        &self,
        conversation: &str,
        account: Account,
    ) -> Result<SessionState, StoreError> {
        if !self.services.store.is_shared() {
            return Ok(SessionState::default());
        }
        Ok(self.kept_in_store(conversation, account).await?.into_state().0.without_occurrences())
    }

    /// Notes the session in the store, where that does not know it; says whether it was new.
    async fn begin_in_store(&self, conversation: &str, account: Account) -> Result<bool, LedgerError> {
        if !self.services.store.is_shared() {
            return Ok(true);
        }
        if self.services.ledger(&*self.clock, account).knows(conversation).await? {
            return Ok(false);
        }
        let (state, None) = self.kept_in_store(conversation, account).await?.into_state() else {
            return Ok(false);
        };
        Ok(self.write_session(conversation, account, &state, None).await?)
    }

    async fn kept_in_store(&self, conversation: &str, account: Account) -> Result<InStore, StoreError> {
        let key = RecordKey { space: space::SESSIONS, key: conversation };
        let found = in_time(&*self.clock, || self.services.store.record(key)).await?;
        let Some(found) = found else {
            let store = &self.services.store;
            let lost = in_time(&*self.clock, || store.has_lost_records(&account)).await?;
            return Ok(if lost { InStore::Unknown } else { InStore::Nothing });
        };
        let state = SessionState::of_json(found.value).ok_or_else(|| {
            StoreError::Unavailable(format!("what it has of the session `{conversation}` can't be read"))
        })?;
        Ok(InStore::Known(Box::new(state), found.version))
    }

    /// Writes what a session has seen over what stands there; says whether that was still there. Where the caller's share is used up,
    /// its session that was written longest ago is evicted.
    async fn write_session(
        &self,
        conversation: &str,
        account: Account,
        state: &SessionState,
        over: Option<u64>,
    ) -> Result<bool, StoreError> {
        let value = state.to_json();
        let key = RecordKey { space: space::SESSIONS, key: conversation };
        let write = Write { over, when_full: WhenFull::EvictOldest, ..Write::new(key, &value, account) };
        in_time(&*self.clock, || self.services.store.write_record(self.clock.now(), write)).await
    }

    /// Keeps what the session has seen in the store, united with what others have kept there meanwhile.
    pub(super) async fn keep_in_store(
        &self,
        conversation: &str,
        account: Account,
        state: &SessionState,
    ) -> Result<(), StoreError> {
        if !self.services.store.is_shared() {
            return Ok(());
        }
        for _ in 0..TRIES {
            let (mut both, version) = self.kept_in_store(conversation, account).await?.into_state();
            both.unite(state);
            both.set_suspended(state.is_suspended());
            if self.write_session(conversation, account, &both, version).await? {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable(format!("the session `{conversation}` kept being changed by others")))
    }
}

impl Session {
    /// Begins the session in a store that others share: of several processes one does. Says `false`, and changes nothing, where
    /// the store knows the session already; it is then for the caller to say whether it is to go on. A store that nobody shares
    /// knows none.
    ///
    /// # Errors
    /// When the store does not say.
    pub async fn begin_recorded(&self) -> Result<bool, LedgerError> {
        self.shared.begin_in_store(&self.conversation(), self.account()).await
    }

    /// What a recorded session has seen by what its store says now, which others may have added to.
    pub(super) async fn see_recorded(&mut self) -> Result<(), StoreError> {
        if let Some(recorded) = self.recorded_elsewhere().await? {
            self.state.unite_with_store(&recorded);
        }
        Ok(())
    }

    /// What the store of a recorded session says now. `None` if the session is not recorded.
    pub(super) async fn recorded_elsewhere(&self) -> Result<Option<SessionState>, StoreError> {
        if !self.recorded {
            return Ok(None);
        }
        self.shared.seen_in_store(&self.conversation(), self.account()).await.map(Some)
    }
}
