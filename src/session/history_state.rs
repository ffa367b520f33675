//! Persists a session's state between runs: encrypted in its history, and in a store that processes share.
//!
//! Clients hold the history. Its sealed state is believed only together with the calls that it belongs to: if calls were removed or changed
//! since, policies that read the session are undecided, which is stricter than any answer.

use super::Session;
use crate::approval::{LedgerError, LedgerKey};
use crate::call::SessionState;
use crate::execution::{EntrySnapshot, StoredSession};
use crate::host::{StoreError, boxed};
use crate::json::{self, Value, json};
use crate::message::{CallOccurrence, History, PartContent, StatePart};
use crate::seal::Purpose;

/// All calls of a history: their names, arguments and results. Before a round, without its new calls. Pending calls count, so that
/// removing the result of a call that ran does not make it one that did not run.
fn known_calls(history: &History, before_round: bool) -> Vec<Value> {
    let calls = history.occurrences();
    let last = calls.last().map(|call| call.round);
    let is_new = |call: &CallOccurrence<'_>| {
        before_round && Some(call.round) == last && call.result.is_none() && call.request.is_none()
    };
    let known = calls.iter().filter(|call| !is_new(call)).map(|call| {
        let result = call.result.map(|result| result.output.text());
        json!([call.call.id, call.call.name, call.digest.to_string(), result])
    });
    known.collect()
}

/// The context to which a sealed state is bound.
fn seal_context(conversation: &str, calls: Vec<Value>) -> Value {
    json!([conversation, json::digest(&calls.into()).to_string()])
}

impl Session {
    /// Begins the session in a store that processes share: of several processes one does. Returns `false`, and changes nothing, if the
    /// store knows the session already; the caller then decides whether it continues. A store of one process knows none.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn begin_recorded(&self) -> Result<bool, LedgerError> {
        self.shared.services.create_session(&self.conversation(), self.account()).await
    }

    /// Loads the state of the session from its history and the store, once. Returns the entries of the first of these calls, if they were
    /// read with it.
    pub(super) async fn load_state(
        &mut self,
        history: &History,
        before_round: bool,
        calls: &[LedgerKey],
    ) -> Result<Vec<EntrySnapshot>, StoreError> {
        if self.has_loaded_state {
            return Ok(Vec::new());
        }
        let (conversation, account) = (self.conversation(), self.account());
        let (stored, entries) =
            self.shared.services.find_session_with_calls(&conversation, account, calls).await?;
        let persisted = self.merge_persisted(history, before_round, stored);
        self.state.restore(&persisted);
        self.has_loaded_state = true;
        Ok(entries)
    }

    /// The state of the session in its history and the store. `None` once it was loaded. Without keys a history is not believed; with
    /// keys, one that has calls and no valid seal leaves the state unknown, unless the store knows it.
    pub(super) async fn persisted_state(
        &self,
        history: &History,
        before_round: bool,
    ) -> Result<Option<SessionState>, StoreError> {
        if self.has_loaded_state {
            return Ok(None);
        }
        let stored = self.shared.services.find_session(&self.conversation(), self.account()).await?;
        Ok(Some(self.merge_persisted(history, before_round, stored)))
    }

    /// The state in a history, merged with that in the store.
    fn merge_persisted(&self, history: &History, before_round: bool, stored: StoredSession) -> SessionState {
        let mut state = match self.shared.services.has_server_keys {
            true => self.sealed_state(&self.conversation(), history, before_round),
            false => Some(SessionState::default()),
        };
        match (stored, &mut state) {
            (StoredSession::Found(stored, _), Some(state)) => state.merge_into_sealed(&stored),
            (StoredSession::Found(stored, _), None) => state = Some(*stored),
            (StoredSession::Unknown, Some(state)) => state.mark_untrusted(),
            (StoredSession::Unknown, None) | (StoredSession::Missing, _) => {}
        }
        let mut state = match state {
            // No call of the last run is pending: this is another run.
            Some(mut state) if !state.is_suspended() => {
                state.start_new_run();
                state
            }
            Some(state) => state,
            None => {
                let mut unknown = SessionState::default();
                unknown.mark_untrusted();
                unknown
            }
        };
        let mut counts: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
        let occurrences = history.occurrences();
        for call in &occurrences {
            *counts.entry(&call.call.id).or_default() += 1;
        }
        for (id, count) in counts {
            state.record_occurrences(id, count);
        }
        state
    }

    /// The sealed state of a history. `None` if the history has calls and no seal that fits them.
    fn sealed_state(
        &self,
        conversation: &str,
        history: &History,
        before_round: bool,
    ) -> Option<SessionState> {
        let calls = known_calls(history, before_round);
        let parts = history.messages().iter().flat_map(|message| message.parts());
        let mut states = parts.filter_map(|part| match part.content() {
            PartContent::State(state) => Some(state),
            _ => None,
        });
        match states.next_back() {
            Some(StatePart { sealed }) => {
                let context = seal_context(conversation, calls);
                let keys = &self.shared.services.keys;
                let state = keys.decrypt(Purpose::Session, &context, sealed).ok()?;
                SessionState::from_json(json::parse(&String::from_utf8(state).ok()?).ok()?)
            }
            None => calls.is_empty().then(SessionState::default),
        }
    }

    /// Stores the state in the history and the store. If the store does not answer, it is asked again after the next round.
    pub(super) async fn save_state(&mut self, history: &mut History) {
        let conversation = self.conversation();
        self.state.set_suspended(history.calls_without_result().iter().any(|call| call.request.is_some()));
        let account = self.account();
        let _ = self.shared.services.store_session(&conversation, account, &mut self.state).await;
        // Afterwards, so that a history says what the store lacks.
        self.seal_state(&conversation, history);
    }

    /// Seals the state into the history, in place of the one that is there. An unknown state is not sealed.
    fn seal_state(&self, conversation: &str, history: &mut History) {
        let services = &self.shared.services;
        if !services.has_server_keys || self.state.is_untrusted() {
            return;
        }
        let context = seal_context(conversation, known_calls(history, false));
        let state = self.state.to_json().to_string();
        // Without a valid seal, policies that read the session are undecided.
        if let Ok(sealed) = services.keys.encrypt(Purpose::Session, &context, state.as_bytes()) {
            history.set_state(StatePart { sealed });
        }
    }

    /// Merges the stored state of a recorded session, to which others may have added.
    pub(super) async fn refresh_state(&mut self) -> Result<(), StoreError> {
        if let Some(stored) = self.stored_state().await? {
            stored.merge_into(&mut self.state);
        }
        Ok(())
    }

    /// The stored state of a recorded session. `None` if the session is not recorded.
    pub(super) async fn stored_state(&self) -> Result<Option<StoredSession>, StoreError> {
        if !self.is_recorded {
            return Ok(None);
        }
        // On the heap: most sessions are not recorded, and their calls should not carry the future of the store.
        boxed(self.shared.services.load_session(&self.conversation(), self.account())).await.map(Some)
    }
}
