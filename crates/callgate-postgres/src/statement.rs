//! Statements: prepared once for each connection, so that each takes one round trip afterwards.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::PostgresError;

type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

/// The rows that a statement returns.
pub(crate) async fn query(
    database: &impl GenericClient,
    statement: &str,
    parameters: Parameters<'_>,
) -> Result<Vec<Row>, PostgresError> {
    let statement = database.prepare_cached(statement).await?;
    Ok(database.query(&statement, parameters).await?)
}

/// The only row that a statement returns.
pub(crate) async fn query_one(
    database: &impl GenericClient,
    statement: &str,
    parameters: Parameters<'_>,
) -> Result<Row, PostgresError> {
    let statement = database.prepare_cached(statement).await?;
    Ok(database.query_one(&statement, parameters).await?)
}

/// The row that a statement returns, if there is one.
pub(crate) async fn query_opt(
    database: &impl GenericClient,
    statement: &str,
    parameters: Parameters<'_>,
) -> Result<Option<Row>, PostgresError> {
    let statement = database.prepare_cached(statement).await?;
    Ok(database.query_opt(&statement, parameters).await?)
}

/// Runs a statement. Returns how many rows it has changed.
pub(crate) async fn execute(
    database: &impl GenericClient,
    statement: &str,
    parameters: Parameters<'_>,
) -> Result<u64, PostgresError> {
    let statement = database.prepare_cached(statement).await?;
    Ok(database.execute(&statement, parameters).await?)
}
