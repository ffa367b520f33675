//! Records in the file: versioned values with compare-and-swap, deleted only after their expiry, or evicted for a newer
//! record of the same account.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql};

use super::error::SqliteStoreError;
use super::schema::SharedCounter;
use super::usage::{Pool, read_account};
use callgate::host::{Account, OnQuotaExceeded, Record, RecordKey, RecordPage, StoreError};
use callgate::json;
use callgate::state::capacity::units;
use callgate::state::limit_algorithms::{Micros, since_epoch};
use callgate::state::records::quota_error;

/// A write whose value is already serialised.
pub struct SerializedWrite {
    pub space: String,
    pub key: String,
    pub value: String,
    pub expected_version: Option<u64>,
    pub forget_at: Option<Timestamp>,
    pub account: Account,
    pub when_full: OnQuotaExceeded,
}

/// The record with this key.
pub fn get(database: &Connection, key: RecordKey<'_>) -> Result<Option<Record>, SqliteStoreError> {
    let mut select =
        database.prepare_cached("SELECT key, value, version FROM records WHERE space = ?1 AND key = ?2")?;
    let found = select.query_row((key.space, key.key), read_row).optional()?;
    Ok(found.map(|raw| read(key.space, raw)).transpose()?.map(|(_, record)| record))
}

/// Whether records of an account were refused or evicted.
pub fn has_lost(database: &Connection, account: &Account) -> Result<bool, SqliteStoreError> {
    let mut select = database.prepare_cached("SELECT EXISTS (SELECT 1 FROM lost WHERE caller = ?1)")?;
    Ok(select.query_row([account.caller()], |row| row.get(0))?)
}

/// Writes a record, if the stored version is the expected one. An inner error does not roll back the transaction: what it
/// recorded must be committed.
pub fn write(
    database: &Connection,
    capacity: usize,
    now: Timestamp,
    written: &SerializedWrite,
) -> Result<Result<bool, StoreError>, SqliteStoreError> {
    let SerializedWrite { space, key, value, expected_version, forget_at, account: writer, when_full } =
        written;
    remove_where(database, "forget_at <= ?1", &[&since_epoch(now)])?;
    let mut select = database
        .prepare_cached("SELECT version, tenant, caller, units FROM records WHERE space = ?1 AND key = ?2")?;
    let stored = select.query_row((space, key), |row| {
        Ok((row.get::<_, u64>(0)?, read_account(row, 1)?, row.get::<_, i64>(3)? as usize))
    });
    let stored = stored.optional()?;
    if stored.map(|(version, ..)| version) != *expected_version {
        return Ok(Ok(false));
    }
    let units = units(value.len());
    let (owner, held) = stored.map_or((*writer, 0), |(_, owner, held)| (owner, held));
    loop {
        let mut shares = Pool::Records.shares(database, capacity)?;
        Pool::Records.load_account(database, &mut shares, &owner)?;
        if shares.admits(&owner, units.saturating_sub(held)) {
            break;
        }
        database
            .prepare_cached("INSERT OR IGNORE INTO lost (caller) VALUES (?1)")?
            .execute([owner.caller()])?;
        if *when_full == OnQuotaExceeded::Refuse || !evict_oldest(database, &owner, space, key)? {
            return Ok(Err(quota_error(capacity)));
        }
    }
    let version = SharedCounter::Version.next(database)?;
    let mut upsert = database.prepare_cached(
        "INSERT INTO records (space, key, value, version, forget_at, tenant, caller, units)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT DO UPDATE SET value = excluded.value, version = excluded.version, forget_at = excluded.forget_at,
             units = excluded.units",
    )?;
    upsert.execute((
        space,
        key,
        value,
        version,
        forget_at.map(to_micros_rounded_up),
        owner.tenant(),
        owner.caller(),
        units as i64,
    ))?;
    Pool::Records.recharge(database, &owner, held, units)?;
    Ok(Ok(true))
}

/// Removes the oldest record of an account in a space, except one. Returns whether there was any.
fn evict_oldest(
    database: &Connection,
    of: &Account,
    space: &str,
    but: &str,
) -> Result<bool, SqliteStoreError> {
    let removed = remove_where(
        database,
        "rowid = (SELECT rowid FROM records WHERE caller = ?1 AND space = ?2 AND key <> ?3 ORDER BY version LIMIT 1)",
        &[&of.caller(), &space, &but],
    )?;
    Ok(removed > 0)
}

/// Removes records and releases their charges. Returns their number.
fn remove_where(
    database: &Connection,
    which: &str,
    values: &[&dyn ToSql],
) -> Result<usize, SqliteStoreError> {
    let delete = format!("DELETE FROM records WHERE {which} RETURNING tenant, caller, units");
    let mut delete = database.prepare_cached(&delete)?;
    let removed =
        delete.query_map(values, |row| Ok((read_account(row, 0)?, row.get::<_, i64>(2)? as usize)))?;
    let removed: Vec<(Account, usize)> = removed.collect::<Result<_, _>>()?;
    for (account, units) in &removed {
        Pool::Records.recharge(database, account, *units, 0)?;
    }
    Ok(removed.len())
}

/// Records whose keys come after `after`.
pub fn page(
    database: &Connection,
    space: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<RecordPage, SqliteStoreError> {
    let one_more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut select = database.prepare_cached(
        "SELECT key, value, version FROM records WHERE space = ?1 AND (?2 IS NULL OR key > ?2) ORDER BY key LIMIT ?3",
    )?;
    let mut rows = select.query((space, after, one_more))?;
    let mut page = RecordPage::default();
    while let Some(row) = rows.next()? {
        if page.records.len() == limit {
            page.more = true;
            break;
        }
        page.records.push(read(space, read_row(row)?)?);
    }
    Ok(page)
}

type RecordRow = (String, String, u64);

fn read_row(row: &Row<'_>) -> rusqlite::Result<RecordRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn read(space: &str, (key, value, version): RecordRow) -> Result<(String, Record), SqliteStoreError> {
    match json::parse(&value) {
        Ok(value) => Ok((key, Record { value, version })),
        Err(_) => Err(SqliteStoreError::Store(format!(
            "the record `{key}` of `{space}` is damaged; restore a backup"
        ))),
    }
}

/// Rounded up, so that a record is not deleted before its expiry.
fn to_micros_rounded_up(time: Timestamp) -> Micros {
    let micros = since_epoch(time);
    if time.as_nanosecond().rem_euclid(1000) == 0 { micros } else { micros.saturating_add(1) }
}
