//! Opening of stores, and files that are rejected and left unchanged.

use callgate::host::RecordStore;
use std::fs;

use rusqlite::Connection;

use super::*;

/// The content of each file in the directory.
fn contents(temp: &TempStore) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| (name.clone(), fs::read(temp.0.path().join(name)).unwrap_or_default());
    temp.files().into_iter().map(read).collect()
}

#[cfg(unix)]
#[test]
fn files_are_accessible_only_to_their_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let temp = TempStore::new();
    let store = temp.open();
    assert!(write(&store, "k", &json!(1), None));
    let files = temp.files();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        let mode = fs::metadata(temp.0.path().join(&file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let temp = TempStore::new();
    fs::write(temp.path(), "").unwrap();
    assert!(write(&temp.open(), "k", &json!(1), None));
    assert!(record(&temp.open(), "k").is_some());
}

#[test]
fn accepts_unusual_file_names() {
    let temp = TempStore::new();
    let path = temp.0.path().join("a b%20?mode=memory#é.db");
    assert!(write(&SqliteStore::open(&path).unwrap(), "k", &json!(1), None));
    assert!(record(&SqliteStore::open(&path).unwrap(), "k").is_some());
}

#[test]
fn rejects_foreign_files_and_leaves_them_unchanged() {
    let foreign =
        |sql: &'static str| move |path: &Path| Connection::open(path).unwrap().execute_batch(sql).unwrap();
    type Make = Box<dyn Fn(&Path)>;
    let cases: [(Make, &str); 6] = [
        (Box::new(|path| fs::write(path, "notes\n".repeat(500)).unwrap()), "is not a state store"),
        (Box::new(|path| fs::write(path, "x").unwrap()), "is not a state store"),
        (Box::new(foreign("CREATE TABLE t (a)")), "another program"),
        (Box::new(foreign("PRAGMA application_id = 7")), "another program"),
        (Box::new(foreign("PRAGMA journal_mode = WAL; CREATE TABLE t (a)")), "another program"),
        (Box::new(foreign("PRAGMA application_id = 0x436c6774; PRAGMA user_version = 3")), "has format 3"),
    ];
    for (make, says) in cases {
        let temp = TempStore::new();
        make(&temp.path());
        let before = contents(&temp);
        let error = open_error(&temp.path());
        assert!(error.contains(says), "{error}");
        assert!(contents(&temp) == before, "{says}");
    }
}

#[test]
fn rejects_a_database_in_use_by_another_program() {
    let temp = TempStore::new();
    let other = Connection::open(temp.path()).unwrap();
    other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    let before = contents(&temp);
    assert!(open_error(&temp.path()).contains("is not a state store"));
    assert!(contents(&temp) == before);
}

#[test]
fn reports_paths_that_cannot_be_files() {
    let temp = TempStore::new();
    let directory = temp.0.path();
    let error = open_error(directory);
    assert!(error.contains("is a directory") && error.contains("callgate.db"), "{error}");
    assert!(open_error(&directory.join("missing/state.db")).contains("directory does not exist"));
    fs::write(directory.join("file"), "").unwrap();
    assert!(open_error(&directory.join("file/state.db")).contains("not a directory"));
    #[cfg(unix)]
    assert!(open_error(Path::new("/dev/null")).contains("is not a file"));
    assert_eq!(temp.files(), ["file"]);
}

#[cfg(unix)]
#[test]
fn reports_files_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let temp = TempStore::new();
    drop(temp.open());
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(&temp.path(), 0o400);
    if fs::OpenOptions::new().write(true).open(temp.path()).is_ok() {
        // Root can write to every file.
        return;
    }
    assert!(open_error(&temp.path()).contains("can't be written"));
    set(&temp.path(), 0o600);
    set(temp.0.path(), 0o500);
    assert!(open_error(&temp.0.path().join("new.db")).contains("may write"));
    set(temp.0.path(), 0o700);
}

