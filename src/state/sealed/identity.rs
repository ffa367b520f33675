//! The identity of a sealed store: its name, the keys that own it, and its anchor. A replaced or emptied store, or one with
//! other keys, is rejected.

use super::anchor::{Anchor, AnchorLink};
use super::envelope::{Envelope, is_current};
use super::{SealedStore, seal_error};
use crate::host::{Account, ConditionalWrite, RecordKey, StateStore, StoreError, space};
use crate::json::{Value, json};
use crate::seal::{Keys, Purpose, random_hex};

/// The record with the store's identity.
const OWNER_KEY: RecordKey<'static> = RecordKey { space: space::OWNER, key: "keys" };
/// How often a change is retried after concurrent writes.
const MAX_ATTEMPTS: usize = 64;
/// The number of records on a page.
const PAGE_SIZE: usize = 256;

/// Why a store is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntegrityError {
    /// The store or its anchor is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store was sealed with other keys.
    #[error("the store was created with other keys")]
    OtherKeys,
    /// The store is empty, but the anchor shows that it was in use.
    #[error("the store is empty, but its anchor shows that it was in use")]
    Lost,
    /// The store was in use with another anchor.
    #[error("the store is not the one that its anchor belongs to, or its anchor was lost")]
    OtherAnchor,
    /// The store has unsealed records.
    #[error("the store was used without keys, so its records can't be trusted")]
    Unsealed,
}

impl From<IntegrityError> for StoreError {
    fn from(error: IntegrityError) -> Self {
        match error {
            IntegrityError::Store(error) => error,
            other => Self::Altered(other.to_string()),
        }
    }
}

/// The identity that a store has recorded.
#[derive(Clone)]
struct StoreOwner {
    store: String,
    /// The name of its anchor, if it has one.
    anchor: Option<String>,
    /// Whether it is sealed with the current key.
    is_sealed_with_current_key: bool,
    version: u64,
}

impl StoreOwner {
    fn to_sealed_json(&self, keys: &Keys) -> Value {
        let seal = keys.seal(Purpose::Store, &json!([self.store, self.anchor]));
        json!({ "store": self.store, "anchor": self.anchor, "seal": seal })
    }

    fn read(value: &Value, keys: &Keys, version: u64) -> Result<Self, IntegrityError> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let (Some(store), Some(seal)) = (text("store"), text("seal")) else {
            return Err(IntegrityError::Unsealed);
        };
        let anchor = text("anchor").map(str::to_owned);
        keys.verify(Purpose::Store, &json!([store, anchor]), seal).map_err(|_| IntegrityError::OtherKeys)?;
        Ok(Self {
            store: store.to_owned(),
            anchor,
            is_sealed_with_current_key: keys.is_current(seal),
            version,
        })
    }
}

impl SealedStore {
    /// Returns the name of the store. A new store gets a name; a store without an anchor gets its anchor. `accepts`: the
    /// anchor is new and accepts the store as it is.
    pub(super) async fn identify(&self, accepts: bool) -> Result<String, IntegrityError> {
        for _ in 0..MAX_ATTEMPTS {
            let owner = self.owner().await?;
            let done = match &self.anchor {
                Some(anchor) => self.link_step(anchor, owner, accepts).await?,
                None => match owner {
                    Some(owner) => Some(owner),
                    None => {
                        self.create_owner(random_name()?, None).await?;
                        None
                    }
                },
            };
            let Some(owner) = done else { continue };
            if !owner.is_sealed_with_current_key {
                self.reseal(&owner).await?;
            }
            return Ok(owner.store);
        }
        Err(StoreError::Unavailable("the store is being changed by too many writers; try again".to_owned())
            .into())
    }

    async fn owner(&self) -> Result<Option<StoreOwner>, IntegrityError> {
        let found = self.inner.record(OWNER_KEY).await?;
        found.map(|record| StoreOwner::read(&record.value, &self.keys, record.version)).transpose()
    }

