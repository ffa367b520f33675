//! Limits in the database: the limits of a batch are loaded into memory, acquired there, and written back, in one transaction of two round
//! trips. It holds a lock for each key of the batch, so that batches of other keys go on.

use std::collections::{BTreeSet, HashMap};

use tokio_postgres::Row;

use super::connection_pool::ConnectionPool;
use super::error::PostgresError;
use super::statement;
use super::transaction::ShortTransaction;
use super::usage::Pool;
use callgate::host::{Account, Allowance, LimitAcquisition};
use callgate::state::capacity::CapacityShares;
use callgate::state::limit_algorithms::Micros;
use callgate::state::limit_table::LimitTable;
use callgate::state::limit_table::batch::{
    BatchChanges, BatchLoader, FurtherLimits, LimitBatch, LimitRow, StoredLimit, keys_of,
};
use callgate::state::limit_table::subset::SharedLimitState;

const LOAD: &str = "SELECT part, name, amount, taken, charges FROM load_limits($1, $2, $3, $4)";
const WRITE: &str = "SELECT write_limits($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

/// What a change of limits uses.
pub(crate) struct LimitRequest<'r> {
    /// The limits.
    pub(crate) takes: &'r [LimitAcquisition],
    /// The earliest time that the change happens at; `None` for that of the server.
    pub(crate) time: Option<Micros>,
    /// The most other limits that are loaded because they may be due for removal.
    pub(crate) most_due: usize,
    /// The most limits that are tracked at once.
    pub(crate) capacity: usize,
    /// The owner of acquired slots.
    pub(crate) owner: i64,
}

/// What a change of limits results in.
pub(crate) struct LimitChange<T> {
    pub(crate) answer: T,
    /// Whether there is anything to write.
    pub(crate) is_changed: bool,
    /// The keys of acquired slots.
    pub(crate) slots: Vec<Vec<u8>>,
}

/// Which limits a transaction may change.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    /// Those whose keys it has locked.
    Locked,
    /// All: the clock has stepped back.
    All,
}

/// Changes limits. `apply` gets the limits of the request and the time. Returns its answer, and how many limits were loaded because they
/// are due for removal.
pub(crate) async fn change<T>(
    connections: &ConnectionPool,
    request: &LimitRequest<'_>,
    mut apply: impl FnMut(&mut LimitTable, Micros) -> LimitChange<T>,
) -> Result<(T, usize), PostgresError> {
    let mut access = Access::Locked;
    loop {
        let (transaction, rows) = begin(connections, request, access).await?;
        let loaded = LoadedRows::new(&rows)?;
        let time = request.time.unwrap_or(loaded.time);
        let mut loader = loaded.loader(request)?;
        match (loader.further_limits(time), access) {
            (FurtherLimits::All, Access::Locked) => {
                access = Access::All;
                continue;
            }
            (FurtherLimits::All, Access::All) => {
                let select = "SELECT key, due, taken, charges FROM limits ORDER BY key";
                let rows = statement::query(transaction.connection()?, select, &[]).await?;
                for row in &rows {
                    loader.add_further(FurtherLimits::All, key_text(row.get(0)), limit_row(row, 1))?;
                }
                let charged: Vec<Account> = loader.charged_accounts().into_iter().collect();
                let connection = transaction.connection()?;
                Pool::Limits.load_accounts(connection, &mut loader.shares_mut(), &charged).await?;
            }
            (further @ FurtherLimits::Due { .. }, _) => {
                for (key, row) in loaded.due {
                    loader.add_further(further, key, row)?;
                }
                for account in loader.charged_accounts() {
                    for holder in [account.tenant(), account.caller()] {
                        let held = loaded.held.get(holder).copied().unwrap_or(0);
                        loader.shares_mut().into_iter().for_each(|shares| shares.load(holder, held));
                    }
                }
            }
        }
        let mut batch = loader.finish();
        let is_step_back = batch.before.is_step_back(time);
        let changed = apply(&mut batch.limits, time);
        // The state changes of a refusal can be recomputed, so they need not be written. But after a step of the clock, the wait counts from
        // the first time that the step was seen.
        if changed.is_changed || is_step_back {
            write(transaction, request, &batch, &changed.slots, is_step_back).await?;
        }
        return Ok((changed.answer, batch.due_by_now));
    }
}

pub(crate) fn is_slot(take: &LimitAcquisition) -> bool {
    matches!(take.allowance, Allowance::Slots { .. })
}

/// The keys of the slots among these.
pub(crate) fn slot_keys(takes: &[LimitAcquisition]) -> impl Iterator<Item = String> {
    takes.iter().filter(|take| is_slot(take)).map(|take| take.key.clone())
}

