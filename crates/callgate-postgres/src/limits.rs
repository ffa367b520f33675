//! Limits in the database: the limits of a batch are loaded into memory, acquired there, and written back, all in one transaction.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use deadpool_postgres::GenericClient;

use super::error::PostgresError;
use super::schema::SharedCounter;
use super::slot_lease;
use super::statement;
use super::usage::Pool;
use callgate::host::{Account, Allowance, LimitAcquisition, LimitCorrection, LimitRefusal, StoreError};
use callgate::state::capacity::AccountCharges;
use callgate::state::limit_algorithms::{LimitUsage, Micros, cost, encoding};
use callgate::state::limit_table::LimitTable;
use callgate::state::limit_table::subset::{LoadedLimit, SharedLimitState};

/// Acquires all or nothing, in a transaction that holds the lock of the pool. Returns the limits without enough left. An inner error does
/// not roll back the transaction: what it recorded must be committed. `owner`: of the slots.
pub(crate) async fn acquire(
    database: &impl GenericClient,
    capacity: usize,
    time: Micros,
    takes: &[LimitAcquisition],
    owner: i64,
) -> Result<Result<Vec<LimitRefusal>, StoreError>, PostgresError> {
    loop {
        let mut part = LoadedBatch::load(database, capacity, time, takes).await?;
        let answer = part.limits.acquire(time, takes);
        match &answer {
            Ok(refusals) if refusals.is_empty() => {
                part.write_back(database).await?;
                for slot in takes.iter().filter(|take| is_slot(take)) {
                    slot_lease::acquire_slot(database, owner, &slot.key).await?;
                }
                return Ok(answer);
            }
            Ok(refusals) => {
                let mut refused = refusals.iter().filter_map(|refusal| takes.get(refusal.index));
                if refused.any(is_slot) && slot_lease::remove_expired(database, owner).await? {
                    continue;
                }
                // The state changes of a refusal can be recomputed, so they need not be written. But after a step of the clock, the wait
                // counts from the first time that the step was seen.
                if part.before.is_step_back(time) {
                    part.write_back(database).await?;
                }
                return Ok(answer);
            }
            Err(error) => {
                // The loaded limits that could be removed were removed. There may be more.
                part.write_back(database).await?;
                if part.due_by_now == 0 {
                    return Ok(Err(error.clone()));
                }
            }
        }
    }
}

/// Corrects estimates, all of them or none, as [`acquire`] acquires them.
pub(crate) async fn correct(
    database: &impl GenericClient,
    capacity: usize,
    time: Micros,
    corrections: &[LimitCorrection],
) -> Result<Result<(), StoreError>, PostgresError> {
    let takes: Vec<LimitAcquisition> =
        corrections.iter().map(|correction| correction.acquisition.clone()).collect();
    loop {
        let mut part = LoadedBatch::load(database, capacity, time, &takes).await?;
        let answer = part.limits.correct(time, corrections);
        part.write_back(database).await?;
        if answer.is_ok() || part.due_by_now == 0 {
            return Ok(answer);
        }
    }
}

