//! Which files are opened, and which are left alone.

use std::fs;

use rusqlite::Connection;

use super::*;

/// What each file below a place holds.
fn contents(place: &Place) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| (name.clone(), fs::read(place.0.path().join(name)).unwrap_or_default());
    place.files().into_iter().map(read).collect()
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let store = place.open();
    assert!(write(&store, "k", &json!(1), None));
    let files = place.files();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        let mode = fs::metadata(place.0.path().join(&file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let place = Place::new();
    fs::write(place.path(), "").unwrap();
    assert!(write(&place.open(), "k", &json!(1), None));
    assert!(record(&place.open(), "k").is_some());
}

#[test]
fn odd_names_are_names() {
    let place = Place::new();
    let path = place.0.path().join("a b%20?mode=memory#é.db");
    assert!(write(&FileStore::open(&path).unwrap(), "k", &json!(1), None));
    assert!(record(&FileStore::open(&path).unwrap(), "k").is_some());
}

#[test]
fn what_is_not_its_own_is_left_as_it_is() {
    let foreign =
        |sql: &'static str| move |path: &Path| Connection::open(path).unwrap().execute_batch(sql).unwrap();
    type Make = Box<dyn Fn(&Path)>;
    let cases: [(Make, &str); 6] = [
        (Box::new(|path| fs::write(path, "notes\n".repeat(500)).unwrap()), "of another kind"),
        (Box::new(|path| fs::write(path, "x").unwrap()), "of another kind"),
        (Box::new(foreign("CREATE TABLE t (a)")), "another program"),
        (Box::new(foreign("PRAGMA application_id = 7")), "another program"),
        (Box::new(foreign("PRAGMA journal_mode = WAL; CREATE TABLE t (a)")), "another program"),
        (Box::new(foreign("PRAGMA application_id = 0x436c6774; PRAGMA user_version = 3")), "of format 3"),
    ];
    for (make, says) in cases {
        let place = Place::new();
        make(&place.path());
        let before = contents(&place);
        let error = refused(&place.path());
        assert!(error.contains(says), "{error}");
        assert!(contents(&place) == before, "{says}");
    }
}

#[test]
fn a_database_that_another_program_is_writing_is_left_as_it_is() {
    let place = Place::new();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    let before = contents(&place);
    assert!(refused(&place.path()).contains("no state store"));
    assert!(contents(&place) == before);
}

#[test]
fn where_no_file_can_be_is_told() {
    let place = Place::new();
    let directory = place.0.path();
    let error = refused(directory);
    assert!(error.contains("is a directory") && error.contains("callgate.db"), "{error}");
    assert!(refused(&directory.join("missing/state.db")).contains("directory does not exist"));
    fs::write(directory.join("file"), "").unwrap();
    assert!(refused(&directory.join("file/state.db")).contains("no directory"));
    #[cfg(unix)]
    assert!(refused(Path::new("/dev/null")).contains("no file"));
    assert_eq!(place.files(), ["file"]);
}

#[cfg(unix)]
#[test]
fn what_can_t_be_written_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    drop(place.open());
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(&place.path(), 0o400);
    if fs::OpenOptions::new().write(true).open(place.path()).is_ok() {
        // Nothing is forbidden to who runs this.
        return;
    }
    assert!(refused(&place.path()).contains("can't be written"));
    set(&place.path(), 0o600);
    set(place.0.path(), 0o500);
    assert!(refused(&place.0.path().join("new.db")).contains("may write"));
    set(place.0.path(), 0o700);
}

#[test]
fn a_damaged_file_is_told() {
    for (from, to) in [(100, 4096), (4096, 16384), (20_000, 40_000)] {
        let place = Place::new();
        let store = place.open();
        for number in 0..50 {
            assert!(write(&store, &number.to_string(), &json!("x".repeat(1000)), None));
        }
        drop(store);
        let mut bytes = fs::read(place.path()).unwrap();
        bytes[from..to].fill(0xa5);
        fs::write(place.path(), &bytes).unwrap();
        let error = refused(&place.path());
        assert!(error.contains("damaged"), "{from}: {error}");
    }
    let place = Place::new();
    drop(place.open());
    let bytes = fs::read(place.path()).unwrap();
    fs::write(place.path(), &bytes[..bytes.len() / 2]).unwrap();
    assert!(refused(&place.path()).contains("damaged"));
}

#[test]
fn many_open_a_new_store_at_once() {
    for _ in 0..10 {
        let place = Place::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let place = &place;
                scope.spawn(move || assert!(write(&place.open(), &thread.to_string(), &json!(1), None)));
            }
        });
        assert_eq!(run(place.open().records("s", None, 9)).unwrap().records.len(), 4);
    }
}

#[test]
fn stores_are_named() {
    use callgate::state::open;
    let place = Place::new();
    let path = place.path();
    for name in [format!("file:{}", path.display()), format!("file://{}", path.display())] {
        assert!(open(&name).unwrap().is_shared(), "{name}");
    }
    assert!(!open("memory:").unwrap().is_shared());
    for (name, says) in [
        ("state.db", "names no kind"),
        ("", "names no kind"),
        ("redis://user:password@host", "`redis:` is no kind"),
        ("memory:here", "nothing comes after"),
        ("file:", "names no file"),
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
fn what_other_users_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o666, 0o620, 0o602] {
        let place = Place::new();
        drop(place.open());
        set(&place.path(), mode);
        let error = refused(&place.path());
        assert!(error.contains("can be written by other users") && error.contains("chmod go-w"), "{error}");
        set(&place.path(), 0o600);
        drop(place.open());
    }
    // A file of SQLite that somebody put beside it is not taken for its own.
    for name in ["state.db-wal", "state.db-shm", "state.db-journal"] {
        let place = Place::new();
        drop(place.open());
        let file = place.0.path().join(name);
        fs::write(&file, "").unwrap();
        set(&file, 0o666);
        assert!(refused(&place.path()).contains(name), "{name}");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        assert!(refused(&place.path()).contains("not a regular file"), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_directory_that_other_users_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o777, 0o770, 0o1777] {
        let place = Place::new();
        set(place.0.path(), mode);
        let error = FileStore::open(&place.path()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("the directory") && error.contains("mkdir -m 700"), "{error}");
        // Nor does a link lead past it, from either side.
        let other = Place::new();
        let link = other.0.path().join("link.db");
        std::os::unix::fs::symlink(place.path(), &link).unwrap();
        assert!(FileStore::open(&link).is_err());
        set(place.0.path(), 0o700);
        drop(place.open());
        drop(FileStore::open(&link).unwrap());
        set(other.0.path(), mode);
        assert!(FileStore::open(&link).is_err());
        set(other.0.path(), 0o700);
    }
}

#[cfg(unix)]
#[test]
fn a_file_of_another_user_is_refused() {
    let place = Place::new();
    drop(place.open());
    if std::os::unix::fs::chown(place.path(), Some(4711), None).is_err() {
        // Only root can give files away.
        return;
    }
    let error = refused(&place.path());
    assert!(error.contains("belongs to another user") && error.contains("4711"), "{error}");
}
