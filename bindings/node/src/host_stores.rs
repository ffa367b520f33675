//! Stores in JavaScript: each operation of a store becomes a request of the operation that runs the call. What they store is sealed.

use std::sync::Arc;

use callgate::host::{
    Account, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite, Record, RecordKey,
    RecordPage, RecordStore, StoreError, StoreFuture,
};
use callgate::json::{self, Value, json};
use callgate_state::{HostStores, LimitValue, LimitValues, LimitWrite, read_entry, write_entry};
use jiff::Timestamp;
use serde::Deserialize;

use crate::exchange::current_exchange;

/// Which parts of the state JavaScript stores.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JavaScriptStores {
    records: bool,
    limits: bool,
    cache: bool,
}

impl JavaScriptStores {
    /// The stores.
    pub fn stores(self) -> HostStores {
        HostStores {
            records: self.records.then(|| Arc::new(JavaScriptRecordStore) as Arc<dyn RecordStore>),
            limits: self.limits.then(|| Arc::new(JavaScriptLimitStore) as Arc<dyn LimitValues>),
            cache: self.cache.then(|| Arc::new(JavaScriptCacheStore) as Arc<dyn CacheStore>),
        }
    }

    /// Whether JavaScript has any store.
    pub fn is_any(self) -> bool {
        self.records || self.limits || self.cache
    }
}

/// The `RecordStore` of JavaScript.
struct JavaScriptRecordStore;

/// The `LimitStore` of JavaScript.
struct JavaScriptLimitStore;

/// The `CacheStore` of JavaScript.
struct JavaScriptCacheStore;

fn unavailable(message: impl Into<String>) -> StoreError {
    StoreError::Unavailable(message.into())
}

async fn ask(kind: &str, members: Value) -> Result<Value, StoreError> {
    let exchange =
        current_exchange().ok_or_else(|| unavailable("the store is only available while a call runs"))?;
    let reply = exchange.request(kind, &members).await.ok_or_else(|| unavailable("the program has ended"))?;
    match reply.get("threw") {
        Some(_) => Err(unavailable("the store failed")),
        None => Ok(reply),
    }
}

/// A value as JavaScript stores it: as text, which is opaque there, with its version.
fn read_value(reply: &Value) -> Result<Option<LimitValue>, StoreError> {
    if reply.is_null() {
        return Ok(None);
    }
    let value = reply.get("value").and_then(Value::as_str);
    let version = reply.get("version").and_then(Value::as_u64);
    let (Some(value), Some(version)) = (value, version) else {
        return Err(unavailable("the store returned something else than a value with its version"));
    };
    Ok(Some(LimitValue { value: value.to_owned(), version }))
}

fn read_record(reply: &Value) -> Result<Option<Record>, StoreError> {
    let Some(LimitValue { value, version }) = read_value(reply)? else { return Ok(None) };
    let value = json::parse(&value).map_err(|error| unavailable(error.to_string()))?;
    Ok(Some(Record { value, version }))
}

fn read_written(reply: &Value) -> Result<bool, StoreError> {
    let written = reply.get("written").and_then(Value::as_bool);
    written.ok_or_else(|| unavailable("the store did not report whether it wrote"))
}

impl RecordStore for JavaScriptRecordStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move {
            let reply = ask("readRecord", json!({ "space": key.space, "key": key.key })).await?;
            read_record(reply.get("record").unwrap_or(&Value::Null))
        })
    }

    fn write_record<'a>(&'a self, _: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let members = json!({
                "space": write.key.space,
                "key": write.key.key,
                "value": write.value.to_string(),
                "expectedVersion": write.expected_version,
                "forgetAt": write.forget_at.map(|time| time.to_string()),
            });
            read_written(&ask("writeRecord", members).await?)
        })
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move {
            let reply = ask("listRecords", json!({ "space": space, "after": after, "limit": limit })).await?;
            let listed = reply.get("records").and_then(Value::as_array);
            let listed = listed.ok_or_else(|| unavailable("the store of records returned no list"))?;
            let mut page = RecordPage { more: listed.len() >= limit, ..RecordPage::default() };
            for entry in listed {
                let key = entry.get("key").and_then(Value::as_str);
                if let (Some(key), Some(record)) = (key, read_record(entry)?) {
                    page.records.push((key.to_owned(), record));
                }
            }
            Ok(page)
        })
    }

    fn has_lost_records<'a>(&'a self, _: &'a Account) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl LimitValues for JavaScriptLimitStore {
    fn read<'a>(&'a self, keys: &'a [String]) -> StoreFuture<'a, Vec<Option<LimitValue>>> {
        Box::pin(async move {
            let reply = ask("readLimits", json!({ "keys": keys.to_vec() })).await?;
            let values = reply.get("values").and_then(Value::as_array);
            let values = values.ok_or_else(|| unavailable("the store of limits returned no list"))?;
            values.iter().map(read_value).collect()
        })
    }

    fn write<'a>(&'a self, writes: &'a [LimitWrite]) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let writes = writes.iter().map(|write| {
                json!({
                    "key": write.key.as_str(),
                    "value": write.value.as_str(),
                    "expectedVersion": write.expected_version,
                    "forgetAt": write.forget_at.map(|time| time.to_string()),
                })
            });
            let writes = writes.collect::<Vec<Value>>();
            read_written(&ask("writeLimits", json!({ "writes": writes })).await?)
        })
    }
}

impl CacheStore for JavaScriptCacheStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        Box::pin(async move {
            let reply = ask("readCache", json!({ "space": space.name, "key": key })).await?;
            let found = reply.get("found").unwrap_or(&Value::Null);
            let generation = found.get("generation").and_then(Value::as_u64);
            let generation =
                generation.ok_or_else(|| unavailable("the cache did not report its generation"))?;
            let entry = found.get("value").and_then(Value::as_str).and_then(|text| read_entry(text, now));
            Ok(CacheLookup { entry, generation })
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
            let members = json!({
                "space": space.name,
                "key": key,
                "value": write_entry(&entry),
                "generation": generation,
                "expiresAt": entry.expires_at.to_string(),
                "maxEntries": space.max_entries as u64,
            });
            ask("writeCache", members).await.map(drop)
        })
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { ask("clearCache", json!({ "space": space })).await.map(drop) })
    }

    fn exposes_cache(&self) -> bool {
        true
    }
}
