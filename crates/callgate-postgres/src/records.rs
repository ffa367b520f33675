//! Records in the database: versioned values with compare-and-swap, deleted only after their expiry, or evicted for a newer record of the
//! same account.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::PostgresError;
use super::statement;
use callgate::host::{Account, OnQuotaExceeded, Record, RecordBatch, RecordKey, RecordPage, StoreError};
use callgate::json;
use callgate::state::capacity::units;
use callgate::state::limit_algorithms::{Micros, since_epoch};
use callgate::state::records::quota_error;

/// The most expired records that are removed at once.
const MAX_REMOVED: i32 = 1000;

/// A write whose value is already serialised.
pub(crate) struct SerializedWrite {
    pub(crate) space: String,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) expected_version: Option<u64>,
    pub(crate) forget_at: Option<Timestamp>,
    pub(crate) account: Account,
    pub(crate) when_full: OnQuotaExceeded,
}

/// The record with this key.
pub(crate) async fn get(
    database: &impl GenericClient,
    key: RecordKey<'_>,
) -> Result<Option<Record>, PostgresError> {
    let select = "SELECT key, value, version FROM records WHERE space = $1 AND key = $2";
    let found = statement::query_opt(database, select, &[&key.space, &key.key.as_bytes()]).await?;
    Ok(found.map(|row| read(key.space, &row)).transpose()?.map(|(_, record)| record))
}

/// Up to `limit` records of a space whose keys come after `after`, ordered by key.
pub(crate) async fn page(
    database: &impl GenericClient,
    space: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<RecordPage, PostgresError> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let select =
        "SELECT key, value, version FROM records WHERE space = $1 AND ($2::bytea IS NULL OR key > $2)
        ORDER BY key LIMIT $3";
    let rows = statement::query(database, select, &[&space, &after.map(str::as_bytes), &most]).await?;
    let records = rows.iter().take(limit).map(|row| read(space, row)).collect::<Result<_, _>>()?;
    Ok(RecordPage { records, more: rows.len() > limit })
}

/// Whether records of an account were refused or evicted.
pub(crate) async fn has_lost(
    database: &impl GenericClient,
    account: &Account,
) -> Result<bool, PostgresError> {
    let select = "SELECT EXISTS (SELECT FROM lost WHERE caller = $1)";
    Ok(statement::query_one(database, select, &[&account.caller()]).await?.get(0))
}

/// The records of a space with these keys, in the same order.
pub(crate) async fn get_all(
    database: &impl GenericClient,
    space: &str,
    keys: &[String],
) -> Result<Vec<Option<Record>>, PostgresError> {
    let bytes: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let select = "SELECT key, value, version FROM records WHERE space = $1 AND key = ANY($2)";
    let rows = statement::query(database, select, &[&space, &bytes]).await?;
    let found: HashMap<String, Record> = rows.iter().map(|row| read(space, row)).collect::<Result<_, _>>()?;
    Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
}

/// Records of any spaces, in the order of the keys, and whether records of the account were refused or evicted if one is missing. One
/// statement sees one snapshot: an evicted record and its loss.
pub(crate) async fn batch(
    database: &impl GenericClient,
    keys: &[(String, String)],
    account: &Account,
) -> Result<RecordBatch, PostgresError> {
    let (spaces, names): (Vec<&str>, Vec<&[u8]>) =
        keys.iter().map(|(space, key)| (space.as_str(), key.as_bytes())).unzip();
    let select = "SELECT sought.key, value, version, EXISTS (SELECT FROM lost WHERE caller = $3)
        FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS sought (space, key, number)
        LEFT JOIN records USING (space, key) ORDER BY sought.number";
    let rows = statement::query(database, select, &[&spaces, &names, &account.caller()]).await?;
    let mut batch = RecordBatch::default();
    for ((space, _), row) in keys.iter().zip(&rows) {
        let is_found = row.get::<_, Option<&str>>(1).is_some();
        let record = is_found.then(|| read(space, row)).transpose()?.map(|(_, record)| record);
        batch.has_lost_records |= record.is_none() && row.get(3);
        batch.records.push(record);
    }
    Ok(batch)
}

/// Writes a record, if the stored version is the expected one. Expired records are removed, and older ones of the account if necessary.
pub(crate) async fn write(
    database: &impl GenericClient,
    capacity: usize,
    now: Timestamp,
    written: &SerializedWrite,
) -> Result<Result<bool, StoreError>, PostgresError> {
    let SerializedWrite { space, key, value, expected_version, forget_at, account, when_full } = written;
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    // No stored version is that large.
    let expected = expected_version.map(|version| i64::try_from(version).unwrap_or(i64::MAX));
    let write = "SELECT write_record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let parameters: [&(dyn ToSql + Sync); 11] = [
        space,
        &key.as_bytes(),
        value,
        &expected,
        &forget_at.map(to_micros_rounded_up),
        &since_epoch(now),
        &account.tenant(),
        &account.caller(),
        &number(units(value.len())),
        &number(capacity),
        &(*when_full == OnQuotaExceeded::EvictOldest),
    ];
    let row = statement::query_one(database, write, &parameters).await?;
    match row.get::<_, &str>(0) {
        "written" => Ok(Ok(true)),
        "conflict" => Ok(Ok(false)),
        _ => Ok(Err(quota_error(capacity))),
    }
}

/// Removes some expired records. Returns how many.
pub(crate) async fn remove_expired(
    database: &impl GenericClient,
    now: Timestamp,
) -> Result<u64, PostgresError> {
    let remove = "SELECT remove_expired_records($1, $2)";
    let row = statement::query_one(database, remove, &[&since_epoch(now), &MAX_REMOVED]).await?;
    Ok(row.get::<_, i64>(0).unsigned_abs())
}

fn read(space: &str, row: &Row) -> Result<(String, Record), PostgresError> {
    let (key, value, version): (Vec<u8>, &str, i64) = (row.get(0), row.get(1), row.get(2));
    let key = String::from_utf8_lossy(&key).into_owned();
    match json::parse(value) {
        Ok(value) => Ok((key, Record { value, version: version.unsigned_abs() })),
        Err(_) => Err(PostgresError::Damaged(format!(
            "the record `{key}` of `{space}` is damaged; restore a backup"
        ))),
    }
}

/// Rounded up, so that a record is not deleted before its expiry.
fn to_micros_rounded_up(time: Timestamp) -> Micros {
    let micros = since_epoch(time);
    if time.as_nanosecond().rem_euclid(1000) == 0 { micros } else { micros.saturating_add(1) }
}
