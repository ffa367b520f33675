//! A store as everything above it uses one: what leaves the process is encrypted, and what it is found by is a keyed digest.
//! Takes any [`StateStore`] and the server's keys.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::Amount;
use crate::host::{
    BoxFuture, CacheEntry, CacheSpace, Lookup, Page, Record, RecordKey, Refusal, StateStore, StoreError,
    StoreFuture, Take, Write,
};
use crate::json;
use crate::seal::{Keys, Purpose};

/// A store that only the holders of the server's keys can read.
///
/// | what | in the store |
/// | --- | --- |
/// | values of records, cached results | encrypted, bound to their space and key |
/// | keys of limits and of cached results | keyed digests |
/// | names of spaces, keys of records | as they are |
///
/// A store that ends with its process is used as it is. A store that processes share is not used without keys: every operation
/// fails.
pub struct EncryptedStore {
    inner: Arc<dyn StateStore>,
    protection: Protection,
}

enum Protection {
    /// Nothing leaves the process.
    InProcess,
    Keys(Keys),
    /// The store is shared, and there are no keys.
    Missing,
}

impl std::fmt::Debug for EncryptedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncryptedStore").finish_non_exhaustive()
    }
}

impl EncryptedStore {
    /// A store with the keys of the server, where it has keys that outlive the process.
    pub fn new(inner: Arc<dyn StateStore>, keys: Option<Keys>) -> Self {
        let protection = match (inner.is_shared(), keys) {
            (false, _) => Protection::InProcess,
            (true, Some(keys)) => Protection::Keys(keys),
            (true, None) => Protection::Missing,
        };
        Self { inner, protection }
    }

    /// The store itself, with what it holds as it holds it.
    pub(crate) fn inner(&self) -> &dyn StateStore {
        &*self.inner
    }

    /// The keys, where there is something to encrypt.
    fn keys(&self) -> Result<Option<&Keys>, StoreError> {
        match &self.protection {
            Protection::InProcess => Ok(None),
            Protection::Keys(keys) => Ok(Some(keys)),
            Protection::Missing => Err(StoreError(
                "a store that processes share needs the server's keys: set CALLGATE_KEYS, or call `EngineBuilder::keys`"
                    .to_owned(),
            )),
        }
    }

    fn closed(&self, key: RecordKey<'_>, value: &Value) -> Result<Value, StoreError> {
        match self.keys()? {
            None => Ok(value.clone()),
            Some(keys) => encrypt(keys, Purpose::Record, &json!([key.space, key.key]), value),
        }
    }

    /// The value of a record of [`inner`](Self::inner).
    pub(crate) fn opened(&self, key: RecordKey<'_>, value: Value) -> Result<Value, StoreError> {
        match self.keys()? {
            None => Ok(value),
            Some(keys) => decrypt(keys, Purpose::Record, &json!([key.space, key.key]), &value).ok_or_else(|| {
                let name = format!("{}/{}", key.space, key.key);
                StoreError(format!(
                    "the record `{name}` can't be decrypted: it was changed, or written with a key that is not in CALLGATE_KEYS"
                ))
            }),
        }
    }
}

impl StateStore for EncryptedStore {
    fn take<'a>(&'a self, now: Timestamp, takes: &'a [Take]) -> StoreFuture<'a, Vec<Refusal>> {
        Box::pin(async move {
            let Some(keys) = self.keys()? else { return self.inner.take(now, takes).await };
            // While keys rotate, each limit is counted under all of them: whichever is removed, what was taken stays counted.
            let (mut all, mut of) = (Vec::new(), Vec::new());
            for (index, take) in takes.iter().enumerate() {
                for key in limit_keys(keys, &take.key) {
                    all.push(Take { key, ..take.clone() });
                    of.push(index);
                }
            }
            let mut refusals: Vec<Refusal> = Vec::new();
            for refusal in self.inner.take(now, &all).await? {
                let index = of.get(refusal.index).copied().unwrap_or_default();
                match refusals.iter_mut().find(|known| known.index == index) {
                    Some(known) => {
                        let both = known.retry_after.zip(refusal.retry_after);
                        known.retry_after = both.map(|(one, other)| one.max(other));
                    }
                    None => refusals.push(Refusal { index, ..refusal }),
                }
            }
            Ok(refusals)
        })
    }

