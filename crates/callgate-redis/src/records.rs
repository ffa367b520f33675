//! Records: keys and values → commands, and replies → records.

use callgate::host::{Record, RecordBatch, RecordKey, RecordPage};
use callgate::json;
use callgate::state::limit_algorithms::{Micros, since_epoch};
use jiff::Timestamp;
use redis::{Cmd, cmd};

use super::error::RedisStoreError;

/// The most bytes of values in a page; the rest is read with further pages.
pub(crate) const MAX_PAGE_BYTES: usize = 32 << 20;

/// The name of a record among the keys of its pool. Scripts form the same.
fn record_name(pool: &str, space: &str, key: &str) -> String {
    format!("{pool}:k:{}:{space}:{key}", space.len())
}

/// Reads the value and version of a record.
pub(crate) fn read_command(pool: &str, space: &str, key: &str) -> Cmd {
    let mut command = cmd("HMGET");
    command.arg(record_name(pool, space, key)).arg("v").arg("n");
    command
}

/// The record of a reply.
pub(crate) fn record_of(
    key: RecordKey<'_>,
    value: Option<String>,
    version: Option<u64>,
) -> Result<Option<Record>, RedisStoreError> {
    let Some(value) = value else { return Ok(None) };
    let RecordKey { space, key } = key;
    let damaged =
        || RedisStoreError::Damaged(format!("the record `{key}` of `{space}` is damaged; restore a backup"));
    let version = version.ok_or_else(damaged)?;
    let value = json::parse(&value).map_err(|_| damaged())?;
    Ok(Some(Record { value, version }))
}

/// The page of a reply: whether more follow, then key, value and version of each record.
pub(crate) fn page_of(space: &str, reply: &[String]) -> Result<RecordPage, RedisStoreError> {
    let damaged =
        || RedisStoreError::Damaged(format!("the records of `{space}` are damaged; restore a backup"));
    let (more, rest) = reply.split_first().ok_or_else(damaged)?;
    let mut records = Vec::new();
    for row in rest.chunks(3) {
        let [key, value, version] = row else { return Err(damaged()) };
        let version = Some(version.parse().map_err(|_| damaged())?);
        let found = record_of(RecordKey { space, key }, Some(value.clone()), version)?;
        records.extend(found.map(|record| (key.clone(), record)));
    }
    Ok(RecordPage { records, more: more == "1" })
}

/// The records of a reply: whether records of the caller were lost, then for each key whether it has a record, with its value and version.
pub(crate) fn batch_of(
    keys: &[(String, String)],
    reply: Vec<String>,
) -> Result<RecordBatch, RedisStoreError> {
    let damaged = || RedisStoreError::Damaged("the server returned malformed records".to_owned());
    let mut reply = reply.into_iter();
    let is_lost = reply.next().ok_or_else(damaged)? == "1";
    let mut records = Vec::with_capacity(keys.len());
    for (space, key) in keys {
        records.push(match reply.next().ok_or_else(damaged)?.as_str() {
            "1" => {
                let value = reply.next().ok_or_else(damaged)?;
                let version = reply.next().and_then(|version| version.parse().ok());
                record_of(RecordKey { space, key }, Some(value), version)?
            }
            _ => None,
        });
    }
    let has_lost_records = is_lost && records.iter().any(Option::is_none);
    Ok(RecordBatch { records, has_lost_records })
}

/// The time of an expiry, rounded up, so that a record is not deleted before it.
pub(crate) fn expiry_micros(time: Timestamp) -> Micros {
    let micros = since_epoch(time);
    if time.as_nanosecond().rem_euclid(1000) == 0 { micros } else { micros.saturating_add(1) }
}
