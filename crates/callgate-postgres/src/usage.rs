//! Usage by tenant and caller, stored in the database: the sums that [`CapacityShares`] need.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::error::PostgresError;
use super::statement;
use callgate::host::Account;
use callgate::state::capacity::CapacityShares;

/// A pool of shared capacity, by the number of its usage and of its lock. Functions of the database change the pool of records, 2.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pool {
    Limits = 1,
    Cached = 3,
}

/// The holder id of the total.
const TOTAL: &[u8] = b"";

impl Pool {
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

    /// Updates the usage of accounts by these amounts.
    pub(crate) async fn charge(
        self,
        database: &impl GenericClient,
        charges: &HashMap<Account, i64>,
    ) -> Result<(), PostgresError> {
        if charges.is_empty() {
            return Ok(());
        }
        let tenants: Vec<&[u8]> = charges.keys().map(Account::tenant).collect();
        let callers: Vec<&[u8]> = charges.keys().map(Account::caller).collect();
        let amounts: Vec<i64> = charges.values().copied().collect();
        let charge = "SELECT charge($1, $2, $3, $4)";
        statement::query(database, charge, &[&(self as i32), &tenants, &callers, &amounts]).await?;
        Ok(())
    }

    /// The usage of all holders.
    pub(crate) async fn used(self, database: &impl GenericClient) -> Result<usize, PostgresError> {
        let held = self.held(database, [TOTAL].into_iter()).await?;
        Ok(held.first().map_or(0, |(_, held)| *held))
    }

    async fn held(
        self,
        database: &impl GenericClient,
        holders: impl Iterator<Item = &[u8]>,
    ) -> Result<Vec<(Vec<u8>, usize)>, PostgresError> {
        let holders: Vec<&[u8]> = holders.collect();
        let select = "SELECT holder, sum(held)::bigint FROM usage WHERE pool = $1 AND holder = ANY($2) GROUP BY holder";
        let rows = statement::query(database, select, &[&(self as i32), &holders]).await?;
        // A value that was tampered with counts as full.
        let held = |row: &Row| (row.get(0), usize::try_from(row.get::<_, i64>(1)).unwrap_or(usize::MAX));
        Ok(rows.iter().map(held).collect())
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
