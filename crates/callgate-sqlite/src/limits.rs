//! Limits in the file: the limits of a batch are loaded into memory, acquired there, and written back, all in the current
//! transaction.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OptionalExtension as _};

use super::DatabaseFile;
use super::error::SqliteStoreError;
use super::schema::SharedCounter;
use super::slot_owners;
use super::usage::Pool;
use callgate::host::{Account, Allowance, LimitAcquisition, LimitCorrection, LimitRefusal, StoreError};
use callgate::state::capacity::AccountCharges;
use callgate::state::limit_algorithms::{LimitUsage, Micros, cost, encoding};
use callgate::state::limit_table::LimitTable;
use callgate::state::limit_table::subset::{LoadedLimit, SharedLimitState};

/// Acquires all or nothing. Returns the limits without enough left. An inner error does not roll back the transaction: what
/// it recorded must be committed.
pub fn acquire(
    database: &Connection,
    home: &DatabaseFile,
    time: Micros,
    takes: &[LimitAcquisition],
) -> Result<Result<Vec<LimitRefusal>, StoreError>, SqliteStoreError> {
    loop {
        let mut part = LoadedBatch::load(database, home.capacity.limits, time, takes)?;
        let answer = part.limits.acquire(time, takes);
        match &answer {
            Ok(refusals) if refusals.is_empty() => {
                part.write_back(database)?;
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
                    part.write_back(database)?;
                }
                return Ok(answer);
            }
            Err(error) => {
                // The loaded limits that could be removed were removed. There may be more.
                part.write_back(database)?;
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
        let mut part = LoadedBatch::load(database, home.capacity.limits, time, &takes)?;
        let answer = part.limits.correct(time, corrections);
        part.write_back(database)?;
        if answer.is_ok() || part.due_by_now == 0 {
            return Ok(answer);
        }
    }
}

pub fn is_slot(take: &LimitAcquisition) -> bool {
    matches!(take.allowance, Allowance::Slots { .. })
}

/// The limits that a batch uses.
struct LoadedBatch {
    limits: LimitTable,
    before: SharedLimitState,
    stored: HashMap<String, StoredLimit>,
    /// How many were loaded because they are due for removal.
    due_by_now: usize,
}

/// A limit as stored in the file.
#[derive(PartialEq)]
enum StoredLimit {
    Absent,
    Row { taken: Vec<u8>, due: Option<Micros>, charges: Vec<u8> },
    Slots,
}

impl LoadedBatch {
    fn load(
        database: &Connection,
        capacity: usize,
        time: Micros,
        takes: &[LimitAcquisition],
    ) -> Result<Self, SqliteStoreError> {
        let mut before = SharedLimitState {
            shares: Pool::Limits.shares(database, capacity)?,
            now: SharedCounter::LatestTime.get(database)?.unwrap_or(Micros::MIN),
        };
        for take in takes {
            Pool::Limits.load_account(database, &mut before.shares, &take.account)?;
        }
        let mut slots = before.shares.clone();
        let mut stored = HashMap::new();
        let mut loaded = Vec::new();
        for take in takes.iter().filter(|take| cost(&take.allowance, take.cost) > 0) {
            if stored.contains_key(&take.key) {
                continue;
            }
            let (found, stored_limit) = find(database, &take.key)?;
            let found = found.map(|mut found| {
                // Holders of slots are stored in another table; here the slot is charged to the caller for the duration of
                // the batch.
                if stored_limit == StoredLimit::Slots {
                    found.charges.update(&mut slots, 1, &take.account);
                }
                found
            });
            loaded.extend(found.map(|found| (take.key.clone(), found)));
            stored.insert(take.key.clone(), stored_limit);
        }

        let all = before.is_step_back(time);
        let now = before.now.max(time);
        let mut due_by_now = 0;
        let (until, most) = if all {
            (Micros::MAX, -1)
        } else {
            (now, i64::try_from(before.due_keys_to_load(takes)).unwrap_or(-1))
        };
        let query = if all {
            "SELECT key, taken, due, charges FROM limits WHERE ?1 = ?1 LIMIT ?2"
        } else {
            "SELECT key, taken, due, charges FROM limits WHERE due <= ?1 ORDER BY due, key LIMIT ?2"
        };
        let mut select = database.prepare_cached(query)?;
        let mut rows = select.query((until, most))?;
        while let Some(row) = rows.next()? {
            let (key, taken, due, charges): (String, Vec<u8>, Option<Micros>, Vec<u8>) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            due_by_now += usize::from(!all);
            if let Entry::Vacant(unseen) = stored.entry(key) {
                loaded.push((unseen.key().clone(), read(unseen.key(), &taken, &charges)?));
                unseen.insert(StoredLimit::Row { taken, due, charges });
            }
        }

        let charged: BTreeSet<Account> = loaded
            .iter()
            .filter(|(key, _)| stored.get(key) != Some(&StoredLimit::Slots))
            .flat_map(|(_, limit)| limit.charges.iter().map(|(account, _)| *account))
            .filter(|account| takes.iter().all(|take| take.account != *account))
            .collect();
        for account in &charged {
            for shares in [&mut before.shares, &mut slots] {
                Pool::Limits.load_account(database, shares, account)?;
            }
        }
        let mut limits = LimitTable::subset(SharedLimitState { shares: slots, now: before.now });
        for (key, limit) in loaded {
            let due = if let Some(StoredLimit::Row { due, .. }) = stored.get(&key) { *due } else { None };
            limits.load(&key, limit, due);
        }
        Ok(Self { limits, before, stored, due_by_now })
    }

    fn write_back(&self, database: &Connection) -> Result<(), SqliteStoreError> {
        let mut after = self.limits.shared_state();
        for (key, stored) in &self.stored {
            let updated = match self.limits.get(key) {
                None => StoredLimit::Absent,
                Some(limit) if matches!(limit.usage, LimitUsage::Slots(_)) => {
                    // The number of held slots is stored with their owners.
                    limit.charges.clone().release(&mut after.shares);
                    StoredLimit::Slots
                }
                Some(limit) => StoredLimit::Row {
                    taken: encoding::encode(limit.usage, limit.allowance),
                    due: limit.due,
                    charges: limit.charges.to_bytes(),
                },
            };
            if updated == *stored {
                continue;
            }
            match (&updated, stored) {
                (StoredLimit::Row { .. }, StoredLimit::Slots) => {
                    database.prepare_cached("DELETE FROM slots WHERE key = ?1")?.execute([key])?;
                }
                (StoredLimit::Absent | StoredLimit::Slots, StoredLimit::Row { .. }) => {
                    database.prepare_cached("DELETE FROM limits WHERE key = ?1")?.execute([key])?;
                }
                _ => {}
            }
            if let StoredLimit::Row { taken, due, charges } = updated {
                let mut upsert = database.prepare_cached(
                    "INSERT INTO limits (key, taken, due, charges) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT DO UPDATE SET taken = excluded.taken, due = excluded.due, charges = excluded.charges",
                )?;
                upsert.execute((key, Cell::Blob(taken), due, Cell::Blob(charges)))?;
            }
        }
        Pool::Limits.write_back(database, &self.before.shares, &after.shares)?;
        if after.now != self.before.now {
            SharedCounter::LatestTime.set(database, after.now)?;
        }
        Ok(())
    }
}

/// The state of a limit, if it is in use, with the allowance of its latest acquisition.
fn find(database: &Connection, key: &str) -> Result<(Option<LoadedLimit>, StoredLimit), SqliteStoreError> {
    let mut select = database.prepare_cached("SELECT taken, due, charges FROM limits WHERE key = ?1")?;
    let row: Option<(Vec<u8>, Option<Micros>, Vec<u8>)> =
        select.query_row([key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
    if let Some((taken, due, charges)) = row {
        return Ok((Some(read(key, &taken, &charges)?), StoredLimit::Row { taken, due, charges }));
    }
    let mut select = database.prepare_cached("SELECT COALESCE(SUM(held), 0) FROM slots WHERE key = ?1")?;
    let held: i64 = select.query_row([key], |row| row.get(0))?;
    if held <= 0 {
        return Ok((None, StoredLimit::Absent));
    }
    let (usage, allowance) = (LimitUsage::Slots(held.unsigned_abs()), Allowance::Slots { max: 0 });
    Ok((Some(LoadedLimit { usage, charges: AccountCharges::default(), allowance }), StoredLimit::Slots))
}

fn read(key: &str, usage: &[u8], charges: &[u8]) -> Result<LoadedLimit, SqliteStoreError> {
    let limit = encoding::decode(usage).zip(AccountCharges::from_bytes(charges));
    let limit = limit.map(|((usage, allowance), charges)| LoadedLimit { usage, charges, allowance });
    limit.ok_or_else(|| {
        SqliteStoreError::Store(format!(
            "the state of the limit `{key}` is damaged; restore a backup, or move the file away"
        ))
    })
}
