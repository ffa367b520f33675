//! The database schema, and the counters that all processes share.

use rusqlite::{Connection, OptionalExtension as _};

/// The application id in SQLite's file header: `Clgt`.
pub const APPLICATION_ID: i32 = 0x436c_6774;

/// The format of the tables. A file with a newer format is not opened.
pub const FORMAT_VERSION: i32 = 2;

/// The tables. Keys compare byte by byte. Times are microseconds since the epoch; those of cached results are text, which
/// preserves every digit.
pub const TABLES: &str = "
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE limits (key TEXT PRIMARY KEY, taken BLOB NOT NULL, due INTEGER, charges BLOB NOT NULL);
    CREATE INDEX limits_due ON limits (due) WHERE due IS NOT NULL;
    CREATE TABLE owners (id INTEGER PRIMARY KEY AUTOINCREMENT);
    CREATE TABLE slots (
        key TEXT NOT NULL, owner INTEGER NOT NULL, held INTEGER NOT NULL, PRIMARY KEY (key, owner)
    ) WITHOUT ROWID;
    CREATE INDEX slots_owner ON slots (owner);
    CREATE TABLE records (
        space TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, version INTEGER NOT NULL, forget_at INTEGER,
        tenant BLOB NOT NULL, caller BLOB NOT NULL, units INTEGER NOT NULL, PRIMARY KEY (space, key)
    );
    CREATE INDEX records_forget_at ON records (forget_at) WHERE forget_at IS NOT NULL;
    CREATE INDEX records_caller ON records (caller, space, version);
    CREATE TABLE usage (
        pool INTEGER NOT NULL, holder BLOB NOT NULL, held INTEGER NOT NULL, PRIMARY KEY (pool, holder)
    ) WITHOUT ROWID;
    CREATE TABLE lost (caller BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE spaces (name TEXT PRIMARY KEY, generation INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE entries (
        space TEXT NOT NULL, key TEXT NOT NULL, output TEXT NOT NULL, stored_at TEXT NOT NULL, expires_at TEXT NOT NULL,
        used INTEGER NOT NULL, tenant BLOB NOT NULL, caller BLOB NOT NULL, units INTEGER NOT NULL,
        PRIMARY KEY (space, key)
    );
    CREATE INDEX entries_space ON entries (space, tenant, caller, used);
    CREATE INDEX entries_caller ON entries (tenant, caller, used, units);
    CREATE INDEX entries_used ON entries (caller, used);
";

/// The tables that are checked for damage when the file is opened, because losing them would admit what is forbidden.
pub const CHECKED_TABLES: [&str; 7] = ["counters", "limits", "owners", "slots", "records", "usage", "lost"];

/// A number that all processes share. A missing counter has never been set.
#[derive(Clone, Copy, Debug)]
pub enum SharedCounter {
    /// The latest known time of limits.
    LatestTime,
    /// The latest version number of a record.
    Version,
    /// How often a cache was cleared.
    Cleared,
    /// The generation of every cache space that is not stored.
    UnstoredGeneration,
    /// How often a cache was used.
    Used,
}

impl SharedCounter {
    fn name(self) -> &'static str {
        match self {
            Self::LatestTime => "now",
            Self::Version => "version",
            Self::Cleared => "cleared",
            Self::UnstoredGeneration => "elsewhere",
            Self::Used => "used",
        }
    }

    pub fn get(self, database: &Connection) -> rusqlite::Result<Option<i64>> {
        let mut select = database.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
        select.query_row([self.name()], |row| row.get(0)).optional()
    }

    pub fn set(self, database: &Connection, value: i64) -> rusqlite::Result<()> {
        let mut upsert = database.prepare_cached(
            "INSERT INTO counters (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value",
        )?;
        upsert.execute((self.name(), value)).map(|_| ())
    }

    /// Increments the counter. Returns the new value.
    pub fn next(self, database: &Connection) -> rusqlite::Result<i64> {
        let mut upsert = database.prepare_cached(
            "INSERT INTO counters (name, value) VALUES (?1, 1) ON CONFLICT DO UPDATE SET value = value + 1
             RETURNING value",
        )?;
        upsert.query_row([self.name()], |row| row.get(0))
    }
}
