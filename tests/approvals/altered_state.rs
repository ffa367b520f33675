//! An attacker who can write to the database, but has neither the keys nor the anchor, can make calls fail but never makes one run.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::host::{Account, ConditionalWrite, RecordKey, StateStore, SystemClock};
use callgate::json::{Value, json};
use callgate::message::{History, Message, Part, Role, approval_response};
use callgate::seal::Keys;
use callgate::state::{IntegrityError, SealedStore};
use callgate::{Session, ToolCall, ToolError, ToolExecutor, ToolResponse};
use callgate_sqlite::SqliteStore;
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use super::scene::{KEY, REFUNDS};
use crate::fixtures::{kind_and_code, rules};

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn keys() -> Keys {
    Keys::parse(KEY).unwrap()
}

/// Counts its calls.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl ToolExecutor for Counting {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(json!(self.0.fetch_add(1, Ordering::SeqCst)).into())
    }
}

/// A state file with its anchor, and an attacker who edits the file.
struct AttackedState {
    place: TempDir,
    store: Arc<dyn StateStore>,
    tool: Counting,
    /// Copies of the table at several moments.
    copies: Vec<Vec<Row>>,
    /// The history before the call ran.
    before: History,
}

/// A row of the table `records`: space, key, value, version, forget_at.
type Row = (String, String, String, i64, Option<i64>);

fn open_store(place: &TempDir) -> Arc<dyn StateStore> {
    let store = SqliteStore::open(&place.path().join("state.db")).unwrap();
    let anchor = SqliteStore::open_anchor(&place.path().join("state.db.anchor")).unwrap();
    Arc::new(SealedStore::with_anchor(Arc::new(store), keys(), Arc::new(anchor), SystemClock))
}

impl AttackedState {
    /// Makes a call that requires approval and, if it is approved, runs it.
    fn new(approved: bool) -> Self {
        let place = tempfile::tempdir().unwrap();
        let store = open_store(&place);
        let call = Part::call("c1", "refund", json!({ "amount": 250 }));
        let before = History::new(vec![Message::new(Role::Assistant, vec![call])]);
        let mut attacked = Self { place, store, tool: Counting::default(), copies: Vec::new(), before };
        attacked.copy();
        let mut session = attacked.session();
        let round = run(session.run_round(&mut attacked.before, &attacked.tool)).unwrap();
        assert!(round.is_suspended());
        attacked.copy();
        if approved {
            attacked.before.append_approval_response(approval_response("approval_c1", true)).unwrap();
        }
        let expected = if approved { ("executed", "approved") } else { ("suspended", "approval_required") };
        assert_eq!(attacked.resume(), [(expected.0.to_owned(), expected.1.to_owned())]);
        attacked.copy();
        attacked
    }

    fn session(&self) -> Session {
        rules(REFUNDS).store(Arc::clone(&self.store)).keys(keys()).build().session().with_name("talk")
    }

    fn runs(&self) -> usize {
        self.tool.0.load(Ordering::SeqCst)
    }

    fn file(&self) -> PathBuf {
        self.place.path().join("state.db")
    }

    /// Another process opens the state file.
    fn reopen(&mut self) {
        self.store = open_store(&self.place);
    }

