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

/// Leaves an owner no more slots than these, by key, and notifies a channel. It must not acquire any meanwhile.
pub(crate) async fn correct(
    database: &impl GenericClient,
    owner: i64,
    held: &[(String, i64)],
    channel: &str,
) -> Result<(), PostgresError> {
    let keys: Vec<&[u8]> = held.iter().map(|(key, _)| key.as_bytes()).collect();
    let counts: Vec<i64> = held.iter().map(|(_, count)| *count).collect();
    let remove = "DELETE FROM slots WHERE owner = $1 AND key <> ALL ($2)";
    let reduce =
        "UPDATE slots SET held = known.held FROM unnest($2::bytea[], $3::bigint[]) AS known (key, held)
        WHERE slots.owner = $1 AND slots.key = known.key AND slots.held > known.held";
    let removed = statement::execute(database, remove, &[&owner, &keys]).await?;
    let reduced = statement::execute(database, reduce, &[&owner, &keys, &counts]).await?;
    if removed + reduced > 0 {
        statement::query(database, "SELECT pg_notify($1, '')", &[&channel]).await?;
    }
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