#[test]
fn reports_damaged_files() {
    for (from, to) in [(100, 4096), (4096, 16384), (20_000, 40_000)] {
        let temp = TempStore::new();
        let store = temp.open();
        for number in 0..50 {
            assert!(write(&store, &number.to_string(), &json!("x".repeat(1000)), None));
        }
        drop(store);
        let mut bytes = fs::read(temp.path()).unwrap();
        bytes[from..to].fill(0xa5);
        fs::write(temp.path(), &bytes).unwrap();
        let error = open_error(&temp.path());
        assert!(error.contains("damaged"), "{from}: {error}");
    }
    let temp = TempStore::new();
    drop(temp.open());
    let bytes = fs::read(temp.path()).unwrap();
    fs::write(temp.path(), &bytes[..bytes.len() / 2]).unwrap();
    assert!(open_error(&temp.path()).contains("damaged"));
}

#[test]
fn concurrent_opening_of_a_new_store_succeeds() {
    for _ in 0..10 {
        let temp = TempStore::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let temp = &temp;
                scope.spawn(move || assert!(write(&temp.open(), &thread.to_string(), &json!(1), None)));
            }
        });
        assert_eq!(run(temp.open().records("s", None, 9)).unwrap().records.len(), 4);
    }
}

#[test]
fn store_urls_are_parsed() {
    use callgate_sqlite::open_store as open;
    let temp = TempStore::new();
    let path = temp.path();
    for name in [format!("file:{}", path.display()), format!("file://{}", path.display())] {
        assert!(open(&name).unwrap().is_shared(), "{name}");
    }
    assert!(!open("memory:").unwrap().is_shared());
    for (name, says) in [
        ("state.db", "has no store type"),
        ("", "has no store type"),
        ("redis://user:password@host", "`redis:` is not a store type"),
        ("memory:here", "takes no path"),
        ("file:", "has no path"),
        ("file://host/state.db", "another machine"),
    ] {
        let error = open(name).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("password"), "{name}: {error}");
        assert!(
            error.contains("`file:PATH`") && error.contains("`memory:`") || says == "another machine",
            "{error}"
        );
    }
}

#[cfg(unix)]
#[test]
fn rejects_files_that_other_users_can_write() {
    use std::os::unix::fs::PermissionsExt as _;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o666, 0o620, 0o602] {
        let temp = TempStore::new();
        drop(temp.open());
        set(&temp.path(), mode);
        let error = open_error(&temp.path());
        assert!(error.contains("is writable by other users") && error.contains("chmod go-w"), "{error}");
        set(&temp.path(), 0o600);
        drop(temp.open());
    }
    // SQLite's side files from another user are not used.
    for name in ["state.db-wal", "state.db-shm", "state.db-journal"] {
        let temp = TempStore::new();
        drop(temp.open());
        let file = temp.0.path().join(name);
        fs::write(&file, "").unwrap();
        set(&file, 0o666);
        assert!(open_error(&temp.path()).contains(name), "{name}");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        assert!(open_error(&temp.path()).contains("not a regular file"), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn rejects_directories_that_other_users_can_write() {
    use std::os::unix::fs::PermissionsExt as _;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o777, 0o770, 0o1777] {
        let temp = TempStore::new();
        set(temp.0.path(), mode);
        let error = SqliteStore::open(&temp.path()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("the directory") && error.contains("mkdir -m 700"), "{error}");
        // A symlink does not bypass the check, from either side.
        let other = TempStore::new();
        let link = other.0.path().join("link.db");
        std::os::unix::fs::symlink(temp.path(), &link).unwrap();
        assert!(SqliteStore::open(&link).is_err());
        set(temp.0.path(), 0o700);
        drop(temp.open());
        drop(SqliteStore::open(&link).unwrap());
        set(other.0.path(), mode);
        assert!(SqliteStore::open(&link).is_err());
        set(other.0.path(), 0o700);
    }
}

#[cfg(unix)]
#[test]
fn rejects_files_of_another_user() {
    let temp = TempStore::new();
    drop(temp.open());
    if std::os::unix::fs::chown(temp.path(), Some(4711), None).is_err() {
        // Only root can change the owner.
        return;
    }
    let error = open_error(&temp.path());
    assert!(error.contains("belongs to another user") && error.contains("4711"), "{error}");
}
