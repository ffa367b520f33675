//! Limits in the database: the limits of a batch are loaded into memory, acquired there, and written back, all in one transaction.

use std::collections::{BTreeSet, HashMap};

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::error::PostgresError;
use super::schema::SharedCounter;
use super::slot_lease;
use super::statement;
use super::usage::Pool;
use callgate::host::{Account, Allowance, LimitAcquisition, LimitCorrection, LimitRefusal, StoreError};
use callgate::state::limit_algorithms::Micros;
use callgate::state::limit_table::batch::{
    BatchChanges, BatchLoader, FurtherLimits, LimitBatch, LimitRow, StoredLimit, keys_of,
};
use callgate::state::limit_table::subset::SharedLimitState;

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
        let mut part = load(database, capacity, time, takes).await?;
        let answer = part.limits.acquire(time, takes);
        match &answer {
            Ok(refusals) if refusals.is_empty() => {
                write_back(database, &part).await?;
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
                    write_back(database, &part).await?;
                }
                return Ok(answer);
            }
            Err(error) => {
                // The loaded limits that could be removed were removed. There may be more.
                write_back(database, &part).await?;
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
        let mut part = load(database, capacity, time, &takes).await?;
        let answer = part.limits.correct(time, corrections);
        write_back(database, &part).await?;
        if answer.is_ok() || part.due_by_now == 0 {
            return Ok(answer);
        }
    }
}

pub(crate) fn is_slot(take: &LimitAcquisition) -> bool {
    matches!(take.allowance, Allowance::Slots { .. })
}

/// Loads the limits that a batch uses.
async fn load(
    database: &impl GenericClient,
    capacity: usize,
    time: Micros,
    takes: &[LimitAcquisition],
) -> Result<LimitBatch, PostgresError> {
    let keys = keys_of(takes);
    // Sent at once, and answered in one round trip.
    let (shares, latest, mut stored) = tokio::try_join!(
        Pool::Limits.shares(database, capacity, takes.iter().map(|take| take.account)),
        SharedCounter::LatestTime.get(database),
        find(database, &keys),
    )?;
    let before = SharedLimitState { shares, now: latest.unwrap_or(Micros::MIN) };
    let mut loader = BatchLoader::new(takes, before);
    for key in keys {
        loader.add(key, stored.remove(key).unwrap_or(StoredLimit::Absent))?;
    }
    let further = loader.further_limits(time);
    let rows = match further {
        FurtherLimits::All => {
            statement::query(database, "SELECT key, taken, due, charges FROM limits ORDER BY key", &[])
                .await?
        }
        FurtherLimits::Due { by, most } => {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let select =
                "SELECT key, taken, due, charges FROM limits WHERE due <= $1 ORDER BY due, key LIMIT $2";
            statement::query(database, select, &[&by, &most]).await?
        }
    };
    for row in rows {
        loader.add_further(further, key_text(row.get(0)), limit_row(&row))?;
    }
    let charged: Vec<Account> = loader.charged_accounts().into_iter().collect();
    if !charged.is_empty() {
        Pool::Limits.load_accounts(database, &mut loader.shares_mut(), &charged).await?;
    }
    Ok(loader.finish())
}

async fn write_back(database: &impl GenericClient, batch: &LimitBatch) -> Result<(), PostgresError> {
    let BatchChanges { removed, without_slots, written, after } = batch.changes();
    let bytes = |keys: Vec<&'_ str>| -> Vec<Vec<u8>> {
        keys.into_iter().map(|key| key.as_bytes().to_vec()).collect()
    };
    if !without_slots.is_empty() {
        statement::execute(database, "DELETE FROM slots WHERE key = ANY($1)", &[&bytes(without_slots)])
            .await?;
    }
    if !removed.is_empty() {
        statement::execute(database, "DELETE FROM limits WHERE key = ANY($1)", &[&bytes(removed)]).await?;
    }
    let latest = async {
        match after.now != batch.before.now {
            true => SharedCounter::LatestTime.set(database, after.now).await,
            false => Ok(()),
        }
    };
    tokio::try_join!(
        write(database, &written),
        Pool::Limits.write_back(database, &batch.before.shares, &after.shares),
        latest,
    )?;
    Ok(())
}

async fn write(database: &impl GenericClient, rows: &[(&str, LimitRow)]) -> Result<(), PostgresError> {
    if rows.is_empty() {
        return Ok(());
    }
    let keys: Vec<&[u8]> = rows.iter().map(|(key, _)| key.as_bytes()).collect();
    let taken: Vec<&[u8]> = rows.iter().map(|(_, row)| row.taken.as_slice()).collect();
    let due: Vec<Option<Micros>> = rows.iter().map(|(_, row)| row.due).collect();
    let charges: Vec<&[u8]> = rows.iter().map(|(_, row)| row.charges.as_slice()).collect();
    let upsert = "INSERT INTO limits (key, taken, due, charges)
        SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[])
        ON CONFLICT (key) DO UPDATE SET taken = excluded.taken, due = excluded.due, charges = excluded.charges";
    statement::execute(database, upsert, &[&keys, &taken, &due, &charges]).await?;
    Ok(())
}

/// The stored state of these limits, as far as they are in use.
async fn find(
    database: &impl GenericClient,
    keys: &BTreeSet<&str>,
) -> Result<HashMap<String, StoredLimit>, PostgresError> {
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
    let slots = slots.iter().filter(|row| row.get::<_, i64>(1) > 0);
    let slots =
        slots.map(|row| (key_text(row.get(0)), StoredLimit::Slots(row.get::<_, i64>(1).unsigned_abs())));
    let rows = rows.iter().map(|row| (key_text(row.get(0)), StoredLimit::Row(limit_row(row))));
    Ok(slots.chain(rows).collect())
}

fn limit_row(row: &Row) -> LimitRow {
    LimitRow { taken: row.get(1), due: row.get(2), charges: row.get(3) }
}

/// A key as text. One that is not text was written by something else, and matches no limit.
fn key_text(key: Vec<u8>) -> String {
    String::from_utf8(key).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