    /// One step of linking a store and an anchor with each other. Returns the owner once they are linked.
    async fn link_step(
        &self,
        anchor: &Anchor,
        owner: Option<StoreOwner>,
        accepts: bool,
    ) -> Result<Option<StoreOwner>, IntegrityError> {
        let bound = anchor.link().await?;
        match (owner, bound) {
            (None, None) => {
                let bound = AnchorLink { anchor: random_name()?, store: random_name()?, is_confirmed: false };
                anchor.write_link(&bound, None).await?;
            }
            (None, Some((bound, _))) if !bound.is_confirmed => {
                self.create_owner(bound.store, Some(bound.anchor)).await?
            }
            (None, Some(_)) => return Err(IntegrityError::Lost),
            (Some(owner), None) if owner.anchor.is_none() || accepts => {
                let bound = AnchorLink { anchor: random_name()?, store: owner.store, is_confirmed: false };
                anchor.write_link(&bound, None).await?;
            }
            (Some(owner), Some((bound, version))) if owner.store == bound.store => {
                match owner.anchor.as_ref() == Some(&bound.anchor) {
                    true if bound.is_confirmed => return Ok(Some(owner)),
                    true => {
                        anchor.write_link(&AnchorLink { is_confirmed: true, ..bound }, Some(version)).await?;
                    }
                    false if !bound.is_confirmed && (owner.anchor.is_none() || accepts) => {
                        let expected_version = Some(owner.version);
                        self.write_owner(
                            &StoreOwner { anchor: Some(bound.anchor), ..owner },
                            expected_version,
                        )
                        .await?;
                    }
                    false => return Err(IntegrityError::OtherAnchor),
                }
            }
            // A process without an anchor has created the store in the meantime.
            (Some(owner), Some((bound, version))) if !bound.is_confirmed && owner.anchor.is_none() => {
                anchor.write_link(&AnchorLink { store: owner.store, ..bound }, Some(version)).await?;
            }
            (Some(_), _) => return Err(IntegrityError::OtherAnchor),
        }
        Ok(None)
    }

    /// Gives a store its name, unless a concurrent process did. A store with records but no name was used without keys.
    async fn create_owner(&self, store: String, anchor: Option<String>) -> Result<(), IntegrityError> {
        for space in space::ALL {
            if !self.inner.records(space, None, 1).await?.records.is_empty() && self.owner().await?.is_none()
            {
                return Err(IntegrityError::Unsealed);
            }
        }
        self.write_owner(&StoreOwner { store, anchor, is_sealed_with_current_key: true, version: 0 }, None)
            .await?;
        Ok(())
    }

    async fn write_owner(
        &self,
        owner: &StoreOwner,
        expected_version: Option<u64>,
    ) -> Result<bool, StoreError> {
        let value = owner.to_sealed_json(&self.keys);
        let write = ConditionalWrite {
            expected_version,
            ..ConditionalWrite::new(OWNER_KEY, &value, Account::NOBODY)
        };
        // No record expires at this time.
        self.inner.write_record(jiff::Timestamp::MIN, write).await
    }

    /// Re-seals everything that was sealed with an older key, the identity of the store last, so that the older key can be
    /// retired.
    async fn reseal(&self, owner: &StoreOwner) -> Result<(), StoreError> {
        for space in space::ALL {
            let mut after: Option<String> = None;
            loop {
                let page = self.inner.records(space, after.as_deref(), PAGE_SIZE).await?;
                after = page.records.last().map(|(key, _)| key.clone());
                for (key, record) in page.records {
                    if is_current(&self.keys, &record.value) {
                        continue;
                    }
                    let key = RecordKey { space, key: &key };
                    // An invalid record stays as it is, and is refused when it is read.
                    let Ok((Some(stored), _)) = self.verified_record(&owner.store, key).await else {
                        continue;
                    };
                    let Envelope { value, forget_at, .. } = &stored.envelope;
                    let expected_version = Some(stored.envelope.version());
                    // An existing record stays charged to its account.
                    let write = ConditionalWrite {
                        expected_version,
                        forget_at: *forget_at,
                        ..ConditionalWrite::new(key, value, Account::NOBODY)
                    };
                    // A concurrent process has already re-sealed it with the current key.
                    self.write(&owner.store, jiff::Timestamp::MIN, write).await?;
                }
                if !page.more || after.is_none() {
                    break;
                }
            }
        }
        self.write_owner(owner, Some(owner.version)).await.map(|_| ())
    }
}

/// Whether the records of a store are sealed: without the keys they can't be trusted.
///
/// # Errors
/// If the store is unavailable.
pub async fn has_seals(store: &dyn StateStore) -> Result<bool, StoreError> {
    Ok(store.record(OWNER_KEY).await?.is_some())
}

fn random_name() -> Result<String, StoreError> {
    random_hex::<16>().map_err(seal_error)
}
