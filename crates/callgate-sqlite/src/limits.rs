//! Limits in the file: the limits of a batch are loaded into memory, acquired there, and written back, all in the current
//! transaction.

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::DatabaseFile;
use super::error::SqliteStoreError;
use super::schema::SharedCounter;
use super::slot_owners;
use super::usage::Pool;
use callgate::host::{Allowance, LimitAcquisition, LimitCorrection, LimitRefusal, StoreError};
use callgate::state::limit_algorithms::Micros;
use callgate::state::limit_table::batch::{
    BatchChanges, BatchLoader, FurtherLimits, LimitBatch, LimitRow, StoredLimit, keys_of,
};
use callgate::state::limit_table::subset::SharedLimitState;

/// Acquires all or nothing. Returns the limits without enough left. An inner error does not roll back the transaction: what
/// it recorded must be committed.
pub fn acquire(
    database: &Connection,
    home: &DatabaseFile,
    time: Micros,
    takes: &[LimitAcquisition],
) -> Result<Result<Vec<LimitRefusal>, StoreError>, SqliteStoreError> {
    loop {
        let mut part = load(database, home.capacity.limits, time, takes)?;
        let answer = part.limits.acquire(time, takes);
        match &answer {
            Ok(refusals) if refusals.is_empty() => {
                write_back(database, &part)?;
                for slot in takes.iter().filter(|take| is_slot(take)) {
                    home.owner.acquire_slot(database, &slot.key)?;
                }
                return Ok(answer);
            }
            Ok(refusals) => {
                let mut refused = refusals.iter().filter_map(|refusal| takes.get(refusal.index));
                if refused.any(is_slot)
                    && slot_owners::remove_dead_owners(database, &home.path, home.owner.id)?
                {
                    continue;
                }
                // The state changes of a refusal can be recomputed, so they need not be written. But after a step of the
                // clock, the wait counts from the first time that the step was seen.
                if part.before.is_step_back(time) {
                    write_back(database, &part)?;
                }
                return Ok(answer);
            }
            Err(error) => {
                // The loaded limits that could be removed were removed. There may be more.
                write_back(database, &part)?;
                if part.due_by_now == 0 {
                    return Ok(Err(error.clone()));
                }
            }
        }
    }
}

/// Corrects estimates, all of them or none. An inner error does not roll back the transaction: what was removed stays removed.
pub fn correct(
    database: &Connection,
    home: &DatabaseFile,
    time: Micros,
    corrections: &[LimitCorrection],
) -> Result<Result<(), StoreError>, SqliteStoreError> {
    let takes: Vec<LimitAcquisition> =
        corrections.iter().map(|correction| correction.acquisition.clone()).collect();
    loop {
        let mut part = load(database, home.capacity.limits, time, &takes)?;
        let answer = part.limits.correct(time, corrections);
        write_back(database, &part)?;
        if answer.is_ok() || part.due_by_now == 0 {
            return Ok(answer);
        }
    }
}

pub fn is_slot(take: &LimitAcquisition) -> bool {
    matches!(take.allowance, Allowance::Slots { .. })
}

/// Loads the limits that a batch uses.
fn load(
    database: &Connection,
    capacity: usize,
    time: Micros,
    takes: &[LimitAcquisition],
) -> Result<LimitBatch, SqliteStoreError> {
    let mut before = SharedLimitState {
        shares: Pool::Limits.shares(database, capacity)?,
        now: SharedCounter::LatestTime.get(database)?.unwrap_or(Micros::MIN),
    };
    for take in takes {
        Pool::Limits.load_account(database, &mut before.shares, &take.account)?;
    }
    let mut loader = BatchLoader::new(takes, before);
    for key in keys_of(takes) {
        loader.add(key, find(database, key)?)?;
    }
    let further = loader.further_limits(time);
    let (query, until, most) = match further {
        FurtherLimits::All => {
            ("SELECT key, taken, due, charges FROM limits WHERE ?1 = ?1 LIMIT ?2", Micros::MAX, -1)
        }
        FurtherLimits::Due { by, most } => (
            "SELECT key, taken, due, charges FROM limits WHERE due <= ?1 ORDER BY due, key LIMIT ?2",
            by,
            i64::try_from(most).unwrap_or(-1),
        ),
    };
    let mut select = database.prepare_cached(query)?;
    let mut rows = select.query((until, most))?;
    while let Some(row) = rows.next()? {
        let limit = LimitRow { taken: row.get(1)?, due: row.get(2)?, charges: row.get(3)? };
        loader.add_further(further, row.get(0)?, limit)?;
    }
    for account in loader.charged_accounts() {
        for shares in loader.shares_mut() {
            Pool::Limits.load_account(database, shares, &account)?;
        }
    }
    Ok(loader.finish())
}

fn write_back(database: &Connection, batch: &LimitBatch) -> Result<(), SqliteStoreError> {
    let BatchChanges { removed, without_slots, written, after } = batch.changes();
    for key in without_slots {
        database.prepare_cached("DELETE FROM slots WHERE key = ?1")?.execute([key])?;
    }
    for key in removed {
        database.prepare_cached("DELETE FROM limits WHERE key = ?1")?.execute([key])?;
    }
    for (key, LimitRow { taken, due, charges }) in written {
        let mut upsert = database.prepare_cached(
            "INSERT INTO limits (key, taken, due, charges) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET taken = excluded.taken, due = excluded.due, charges = excluded.charges",
        )?;
        upsert.execute((key, Cell::Blob(taken), due, Cell::Blob(charges)))?;
    }
    Pool::Limits.write_back(database, &batch.before.shares, &after.shares)?;
    if after.now != batch.before.now {
        SharedCounter::LatestTime.set(database, after.now)?;
    }
    Ok(())
}

/// The stored state of a limit.
fn find(database: &Connection, key: &str) -> Result<StoredLimit, SqliteStoreError> {
    let mut select = database.prepare_cached("SELECT taken, due, charges FROM limits WHERE key = ?1")?;
    let read = |row: &Row<'_>| Ok(LimitRow { taken: row.get(0)?, due: row.get(1)?, charges: row.get(2)? });
    if let Some(row) = select.query_row([key], read).optional()? {
        return Ok(StoredLimit::Row(row));
    }
    let mut select = database.prepare_cached("SELECT COALESCE(SUM(held), 0) FROM slots WHERE key = ?1")?;
    let held: i64 = select.query_row([key], |row| row.get(0))?;
    Ok(if held > 0 { StoredLimit::Slots(held.unsigned_abs()) } else { StoredLimit::Absent })
}
