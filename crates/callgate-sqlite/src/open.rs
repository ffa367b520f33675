//! Opening of the database file: private to its owner, and never modified if it is not a state store.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::error::{SqliteStoreError, damaged_message, database_message, named_store};
use super::file_identity::FileIdentity;
use super::schema::{APPLICATION_ID, CHECKED_TABLES, FORMAT_VERSION, TABLES};
use super::slot_owners::{self, SlotOwner, owner_only};
use super::{DatabaseFile, FileBounds};
use callgate::file_access::{PermissionError, check_private_directory, check_private_file};

/// How long a process waits for the locks of others. Shorter than the timeout of a store operation, so that the caller
/// receives the reason.
const BUSY_TIMEOUT: Duration = Duration::from_secs(4);

/// Why a file can't be opened as a state store. A file of another program is never changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SqliteOpenError(String);

impl SqliteOpenError {
    /// Other users can write the file or its directory.
    fn exposed(error: PermissionError) -> Self {
        Self(format!("the state store is not protected from other users: {error}"))
    }

    /// The system can't start a thread.
    pub(super) fn thread_failed(path: &Path, error: &io::Error) -> Self {
        Self(format!(
            "`{}` can't be opened: the system can't start a thread for it ({error})",
            path.display()
        ))
    }
}

/// Opens the file, or creates it.
pub fn open(path: &Path, bounds: FileBounds) -> Result<(Connection, DatabaseFile), SqliteOpenError> {
    // One file at a time, because closing a new file would release the locks of whoever has opened it in the meantime.
    static OPENING: Mutex<()> = Mutex::new(());
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);

    let given = path;
    let path = create_if_missing(given)?;
    // A user who can write the directory of a symbolic link can redirect it.
    check_private_directory(given).map_err(SqliteOpenError::exposed)?;
    check_files(&path)?;
    let fails = |error: rusqlite::Error| SqliteOpenError(database_message(&error, &named_store(&path)));
    check_owner(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut database = Connection::open_with_flags(&path, flags).map_err(fails)?;
    database.busy_timeout(BUSY_TIMEOUT).map_err(fails)?;
    if database.is_readonly("main").map_err(fails)? {
        return Err(SqliteOpenError(format!(
            "`{}` can't be written; give this user write permission for it",
            path.display()
        )));
    }
    initialise(&mut database, &path, bounds)?;
    // SQLite has created its own files by now, or found files that were placed there in the meantime.
    check_files(&path)?;

    let to_open_error = |failure: SqliteStoreError| SqliteOpenError(failure.message_for_path(&path));
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fails)?;
    let owner = SlotOwner::register(&transaction, &path).map_err(to_open_error)?;
    slot_owners::remove_dead_owners(&transaction, &path, owner.id).map_err(fails)?;
    transaction.commit().map_err(fails)?;
    let identity = FileIdentity::from_path(&path).ok_or_else(|| {
        SqliteOpenError(format!("`{}` was removed while it was being opened; open it again", path.display()))
    })?;
    Ok((database, DatabaseFile { path, identity, owner, capacity: bounds.capacity }))
}

/// Creates the file if it is missing. Returns its absolute path.
fn create_if_missing(path: &Path) -> Result<PathBuf, SqliteOpenError> {
    let displayed = path.display();
    let fails = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => SqliteOpenError(format!(
            "`{displayed}` can't be created: its directory does not exist; create the directory first"
        )),
        io::ErrorKind::NotADirectory => {
            SqliteOpenError(format!("`{displayed}` can't be created: its parent is not a directory"))
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => SqliteOpenError(format!(
            "`{displayed}` can't be opened and written ({error}); choose a path where this user may write"
        )),
        _ => SqliteOpenError(format!("`{displayed}` can't be opened: {error}")),
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let inside = path.join("callgate.db");
            return Err(SqliteOpenError(format!(
                "`{displayed}` is a directory; name a file, such as `{}`",
                inside.display()
            )));
        }
        Ok(found) if !found.is_file() => {
            return Err(SqliteOpenError(format!("`{displayed}` is not a file; choose another path")));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match owner_only(OpenOptions::new().write(true).create_new(true)).open(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fails(error)),
                _ => {}
            }
        }
        Err(error) => return Err(fails(error)),
    }
    fs::canonicalize(path).map_err(fails)
}

/// Refuses the database and SQLite's files beside it if other users could have written them.
fn check_files(path: &Path) -> Result<(), SqliteOpenError> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        check_private_file(Path::new(&file)).map_err(SqliteOpenError::exposed)?;
    }
    Ok(())
}

