//! Usage by tenant and caller, stored in the file: the sums that [`CapacityShares`] need.

use rusqlite::{Connection, OptionalExtension as _, Row};

use callgate::host::Account;
use callgate::state::capacity::CapacityShares;

/// A pool of shared capacity.
#[derive(Clone, Copy, Debug)]
pub enum Pool {
    Limits = 1,
    Records = 2,
    Cached = 3,
}

/// The holder id of the total.
const TOTAL: &[u8] = b"";

impl Pool {
    /// The shares of a pool, without any holder yet.
    pub fn shares(self, database: &Connection, capacity: usize) -> rusqlite::Result<CapacityShares> {
        Ok(CapacityShares::subset(capacity, self.held(database, TOTAL)?))
    }

    /// Loads the usage of an account.
    pub fn load_account(
        self,
        database: &Connection,
        shares: &mut CapacityShares,
        account: &Account,
    ) -> rusqlite::Result<()> {
        for holder in [account.tenant(), account.caller()] {
            shares.load(holder, self.held(database, holder)?);
        }
        Ok(())
    }

    /// Writes the changed usage.
    pub fn write_back(
        self,
        database: &Connection,
        before: &CapacityShares,
        after: &CapacityShares,
    ) -> rusqlite::Result<()> {
        for (holder, held) in after.changes(before) {
            self.set(database, holder, held)?;
        }
        if after.used() != before.used() {
            self.set(database, TOTAL, after.used())?;
        }
        Ok(())
    }

    /// Updates the usage of an account after something changed its size.
    pub fn recharge(
        self,
        database: &Connection,
        account: &Account,
        before: usize,
        now: usize,
    ) -> rusqlite::Result<()> {
        for holder in [TOTAL, account.tenant(), account.caller()] {
            let held = self.held(database, holder)?;
            self.set(database, holder, held.saturating_sub(before).saturating_add(now))?;
        }
        Ok(())
    }

    fn held(self, database: &Connection, holder: &[u8]) -> rusqlite::Result<usize> {
        let mut select = database.prepare_cached("SELECT held FROM usage WHERE pool = ?1 AND holder = ?2")?;
        let held: Option<i64> = select.query_row((self as i64, holder), |row| row.get(0)).optional()?;
        // A value that was tampered with counts as full.
        Ok(held.map_or(0, |held| usize::try_from(held).unwrap_or(usize::MAX)))
    }

    fn set(self, database: &Connection, holder: &[u8], held: usize) -> rusqlite::Result<()> {
        if held == 0 {
            let mut delete = database.prepare_cached("DELETE FROM usage WHERE pool = ?1 AND holder = ?2")?;
            return delete.execute((self as i64, holder)).map(|_| ());
        }
        let mut upsert = database.prepare_cached(
            "INSERT INTO usage (pool, holder, held) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET held = excluded.held",
        )?;
        upsert.execute((self as i64, holder, i64::try_from(held).unwrap_or(i64::MAX))).map(|_| ())
    }
}

/// Reads an account from two columns, starting with this one. Unreadable values belong to [`Account::NOBODY`].
pub fn read_account(row: &Row<'_>, column: usize) -> rusqlite::Result<Account> {
    let (tenant, caller): (Vec<u8>, Vec<u8>) = (row.get(column)?, row.get(column + 1)?);
    Ok(Account::from_bytes(&tenant, &caller).unwrap_or(Account::NOBODY))
}
