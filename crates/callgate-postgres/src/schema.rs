//! The tables, their version, and the counters that all hosts share.

use deadpool_postgres::{GenericClient, Object};

use super::error::PostgresError;
use super::statement;
use super::transaction::LOCK_CLASS;

/// The version of the tables. Tables of a newer version are not used.
const VERSION: i32 = 3;

/// What creates the tables of each version from those of the one before. Keys are bytes, because a text of PostgreSQL has no zero
/// character. Times are microseconds since the epoch; those of cached results are text, which preserves every digit.
const MIGRATIONS: [&str; 3] = [
    "
    CREATE TABLE counters (name text PRIMARY KEY, value bigint NOT NULL);
    CREATE SEQUENCE versions;
    CREATE TABLE limits (key bytea PRIMARY KEY, taken bytea NOT NULL, due bigint, charges bytea NOT NULL);
    CREATE INDEX limits_due ON limits (due, key) WHERE due IS NOT NULL;
    CREATE TABLE owners (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lease_ends timestamptz NOT NULL);
    CREATE TABLE slots (
        key bytea NOT NULL, owner bigint NOT NULL REFERENCES owners ON DELETE CASCADE, held bigint NOT NULL, PRIMARY KEY (key, owner)
    );
    CREATE INDEX slots_owner ON slots (owner);
    CREATE TABLE records (
        space text NOT NULL, key bytea NOT NULL, value text NOT NULL, version bigint NOT NULL, forget_at bigint,
        tenant bytea NOT NULL, caller bytea NOT NULL, units bigint NOT NULL, PRIMARY KEY (space, key)
    );
    CREATE INDEX records_forget_at ON records (forget_at) WHERE forget_at IS NOT NULL;
    CREATE INDEX records_caller ON records (caller, space, version);
    CREATE TABLE usage (pool integer NOT NULL, holder bytea NOT NULL, held bigint NOT NULL, PRIMARY KEY (pool, holder));
    CREATE TABLE lost (caller bytea PRIMARY KEY);
    CREATE TABLE spaces (name bytea PRIMARY KEY, generation bigint NOT NULL, used bigint NOT NULL);
    CREATE TABLE entries (
        space bytea NOT NULL, key bytea NOT NULL, output text NOT NULL, stored_at text NOT NULL, expires_at text NOT NULL,
        used bigint NOT NULL, tenant bytea NOT NULL, caller bytea NOT NULL, units bigint NOT NULL, PRIMARY KEY (space, key)
    );
    CREATE INDEX entries_space ON entries (space, tenant, caller, used);
    CREATE INDEX entries_caller ON entries (tenant, caller, used, units);
",
    "
    CREATE SEQUENCE latest_time MINVALUE -9223372036854775808 START 1;
    SELECT setval('latest_time', value) FROM counters WHERE name = 'now';
    CREATE SEQUENCE cache_uses;
    SELECT setval('cache_uses', value) FROM counters WHERE name = 'used' AND value > 0;
    DELETE FROM counters WHERE name IN ('now', 'used');
    ALTER TABLE usage ADD COLUMN shard smallint NOT NULL DEFAULT 0, DROP CONSTRAINT usage_pkey, ADD PRIMARY KEY (pool, holder, shard);
    ALTER TABLE spaces ADD COLUMN most bigint NOT NULL DEFAULT 9223372036854775807;
",
    // What only the functions of version 2 used.
    "
    DROP FUNCTION IF EXISTS held_by(integer, bytea), cache_get(bytea, bytea, bigint);
",
];

/// The functions of this version, which replace those of earlier ones.
const FUNCTIONS: &str = concat!(
    include_str!("functions/usage.sql"),
    include_str!("functions/limits.sql"),
    include_str!("functions/records.sql"),
    include_str!("functions/cache.sql"),
);

/// Creates the schema and its tables if they are missing, and brings older tables to the present version. Several hosts may do so at
/// once.
///
/// # Errors
/// The schema has tables of another program or of a newer version: a text for the operator.
pub(crate) async fn migrate(
    database: &mut Object,
    schema: &str,
) -> Result<Result<(), String>, PostgresError> {
    let transaction = database.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1, 0)", &[&LOCK_CLASS]).await?;
    let exists = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
        EXISTS (SELECT FROM pg_tables WHERE schemaname = $1),
        EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'callgate')";
    let found = transaction.query_one(exists, &[&schema]).await?;
    let (has_schema, has_tables, is_ours): (bool, bool, bool) = (found.get(0), found.get(1), found.get(2));
    if has_tables && !is_ours {
        return Ok(Err(format!(
            "the schema `{schema}` has tables of another program; name another one with `schema=NAME` in the URL"
        )));
    }
    if !has_schema {
        // The name has letters, digits and `_` only, and may be a word of SQL.
        transaction.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    let mut version = 0;
    if is_ours {
        version = transaction.query_one("SELECT version FROM callgate", &[]).await?.get(0);
    } else {
        let create =
            "CREATE TABLE callgate (version integer NOT NULL); INSERT INTO callgate (version) VALUES (0)";
        transaction.batch_execute(create).await?;
    }
    if version > VERSION {
        return Ok(Err(format!(
            "the tables in the schema `{schema}` have version {version}, but this program reads version {VERSION}; update it, or name \
             another schema"
        )));
    }
    let done = usize::try_from(version).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.batch_execute(migration).await?;
    }
    if version < VERSION {
        // They use the lock class of this program.
        transaction.batch_execute(&FUNCTIONS.replace("LOCK_CLASS", &LOCK_CLASS.to_string())).await?;
    }
    transaction.execute("UPDATE callgate SET version = $1", &[&VERSION]).await?;
    transaction.commit().await?;
    Ok(Ok(()))
}

/// The channel of all notifications.
pub(crate) fn channel_name(schema: &str) -> String {
    format!("callgate_{schema}")
}

/// A number that all hosts share. A missing counter has never been set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SharedCounter {
    /// How often a cache was cleared.
    Cleared,
    /// The generation of every cache space that is not stored.
    UnstoredGeneration,
}

impl SharedCounter {
    fn name(self) -> &'static str {
        match self {
            Self::Cleared => "cleared",
            Self::UnstoredGeneration => "elsewhere",
        }
    }

    pub(crate) async fn set(self, database: &impl GenericClient, value: i64) -> Result<(), PostgresError> {
        let upsert = "INSERT INTO counters (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        statement::execute(database, upsert, &[&self.name(), &value]).await?;
        Ok(())
    }

    /// Increments the counter. Returns the new value.
    pub(crate) async fn next(self, database: &impl GenericClient) -> Result<i64, PostgresError> {
        let upsert = "INSERT INTO counters (name, value) VALUES ($1, 1)
            ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value";
        Ok(statement::query_one(database, upsert, &[&self.name()]).await?.get(0))
    }
}
