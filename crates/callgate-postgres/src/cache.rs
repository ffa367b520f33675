//! Cached results in the database, grouped into spaces. When there are too many, the account with the most loses its least recently used
//! entries.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use futures_util::future::join;
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::cache_uses::CacheUses;
use super::connection_pool::ConnectionPool;
use super::error::PostgresError;
use super::schema::SharedCounter;
use super::statement;
use super::transaction::begin;
use super::usage::{Pool, read_account};
use callgate::host::{Account, CacheEntry, CacheLookup, CacheSpace};
use callgate::json;
use callgate::state::cache::MAX_SPACES;
use callgate::state::capacity::heaviest_accounts;

/// How many entries of one account are evicted at once if the pool is full, so that accounts are seldom compared.
const MAX_EVICTIONS: i64 = 64;

/// Looks up an entry. `crowded`: entries must be evicted first, because the space may now have fewer of them.
const LOOK_UP: &str = "SELECT coalesce(spaces.generation, unstored_generation()), coalesce(spaces.most > $3, false) AS crowded,
        entries.output, entries.stored_at, entries.expires_at
    FROM (SELECT) AS one LEFT JOIN spaces ON spaces.name = $1 LEFT JOIN entries ON entries.space = spaces.name AND entries.key = $2";

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

/// The entry, if it has not expired, and the generation of the space.
pub(crate) async fn get(
    connections: &ConnectionPool,
    uses: &CacheUses,
    now: Timestamp,
    entry_key: &EntryKey,
) -> Result<CacheLookup, PostgresError> {
    let EntryKey { space, key, max_entries, .. } = entry_key;
    let most = number(*max_entries);
    let mut database = connections.get().await?;
    let mut row = statement::query_one(&database, LOOK_UP, &[space, key, &most]).await?;
    if row.get(1) {
        uses.write(&database).await;
        let transaction = begin(&mut database, Pool::Cached).await?;
        evict_from_space(&transaction, space, *max_entries).await?;
        transaction.commit().await?;
        row = statement::query_one(&database, LOOK_UP, &[space, key, &most]).await?;
    }
    let generation = row.get::<_, i64>(0).unsigned_abs();
    let Some(_) = row.get::<_, Option<&str>>(2) else { return Ok(CacheLookup { entry: None, generation }) };
    // An unreadable entry counts as missing. An entry from the future was written before the clock stepped back: its age is unknown.
    let entry = read(&row).filter(|entry| entry.stored_at <= now && now < entry.expires_at);
    if entry.is_none() {
        let stored_at: &str = row.get(3);
        let transaction = begin(&mut database, Pool::Cached).await?;
        // Unless another one was stored meanwhile.
        let same = "space = $1 AND key = $2 AND stored_at = $3";
        remove_where(&transaction, same, &[space, key, &stored_at]).await?;
        transaction.commit().await?;
    } else if uses.note(space, key) {
        uses.write(&database).await;
    }
    Ok(CacheLookup { entry, generation })
}

/// Stores an entry that takes this many units, unless the generation of the space has changed. With `None` it only removes the earlier
/// entry.
pub(crate) async fn put(
    connections: &ConnectionPool,
    uses: &CacheUses,
    capacity: usize,
    entry_key: &EntryKey,
    (entry, units): (Option<&CacheEntry>, usize),
    generation: u64,
) -> Result<(), PostgresError> {
    let EntryKey { space, key, max_entries, account } = entry_key;
    let output = entry.map(|entry| entry.output.to_string());
    let stored_at = entry.map(|entry| entry.stored_at.to_string());
    let expires_at = entry.map(|entry| entry.expires_at.to_string());
    let parameters: [&(dyn ToSql + Sync); 12] = [
        space,
        key,
        &number(*max_entries),
        &i64::try_from(generation).unwrap_or(i64::MAX),
        &output,
        &stored_at,
        &expires_at,
        &account.tenant(),
        &account.caller(),
        &number(units),
        &number(capacity),
        &number(MAX_SPACES),
    ];
    let put = "SELECT cache_put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let mut database = connections.get().await?;
    // Both are sent at once, and the uses first, because they decide what is evicted.
    CacheUses::prepare(&database).await?;
    let ((), row) = join(uses.write(&database), statement::query_one(&database, put, &parameters)).await;
    let row = row?;
    if row.get(0) {
        let transaction = begin(&mut database, Pool::Cached).await?;
        drop_excess_spaces(&transaction).await?;
        evict_from_space(&transaction, space, *max_entries).await?;
        evict_to_capacity(&transaction, capacity).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Removes the entries of a space, and invalidates results that are still being computed for it.
pub(crate) async fn clear(database: &impl GenericClient, space: &str) -> Result<(), PostgresError> {
    statement::query(database, "SELECT cache_clear($1)", &[&space.as_bytes()]).await?;
    Ok(())
}

fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The entry that was looked up.
fn read(row: &Row) -> Option<CacheEntry> {
    let (output, stored_at, expires_at): (&str, &str, &str) = (row.get(2), row.get(3), row.get(4));
    Some(CacheEntry {
        output: json::parse(output).ok()?,
        stored_at: stored_at.parse().ok()?,
        expires_at: expires_at.parse().ok()?,
    })
}

/// Removes entries and releases their charges.
async fn remove_where(
    database: &impl GenericClient,
    which: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<(), PostgresError> {
    let delete = format!("DELETE FROM entries WHERE {which} RETURNING tenant, caller, units");
    let mut removed: HashMap<Account, i64> = HashMap::new();
    for row in statement::query(database, &delete, values).await? {
        *removed.entry(read_account(&row, 0)).or_default() -= row.get::<_, i64>(2);
    }
    Pool::Cached.charge(database, &removed).await
}

/// Evicts the excess entries of one space, which never has more from then on.
async fn evict_from_space(
    database: &impl GenericClient,
    space: &[u8],
    max_entries: usize,
) -> Result<(), PostgresError> {
    let most = number(max_entries);
    let bound = "UPDATE spaces SET most = $2 WHERE name = $1 AND most > $2";
    statement::execute(database, bound, &[&space, &most]).await?;
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
    while Pool::Cached.used(database).await? > capacity {
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
