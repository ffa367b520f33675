//! Cached results in the database, grouped into spaces. When there are too many, the account with the most loses its least recently used
//! entries.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::PostgresError;
use super::schema::SharedCounter;
use super::statement;
use super::usage::{Pool, read_account};
use callgate::host::{Account, CacheEntry, CacheLookup, CacheSpace};
use callgate::json;
use callgate::state::cache::MAX_SPACES;
use callgate::state::capacity::heaviest_accounts;

/// How many entries of one account are evicted at once if the pool is full, so that accounts are seldom compared.
const MAX_EVICTIONS: i64 = 64;

/// The location of an entry: its space and its key.
pub(crate) struct EntryKey {
    space: Vec<u8>,
    max_entries: usize,
    account: Account,
    key: Vec<u8>,
}

impl EntryKey {
    pub(crate) fn new(space: CacheSpace<'_>, key: &str) -> Self {
        let CacheSpace { name, max_entries, account } = space;
        Self { space: name.as_bytes().to_vec(), max_entries, account, key: key.as_bytes().to_vec() }
    }
}

/// The entry, if it has not expired, and the generation of the space. In a transaction that holds the lock of the pool, as all of these
/// functions.
pub(crate) async fn get(
    database: &impl GenericClient,
    now: Timestamp,
    entry_key: &EntryKey,
) -> Result<CacheLookup, PostgresError> {
    let EntryKey { space, key, max_entries, .. } = entry_key;
    let Some(generation) = generation_of(database, space).await? else {
        return Ok(CacheLookup { entry: None, generation: unstored_generation(database).await? });
    };
    let used = SharedCounter::Used.next(database).await?;
    statement::execute(database, "UPDATE spaces SET used = $2 WHERE name = $1", &[space, &used]).await?;
    evict_from_space(database, space, *max_entries).await?;
    let select = "SELECT output, stored_at, expires_at FROM entries WHERE space = $1 AND key = $2";
    let found = statement::query_opt(database, select, &[space, key]).await?;
    // An unreadable entry counts as missing. An entry from the future was written before the clock stepped back: its age is unknown.
    let entry = found.and_then(|row| read(&row));
    let entry = entry.filter(|entry| entry.stored_at <= now && now < entry.expires_at);
    if entry.is_some() {
        let update = "UPDATE entries SET used = $3 WHERE space = $1 AND key = $2";
        statement::execute(database, update, &[space, key, &used]).await?;
    } else {
        remove(database, entry_key).await?;
    }
    Ok(CacheLookup { entry, generation })
}

/// Stores an entry that takes this many units, unless the generation of the space has changed. With `None` it only removes the earlier
/// entry.
pub(crate) async fn put(
    database: &impl GenericClient,
    capacity: usize,
    entry_key: &EntryKey,
    (entry, units): (Option<&CacheEntry>, usize),
    generation: u64,
) -> Result<(), PostgresError> {
    let EntryKey { space, key, max_entries, account } = entry_key;
    let stored_generation = generation_of(database, space).await?;
    let current = match stored_generation {
        Some(generation) => generation,
        None => unstored_generation(database).await?,
    };
    if generation != current {
        return Ok(());
    }
    remove(database, entry_key).await?;
    let Some(entry) = entry.filter(|_| *max_entries > 0) else {
        return evict_from_space(database, space, *max_entries).await;
    };
    let used = SharedCounter::Used.next(database).await?;
    let upsert = "INSERT INTO spaces (name, generation, used) VALUES ($1, $2, $3)
        ON CONFLICT (name) DO UPDATE SET used = excluded.used";
    statement::execute(database, upsert, &[space, &i64::try_from(generation).unwrap_or(i64::MAX), &used])
        .await?;
    if stored_generation.is_none() {
        drop_excess_spaces(database).await?;
    }
    let insert =
        "INSERT INTO entries (space, key, output, stored_at, expires_at, used, tenant, caller, units)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let (output, stored_at, expires_at) =
        (entry.output.to_string(), entry.stored_at.to_string(), entry.expires_at.to_string());
    let size = i64::try_from(units).unwrap_or(i64::MAX);
    let parameters: [&(dyn ToSql + Sync); 9] =
        [space, key, &output, &stored_at, &expires_at, &used, &account.tenant(), &account.caller(), &size];
    statement::execute(database, insert, &parameters).await?;
    Pool::Cached.recharge(database, account, 0, units).await?;
    evict_from_space(database, space, *max_entries).await?;
    evict_to_capacity(database, capacity).await
}

/// Removes the entries of a space, and invalidates results that are still being computed for it.
pub(crate) async fn clear(database: &impl GenericClient, space: &str) -> Result<(), PostgresError> {
    let space = space.as_bytes();
    let cleared = SharedCounter::Cleared.next(database).await?;
    let update = "UPDATE spaces SET generation = $2 WHERE name = $1";
    if statement::execute(database, update, &[&space, &cleared]).await? == 0 {
        SharedCounter::UnstoredGeneration.set(database, cleared).await?;
    }
    remove_where(database, "space = $1", &[&space]).await
}

