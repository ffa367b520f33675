//! Records in the file: exchanged whole, and forgotten only after their time.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::failure::Failure;
use super::schema::Counter;
use crate::host::{Page, Record, RecordKey};
use crate::json;
use crate::state::limits::{Micros, since_epoch};

/// What is written, with its value as text.
pub struct Written {
    pub space: String,
    pub key: String,
    pub value: String,
    pub over: Option<u64>,
    pub forget_at: Option<Timestamp>,
}

/// The record of this key.
pub fn get(database: &Connection, key: RecordKey<'_>) -> Result<Option<Record>, Failure> {
    let mut select =
        database.prepare_cached("SELECT key, value, version FROM records WHERE space = ?1 AND key = ?2")?;
    let found = select.query_row((key.space, key.key), raw).optional()?;
    Ok(found.map(|raw| read(key.space, raw)).transpose()?.map(|(_, record)| record))
}

/// Writes one, if what stands there is what it is to be written over.
pub fn write(database: &Connection, now: Timestamp, written: &Written) -> Result<bool, Failure> {
    let Written { space, key, value, over, forget_at } = written;
    database.prepare_cached("DELETE FROM records WHERE forget_at <= ?1")?.execute([since_epoch(now)])?;
    let mut select = database.prepare_cached("SELECT version FROM records WHERE space = ?1 AND key = ?2")?;
    let standing: Option<u64> = select.query_row((space, key), |row| row.get(0)).optional()?;
    if standing != *over {
        return Ok(false);
    }
    let version = Counter::Version.next(database)?;
    let mut upsert = database.prepare_cached(
        "INSERT INTO records (space, key, value, version, forget_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET value = excluded.value, version = excluded.version, forget_at = excluded.forget_at",
    )?;
    upsert.execute((space, key, value, version, forget_at.map(rounded_up)))?;
    Ok(true)
}

/// Records whose keys come after this one.
pub fn page(database: &Connection, space: &str, after: Option<&str>, limit: usize) -> Result<Page, Failure> {
    let one_more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut select = database.prepare_cached(
        "SELECT key, value, version FROM records WHERE space = ?1 AND (?2 IS NULL OR key > ?2) ORDER BY key LIMIT ?3",
    )?;
    let mut rows = select.query((space, after, one_more))?;
    let mut page = Page::default();
    while let Some(row) = rows.next()? {
        if page.records.len() == limit {
            page.more = true;
            break;
        }
        page.records.push(read(space, raw(row)?)?);
    }
    Ok(page)
}

type Raw = (String, String, u64);

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn read(space: &str, (key, value, version): Raw) -> Result<(String, Record), Failure> {
    match json::parse(&value) {
        Ok(value) => Ok((key, Record { value, version })),
        Err(_) => {
            Err(Failure::Told(format!("the record `{key}` of `{space}` is damaged; bring back a copy")))
        }
    }
}

/// A record is not forgotten before its time.
fn rounded_up(time: Timestamp) -> Micros {
    let micros = since_epoch(time);
    if time.as_nanosecond().rem_euclid(1000) == 0 { micros } else { micros.saturating_add(1) }
}