/// The owner of a file.
#[derive(PartialEq)]
enum FileOwner {
    Nobody,
    Callgate,
}

/// Determines the owner of the file without locks, journals or changes, because it may belong to another program.
fn check_owner(path: &Path) -> Result<(), SqliteOpenError> {
    if fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        return Ok(());
    }
    let of_another_kind =
        || SqliteOpenError(format!("`{}` is not a state store; choose another file", path.display()));
    let fails = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => of_another_kind(),
        _ => SqliteOpenError(database_message(&error, &named_store(path))),
    };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(immutable_url(path), flags).map_err(fails)?;
    match read_owner(&database, path, fails)? {
        FileOwner::Callgate => Ok(()),
        // The first page of a state store identifies it from its creation on.
        FileOwner::Nobody => Err(of_another_kind()),
    }
}

/// The URL with which SQLite opens a file as immutable.
fn immutable_url(path: &Path) -> String {
    let mut url = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                url.push(char::from(*byte))
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url + "?immutable=1"
}

fn read_owner(
    database: &Connection,
    path: &Path,
    fails: impl Fn(rusqlite::Error) -> SqliteOpenError,
) -> Result<FileOwner, SqliteOpenError> {
    let number = |query: &str| database.query_row(query, (), |row| row.get::<_, i32>(0)).map_err(&fails);
    let application = number("PRAGMA application_id")?;
    let format = number("PRAGMA user_version")?;
    match (application, format) {
        (APPLICATION_ID, FORMAT_VERSION) => Ok(FileOwner::Callgate),
        (0, 0) if number("SELECT COUNT(*) FROM sqlite_schema")? == 0 => Ok(FileOwner::Nobody),
        (APPLICATION_ID, _) => Err(SqliteOpenError(format!(
            "the state store `{}` has format {format}, but this version reads format {FORMAT_VERSION}; use the version that created it, \
             or choose another file",
            path.display()
        ))),
        _ => Err(SqliteOpenError(format!(
            "`{}` is the database of another program; choose another file",
            path.display()
        ))),
    }
}

/// Initialises and checks the database.
fn initialise(database: &mut Connection, path: &Path, bounds: FileBounds) -> Result<(), SqliteOpenError> {
    let fails = |error: rusqlite::Error| SqliteOpenError(database_message(&error, &named_store(path)));
    // In one transaction: another process may create the tables between two queries.
    let read_transaction =
        database.transaction_with_behavior(TransactionBehavior::Deferred).map_err(fails)?;
    let owner = read_owner(&read_transaction, path, fails)?;
    read_transaction.commit().map_err(fails)?;
    if owner == FileOwner::Nobody {
        let write_transaction =
            database.transaction_with_behavior(TransactionBehavior::Exclusive).map_err(fails)?;
        // Another process may have done it in the meantime.
        if read_owner(&write_transaction, path, fails)? == FileOwner::Nobody {
            write_transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(fails)?;
            write_transaction.pragma_update(None, "user_version", FORMAT_VERSION).map_err(fails)?;
            write_transaction.execute_batch(TABLES).map_err(fails)?;
        }
        write_transaction.commit().map_err(fails)?;
    }
    // Only now, so that the header identifies the file from its first write on.
    enable_wal(database).map_err(fails)?;
    database.pragma_update(None, "trusted_schema", false).map_err(fails)?;
    database.pragma_update_and_check(None, "max_page_count", bounds.max_pages, |_| Ok(())).map_err(fails)?;
    database.set_prepared_statement_cache_capacity(64);
    for table in CHECKED_TABLES {
        let check = format!("PRAGMA quick_check({table})");
        let found = database.query_row(&check, (), |row| row.get::<_, String>(0));
        match found {
            Ok(found) if found == "ok" => {}
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                return Err(fails(error));
            }
            _ => return Err(SqliteOpenError(damaged_message(&named_store(path)))),
        }
    }
    Ok(())
}

/// Switches to write-ahead logging: processes write one after the other, and readers never wait. The mode is persistent;
/// the first switch needs an exclusive lock for a moment.
fn enable_wal(database: &Connection) -> rusqlite::Result<()> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut left = BUSY_TIMEOUT.as_millis() / PAUSE.as_millis();
    loop {
        let mode = database.query_row("PRAGMA journal_mode = WAL", (), |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Err(error) if left == 0 || error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                return Err(error);
            }
            Ok(_) if left == 0 => return Err(rusqlite::Error::InvalidQuery),
            _ => {}
        }
        left -= 1;
        thread::sleep(PAUSE);
    }
}
