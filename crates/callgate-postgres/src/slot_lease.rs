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

/// Renews the lease of an owner. Returns `false` if it has lost it, and with it its slots.
pub(crate) async fn renew(database: &impl GenericClient, owner: i64) -> Result<bool, PostgresError> {
    let update = "UPDATE owners SET lease_ends = now() + make_interval(secs => $2) WHERE id = $1";
    Ok(statement::execute(database, update, &[&owner, &LEASE.as_secs_f64()]).await? == 1)
}

/// Acquires one more slot of a limit.
pub(crate) async fn acquire_slot(
    database: &impl GenericClient,
    owner: i64,
    key: &str,
) -> Result<(), PostgresError> {
    let upsert = "INSERT INTO slots (key, owner, held) VALUES ($1, $2, 1)
        ON CONFLICT (key, owner) DO UPDATE SET held = slots.held + 1";
    statement::execute(database, upsert, &[&key.as_bytes(), &owner]).await?;
    Ok(())
}

/// Releases one slot, if one is held.
pub(crate) async fn release_slot(
    database: &impl GenericClient,
    owner: i64,
    key: &str,
) -> Result<(), PostgresError> {
    let key = key.as_bytes();
    let one_less = "UPDATE slots SET held = held - 1 WHERE key = $1 AND owner = $2";
    statement::execute(database, one_less, &[&key, &owner]).await?;
    let none_left = "DELETE FROM slots WHERE key = $1 AND owner = $2 AND held <= 0";
    statement::execute(database, none_left, &[&key, &owner]).await?;
    Ok(())
}

/// Removes the other owners whose lease has ended, and their slots. Returns whether there were any.
pub(crate) async fn remove_expired(database: &impl GenericClient, own: i64) -> Result<bool, PostgresError> {
    let delete = "DELETE FROM owners WHERE lease_ends < now() AND id <> $1";
    Ok(statement::execute(database, delete, &[&own]).await? > 0)
}

/// Removes an owner and its slots.
pub(crate) async fn unregister(database: &impl GenericClient, owner: i64) -> Result<(), PostgresError> {
    statement::execute(database, "DELETE FROM owners WHERE id = $1", &[&owner]).await?;
    Ok(())
}