fn read(row: &Row) -> Option<CacheEntry> {
    let (output, stored_at, expires_at): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
    Some(CacheEntry {
        output: json::parse(output).ok()?,
        stored_at: stored_at.parse().ok()?,
        expires_at: expires_at.parse().ok()?,
    })
}

/// The generation of a stored space.
async fn generation_of(database: &impl GenericClient, space: &[u8]) -> Result<Option<u64>, PostgresError> {
    let row =
        statement::query_opt(database, "SELECT generation FROM spaces WHERE name = $1", &[&space]).await?;
    Ok(row.map(|row| row.get::<_, i64>(0).unsigned_abs()))
}

async fn unstored_generation(database: &impl GenericClient) -> Result<u64, PostgresError> {
    // It only counts up, from zero.
    Ok(SharedCounter::UnstoredGeneration.get(database).await?.map_or(0, i64::unsigned_abs))
}

async fn remove(database: &impl GenericClient, entry_key: &EntryKey) -> Result<(), PostgresError> {
    remove_where(database, "space = $1 AND key = $2", &[&entry_key.space, &entry_key.key]).await
}

/// Removes entries and releases their charges.
async fn remove_where(
    database: &impl GenericClient,
    which: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<(), PostgresError> {
    let delete = format!("DELETE FROM entries WHERE {which} RETURNING tenant, caller, units");
    let mut removed: HashMap<Account, usize> = HashMap::new();
    for row in statement::query(database, &delete, values).await? {
        let units: i64 = row.get(2);
        *removed.entry(read_account(&row, 0)).or_default() += usize::try_from(units).unwrap_or(0);
    }
    for (account, units) in removed {
        Pool::Cached.recharge(database, &account, units, 0).await?;
    }
    Ok(())
}

/// Evicts the excess entries of one space.
async fn evict_from_space(
    database: &impl GenericClient,
    space: &[u8],
    max_entries: usize,
) -> Result<(), PostgresError> {
    let most = i64::try_from(max_entries).unwrap_or(i64::MAX);
    loop {
        let count =
            statement::query_one(database, "SELECT count(*) FROM entries WHERE space = $1", &[&space])
                .await?;
        if count.get::<_, i64>(0) <= most {
            return Ok(());
        }
        let held = "SELECT tenant, caller, count(*), count(*), min(used) FROM entries WHERE space = $1
            GROUP BY tenant, caller";
        let Some(AccountUsage { account, .. }) = account_to_evict(database, held, &[&space]).await? else {
            return Ok(());
        };
        let oldest = "ctid = (SELECT ctid FROM entries WHERE space = $1 AND tenant = $2 AND caller = $3 ORDER BY used LIMIT 1)";
        remove_where(database, oldest, &[&space, &account.tenant(), &account.caller()]).await?;
    }
}

/// Evicts entries until all spaces fit the capacity.
async fn evict_to_capacity(database: &impl GenericClient, capacity: usize) -> Result<(), PostgresError> {
    while Pool::Cached.shares(database, capacity, []).await?.used() > capacity {
        let held = "SELECT tenant, caller, sum(units)::bigint, count(*), min(used) FROM entries GROUP BY tenant, caller";
        let Some(AccountUsage { account, entries, .. }) = account_to_evict(database, held, &[]).await? else {
            return Ok(());
        };
        let some = (entries / 2 + 1).min(MAX_EVICTIONS);
        let oldest = "ctid = ANY (ARRAY(SELECT ctid FROM entries WHERE caller = $1 ORDER BY used LIMIT $2))";
        remove_where(database, oldest, &[&account.caller(), &some]).await?;
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
async fn account_to_evict(
    database: &impl GenericClient,
    query: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Option<AccountUsage>, PostgresError> {
    let rows = statement::query(database, query, values).await?;
    let held = |row: &Row| AccountUsage {
        account: read_account(row, 0),
        units: usize::try_from(row.get::<_, i64>(2)).unwrap_or(0),
        entries: row.get(3),
        oldest: row.get(4),
    };
    let all: Vec<AccountUsage> = rows.iter().map(held).collect();
    let heaviest = heaviest_accounts(all.iter().map(|held| (held.account, held.units)));
    let heaviest = all.into_iter().filter(|held| heaviest.contains(&held.account));
    Ok(heaviest.min_by_key(|held| held.oldest))
}

async fn drop_excess_spaces(database: &impl GenericClient) -> Result<(), PostgresError> {
    let select = "SELECT name FROM spaces ORDER BY used DESC OFFSET $1";
    for row in statement::query(database, select, &[&(MAX_SPACES as i64)]).await? {
        let name: Vec<u8> = row.get(0);
        remove_where(database, "space = $1", &[&name]).await?;
        statement::execute(database, "DELETE FROM spaces WHERE name = $1", &[&name]).await?;
        let cleared = SharedCounter::Cleared.next(database).await?;
        SharedCounter::UnstoredGeneration.set(database, cleared).await?;
    }
    Ok(())
}
