//! What a session has seen, kept for when its conversation goes on: sealed in the history, and in a store that others share.
//!
//! A history is held by clients. What is sealed is believed only together with the calls that it is of: one whose calls were
//! cut or changed since leaves the policies that read the session undecided, which is stricter than any answer.

use serde_json::{Value, json};

use super::Shared;
use crate::call::SessionState;
use crate::host::{RecordKey, StoreError, Write, in_time};
use crate::json::{self, Digest};
use crate::message::{Content, History, StatePart};
use crate::seal::Purpose;

/// The space of sessions in a store.
const SESSIONS: &str = "sessions";
/// How often a write is tried again when others were quicker.
const TRIES: usize = 16;

/// The digest of all settled calls of a history: their names, arguments and results.
fn settled_calls(history: &History) -> Digest {
    let settled = history.occurrences().into_iter().filter_map(|call| {
        let result = call.result?;
        Some(json!([call.call.id, call.call.name, call.digest.to_string(), result.output.text()]))
    });
    json::digest(&settled.collect::<Vec<_>>().into())
}

fn content(conversation: &str, calls: Digest, state: &Value) -> Value {
    json!([conversation, calls.to_string(), state])
}

impl Shared {
    /// What the session has seen by what its history says, and its store. Without keys a history is not believed; with keys,
    /// one that has settled or asked calls and no unbroken seal leaves open what was seen, unless the store knows.
    pub(super) async fn seen(
        &self,
        conversation: &str,
        history: &History,
    ) -> Result<SessionState, StoreError> {
        let mut state = match &self.services.keys {
            Some(_) => self.sealed_in(conversation, history),
            None => Some(SessionState::default()),
        };
        if self.services.store.is_shared()
            && let Some((kept, _)) = self.kept_in_store(conversation).await?
        {
            match &mut state {
                Some(state) => state.unite(&kept),
                None => state = Some(kept),
            }
        }
        let mut state = state.unwrap_or_else(|| {
            let mut unknown = SessionState::default();
            unknown.distrust();
            unknown
        });
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

    /// Nothing where the history has calls that were settled or asked about, and no seal that fits them.
    fn sealed_in(&self, conversation: &str, history: &History) -> Option<SessionState> {
        let keys = self.services.keys.as_ref()?;
        let calls = settled_calls(history);
        let parts = history.messages().iter().flat_map(|message| message.parts());
        let mut states = parts.filter_map(|part| match part.content() {
            Content::State(state) => Some(state),
            _ => None,
        });
        match states.next_back() {
            Some(StatePart { state, seal }) => {
                keys.verify(Purpose::Session, &content(conversation, calls, state), seal).ok()?;
                SessionState::of_json(state.clone())
            }
            // As good as a new history: nothing of it has run, and nobody was asked.
            None => {
                let calls = history.occurrences();
                let untouched = calls.iter().all(|call| call.result.is_none() && call.request.is_none());
                untouched.then(SessionState::default)
            }
        }
    }

    /// Seals what the session has seen into its history, in the place of what was there.
    pub(super) fn seal_into(&self, conversation: &str, history: &mut History, state: &SessionState) {
        let Some(keys) = &self.services.keys else { return };
        // What is not known for certain is not vouched for.
        if state.is_distrusted() {
            return;
        }
        let state = state.to_json();
        let calls = settled_calls(history);
        let seal = keys.seal(Purpose::Session, &content(conversation, calls, &state));
        history.keep_state(StatePart { state, seal });
    }

    async fn kept_in_store(&self, conversation: &str) -> Result<Option<(SessionState, u64)>, StoreError> {
        let key = RecordKey { space: SESSIONS, key: conversation };
        let found = in_time(&*self.clock, || self.services.store.record(key)).await?;
        let Some(found) = found else { return Ok(None) };
        let state = SessionState::of_json(found.value).ok_or_else(|| {
            StoreError(format!("what it has of the session `{conversation}` can't be read"))
        })?;
        Ok(Some((state, found.version)))
    }

    /// Keeps what the session has seen in the store, united with what others have kept there meanwhile.
    pub(super) async fn keep_in_store(
        &self,
        conversation: &str,
        state: &SessionState,
    ) -> Result<(), StoreError> {
        if !self.services.store.is_shared() {
            return Ok(());
        }
        for _ in 0..TRIES {
            let kept = self.kept_in_store(conversation).await?;
            let over = kept.as_ref().map(|(_, version)| *version);
            let mut united = state.clone();
            if let Some((kept, _)) = kept {
                let mut both = kept;
                both.unite(state);
                united = both;
            }
            let value = united.to_json();
            let key = RecordKey { space: SESSIONS, key: conversation };
            let write = Write { key, value: &value, over, forget_at: None };
            if in_time(&*self.clock, || self.services.store.write_record(self.clock.now(), write)).await? {
                return Ok(());
            }
        }
        Err(StoreError(format!("the session `{conversation}` kept being changed by others")))
    }
}
