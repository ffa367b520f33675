//! What went wrong in the file, in words for who runs the program.

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
    /// With what to do.
    pub fn at(&self, path: &Path) -> StoreError {
        StoreError::Unavailable(match self {
            Self::Database(error) => in_words(error, path),
            Self::Told(told) => format!("the state store `{}`: {told}", path.display()),
        })
    }
}

/// What is to be done where something of the file was lost.
pub fn damaged(path: &Path) -> String {
    format!(
        "the state store `{}` is damaged; bring back a copy, or move it away to begin anew",
        path.display()
    )
}

/// An error of the database, with what to do.
pub fn in_words(error: &rusqlite::Error, path: &Path) -> String {
    let shown = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("the state store `{shown}` is held by another process; see which one keeps it that long")
        }
        Some(ErrorCode::DiskFull) => {
            format!("there is no room to write the state store `{shown}`; free some space on its disk")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            format!("the state store `{shown}` can't be written; let this user write it and its directory")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(path),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            format!("the state store `{shown}` can't be read or written ({error}); see to its disk")
        }
        _ => format!("the state store `{shown}` failed: {error}"),
    }
}
