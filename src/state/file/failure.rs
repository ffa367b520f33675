//! What went wrong in the file: SQLite's errors → texts with what to do.
//!
//! Errors of an open store reach agents as reasons of denials, so they do not name the file. Errors of opening it name it.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::host::StoreError;

/// Why a piece of work was not done.
#[derive(Debug)]
pub enum Failure {
    /// The database says so.
    Database(rusqlite::Error),
    /// The store says so.
    Told(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    /// The error of an open store.
    pub fn in_use(&self) -> StoreError {
        StoreError::Unavailable(self.of(UNNAMED))
    }

    /// The error of a store that is being opened.
    pub fn at(&self, path: &Path) -> String {
        self.of(&named(path))
    }

    fn of(&self, store: &str) -> String {
        match self {
            Self::Database(error) => in_words(error, store),
            Self::Told(told) => format!("{store}: {told}"),
        }
    }
}

/// A store whose file is not named.
const UNNAMED: &str = "the state store";

/// A store by its file.
pub fn named(path: &Path) -> String {
    format!("{UNNAMED} `{}`", path.display())
}

/// What is to be done where something of the file was lost.
pub fn damaged(store: &str) -> String {
    format!("{store} is damaged; bring back a copy, or move it away to begin anew")
}

/// An error of the database, with what to do.
pub fn in_words(error: &rusqlite::Error, store: &str) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("{store} is held by another process; see which one keeps it that long")
        }
        Some(ErrorCode::DiskFull) => {
            format!("there is no room to write {store}; free some space on its disk")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            format!("{store} can't be written; let this user write it and its directory")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(store),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            format!("{store} can't be read or written ({error}); see to its disk")
        }
        _ => format!("{store} failed: {error}"),
    }
}
