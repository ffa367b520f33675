//! Owners of slots. Each open store is an owner and locks a file of its own while it is open. The system releases the lock
//! when the process ends for any reason, so other processes can detect it reliably.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::error::SqliteStoreError;

/// An open store among those that share the file.
#[derive(Debug)]
pub struct SlotOwner {
    /// Never reused.
    pub id: i64,
    _lock: OwnerLock,
}

#[derive(Debug)]
struct OwnerLock {
    path: PathBuf,
    /// Locked while it is open.
    _file: File,
}

impl SlotOwner {
    /// Registers a new owner. Other processes see it when the transaction commits, after its lock is held.
    pub fn register(database: &Connection, store: &Path) -> Result<Self, SqliteStoreError> {
        database.execute("INSERT INTO owners DEFAULT VALUES", ())?;
        let id = database.last_insert_rowid();
        let path = lock_path(store, id);
        let failed = |error: io::Error| {
            SqliteStoreError::Store(format!("its `-owner-` file for this process can't be locked: {error}"))
        };
        let file = owner_only(OpenOptions::new().write(true).create(true).truncate(false))
            .open(&path)
            .map_err(failed)?;
        file.try_lock().map_err(|error| failed(error.into()))?;
        Ok(Self { id, _lock: OwnerLock { path, _file: file } })
    }

    /// Acquires one more slot of this limit.
    pub fn acquire_slot(&self, database: &Connection, key: &str) -> rusqlite::Result<()> {
        let mut upsert = database.prepare_cached(
            "INSERT INTO slots (key, owner, held) VALUES (?1, ?2, 1) ON CONFLICT DO UPDATE SET held = held + 1",
        )?;
        upsert.execute((key, self.id)).map(|_| ())
    }

    /// Releases one slot, if one is held.
    pub fn release_slot(&self, database: &Connection, key: &str) -> rusqlite::Result<()> {
        let one_less = "UPDATE slots SET held = held - 1 WHERE key = ?1 AND owner = ?2";
        database.prepare_cached(one_less)?.execute((key, self.id))?;
        let none_left = "DELETE FROM slots WHERE key = ?1 AND owner = ?2 AND held <= 0";
        database.prepare_cached(none_left)?.execute((key, self.id)).map(|_| ())
    }

    /// Releases all slots and removes this owner.
    pub fn unregister(&self, database: &Connection) -> rusqlite::Result<()> {
        remove(database, self.id)
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        // Best effort: other processes remove files without a lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// The owners whose process ended without releasing their slots.
pub fn dead_owners(database: &Connection, store: &Path, own: i64) -> rusqlite::Result<Vec<i64>> {
    let mut select = database.prepare_cached("SELECT id FROM owners WHERE id <> ?1")?;
    let others: Vec<i64> = select.query_map([own], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(others.into_iter().filter(|id| is_dead(&lock_path(store, *id))).collect())
}

/// Removes these owners and their slots. Returns whether there were any. Must run in a write transaction, so that no owner
/// registers in the meantime.
pub fn remove_dead_owners(database: &Connection, store: &Path, own: i64) -> rusqlite::Result<bool> {
    let dead = dead_owners(database, store, own)?;
    for id in &dead {
        remove(database, *id)?;
        let _ = fs::remove_file(lock_path(store, *id));
    }
    Ok(!dead.is_empty())
}

fn remove(database: &Connection, id: i64) -> rusqlite::Result<()> {
    database.prepare_cached("DELETE FROM slots WHERE owner = ?1")?.execute([id])?;
    database.prepare_cached("DELETE FROM owners WHERE id = ?1")?.execute([id]).map(|_| ())
}

fn is_dead(lock: &Path) -> bool {
    match File::open(lock) {
        // After any other error the owner may still be alive, so its slots are not released.
        Ok(file) => file.try_lock().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn lock_path(store: &Path, id: i64) -> PathBuf {
    let mut path = OsString::from(store);
    path.push(format!("-owner-{id}"));
    path.into()
}

/// Restricts a new file to its owner.
pub fn owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}
