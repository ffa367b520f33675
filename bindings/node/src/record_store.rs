//! A store of records in JavaScript: each operation becomes a request of the operation that runs the call. What it stores is sealed.

use callgate::host::{
    Account, ConditionalWrite, Record, RecordKey, RecordPage, RecordStore, StoreError, StoreFuture,
};
use callgate::json::{self, Value, json};
use jiff::Timestamp;

use crate::exchange::current_exchange;

/// The store that JavaScript has.
pub struct JavaScriptRecordStore;

fn unavailable(message: impl Into<String>) -> StoreError {
    StoreError::Unavailable(message.into())
}

async fn ask(kind: &str, members: Value) -> Result<Value, StoreError> {
    let exchange =
        current_exchange().ok_or_else(|| unavailable("the store is only available while a call runs"))?;
    let reply = exchange.request(kind, members).await.ok_or_else(|| unavailable("the program has ended"))?;
    match reply.get("threw") {
        Some(_) => Err(unavailable("the store of records failed")),
        None => Ok(reply),
    }
}

/// A record as JavaScript keeps it: its value as text, which is opaque there, and its version.
fn read_record(reply: &Value) -> Result<Option<Record>, StoreError> {
    if reply.is_null() {
        return Ok(None);
    }
    let value = reply.get("value").and_then(Value::as_str);
    let version = reply.get("version").and_then(Value::as_u64);
    let (Some(value), Some(version)) = (value, version) else {
        return Err(unavailable("the store of records returned something else than a record"));
    };
    let value = json::parse(value).map_err(|error| unavailable(error.to_string()))?;
    Ok(Some(Record { value, version }))
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
            let reply = ask("writeRecord", members).await?;
            let written = reply.get("written").and_then(Value::as_bool);
            written.ok_or_else(|| unavailable("the store of records did not say whether it wrote"))
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
