//! Transactions that change what hosts share: one at a time for each pool of capacity.

use deadpool_postgres::{Object, Transaction};

use super::error::PostgresError;
use super::usage::Pool;

/// The class of the advisory locks of all Callgate stores in a database: `Clgt`.
pub(crate) const LOCK_CLASS: i32 = 0x436c_6774;

/// Begins a transaction that alone changes the content of a pool, until it ends. What it reads is what others have committed.
pub(crate) async fn begin(database: &mut Object, pool: Pool) -> Result<Transaction<'_>, PostgresError> {
    let transaction = database.transaction().await?;
    let lock = transaction.prepare_cached("SELECT pg_advisory_xact_lock($1, $2)").await?;
    transaction.execute(&lock, &[&LOCK_CLASS, &(pool as i32)]).await?;
    Ok(transaction)
}
