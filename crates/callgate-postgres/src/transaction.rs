//! Transactions that change what hosts share.

use std::time::Duration;

use deadpool_postgres::{GenericClient as _, Object, Transaction};
use futures_util::future::try_join;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::PostgresError;
use super::usage::Pool;

/// The class of the advisory locks of all Callgate stores in a database: `Clgt`.
pub(crate) const LOCK_CLASS: i32 = 0x436c_6774;

/// How long rolling back may take. A connection that does not answer must not stay among those that the pool may have.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(1);

/// Begins a transaction that alone changes the content of a pool, until it ends. What it reads is what others have committed.
pub(crate) async fn begin(database: &mut Object, pool: Pool) -> Result<Transaction<'_>, PostgresError> {
    let transaction = database.transaction().await?;
    let lock = transaction.prepare_cached("SELECT pg_advisory_xact_lock($1, $2)").await?;
    transaction.execute(&lock, &[&LOCK_CLASS, &(pool as i32)]).await?;
    Ok(transaction)
}

/// A transaction of two round trips: it begins with its first statement, and commits with its last one. It is rolled back when it is dropped.
pub(crate) struct ShortTransaction(Option<Object>);

impl ShortTransaction {
    /// Begins with a statement, and returns the rows of that. `locked`: the pool that it alone changes.
    pub(crate) async fn begin(
        connection: Object,
        locked: Option<Pool>,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<(Self, Vec<Row>), PostgresError> {
        // Prepared before anything is sent, so that the order stays.
        let statement = connection.prepare_cached(statement).await?;
        let begin = match locked {
            None => "BEGIN".to_owned(),
            Some(pool) => format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK_CLASS}, {})", pool as i32),
        };
        let transaction = Self(Some(connection));
        let connection = transaction.connection()?;
        let (_, rows) =
            try_join(connection.batch_execute(&begin), connection.query(&statement, parameters)).await?;
        Ok((transaction, rows))
    }

    /// The connection, for further statements.
    pub(crate) fn connection(&self) -> Result<&Object, PostgresError> {
        self.0.as_ref().ok_or_else(|| PostgresError::Damaged("the transaction has ended".to_owned()))
    }

    /// Runs a last statement, and commits.
    pub(crate) async fn commit_with(
        mut self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<(), PostgresError> {
        let connection = self.connection()?;
        let statement = connection.prepare_cached(statement).await?;
        // If the statement fails, so does the transaction, and to commit is to roll back.
        try_join(connection.query(&statement, parameters), connection.batch_execute("COMMIT")).await?;
        self.0 = None;
        Ok(())
    }
}

impl Drop for ShortTransaction {
    fn drop(&mut self) {
        let Some(connection) = self.0.take() else { return };
        // Nobody has to wait for it. Its locks last until then.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    let rolled_back = connection.batch_execute("ROLLBACK");
                    let is_rolled_back = tokio::time::timeout(ROLLBACK_TIMEOUT, rolled_back).await;
                    // To close the connection rolls back, too.
                    if !matches!(is_rolled_back, Ok(Ok(()))) {
                        drop(Object::take(connection));
                    }
                });
            }
            Err(_) => drop(Object::take(connection)),
        }
    }
}
