//! The state of sessions in a store that processes share: loads, creates and merges it.

use super::{EngineServices, EntrySnapshot};
use crate::approval::{Ledger, LedgerError, LedgerKey};
use crate::call::SessionState;
use crate::host::{Account, ConditionalWrite, OnQuotaExceeded, Record, RecordKey, StoreError, space};

/// How often a write is tried again after a conflict.
const TRIES: usize = 16;

/// The most entries of calls that are read together with their session.
const MAX_ENTRIES: usize = 32;

/// The store's record of a session.
pub(crate) enum StoredSession {
    /// Its state, in this version.
    Found(Box<SessionState>, u64),
    /// There is no such session.
    Missing,
    /// Sessions of its caller were evicted or refused, and this may be one of them: its state is unknown.
    Unknown,
}

impl StoredSession {
    /// Merges it into the present state of the session.
    pub(crate) fn merge_into(&self, state: &mut SessionState) {
        match self {
            Self::Found(stored, _) => state.merge_stored(stored),
            Self::Missing => {}
            Self::Unknown => state.mark_untrusted(),
        }
    }

    /// The state to store in its place, and the version of the record that it replaces.
    fn replacement(&self, state: &SessionState) -> (SessionState, Option<u64>) {
        match self {
            Self::Found(stored, version) => (state.to_stored(Some(stored)), Some(*version)),
            Self::Missing => (state.to_stored(None), None),
            Self::Unknown => {
                let mut state = state.to_stored(None);
                state.mark_untrusted();
                (state, None)
            }
        }
    }
}

impl EngineServices {
    /// The store's record of a session. A store of one process has none.
    pub(crate) async fn find_session(
        &self,
        conversation: &str,
        account: Account,
    ) -> Result<StoredSession, StoreError> {
        if !self.store.is_shared() {
            return Ok(StoredSession::Missing);
        }
        let key = RecordKey { space: space::SESSIONS, key: conversation };
        let keys = [key];
        let batch = self.ask(|| self.store.record_batch(&keys, &account)).await?;
        parse_session(conversation, batch.records.into_iter().next().flatten(), batch.has_lost_records)
    }

    /// The store's record of a session, with its entries of the first of these calls, in one request.
    pub(crate) async fn find_session_with_calls(
        &self,
        conversation: &str,
        account: Account,
        calls: &[LedgerKey],
    ) -> Result<(StoredSession, Vec<EntrySnapshot>), StoreError> {
        if !self.store.is_shared() {
            return Ok((StoredSession::Missing, Vec::new()));
        }
        let calls = calls.get(..MAX_ENTRIES).unwrap_or(calls);
        let names: Vec<String> = calls.iter().map(LedgerKey::record_key).collect();
        let session = RecordKey { space: space::SESSIONS, key: conversation };
        let entries = names.iter().map(|key| RecordKey { space: space::CALLS, key });
        let keys: Vec<RecordKey<'_>> = std::iter::once(session).chain(entries).collect();
        let batch = match self.ask(|| self.store.record_batch(&keys, &account)).await {
            // An altered entry concerns its own call only.
            Err(StoreError::Altered(_)) if !calls.is_empty() => {
                return Ok((self.find_session(conversation, account).await?, Vec::new()));
            }
            batch => batch?,
        };
        let mut records = batch.records.into_iter();
        let session = parse_session(conversation, records.next().flatten(), batch.has_lost_records)?;
        let snapshot = |(key, record): (&LedgerKey, Option<Record>)| {
            match record.map(|record| Ledger::parse_record(key, record)).transpose() {
                Ok(entry) => EntrySnapshot::Read(entry.map(Box::new)),
                // Whoever needs the entry reads it again, and reports the error.
                Err(_) => EntrySnapshot::Unread,
            }
        };
        Ok((session, calls.iter().zip(records).map(snapshot).collect()))
    }

    /// The stored state of a session that has no history.
    pub(crate) async fn load_session(
        &self,
        conversation: &str,
        account: Account,
    ) -> Result<StoredSession, StoreError> {
        Ok(match self.find_session(conversation, account).await? {
            StoredSession::Found(state, version) => {
                StoredSession::Found(Box::new(state.without_occurrences()), version)
            }
            other => other,
        })
    }

    /// Creates the record of a session. Returns whether it was new.
    pub(crate) async fn create_session(
        &self,
        conversation: &str,
        account: Account,
    ) -> Result<bool, LedgerError> {
        if !self.store.is_shared() {
            return Ok(true);
        }
        if self.ledger(account).has_conversation(conversation).await? {
            return Ok(false);
        }
        let found = self.find_session(conversation, account).await?;
        let (state, None) = found.replacement(&SessionState::default()) else { return Ok(false) };
        Ok(self.write_session(conversation, account, &state, None).await?)
    }

    /// Stores the state of a session, merged with what others have stored meanwhile.
    pub(crate) async fn store_session(
        &self,
        conversation: &str,
        account: Account,
        state: &mut SessionState,
    ) -> Result<(), StoreError> {
        if !self.store.is_shared() {
            state.mark_all_stored();
            return Ok(());
        }
        for _ in 0..TRIES {
            let found = self.find_session(conversation, account).await?;
            let (stored, version) = found.replacement(state);
            if self.write_session(conversation, account, &stored, version).await? {
                state.mark_all_stored();
                return Ok(());
            }
        }
        Err(StoreError::Unavailable(format!(
            "the session `{conversation}` was changed by too many writers; try again"
        )))
    }

    /// Replaces the version `expected_version` of a session's record. Returns whether that was still the present one. If the caller's
    /// share is used up, its session that was written longest ago is evicted.
    async fn write_session(
        &self,
        conversation: &str,
        account: Account,
        state: &SessionState,
        expected_version: Option<u64>,
    ) -> Result<bool, StoreError> {
        let value = state.to_json();
        let key = RecordKey { space: space::SESSIONS, key: conversation };
        let write = ConditionalWrite {
            expected_version,
            when_full: OnQuotaExceeded::EvictOldest,
            ..ConditionalWrite::new(key, &value, account)
        };
        self.ask(|| self.store.write_record(self.clock.now(), write)).await
    }
}

/// The session of its record. Without a record, it may be one that was lost.
fn parse_session(
    conversation: &str,
    record: Option<Record>,
    has_lost_records: bool,
) -> Result<StoredSession, StoreError> {
    let Some(found) = record else {
        return Ok(if has_lost_records { StoredSession::Unknown } else { StoredSession::Missing });
    };
    let state = SessionState::from_json(found.value).ok_or_else(|| {
        StoreError::Unavailable(format!("the record of the session `{conversation}` is malformed"))
    })?;
    Ok(StoredSession::Found(Box::new(state), found.version))
}
