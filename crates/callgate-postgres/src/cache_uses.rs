//! Which cached results this process has used: noted in memory, and written together, so that a hit only reads.
//!
//! What this process evicts is exact, because its uses are written first. Other hosts see them a few seconds later.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deadpool_postgres::GenericClient;

use super::error::PostgresError;

/// So many entries are noted before they are written.
const MOST_NOTED: usize = 256;

/// Writes uses in their order. Waits for nobody: a row that another transaction changes keeps its time of use. A crash may forget uses.
const WRITE: &str = "
WITH quiet AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
uses AS MATERIALIZED (
    SELECT space, key, nextval('cache_uses') AS use
    FROM (SELECT space, key FROM quiet, unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS noted (space, key, place) ORDER BY place) AS noted
),
free_entries AS (
    SELECT entries.ctid AS place, uses.use FROM entries JOIN uses USING (space, key) WHERE entries.used < uses.use
    FOR UPDATE OF entries SKIP LOCKED
),
free_spaces AS (
    SELECT spaces.ctid AS place, uses.use FROM spaces JOIN (SELECT space, max(use) AS use FROM uses GROUP BY space) AS uses ON name = space
    WHERE spaces.used < uses.use FOR UPDATE OF spaces SKIP LOCKED
),
used_spaces AS (UPDATE spaces SET used = use FROM free_spaces WHERE spaces.ctid = place)
UPDATE entries SET used = use FROM free_entries WHERE entries.ctid = place";

/// The uses that are not written yet.
#[derive(Default)]
pub(crate) struct CacheUses(Mutex<NotedUses>);

#[derive(Default)]
struct NotedUses {
    /// The space and key of each entry, and the number of its last use.
    entries: HashMap<(Vec<u8>, Vec<u8>), u64>,
    next: u64,
}

impl CacheUses {
    // Every update is a single step, so a panic elsewhere leaves it consistent.
    fn noted(&self) -> MutexGuard<'_, NotedUses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a use. Returns whether so many are noted that they should be written.
    pub(crate) fn note(&self, space: &[u8], key: &[u8]) -> bool {
        let mut noted = self.noted();
        noted.next += 1;
        let number = noted.next;
        noted.entries.insert((space.to_vec(), key.to_vec()), number);
        noted.entries.len() >= MOST_NOTED
    }

    /// Prepares the statement, so that the next write is sent at once.
    pub(crate) async fn prepare(database: &impl GenericClient) -> Result<(), PostgresError> {
        database.prepare_cached(WRITE).await?;
        Ok(())
    }

    /// Writes what is noted. What can't be written is forgotten, and no error of the operation: entries only seem to have been used earlier
    /// than they were. A connection that was lost fails the next statement as well.
    pub(crate) async fn write(&self, database: &impl GenericClient) {
        if self.noted().entries.is_empty() {
            return;
        }
        let Ok(statement) = database.prepare_cached(WRITE).await else { return };
        let noted = std::mem::take(&mut self.noted().entries);
        let mut noted: Vec<_> = noted.into_iter().collect();
        noted.sort_unstable_by_key(|(_, number)| *number);
        let (spaces, keys): (Vec<&[u8]>, Vec<&[u8]>) =
            noted.iter().map(|((space, key), _)| (space.as_slice(), key.as_slice())).unzip();
        let _ = database.execute(&statement, &[&spaces, &keys]).await;
    }
}
