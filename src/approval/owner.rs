//! Whose a store is: who comes with other keys than those that it was written with learns so before anything is asked again, or
//! answered in vain.

use serde_json::{Value, json};

use super::ledger::{Ledger, LedgerError, TRIES};
use crate::host::space::CALLS;
use crate::host::{Clock, Page, Record, RecordKey, StateStore, StoreError, Write, in_time};
use crate::seal::{Keys, Purpose};

/// Where the owner's seal is. It is not encrypted: it is read before it is known whose the store is.
const OWNER: RecordKey<'static> = RecordKey { space: "owner", key: "keys" };

impl Ledger<'_> {
    /// Whether the store belongs to the holders of these keys. One without an owner becomes theirs, unless it has calls that they can't
    /// read.
    pub async fn belongs_to(&self, keys: &Keys) -> Result<bool, LedgerError> {
        let mark: Value = keys.seal(Purpose::Store, &json!([])).into();
        let (store, clock) = (self.store.inner(), self.clock);
        for _ in 0..TRIES {
            let standing = owner(store, clock).await?;
            let ours = match &standing {
                Some(record) => match record.value.as_str() {
                    Some(seal) => keys.verify(Purpose::Store, &json!([]), seal).is_ok(),
                    None => return Err(LedgerError::Corrupt(OWNER.key.to_owned())),
                },
                None => {
                    let calls = first_call(store, clock).await?.records;
                    calls.iter().all(|(key, record)| {
                        self.store.opened(RecordKey { space: CALLS, key }, record.value.clone()).is_ok()
                    })
                }
            };
            if !ours || standing.as_ref().is_some_and(|record| record.value == mark) {
                return Ok(ours);
            }
            // Once the key that it was marked with is retired, only the new one is known.
            self.encrypt_again().await?;
            let over = standing.map(|record| record.version);
            let write = Write { key: OWNER, value: &mark, over, forget_at: None };
            if in_time(clock, || store.write_record(clock.now(), write)).await? {
                return Ok(true);
            }
        }
        Err(LedgerError::Contended(OWNER.key.to_owned()))
    }
}

/// Whether anyone uses the store already: without their keys nothing in it can be read.
///
/// # Errors
/// [`StoreError`], where the store does not answer.
pub async fn is_owned(store: &dyn StateStore, clock: &dyn Clock) -> Result<bool, StoreError> {
    Ok(owner(store, clock).await?.is_some() || !first_call(store, clock).await?.records.is_empty())
}

async fn owner(store: &dyn StateStore, clock: &dyn Clock) -> Result<Option<Record>, StoreError> {
    in_time(clock, || store.record(OWNER)).await
}

async fn first_call(store: &dyn StateStore, clock: &dyn Clock) -> Result<Page, StoreError> {
    in_time(clock, || store.records(CALLS, None, 1)).await
}
