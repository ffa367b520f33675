//! Owners of slots. Each open store is an owner with a lease that it renews. The slots of an owner whose process ended, or that could not
//! reach the database for as long as its lease, are free again.

use std::time::Duration;

use deadpool_postgres::GenericClient;

use super::error::PostgresError;
use super::statement;

/// How long an owner keeps its slots without renewing the lease.
pub(crate) const LEASE: Duration = Duration::from_secs(15);

/// Registers a new owner, by the server's clock.
pub(crate) async fn register(database: &impl GenericClient) -> Result<i64, PostgresError> {
    let insert = "INSERT INTO owners (lease_ends) VALUES (now() + make_interval(secs => $1)) RETURNING id";
    Ok(statement::query_one(database, insert, &[&LEASE.as_secs_f64()]).await?.get(0))
}

/// Renews the lease of an owner. Returns `false` if it has ended, and with it the owner's slots.
pub(crate) async fn renew(database: &impl GenericClient, owner: i64) -> Result<bool, PostgresError> {
    let update = "UPDATE owners SET lease_ends = now() + make_interval(secs => $2) WHERE id = $1 AND lease_ends > now()";
    Ok(statement::execute(database, update, &[&owner, &LEASE.as_secs_f64()]).await? == 1)
}

/// Releases one slot for each of these keys, if one is held, and notifies a channel.
pub(crate) async fn release(
    database: &impl GenericClient,
    owner: i64,
    keys: &[String],
    channel: &str,
) -> Result<(), PostgresError> {
    let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    statement::query(database, "SELECT release_slots($1, $2, $3)", &[&owner, &keys, &channel]).await?;
    Ok(())
}

/// Removes the owners whose lease has ended, and their slots. Such slots count as free before.
pub(crate) async fn remove_expired(database: &impl GenericClient) -> Result<(), PostgresError> {
    statement::execute(database, "DELETE FROM owners WHERE lease_ends <= now()", &[]).await?;
    Ok(())
}

/// Removes an owner and its slots.
pub(crate) async fn unregister(database: &impl GenericClient, owner: i64) -> Result<(), PostgresError> {
    statement::execute(database, "DELETE FROM owners WHERE id = $1", &[&owner]).await?;
    Ok(())
}
