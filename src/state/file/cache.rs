//! Cached results in the file, in spaces that each let go what was used longest ago.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use super::failure::Failure;
use super::schema::Counter;
use crate::host::{CacheEntry, CacheSpace, Lookup};
use crate::json;
use crate::state::cache::SPACES;

/// A space and a key in it.
pub struct Place {
    pub space: String,
    pub max_entries: usize,
    pub key: String,
}

impl Place {
    pub fn new(space: CacheSpace<'_>, key: &str) -> Self {
        Self { space: space.name.to_owned(), max_entries: space.max_entries, key: key.to_owned() }
    }
}

/// The entry if it has not expired, and the generation of the space.
pub fn get(database: &Connection, now: Timestamp, place: &Place) -> Result<Lookup, Failure> {
    let Some(generation) = kept(database, &place.space)? else {
        return Ok(Lookup { entry: None, generation: elsewhere(database)? });
    };
    let used = Counter::Used.next(database)?;
    database.prepare_cached("UPDATE spaces SET used = ?2 WHERE name = ?1")?.execute((&place.space, used))?;
    shrink(database, &place.space, place.max_entries)?;
    let found: Option<(String, String, String)> = database
        .prepare_cached("SELECT output, stored_at, expires_at FROM entries WHERE space = ?1 AND key = ?2")?
        .query_row((&place.space, &place.key), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    // What can't be read is as good as not kept. An entry of the future was written before the clock stepped back: how old it
    // is can't be known.
    let entry = found.and_then(read).filter(|entry| entry.stored_at <= now && now < entry.expires_at);
    if entry.is_some() {
        database.prepare_cached("UPDATE entries SET used = ?3 WHERE space = ?1 AND key = ?2")?.execute((
            &place.space,
            &place.key,
            used,
        ))?;
    } else {
        remove(database, place)?;
    }
    Ok(Lookup { entry, generation })
}

/// Keeps an entry in place of an earlier one, or nothing there, unless the space is of another generation.
pub fn put(
    database: &Connection,
    place: &Place,
    entry: Option<&CacheEntry>,
    generation: u64,
) -> Result<(), Failure> {
    let kept = kept(database, &place.space)?;
    if generation != kept.map_or_else(|| elsewhere(database), Ok)? {
        return Ok(());
    }
    let Some(entry) = entry.filter(|_| place.max_entries > 0) else {
        remove(database, place)?;
        return Ok(shrink(database, &place.space, place.max_entries)?);
    };
    let used = Counter::Used.next(database)?;
    database
        .prepare_cached(
            "INSERT INTO spaces (name, generation, used) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET used = excluded.used",
        )?
        .execute((&place.space, generation, used))?;
    if kept.is_none() {
        let_spaces_go(database)?;
    }
    database
        .prepare_cached(
            "INSERT INTO entries (space, key, output, stored_at, expires_at, used) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET output = excluded.output, stored_at = excluded.stored_at,
                 expires_at = excluded.expires_at, used = excluded.used",
        )?
        .execute((
            &place.space,
            &place.key,
            entry.output.to_string(),
            entry.stored_at.to_string(),
            entry.expires_at.to_string(),
            used,
        ))?;
    Ok(shrink(database, &place.space, place.max_entries)?)
}

/// Drops the entries of a space, and what is on its way to it.
pub fn clear(database: &Connection, space: &str) -> Result<(), Failure> {
    let cleared = Counter::Cleared.next(database)?;
    let kept = database
        .prepare_cached("UPDATE spaces SET generation = ?2 WHERE name = ?1")?
        .execute((space, cleared))?;
    if kept == 0 {
        Counter::Elsewhere.set(database, cleared)?;
    }
    database.prepare_cached("DELETE FROM entries WHERE space = ?1")?.execute([space])?;
    Ok(())
}

fn read((output, stored_at, expires_at): (String, String, String)) -> Option<CacheEntry> {
    Some(CacheEntry {
        output: json::parse(&output).ok()?,
        stored_at: stored_at.parse().ok()?,
        expires_at: expires_at.parse().ok()?,
    })
}

/// The generation of a space that is kept.
fn kept(database: &Connection, space: &str) -> rusqlite::Result<Option<u64>> {
    let mut select = database.prepare_cached("SELECT generation FROM spaces WHERE name = ?1")?;
    select.query_row([space], |row| row.get(0)).optional()
}

fn elsewhere(database: &Connection) -> rusqlite::Result<u64> {
    // It only counts up, from nothing.
    Ok(Counter::Elsewhere.get(database)?.map_or(0, i64::unsigned_abs))
}

fn remove(database: &Connection, place: &Place) -> rusqlite::Result<()> {
    let mut delete = database.prepare_cached("DELETE FROM entries WHERE space = ?1 AND key = ?2")?;
    delete.execute((&place.space, &place.key)).map(|_| ())
}

fn shrink(database: &Connection, space: &str, max_entries: usize) -> rusqlite::Result<()> {
    let mut delete = database.prepare_cached(
        "DELETE FROM entries WHERE rowid IN
             (SELECT rowid FROM entries WHERE space = ?1 ORDER BY used DESC LIMIT -1 OFFSET ?2)",
    )?;
    delete.execute((space, i64::try_from(max_entries).unwrap_or(i64::MAX))).map(|_| ())
}

fn let_spaces_go(database: &Connection) -> rusqlite::Result<()> {
    let mut select =
        database.prepare_cached("SELECT name FROM spaces ORDER BY used DESC LIMIT -1 OFFSET ?1")?;
    let names: Vec<String> =
        select.query_map([SPACES as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for name in names {
        database.prepare_cached("DELETE FROM entries WHERE space = ?1")?.execute([&name])?;
        database.prepare_cached("DELETE FROM spaces WHERE name = ?1")?.execute([&name])?;
        let cleared = Counter::Cleared.next(database)?;
        Counter::Elsewhere.set(database, cleared)?;
    }
    Ok(())
}
