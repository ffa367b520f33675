//! The state of sessions in a store that processes share: loads, creates and merges it.

use super::EngineServices;
use crate::approval::LedgerError;
use crate::call::SessionState;
use crate::host::{Account, ConditionalWrite, OnQuotaExceeded, RecordKey, StoreError, space};

/// How often a write is tried again after a conflict.
const TRIES: usize = 16;

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
    /// The state to believe, and the version of the record.
    fn into_state(self) -> (SessionState, Option<u64>) {
        let mut state = SessionState::default();
        match self {
            Self::Found(state, version) => return (*state, Some(version)),
            Self::Missing => {}
            Self::Unknown => state.mark_untrusted(),
        }
        (state, None)
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
        let Some(found) = self.ask(|| self.store.record(key)).await? else {
            let is_lost = self.ask(|| self.store.has_lost_records(&account)).await?;
            return Ok(if is_lost { StoredSession::Unknown } else { StoredSession::Missing });
        };
        let state = SessionState::from_json(found.value).ok_or_else(|| {
            StoreError::Unavailable(format!("the record of the session `{conversation}` is malformed"))
        })?;
        Ok(StoredSession::Found(Box::new(state), found.version))
    }

    /// The stored state of a session that has no history.
    pub(crate) async fn load_session(
        &self,
        conversation: &str,
        account: Account,
    ) -> Result<SessionState, StoreError> {
        let (state, _) = self.find_session(conversation, account).await?.into_state();
        Ok(state.without_occurrences())
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
        let (state, None) = self.find_session(conversation, account).await?.into_state() else {
            return Ok(false);
        };
        Ok(self.write_session(conversation, account, &state, None).await?)
    }

    /// Stores the state of a session, merged with what others have stored meanwhile.
    pub(crate) async fn store_session(
        &self,
        conversation: &str,
        account: Account,
        state: &SessionState,
    ) -> Result<(), StoreError> {
        if !self.store.is_shared() {
            return Ok(());
        }
        for _ in 0..TRIES {
            let (mut merged, version) = self.find_session(conversation, account).await?.into_state();
            merged.merge(state);
            merged.set_suspended(state.is_suspended());
            if self.write_session(conversation, account, &merged, version).await? {
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