    fn database(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    fn rows(&self) -> Vec<Row> {
        let database = self.database();
        let select =
            database.prepare("SELECT space, key, value, version, forget_at FROM records ORDER BY 1, 2");
        // The table does not exist before the first write.
        let Ok(mut select) = select else { return Vec::new() };
        let row =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
        select.query_map((), row).unwrap().collect::<Result<_, _>>().unwrap()
    }

    fn copy(&mut self) {
        let rows = self.rows();
        self.copies.push(rows);
    }

    fn put(&self, row: &Row) {
        let put =
            "INSERT OR REPLACE INTO records (space, key, value, version, forget_at, tenant, caller, units)
            VALUES (?1, ?2, ?3, ?4, ?5, zeroblob(16), zeroblob(16), 1)";
        self.database().execute(put, (&row.0, &row.1, &row.2, row.3, row.4)).unwrap();
    }

    /// Resumes the session with the history from before the call ran.
    fn resume(&mut self) -> Vec<(String, String)> {
        let (mut session, mut history) = (self.session(), self.before.clone());
        let Ok(round) = run(session.resume(&mut history, &self.tool)) else {
            return vec![("refused".to_owned(), String::new())];
        };
        round
            .outcomes
            .iter()
            .map(kind_and_code)
            .map(|(kind, code)| (kind.to_owned(), code.to_owned()))
            .collect()
    }
}

/// Known attacks: the outcome of a completed call does not change, and the call does not run again.
#[test]
fn i4_completed_call_does_not_run_again_after_database_edits() {
    type Edit = fn(&AttackedState);
    let edits: [(&str, Edit); 8] = [
        ("its value is replaced by its value while it was pending", |attacked| {
            for row in &attacked.copies[1] {
                attacked.put(row);
            }
        }),
        ("the same, with its latest version number", |attacked| {
            for row in &attacked.copies[1] {
                let set = "UPDATE records SET value = ?1 WHERE space = ?2 AND key = ?3";
                attacked.database().execute(set, (&row.2, &row.0, &row.1)).unwrap();
            }
        }),
        ("its rows are removed", |attacked| {
            attacked.database().execute_batch("DELETE FROM records WHERE space = 'calls'").unwrap();
        }),
        ("all rows are removed", |attacked| {
            attacked.database().execute_batch("DELETE FROM records").unwrap();
        }),
        ("all rows but the name of the store are removed", |attacked| {
            attacked.database().execute_batch("DELETE FROM records WHERE space <> 'owner'").unwrap();
        }),
        ("it expires at once", |attacked| {
            attacked.database().execute_batch("UPDATE records SET forget_at = 0").unwrap();
        }),
        ("its rows move to another key", |attacked| {
            attacked
                .database()
                .execute_batch("UPDATE records SET key = key || 'x' WHERE space = 'calls'")
                .unwrap();
        }),
        ("its value is replaced by plain text", |attacked| {
            let plain = json!({ "version": 1, "call_id": "c1", "tool": "refund", "stage": "waiting" });
            let set = "UPDATE records SET value = ?1 WHERE space = 'calls'";
            attacked.database().execute(set, [plain.to_string()]).unwrap();
        }),
    ];
    for (name, edit) in edits {
        for reopened in [false, true] {
            let mut attacked = AttackedState::new(true);
            edit(&attacked);
            if reopened {
                attacked.reopen();
            }
            for _ in 0..2 {
                let told = attacked.resume();
                assert_eq!(attacked.runs(), 1, "{name}: {told:?}");
                let (kind, code) = &told[0];
                // Until an expired record is deleted, the outcome of the call is still known.
                let is_known = (kind.as_str(), code.as_str()) == ("executed", "approved");
                assert!(
                    kind == "refused" || (kind == "indeterminate" && code == "state_altered") || is_known,
                    "{name}: {told:?}"
                );
            }
        }
    }
}

/// A forged approval in the database does not count, nor does an approval of another call.
#[test]
fn i3_unapproved_call_does_not_run_after_database_edits() {
    let mut attacked = AttackedState::new(false);
    let other = AttackedState::new(true);
    // Every record of another call of the same name, approved under the same key.
    for copy in &other.copies {
        for row in copy {
            attacked.put(row);
        }
        attacked.reopen();
        let told = attacked.resume();
        assert_eq!(attacked.runs(), 0, "{told:?}");
    }
}

/// A writer that pauses between read and write is rejected, even if the database claims that nothing changed meanwhile.
#[test]
fn i2_only_one_of_two_claims_succeeds_after_database_edits() {
    let attacked = AttackedState::new(false);
    let store = &attacked.store;
    let key = RecordKey { space: "calls", key: "k" };
    let write = |value: &Value, over| {
        let write =
            ConditionalWrite { expected_version: over, ..ConditionalWrite::new(key, value, Account::NOBODY) };
        run(store.write_record(jiff::Timestamp::UNIX_EPOCH, write))
    };
    assert_eq!(write(&json!("pending"), None), Ok(true));
    let seen = run(store.record(key)).unwrap().unwrap();
    let row = attacked.rows().into_iter().find(|row| row.1 == "k").unwrap();
    assert_eq!(write(&json!("claimed"), Some(seen.version)), Ok(true));
    // The old version number is restored, first with the new value, then with the old one.
    let back = "UPDATE records SET version = ?1 WHERE key = 'k'";
    attacked.database().execute(back, [row.3]).unwrap();
    assert_eq!(write(&json!("claimed by another"), Some(seen.version)), Ok(false));
    attacked.put(&row);
    assert!(write(&json!("claimed by another"), Some(seen.version)).is_err());
    attacked.database().execute_batch("DELETE FROM records WHERE key = 'k'").unwrap();
    assert!(write(&json!("claimed by another"), None).is_err());
}

#[test]
fn lost_state_is_not_mistaken_for_new_state() {
    let attacked = AttackedState::new(true);
    let open = |store: &str, anchor: &str, digits: &str| {
        let at = |name: &str| attacked.place.path().join(name);
        let (store, anchor) =
            (SqliteStore::open(&at(store)).unwrap(), SqliteStore::open_anchor(&at(anchor)).unwrap());
        let keys = Keys::parse(&digits.repeat(32)).unwrap();
        let sealed = SealedStore::with_anchor(Arc::new(store), keys, Arc::new(anchor), SystemClock);
        (run(sealed.open()), sealed)
    };
    let (known, anchor) = ("state.db", "state.db.anchor");
    assert_eq!(open(known, anchor, "5a").0, Ok(()));
    assert_eq!(open("empty.db", anchor, "5a").0, Err(IntegrityError::Lost));
    assert_eq!(open(known, "empty.anchor", "5a").0, Err(IntegrityError::OtherAnchor));
    assert_eq!(open(known, anchor, "6b").0, Err(IntegrityError::OtherKeys));
    assert_eq!(open("other.db", "other.anchor", "5a").0, Ok(()));
    assert_eq!(open("other.db", anchor, "5a").0, Err(IntegrityError::OtherAnchor));
    // A new anchor can accept the state as it is.
    let (refused, sealed) = open(known, "new.anchor", "5a");
    assert_eq!(refused, Err(IntegrityError::OtherAnchor));
    assert_eq!(run(sealed.accept()), Ok(()));
    assert_eq!(open(known, "new.anchor", "5a").0, Ok(()));
    assert_eq!(open(known, anchor, "5a").0, Err(IntegrityError::OtherAnchor));
}

/// One random edit of the table, built from earlier copies of its rows.
#[derive(Clone, Debug)]
enum Edit {
    /// Restores a row of a copy, possibly under another row's key.
    Put {
        copy: usize,
        row: usize,
        at: usize,
    },
    Remove {
        row: usize,
    },
    Version {
        row: usize,
        version: i64,
    },
    ForgetAt {
        row: usize,
        at: Option<i64>,
    },
    Cut {
        row: usize,
        to: usize,
    },
    Reopen,
    Resume,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        4 => (0..9usize, 0..9usize, 0..9usize).prop_map(|(copy, row, at)| Edit::Put { copy, row, at }),
        2 => (0..9usize).prop_map(|row| Edit::Remove { row }),
        2 => (0..9usize, 0..9i64).prop_map(|(row, version)| Edit::Version { row, version }),
        1 => (0..9usize, proptest::option::of(0..9i64)).prop_map(|(row, at)| Edit::ForgetAt { row, at }),
        1 => (0..9usize, 0..200usize).prop_map(|(row, to)| Edit::Cut { row, to }),
        1 => Just(Edit::Reopen),
        3 => Just(Edit::Resume),
    ];
    prop::collection::vec(edit, 1..12)
}

