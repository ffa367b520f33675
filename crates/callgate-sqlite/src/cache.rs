//! Cached results in the file, grouped into spaces. When there are too many, the account with the most loses its least
//! recently used entries.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql};

use super::error::SqliteStoreError;
use super::schema::SharedCounter;
use super::usage::{Pool, read_account};
use callgate::host::{Account, CacheEntry, CacheLookup, CacheSpace};
use callgate::json;
use callgate::state::cache::MAX_SPACES;
use callgate::state::capacity::heaviest_accounts;

/// How many entries of one account are evicted at once if the pool is full, so that accounts are seldom compared.
const MAX_EVICTIONS: i64 = 64;

/// The location of an entry: its space and its key.
pub struct EntryKey {
    pub space: String,
    pub max_entries: usize,
    pub account: Account,
    pub key: String,
}

impl EntryKey {
    pub fn new(space: CacheSpace<'_>, key: &str) -> Self {
        let CacheSpace { name, max_entries, account } = space;
        Self { space: name.to_owned(), max_entries, account, key: key.to_owned() }
    }
}

/// The entry, if it has not expired, and the generation of the space.
pub fn get(
    database: &Connection,
    now: Timestamp,
    entry_key: &EntryKey,
) -> Result<CacheLookup, SqliteStoreError> {
    let Some(generation) = generation_of(database, &entry_key.space)? else {
        return Ok(CacheLookup { entry: None, generation: unstored_generation(database)? });
    };
    let used = SharedCounter::Used.next(database)?;
    database
        .prepare_cached("UPDATE spaces SET used = ?2 WHERE name = ?1")?
        .execute((&entry_key.space, used))?;
    evict_from_space(database, &entry_key.space, entry_key.max_entries)?;
    let found: Option<(String, String, String)> = database
        .prepare_cached("SELECT output, stored_at, expires_at FROM entries WHERE space = ?1 AND key = ?2")?
        .query_row((&entry_key.space, &entry_key.key), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    // An unreadable entry counts as missing. An entry from the future was written before the clock stepped back: its age is
    // unknown.
    let entry = found.and_then(read).filter(|entry| entry.stored_at <= now && now < entry.expires_at);
    if entry.is_some() {
        database.prepare_cached("UPDATE entries SET used = ?3 WHERE space = ?1 AND key = ?2")?.execute((
            &entry_key.space,
            &entry_key.key,
            used,
        ))?;
    } else {
        remove(database, entry_key)?;
    }
    Ok(CacheLookup { entry, generation })
}

/// Stores an entry that takes this many units, unless the generation of the space has changed. With `None` it only removes
/// the earlier entry.
pub fn put(
    database: &Connection,
    capacity: usize,
    entry_key: &EntryKey,
    (entry, units): (Option<&CacheEntry>, usize),
    generation: u64,
) -> Result<(), SqliteStoreError> {
    let current_generation = generation_of(database, &entry_key.space)?;
    if generation != current_generation.map_or_else(|| unstored_generation(database), Ok)? {
        return Ok(());
    }
    let Some(entry) = entry.filter(|_| entry_key.max_entries > 0) else {
        remove(database, entry_key)?;
        return evict_from_space(database, &entry_key.space, entry_key.max_entries);
    };
    remove(database, entry_key)?;
    let used = SharedCounter::Used.next(database)?;
    database
        .prepare_cached(
            "INSERT INTO spaces (name, generation, used) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET used = excluded.used",
        )?
        .execute((&entry_key.space, generation, used))?;
    if current_generation.is_none() {
        drop_excess_spaces(database)?;
    }
    database
        .prepare_cached(
            "INSERT INTO entries (space, key, output, stored_at, expires_at, used, tenant, caller, units)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute((
            &entry_key.space,
            &entry_key.key,
            entry.output.to_string(),
            entry.stored_at.to_string(),
            entry.expires_at.to_string(),
            used,
            entry_key.account.tenant(),
            entry_key.account.caller(),
            units as i64,
        ))?;
    Pool::Cached.recharge(database, &entry_key.account, 0, units)?;
    evict_from_space(database, &entry_key.space, entry_key.max_entries)?;
    evict_to_capacity(database, capacity)
}

/// Removes the entries of a space, and invalidates results that are still being computed for it.
pub fn clear(database: &Connection, space: &str) -> Result<(), SqliteStoreError> {
    let cleared = SharedCounter::Cleared.next(database)?;
    let updated = database
        .prepare_cached("UPDATE spaces SET generation = ?2 WHERE name = ?1")?
        .execute((space, cleared))?;
    if updated == 0 {
        SharedCounter::UnstoredGeneration.set(database, cleared)?;
    }
    remove_where(database, "space = ?1", &[&space])
}

fn read((output, stored_at, expires_at): (String, String, String)) -> Option<CacheEntry> {
    Some(CacheEntry {
        output: json::parse(&output).ok()?,
        stored_at: stored_at.parse().ok()?,
        expires_at: expires_at.parse().ok()?,
    })
}