async fn begin(
    connections: &ConnectionPool,
    request: &LimitRequest<'_>,
    access: Access,
) -> Result<(ShortTransaction, Vec<Row>), PostgresError> {
    let keys: Vec<&[u8]> = keys_of(request.takes).into_iter().map(str::as_bytes).collect();
    let holders: BTreeSet<&[u8]> = request.takes.iter().flat_map(|take| holders(&take.account)).collect();
    let holders: Vec<&[u8]> = holders.into_iter().collect();
    let most = i32::try_from(request.most_due).unwrap_or(i32::MAX);
    let locked = (access == Access::All).then_some(Pool::Limits);
    let connection = connections.get().await?;
    ShortTransaction::begin(connection, locked, LOAD, &[&request.time, &keys, &holders, &most]).await
}

/// What the database has returned, by part.
struct LoadedRows {
    time: Micros,
    latest: Option<Micros>,
    limits: Vec<(String, StoredLimit)>,
    due: Vec<(String, LimitRow)>,
    held: HashMap<Vec<u8>, usize>,
}

impl LoadedRows {
    fn new(rows: &[Row]) -> Result<Self, PostgresError> {
        let (mut limits, mut due, mut held) = (Vec::new(), Vec::new(), HashMap::new());
        let (mut time, mut latest) = (None, None);
        for row in rows {
            match row.get::<_, i16>(0) {
                0 => time = row.get(2),
                1 => latest = row.get(2),
                2 => limits.push((key_text(row.get(1)), StoredLimit::Row(limit_row(row, 2)))),
                3 => due.push((key_text(row.get(1)), limit_row(row, 2))),
                4 => limits.push((
                    key_text(row.get(1)),
                    StoredLimit::Slots(row.get::<_, i64>(2).max(0).unsigned_abs()),
                )),
                // A value that was tampered with counts as full.
                _ => {
                    let amount = usize::try_from(row.get::<_, i64>(2)).unwrap_or(usize::MAX);
                    held.insert(row.get::<_, Vec<u8>>(1), amount);
                }
            }
        }
        let time = time.ok_or_else(|| PostgresError::Damaged("the database returned no time".to_owned()))?;
        Ok(Self { time, latest, limits, due, held })
    }

    /// A loader with the limits of the request.
    fn loader<'r>(&self, request: &LimitRequest<'r>) -> Result<BatchLoader<'r>, PostgresError> {
        let held = |holder: &[u8]| self.held.get(holder).copied().unwrap_or(0);
        let mut shares = CapacityShares::subset(request.capacity, held(&[]));
        let used = request.takes.iter().flat_map(|take| holders(&take.account));
        used.for_each(|holder| shares.load(holder, held(holder)));
        let before = SharedLimitState { shares, now: self.latest.unwrap_or(Micros::MIN) };
        let mut loader = BatchLoader::new(request.takes, before);
        for key in keys_of(request.takes) {
            // A limit that has slots and a row is that of the row.
            let stored = self.limits.iter().find(|(known, _)| known == key).map(|(_, stored)| stored.clone());
            loader.add(key, stored.unwrap_or(StoredLimit::Absent))?;
        }
        Ok(loader)
    }
}

async fn write(
    transaction: ShortTransaction,
    request: &LimitRequest<'_>,
    batch: &LimitBatch,
    slots: &[Vec<u8>],
    steps_back: bool,
) -> Result<(), PostgresError> {
    let BatchChanges { removed, without_slots, written, after } = batch.changes();
    let bytes = |keys: Vec<&'_ str>| -> Vec<Vec<u8>> {
        keys.into_iter().map(|key| key.as_bytes().to_vec()).collect()
    };
    let (removed, without_slots) = (bytes(removed), bytes(without_slots));
    let keys: Vec<&[u8]> = written.iter().map(|(key, _)| key.as_bytes()).collect();
    let taken: Vec<&[u8]> = written.iter().map(|(_, row)| row.taken.as_slice()).collect();
    let due: Vec<Option<Micros>> = written.iter().map(|(_, row)| row.due).collect();
    let charges: Vec<&[u8]> = written.iter().map(|(_, row)| row.charges.as_slice()).collect();
    let growth = after.shares.growth(&batch.before.shares);
    let tenants = batch.tenants();
    let holders: Vec<&[u8]> = growth.iter().map(|(holder, _)| *holder).collect();
    let callers: Vec<bool> =
        holders.iter().map(|holder| !holder.is_empty() && !tenants.contains(*holder)).collect();
    let amounts: Vec<i64> = growth.iter().map(|(_, amount)| *amount).collect();
    let time = (after.now != batch.before.now).then_some(after.now);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 13] = [
        &time,
        &keys,
        &taken,
        &due,
        &charges,
        &removed,
        &without_slots,
        &request.owner,
        &slots,
        &holders,
        &callers,
        &amounts,
        &steps_back,
    ];
    transaction.commit_with(WRITE, &parameters).await
}

fn holders(account: &Account) -> [&[u8]; 2] {
    [account.tenant(), account.caller()]
}

/// The row of a limit whose due time, usage and charges are in these columns.
fn limit_row(row: &Row, column: usize) -> LimitRow {
    LimitRow { due: row.get(column), taken: row.get(column + 1), charges: row.get(column + 2) }
}

/// A key as text. One that is not text was written by something else, and matches no limit.
fn key_text(key: Vec<u8>) -> String {
    String::from_utf8(key).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