fn apply(attacked: &mut AttackedState, edit: &Edit) {
    let rows = attacked.rows();
    let row = |index: usize| (!rows.is_empty()).then(|| rows[index % rows.len()].clone());
    match edit {
        Edit::Put { copy, row: index, at } => {
            let copy = &attacked.copies[copy % attacked.copies.len()];
            let Some(mut put) = copy.get(index % copy.len().max(1)).cloned() else { return };
            if let Some(at) = row(*at).filter(|_| at % 3 == 0) {
                (put.0, put.1) = (at.0, at.1);
            }
            attacked.put(&put);
        }
        Edit::Remove { row: index } => {
            let Some((space, key, ..)) = row(*index) else { return };
            let remove = "DELETE FROM records WHERE space = ?1 AND key = ?2";
            attacked.database().execute(remove, (space, key)).unwrap();
        }
        Edit::Version { row: index, version } => {
            let Some(row) = row(*index) else { return };
            attacked.put(&(row.0, row.1, row.2, *version, row.4));
        }
        Edit::ForgetAt { row: index, at } => {
            let Some(row) = row(*index) else { return };
            attacked.put(&(row.0, row.1, row.2, row.3, *at));
        }
        Edit::Cut { row: index, to } => {
            let Some(row) = row(*index) else { return };
            let cut = row.2.get(..*to).unwrap_or(&row.2).to_owned();
            attacked.put(&(row.0, row.1, cut, row.3, row.4));
        }
        Edit::Reopen => attacked.reopen(),
        Edit::Resume => {
            attacked.resume();
            attacked.copy();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// I2, I3, I4. Random edits never make a completed call run again, nor an unapproved one.
    #[test]
    fn i4_random_database_edits_run_no_call(edits in edits(), approved: bool) {
        let mut attacked = AttackedState::new(approved);
        for edit in &edits {
            apply(&mut attacked, edit);
        }
        attacked.resume();
        attacked.reopen();
        attacked.resume();
        prop_assert_eq!(attacked.runs(), usize::from(approved));
    }
}