    fn left<'a>(&'a self, now: Timestamp, take: &'a Take) -> StoreFuture<'a, Option<Amount>> {
        Box::pin(async move {
            let Some(keys) = self.keys()? else { return self.inner.left(now, take).await };
            let mut least: Option<Amount> = None;
            for key in limit_keys(keys, &take.key) {
                match self.inner.left(now, &Take { key, ..take.clone() }).await? {
                    Some(left) => least = Some(least.map_or(left, |least| least.min(left))),
                    None => return Ok(None),
                }
            }
            Ok(least)
        })
    }

    fn give_back(&self, key: &str) {
        match &self.protection {
            Protection::InProcess => self.inner.give_back(key),
            Protection::Keys(keys) => limit_keys(keys, key).for_each(|key| self.inner.give_back(&key)),
            Protection::Missing => {}
        }
    }

    fn slot_freed(&self) -> BoxFuture<'_, ()> {
        self.inner.slot_freed()
    }

    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, Lookup> {
        Box::pin(async move {
            let Some(keys) = self.keys()? else { return self.inner.cache_get(now, space, key).await };
            let key = cache_key(keys, space.name, key);
            let Lookup { entry, generation } = self.inner.cache_get(now, space, &key).await?;
            // An entry that was changed, or is under a key that was removed, is none.
            let entry = entry.and_then(|entry| {
                let output = decrypt(keys, Purpose::Cache, &json!([space.name, key]), &entry.output)?;
                Some(CacheEntry { output, ..entry })
            });
            Ok(Lookup { entry, generation })
        })
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let Some(keys) = self.keys()? else {
                return self.inner.cache_put(space, key, entry, generation).await;
            };
            let key = cache_key(keys, space.name, key);
            let output = encrypt(keys, Purpose::Cache, &json!([space.name, key]), &entry.output)?;
            self.inner.cache_put(space, &key, CacheEntry { output, ..entry }, generation).await
        })
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.inner.cache_clear(space)
    }

    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move {
            self.keys()?;
            let Some(Record { value, version }) = self.inner.record(key).await? else { return Ok(None) };
            Ok(Some(Record { value: self.opened(key, value)?, version }))
        })
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: Write<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let value = self.closed(write.key, write.value)?;
            self.inner.write_record(now, Write { value: &value, ..write }).await
        })
    }

    fn records<'a>(&'a self, space: &'a str, after: Option<&'a str>, limit: usize) -> StoreFuture<'a, Page> {
        Box::pin(async move {
            self.keys()?;
            let Page { records, more } = self.inner.records(space, after, limit).await?;
            let opened = records.into_iter().map(|(key, Record { value, version })| {
                let value = self.opened(RecordKey { space, key: &key }, value)?;
                Ok((key, Record { value, version }))
            });
            Ok(Page { records: opened.collect::<Result<_, StoreError>>()?, more })
        })
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }
}

fn limit_keys<'k>(keys: &'k Keys, key: &str) -> impl Iterator<Item = String> + use<'k> {
    keys.digests(Purpose::Limit, &json!(key)).map(|digest| digest.to_string())
}

fn cache_key(keys: &Keys, space: &str, key: &str) -> String {
    keys.digest(Purpose::Cache, &json!([space, key])).to_string()
}

fn encrypt(keys: &Keys, purpose: Purpose, context: &Value, value: &Value) -> Result<Value, StoreError> {
    let sealed = keys.encrypt(purpose, context, value.to_string().as_bytes());
    sealed.map(Value::from).map_err(|error| StoreError(error.to_string()))
}

fn decrypt(keys: &Keys, purpose: Purpose, context: &Value, sealed: &Value) -> Option<Value> {
    let bytes = keys.decrypt(purpose, context, sealed.as_str()?).ok()?;
    json::parse(&String::from_utf8(bytes).ok()?).ok()
}
