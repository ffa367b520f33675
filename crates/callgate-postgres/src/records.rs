//! Records in the database: versioned values with compare-and-swap, deleted only after their expiry, or evicted for a newer record of the
//! same account.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use jiff::Timestamp;
use tokio_postgres::Row;

use super::error::PostgresError;
use super::statement;
use super::usage::{Pool, read_account};
use callgate::host::{Account, OnQuotaExceeded, Record, RecordKey, RecordPage, StoreError};
use callgate::json;
use callgate::state::capacity::units;
use callgate::state::limit_algorithms::{Micros, since_epoch};
use callgate::state::records::quota_error;

/// The most expired records that one write removes.
const MAX_REMOVED: i64 = 64;

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

/// Writes a record, if the stored version is the expected one, in a transaction that holds the lock of the pool. An inner error does not
/// roll back the transaction: what it recorded must be committed.
pub(crate) async fn write(
    database: &impl GenericClient,
    capacity: usize,
    now: Timestamp,
    written: &SerializedWrite,
) -> Result<Result<bool, StoreError>, PostgresError> {
    let SerializedWrite { space, key, value, expected_version, forget_at, account: writer, when_full } =
        written;
    remove_expired(database, now, space, key).await?;
    let select = "SELECT version, tenant, caller, units FROM records WHERE space = $1 AND key = $2";
    let stored = statement::query_opt(database, select, &[space, &key.as_bytes()]).await?.map(|row| {
        let units: i64 = row.get(3);
        (row.get::<_, i64>(0).unsigned_abs(), read_account(&row, 1), usize::try_from(units).unwrap_or(0))
    });
    if stored.map(|(version, ..)| version) != *expected_version {
        return Ok(Ok(false));
    }
    let units = units(value.len());
    let (owner, held) = stored.map_or((*writer, 0), |(_, owner, held)| (owner, held));
    loop {
        let shares = Pool::Records.shares(database, capacity, [owner]).await?;
        if shares.admits(&owner, units.saturating_sub(held)) {
            break;
        }
        let lost = "INSERT INTO lost (caller) VALUES ($1) ON CONFLICT DO NOTHING";
        statement::execute(database, lost, &[&owner.caller()]).await?;
        if *when_full == OnQuotaExceeded::Refuse || !evict_oldest(database, &owner, space, key).await? {
            return Ok(Err(quota_error(capacity)));
        }
    }
    let upsert = "INSERT INTO records (space, key, value, version, forget_at, tenant, caller, units)
        VALUES ($1, $2, $3, nextval('versions'), $4, $5, $6, $7)
        ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, version = excluded.version,
            forget_at = excluded.forget_at, units = excluded.units";
    let (key, forget_at) = (key.as_bytes(), forget_at.map(to_micros_rounded_up));
    let (tenant, caller) = (owner.tenant(), owner.caller());
    let size = i64::try_from(units).unwrap_or(i64::MAX);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [space, &key, value, &forget_at, &tenant, &caller, &size];
    let upserted = async {
        statement::execute(database, upsert, &parameters).await?;
        Ok(())
    };
    tokio::try_join!(upserted, Pool::Records.recharge(database, &owner, held, units))?;
    Ok(Ok(true))
}

/// Removes some expired records, and the one with this key if it has expired. Returns how many.
pub(crate) async fn remove_expired(
    database: &impl GenericClient,
    now: Timestamp,
    space: &str,
    key: &str,
) -> Result<usize, PostgresError> {
    let delete = "DELETE FROM records WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM records WHERE forget_at <= $1 ORDER BY forget_at LIMIT $2))
            OR (space = $3 AND key = $4 AND forget_at <= $1)
        RETURNING tenant, caller, units";
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&since_epoch(now), &MAX_REMOVED, &space, &key.as_bytes()];
    let removed = statement::query(database, delete, &parameters).await?;
    release(database, &removed).await?;
    Ok(removed.len())
}

/// Removes the oldest record of an account in a space, except one. Returns whether there was any.
async fn evict_oldest(
    database: &impl GenericClient,
    owner: &Account,
    space: &str,
    except: &str,
) -> Result<bool, PostgresError> {
    let delete = "DELETE FROM records WHERE ctid = (
            SELECT ctid FROM records WHERE caller = $1 AND space = $2 AND key <> $3 ORDER BY version LIMIT 1)
        RETURNING tenant, caller, units";
    let removed = statement::query(database, delete, &[&owner.caller(), &space, &except.as_bytes()]).await?;
    release(database, &removed).await?;
    Ok(!removed.is_empty())
}

/// Releases the charges of removed records.
async fn release(database: &impl GenericClient, removed: &[Row]) -> Result<(), PostgresError> {
    let mut by_account: HashMap<Account, usize> = HashMap::new();
    for row in removed {
        let units: i64 = row.get(2);
        *by_account.entry(read_account(row, 0)).or_default() += usize::try_from(units).unwrap_or(0);
    }
    for (account, units) in by_account {
        Pool::Records.recharge(database, &account, units, 0).await?;
    }
    Ok(())
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