/// The generation of a stored space.
fn generation_of(database: &Connection, space: &str) -> rusqlite::Result<Option<u64>> {
    let mut select = database.prepare_cached("SELECT generation FROM spaces WHERE name = ?1")?;
    select.query_row([space], |row| row.get(0)).optional()
}

fn unstored_generation(database: &Connection) -> rusqlite::Result<u64> {
    // It only counts up, from zero.
    Ok(SharedCounter::UnstoredGeneration.get(database)?.map_or(0, i64::unsigned_abs))
}

fn remove(database: &Connection, entry_key: &EntryKey) -> Result<(), SqliteStoreError> {
    remove_where(database, "space = ?1 AND key = ?2", &[&entry_key.space, &entry_key.key])
}

/// Removes entries and releases their charges.
fn remove_where(database: &Connection, which: &str, values: &[&dyn ToSql]) -> Result<(), SqliteStoreError> {
    let delete = format!("DELETE FROM entries WHERE {which} RETURNING tenant, caller, units");
    let mut delete = database.prepare_cached(&delete)?;
    let mut removed: HashMap<Account, usize> = HashMap::new();
    let mut rows = delete.query(values)?;
    while let Some(row) = rows.next()? {
        let units: i64 = row.get(2)?;
        *removed.entry(read_account(row, 0)?).or_default() += usize::try_from(units).unwrap_or(0);
    }
    for (account, units) in removed {
        Pool::Cached.recharge(database, &account, units, 0)?;
    }
    Ok(())
}

/// Evicts the excess entries of one space.
fn evict_from_space(database: &Connection, space: &str, max_entries: usize) -> Result<(), SqliteStoreError> {
    let most = i64::try_from(max_entries).unwrap_or(i64::MAX);
    loop {
        let mut count = database.prepare_cached("SELECT COUNT(*) FROM entries WHERE space = ?1")?;
        if count.query_row([space], |row| row.get::<_, i64>(0))? <= most {
            return Ok(());
        }
        let held = "SELECT tenant, caller, COUNT(*), COUNT(*), MIN(used) FROM entries WHERE space = ?1
            GROUP BY tenant, caller";
        let Some(AccountUsage { account, .. }) = account_to_evict(database, held, &[&space])? else {
            return Ok(());
        };
        remove_where(
            database,
            "rowid = (SELECT rowid FROM entries WHERE space = ?1 AND tenant = ?2 AND caller = ?3 ORDER BY used LIMIT 1)",
            &[&space, &account.tenant(), &account.caller()],
        )?;
    }
}

/// Evicts entries until all spaces fit the capacity.
fn evict_to_capacity(database: &Connection, capacity: usize) -> Result<(), SqliteStoreError> {
    while Pool::Cached.shares(database, capacity)?.used() > capacity {
        let held =
            "SELECT tenant, caller, SUM(units), COUNT(*), MIN(used) FROM entries GROUP BY tenant, caller";
        let Some(AccountUsage { account, entries, .. }) = account_to_evict(database, held, &[])? else {
            return Ok(());
        };
        let some = (entries / 2 + 1).min(MAX_EVICTIONS);
        remove_where(
            database,
            "rowid IN (SELECT rowid FROM entries WHERE caller = ?1 ORDER BY used LIMIT ?2)",
            &[&account.caller(), &some],
        )?;
    }
    Ok(())
}

/// The usage of an account.
struct AccountUsage {
    account: Account,
    units: usize,
    entries: i64,
    /// When its least recently used entry was used.
    oldest: i64,
}

/// Selects the account to evict from, among the accounts that a query returns.
fn account_to_evict(
    database: &Connection,
    query: &str,
    values: &[&dyn ToSql],
) -> Result<Option<AccountUsage>, SqliteStoreError> {
    let mut select = database.prepare_cached(query)?;
    let held = |row: &Row<'_>| {
        let units: i64 = row.get(2)?;
        let (entries, oldest) = (row.get(3)?, row.get(4)?);
        Ok(AccountUsage {
            account: read_account(row, 0)?,
            units: usize::try_from(units).unwrap_or(0),
            entries,
            oldest,
        })
    };
    let all: Vec<AccountUsage> = select.query_map(values, held)?.collect::<Result<_, _>>()?;
    let heaviest = heaviest_accounts(all.iter().map(|held| (held.account, held.units)));
    let heaviest = all.into_iter().filter(|held| heaviest.contains(&held.account));
    Ok(heaviest.min_by_key(|held| held.oldest))
}

fn drop_excess_spaces(database: &Connection) -> Result<(), SqliteStoreError> {
    let mut select =
        database.prepare_cached("SELECT name FROM spaces ORDER BY used DESC LIMIT -1 OFFSET ?1")?;
    let names: Vec<String> =
        select.query_map([MAX_SPACES as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for name in names {
        remove_where(database, "space = ?1", &[&name])?;
        database.prepare_cached("DELETE FROM spaces WHERE name = ?1")?.execute([&name])?;
        let cleared = SharedCounter::Cleared.next(database)?;
        SharedCounter::UnstoredGeneration.set(database, cleared)?;
    }
    Ok(())
}
