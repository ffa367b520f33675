//! Errors of the SQLite store: SQLite's error codes → messages with a fix.
//!
//! Errors of an open store become denial reasons for agents, so they do not contain the path. Errors of opening the store
//! do.

use std::path::Path;

use rusqlite::ErrorCode;

use callgate::host::StoreError;
use callgate::state::limit_table::batch::DamagedLimit;

/// Why a job failed.
#[derive(Debug)]
pub enum SqliteStoreError {
    /// An error of the database.
    Database(rusqlite::Error),
    /// An error of the store.
    Store(String),
}

impl From<rusqlite::Error> for SqliteStoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<DamagedLimit> for SqliteStoreError {
    fn from(error: DamagedLimit) -> Self {
        Self::Store(error.to_string())
    }
}

impl SqliteStoreError {
    /// The error for users of an open store.
    pub fn to_store_error(&self) -> StoreError {
        StoreError::Unavailable(self.message(STORE_NAME))
    }

    /// The error for opening the store.
    pub fn message_for_path(&self, path: &Path) -> String {
        self.message(&named_store(path))
    }

    fn message(&self, store: &str) -> String {
        match self {
            Self::Database(error) => database_message(error, store),
            Self::Store(message) => format!("{store}: {message}"),
        }
    }
}

/// The store in messages without a path.
const STORE_NAME: &str = "the state store";

/// The store in messages with its path.
pub fn named_store(path: &Path) -> String {
    format!("{STORE_NAME} `{}`", path.display())
}

/// The message for a damaged file.
pub fn damaged_message(store: &str) -> String {
    format!("{store} is damaged; restore a backup, or move the file away to start with an empty store")
}

/// The message for a database error.
pub fn database_message(error: &rusqlite::Error, store: &str) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("{store} is locked by another process; find the process that holds the lock")
        }
        Some(ErrorCode::DiskFull) => {
            format!("no disk space is left to write {store}; free some space")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            format!("{store} can't be written; give this user write permission for it and its directory")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged_message(store),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            format!("{store} can't be read or written ({error}); check its disk")
        }
        _ => format!("{store} failed: {error}"),
    }
}