pub(crate) fn is_slot(take: &LimitAcquisition) -> bool {
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

/// A limit as stored in the database.
#[derive(PartialEq)]
enum StoredLimit {
    Absent,
    Row { taken: Vec<u8>, due: Option<Micros>, charges: Vec<u8> },
    Slots,
}

impl LoadedBatch {
    async fn load(
        database: &impl GenericClient,
        capacity: usize,
        time: Micros,
        takes: &[LimitAcquisition],
    ) -> Result<Self, PostgresError> {
        let keys: BTreeSet<&str> = takes
            .iter()
            .filter(|take| cost(&take.allowance, take.cost) > 0)
            .map(|take| take.key.as_str())
            .collect();
        // Sent at once, and answered in one round trip.
        let (shares, latest, stored) = tokio::try_join!(
            Pool::Limits.shares(database, capacity, takes.iter().map(|take| take.account)),
            SharedCounter::LatestTime.get(database),
            find(database, &keys),
        )?;
        let mut before = SharedLimitState { shares, now: latest.unwrap_or(Micros::MIN) };
        let mut slots = before.shares.clone();
        let mut loaded = Vec::new();
        for take in takes {
            if loaded.iter().any(|(key, _)| *key == take.key) {
                continue;
            }
            match stored.get(&take.key) {
                Some((StoredLimit::Row { taken, charges, .. }, _)) => {
                    loaded.push((take.key.clone(), read(&take.key, taken, charges)?));
                }
                Some((StoredLimit::Slots, held)) => {
                    // Holders of slots are stored in another table; here the slot is charged to the caller for the duration of the
                    // batch.
                    let (usage, allowance) = (LimitUsage::Slots(*held), Allowance::Slots { max: 0 });
                    let mut limit = LoadedLimit { usage, charges: AccountCharges::default(), allowance };
                    limit.charges.update(&mut slots, 1, &take.account);
                    loaded.push((take.key.clone(), limit));
                }
                Some((StoredLimit::Absent, _)) | None => {}
            }
        }
        let mut stored: HashMap<String, StoredLimit> =
            stored.into_iter().map(|(key, (stored, _))| (key, stored)).collect();

        let all = before.is_step_back(time);
        let now = before.now.max(time);
        let select = match all {
            true => {
                "SELECT key, taken, due, charges FROM limits WHERE $1::bigint IS NOT NULL ORDER BY key LIMIT $2"
            }
            false => "SELECT key, taken, due, charges FROM limits WHERE due <= $1 ORDER BY due, key LIMIT $2",
        };
        let most =
            if all { i64::MAX } else { i64::try_from(before.due_keys_to_load(takes)).unwrap_or(i64::MAX) };
        let mut due_by_now = 0;
        for row in statement::query(database, select, &[&now, &most]).await? {
            let (key, taken, due, charges): (Vec<u8>, Vec<u8>, Option<Micros>, Vec<u8>) =
                (row.get(0), row.get(1), row.get(2), row.get(3));
            due_by_now += usize::from(!all);
            if let Entry::Vacant(unseen) = stored.entry(key_text(key)) {
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
        if !charged.is_empty() {
            let charged: Vec<Account> = charged.into_iter().collect();
            let shares = &mut [&mut before.shares, &mut slots];
            Pool::Limits.load_accounts(database, shares, &charged).await?;
        }
        let mut limits = LimitTable::subset(SharedLimitState { shares: slots, now: before.now });
        for (key, limit) in loaded {
            let due = if let Some(StoredLimit::Row { due, .. }) = stored.get(&key) { *due } else { None };
            limits.load(&key, limit, due);
        }
        Ok(Self { limits, before, stored, due_by_now })
    }

    async fn write_back(&self, database: &impl GenericClient) -> Result<(), PostgresError> {
        let mut after = self.limits.shared_state();
        let (mut removed, mut without_slots, mut written) = (Vec::new(), Vec::new(), Vec::new());
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
                (StoredLimit::Row { .. }, StoredLimit::Slots) => without_slots.push(key.as_bytes()),
                (StoredLimit::Absent | StoredLimit::Slots, StoredLimit::Row { .. }) => {
                    removed.push(key.as_bytes())
                }
                _ => {}
            }
            if let StoredLimit::Row { taken, due, charges } = updated {
                written.push(LimitRow { key: key.as_bytes(), taken, due, charges });
            }
        }
        if !without_slots.is_empty() {
            statement::execute(database, "DELETE FROM slots WHERE key = ANY($1)", &[&without_slots]).await?;
        }
        if !removed.is_empty() {
            statement::execute(database, "DELETE FROM limits WHERE key = ANY($1)", &[&removed]).await?;
        }
        let latest = async {
            match after.now != self.before.now {
                true => SharedCounter::LatestTime.set(database, after.now).await,
                false => Ok(()),
            }
        };
        tokio::try_join!(
            write(database, &written),
            Pool::Limits.write_back(database, &self.before.shares, &after.shares),
            latest,
        )?;
        Ok(())
    }
}

/// The new state of a limit.
struct LimitRow<'k> {
    key: &'k [u8],
    taken: Vec<u8>,
    due: Option<Micros>,
    charges: Vec<u8>,
}

async fn write(database: &impl GenericClient, rows: &[LimitRow<'_>]) -> Result<(), PostgresError> {
    if rows.is_empty() {
        return Ok(());
    }
    let keys: Vec<&[u8]> = rows.iter().map(|row| row.key).collect();
    let taken: Vec<&[u8]> = rows.iter().map(|row| row.taken.as_slice()).collect();
    let due: Vec<Option<Micros>> = rows.iter().map(|row| row.due).collect();
    let charges: Vec<&[u8]> = rows.iter().map(|row| row.charges.as_slice()).collect();
    let upsert = "INSERT INTO limits (key, taken, due, charges)
        SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[])
        ON CONFLICT (key) DO UPDATE SET taken = excluded.taken, due = excluded.due, charges = excluded.charges";
    statement::execute(database, upsert, &[&keys, &taken, &due, &charges]).await?;
    Ok(())
}

/// The stored state of limits, and how many slots of each are held.
async fn find(
    database: &impl GenericClient,
    keys: &BTreeSet<&str>,
) -> Result<HashMap<String, (StoredLimit, u64)>, PostgresError> {
    let bytes: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&bytes];
    let (rows, slots) = tokio::try_join!(
        statement::query(
            database,
            "SELECT key, taken, due, charges FROM limits WHERE key = ANY($1)",
            &parameters
        ),
        statement::query(
            database,
            "SELECT key, sum(held)::bigint FROM slots WHERE key = ANY($1) GROUP BY key",
            &parameters
        ),
    )?;
    let mut found: HashMap<String, (StoredLimit, u64)> =
        keys.iter().map(|key| ((*key).to_owned(), (StoredLimit::Absent, 0))).collect();
    for row in slots {
        let held: i64 = row.get(1);
        if held > 0 {
            found.insert(key_text(row.get(0)), (StoredLimit::Slots, held.unsigned_abs()));
        }
    }
    for row in rows {
        let stored = StoredLimit::Row { taken: row.get(1), due: row.get(2), charges: row.get(3) };
        found.insert(key_text(row.get(0)), (stored, 0));
    }
    Ok(found)
}

/// A key as text. One that is not text was written by something else, and matches no limit.
fn key_text(key: Vec<u8>) -> String {
    String::from_utf8(key).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn read(key: &str, usage: &[u8], charges: &[u8]) -> Result<LoadedLimit, PostgresError> {
    let limit = encoding::decode(usage).zip(AccountCharges::from_bytes(charges));
    let limit = limit.map(|((usage, allowance), charges)| LoadedLimit { usage, charges, allowance });
    limit.ok_or_else(|| {
        PostgresError::Damaged(format!("the state of the limit `{key}` is damaged; restore a backup"))
    })
}
