//! Usage by tenant and caller, stored in the database: the sums that [`CapacityShares`] need.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::error::PostgresError;
use super::statement;
use callgate::host::Account;
use callgate::state::capacity::CapacityShares;

/// A pool of shared capacity. Its number is also that of the lock that changes of its content need.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pool {
    Limits = 1,
    Records = 2,
    Cached = 3,
}

/// The holder id of the total.
const TOTAL: &[u8] = b"";

impl Pool {
    /// The shares of a pool, with the usage of these accounts.
    pub(crate) async fn shares(
        self,
        database: &impl GenericClient,
        capacity: usize,
        accounts: impl IntoIterator<Item = Account>,
    ) -> Result<CapacityShares, PostgresError> {
        let accounts: Vec<Account> = accounts.into_iter().collect();
        let held = self.held(database, holders(&accounts).chain([TOTAL])).await?;
        let of = |holder: &[u8]| held.iter().find(|(known, _)| known == holder).map_or(0, |(_, held)| *held);
        let mut shares = CapacityShares::subset(capacity, of(TOTAL));
        holders(&accounts).for_each(|holder| shares.load(holder, of(holder)));
        Ok(shares)
    }

    /// Loads the usage of further accounts.
    pub(crate) async fn load_accounts(
        self,
        database: &impl GenericClient,
        shares: &mut [&mut CapacityShares],
        accounts: &[Account],
    ) -> Result<(), PostgresError> {
        let held = self.held(database, holders(accounts)).await?;
        for holder in holders(accounts) {
            let held = held.iter().find(|(known, _)| known == holder).map_or(0, |(_, held)| *held);
            shares.iter_mut().for_each(|shares| shares.load(holder, held));
        }
        Ok(())
    }

    /// Writes the changed usage.
    pub(crate) async fn write_back(
        self,
        database: &impl GenericClient,
        before: &CapacityShares,
        after: &CapacityShares,
    ) -> Result<(), PostgresError> {
        let total = (after.used() != before.used()).then_some((TOTAL, after.used()));
        let changed: Vec<(&[u8], usize)> = after.changes(before).chain(total).collect();
        self.set(database, &changed).await
    }

    /// Updates the usage of an account after something changed its size.
    pub(crate) async fn recharge(
        self,
        database: &impl GenericClient,
        account: &Account,
        before: usize,
        now: usize,
    ) -> Result<(), PostgresError> {
        if before == now {
            return Ok(());
        }
        let accounts = [*account];
        let held = self.held(database, holders(&accounts).chain([TOTAL])).await?;
        let of = |holder: &[u8]| held.iter().find(|(known, _)| known == holder).map_or(0, |(_, held)| *held);
        let changed: Vec<(&[u8], usize)> = holders(&accounts)
            .chain([TOTAL])
            .map(|holder| (holder, of(holder).saturating_sub(before).saturating_add(now)))
            .collect();
        self.set(database, &changed).await
    }

    async fn held(
        self,
        database: &impl GenericClient,
        holders: impl Iterator<Item = &[u8]>,
    ) -> Result<Vec<(Vec<u8>, usize)>, PostgresError> {
        let holders: Vec<&[u8]> = holders.collect();
        let select = "SELECT holder, held FROM usage WHERE pool = $1 AND holder = ANY($2)";
        let rows = statement::query(database, select, &[&(self as i32), &holders]).await?;
        // A value that was tampered with counts as full.
        let held = |row: &Row| (row.get(0), usize::try_from(row.get::<_, i64>(1)).unwrap_or(usize::MAX));
        Ok(rows.iter().map(held).collect())
    }

    async fn set(
        self,
        database: &impl GenericClient,
        changed: &[(&[u8], usize)],
    ) -> Result<(), PostgresError> {
        let (freed, held): (Vec<_>, Vec<_>) = changed.iter().copied().partition(|(_, held)| *held == 0);
        if !freed.is_empty() {
            let holders: Vec<&[u8]> = freed.iter().map(|(holder, _)| *holder).collect();
            let delete = "DELETE FROM usage WHERE pool = $1 AND holder = ANY($2)";
            statement::execute(database, delete, &[&(self as i32), &holders]).await?;
        }
        if !held.is_empty() {
            let holders: Vec<&[u8]> = held.iter().map(|(holder, _)| *holder).collect();
            let amounts: Vec<i64> =
                held.iter().map(|(_, held)| i64::try_from(*held).unwrap_or(i64::MAX)).collect();
            let upsert = "INSERT INTO usage (pool, holder, held) SELECT $1, holder, held FROM unnest($2::bytea[], $3::bigint[]) AS new (holder, held)
                ON CONFLICT (pool, holder) DO UPDATE SET held = excluded.held";
            statement::execute(database, upsert, &[&(self as i32), &holders, &amounts]).await?;
        }
        Ok(())
    }
}

fn holders(accounts: &[Account]) -> impl Iterator<Item = &[u8]> {
    accounts.iter().flat_map(|account| [account.tenant(), account.caller()])
}

/// Reads an account from two columns, starting with this one. Unreadable values belong to [`Account::NOBODY`].
pub(crate) fn read_account(row: &Row, column: usize) -> Account {
    let (tenant, caller): (Vec<u8>, Vec<u8>) = (row.get(column), row.get(column + 1));
    Account::from_bytes(&tenant, &caller).unwrap_or(Account::NOBODY)
}
