use callgate::seal::PublicKey;
use callgate::{Keys, Observer as _, ObserverError};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::audit_report::{AuditNote, AuditProblem, AuditReport};
use crate::audit_verification::AuditVerifier;
use crate::event_line::Content;
use crate::log_files::audit_files;

/// A folder with audit logs and their key.
struct Logs(TempDir);

impl Logs {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("logs/audit.jsonl")
    }

    fn key(&self) -> SigningKey {
        SigningKey::from_file_or_new(&self.0.path().join("key")).expect("a key")
    }

    fn try_open(&self, max_bytes: u64) -> Result<DecisionLog, AuditLogError> {
        fs::create_dir_all(self.0.path().join("logs")).expect("a folder");
        let format = EventFormat::new(Content::Digests, Keys::random().expect("a key"));
        let options = AuditLogOptions { max_bytes, ..AuditLogOptions::default() };
        DecisionLog::open_audit_file(&self.path(), format, self.key(), options)
    }

    fn open(&self) -> DecisionLog {
        self.try_open(u64::MAX).expect("a log")
    }

    fn read(&self) -> Vec<u8> {
        fs::read(self.path()).expect("a log")
    }

    /// The bytes of a log whose process was killed after some events.
    fn killed(&self, events: usize) -> Vec<u8> {
        let log = self.open();
        record(&log, events).expect("space");
        let bytes = self.read();
        log.close();
        bytes
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).expect("space");
    }

    fn verify(&self) -> AuditReport {
        self.verify_with(vec![self.key().public_key()], Vec::new())
    }

    fn verify_with(&self, keys: Vec<PublicKey>, expected: Vec<ChainHead>) -> AuditReport {
        let mut verifier = AuditVerifier::new(keys, expected);
        for path in audit_files(&[self.path()]).expect("files") {
            let file = fs::File::open(&path).expect("a file");
            verifier.read(&path.display().to_string(), file, || ()).expect("a readable file");
        }
        verifier.finish()
    }
}

/// Verifies a log in one file.
fn verify(bytes: &[u8], key: &PublicKey, expected: Option<ChainHead>) -> AuditReport {
    let mut verifier = AuditVerifier::new(vec![key.clone()], expected.into_iter().collect());
    verifier.read("log", bytes, || ()).expect("bytes in memory");
    verifier.finish()
}

fn event(text: &str) -> String {
    format!(r#"{{"version":1,"event":"call_started","time":"2026-11-22T10:00:00.000000Z","tool":"{text}"}}"#)
}

/// Records events as calls do, which await them.
fn record(log: &DecisionLog, events: usize) -> Result<(), ObserverError> {
    for number in 0..events {
        log.write_line(&event(&format!("tool-{number}")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(log.flush().expect("calls await an audit log"))
}

fn problems(report: &AuditReport) -> Vec<AuditProblem> {
    report.problems.iter().map(|found| found.what.clone()).collect()
}

fn notes(report: &AuditReport) -> Vec<AuditNote> {
    let is_clock = |note: &AuditNote| matches!(note, AuditNote::ClockSetBack { .. });
    report.notes.iter().map(|found| found.what.clone()).filter(|note| !is_clock(note)).collect()
}

#[test]
fn a_closed_log_is_intact_to_its_last_line_across_processes_and_rotation() {
    let logs = Logs::new();
    for _ in 0..3 {
        let log = logs.try_open(1_500).expect("a log");
        record(&log, 5).expect("space");
        log.close();
    }
    let report = logs.verify();
    assert_eq!((problems(&report), notes(&report)), (vec![], vec![]));
    assert!(report.files > 3, "the log is rotated: {report:?}");
    // The opening, five events, the end, and a checkpoint after the first and the last one.
    assert_eq!((report.lines, report.proven, report.is_closed), (27, Some(27), true));
    fs::remove_file(rotated_path(&logs.path(), 2)).expect("it was rotated");
    assert!(!logs.verify().is_intact());
}

#[test]
fn a_checkpoint_is_due_after_a_thousand_lines() {
    let logs = Logs::new();
    let bytes = logs.killed(1_500);
    let report = verify(&bytes, &logs.key().public_key(), None);
    assert!(report.is_intact() && !report.is_closed);
    assert_eq!((report.lines, report.proven), (1_503, Some(1_003)));
}

#[test]
fn a_killed_process_leaves_a_log_that_says_so_and_continues() {
    let logs = Logs::new();
    let mut bytes = logs.killed(3);
    bytes.extend(b"{\"version\":1,\"event\":\"call_com");
    logs.write(&bytes);
    let report = logs.verify();
    assert_eq!((problems(&report), notes(&report)), (vec![], vec![AuditNote::Incomplete]));
    assert_eq!((report.proven, report.is_closed), (Some(2), false));

    logs.open().close();
    let report = logs.verify();
    let expected = [AuditNote::Incomplete, AuditNote::Unclosed { checkpoint: 2 }];
    assert_eq!((problems(&report), notes(&report)), (vec![], expected.to_vec()));
    assert_eq!((report.lines, report.proven, report.is_closed), (9, Some(9), true));

    // Also what is left of the incomplete line can be neither changed nor removed.
    let text = String::from_utf8(logs.read()).expect("text");
    logs.write(text.replace("_com\n", "_con\n").as_bytes());
    assert_eq!(problems(&logs.verify()), [AuditProblem::Damaged]);
    logs.write(text.replace("{\"version\":1,\"event\":\"call_com\n", "").as_bytes());
    assert_eq!(problems(&logs.verify()), [AuditProblem::IncompleteMissing]);
}

#[test]
fn a_process_that_was_killed_while_it_rotated_leaves_one_chain() {
    let logs = Logs::new();
    let bytes = logs.killed(3);
    fs::remove_file(logs.path()).expect("a log");
    fs::write(rotated_path(&logs.path(), 1), bytes).expect("space");
    logs.open().close();
    let report = logs.verify();
    assert_eq!((problems(&report), report.lines), (vec![], 9));
}

#[test]
fn whoever_has_no_key_proves_nothing() {
    let (logs, other) = (Logs::new(), Logs::new());
    let bytes = logs.killed(3);
    let text = String::from_utf8(bytes).expect("text");
    // All lines after the checkpoint are exchanged for others, in a correct chain.
    let kept: Vec<&str> = text.lines().take(2).collect();
    let mut head = ChainHead { seq: 2, digest: Digest::compute(kept[1].as_bytes()) };
    let mut forged = kept.join("\n") + "\n";
    for number in 0..2_100 {
        let (line, next) = head.link(&event(&format!("forged-{number}")));
        head = next;
        forged += &format!("{line}\n");
        if number == 100 {
            let report = verify(forged.as_bytes(), &logs.key().public_key(), None);
            assert_eq!((report.proven, report.is_closed), (Some(2), false));
        }
    }
    let report = verify(forged.as_bytes(), &logs.key().public_key(), None);
    assert_eq!(problems(&report), [AuditProblem::Unsigned { first: 3 }]);
    let signed = forged + &head.link_checkpoint(Timestamp::UNIX_EPOCH, &other.key()).0 + "\n";
    let report = verify(signed.as_bytes(), &logs.key().public_key(), None);
    assert!(problems(&report).contains(&AuditProblem::UnknownKey(other.key().public_key())));
    // A whole log of one's own needs another key, too.
    other.open().close();
    let report = verify(&other.read(), &logs.key().public_key(), None);
    assert!(problems(&report).contains(&AuditProblem::Unsigned { first: 1 }));
    assert_eq!(problems(&verify(b"", &logs.key().public_key(), None)), [AuditProblem::Empty]);
}

#[test]
fn a_part_of_a_log_is_verified_from_an_expected_line_on() {
    let logs = Logs::new();
    logs.open().close();
    let first = logs.verify().last.expect("a line");
    let length = logs.read().len();
    logs.open().close();
    let part = logs.read().split_off(length);
    let key = logs.key().public_key();
    assert_eq!(problems(&verify(&part, &key, None)), [AuditProblem::Missing { first: 1, last: 4 }]);
    assert_eq!(problems(&verify(&part, &key, Some(first))), []);
    let other = ChainHead { digest: Digest::compute(b""), ..first };
    assert_eq!(problems(&verify(&part, &key, Some(other))), [AuditProblem::Unexpected { seq: 4 }]);
}

#[test]
fn calls_are_denied_while_the_log_cannot_be_written_and_their_events_are_written_afterwards() {
    let logs = Logs::new();
    let log = logs.open();
    let (folder, moved) = (logs.0.path().join("logs"), logs.0.path().join("moved"));
    record(&log, 1).expect("space");
    fs::rename(&folder, &moved).expect("a folder");
    assert!(record(&log, 2).is_err());
    assert!(log.failure().is_some_and(|why| why.starts_with("the audit log can't be written")));
    fs::rename(&moved, &folder).expect("a folder");
    record(&log, 1).expect("the folder is back");
    assert_eq!((log.failure(), log.lost()), (None, 0));
    log.close();
    let report = logs.verify();
    // The opening, four events, the end, and two checkpoints.
    assert_eq!((problems(&report), notes(&report), report.lines), (vec![], vec![], 8));
    // After its end it records nothing, and allows nothing.
    assert!(record(&log, 1).is_err());
    assert_eq!(log.lost(), 1);
}

#[test]
fn events_that_are_too_many_to_keep_are_counted_where_they_are_missing() {
    let logs = Logs::new();
    let log = logs.open();
    let (folder, moved) = (logs.0.path().join("logs"), logs.0.path().join("moved"));
    record(&log, 1).expect("space");
    fs::rename(&folder, &moved).expect("a folder");
    while log.lost() == 0 {
        assert!(record(&log, 100).is_err());
    }
    let lost = log.lost();
    fs::rename(&moved, &folder).expect("a folder");
    // For a second, calls are denied: what was lost may belong to them.
    while record(&log, 1).is_err() {}
    log.close();
    let report = logs.verify();
    assert_eq!((problems(&report), notes(&report)), (vec![], vec![AuditNote::Lost { count: lost }]));
    let text = String::from_utf8(logs.read()).expect("text");
    assert!(text.lines().nth(3).is_some_and(|line| line.contains("events_lost")), "{text:.2000}");
}

#[test]
fn a_log_is_written_by_one_process_and_continues_only_an_audit_log() {
    let logs = Logs::new();
    let log = logs.open();
    let again = logs.try_open(u64::MAX).map(|_| ()).map_err(|error| error.to_string());
    assert!(again.is_err_and(|error| error.contains("another process writes")));
    drop(log);
    assert!(logs.verify().is_closed);
    for foreign in ["notes\n".to_owned(), format!("{}\n", event("a")), "\n".to_owned()] {
        logs.write(foreign.as_bytes());
        assert!(matches!(logs.try_open(u64::MAX), Err(AuditLogError::NotAnAuditLog(_))), "{foreign:?}");
    }
}

#[test]
fn a_clock_that_is_set_back_is_noted() {
    let logs = Logs::new();
    let log = logs.open();
    record(&log, 1).expect("space");
    log.close();
    let report = logs.verify();
    let is_noted = |note: &AuditNote| matches!(note, AuditNote::ClockSetBack { seconds } if *seconds > 0);
    assert!(report.is_intact() && report.notes.iter().any(|found| is_noted(&found.what)), "{report:?}");
}

#[test]
fn a_log_that_a_later_version_continued_is_verified_as_far_as_it_is_known() {
    let logs = Logs::new();
    let log = logs.open();
    for _ in 0..2 {
        log.write_line(&event("a").replace("\"version\":1", "\"version\":2"));
    }
    log.close();
    let report = logs.verify();
    assert_eq!((problems(&report), notes(&report)), (vec![], vec![AuditNote::LaterVersion { version: 2 }]));
}

/// A change of a file by someone without the key.
#[derive(Clone, Debug)]
enum Edit {
    Byte {
        at: usize,
        xor: u8,
    },
    Remove {
        line: usize,
    },
    Copy {
        from: usize,
        to: usize,
    },
    Swap {
        first: usize,
        second: usize,
    },
    Cut {
        at: usize,
    },
    Splice {
        line: usize,
        from: usize,
    },
    Insert {
        line: usize,
        text: String,
    },
    /// A line is changed, and all digests after it are computed again.
    Relink {
        line: usize,
    },
}

fn edits() -> impl Strategy<Value = Edit> {
    let any = any::<usize>;
    prop_oneof![
        (any(), 1_u8..).prop_map(|(at, xor)| Edit::Byte { at, xor }),
        any().prop_map(|line| Edit::Remove { line }),
        (any(), any()).prop_map(|(from, to)| Edit::Copy { from, to }),
        (any(), any()).prop_map(|(first, second)| Edit::Swap { first, second }),
        any().prop_map(|at| Edit::Cut { at }),
        (any(), any()).prop_map(|(line, from)| Edit::Splice { line, from }),
        (any(), "[ -~\n]{0,9}").prop_map(|(line, text)| Edit::Insert { line, text }),
        any().prop_map(|line| Edit::Relink { line }),
    ]
}

impl Edit {
    fn apply(&self, log: &[u8], other: &[u8]) -> Vec<u8> {
        let lines = |bytes: &[u8]| bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let (mut own, foreign): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (lines(log), lines(other));
        let count = own.len();
        match self {
            Self::Byte { at, xor } => {
                let mut bytes = log.to_vec();
                bytes[at % log.len()] ^= xor;
                return bytes;
            }
            Self::Cut { at } => return log[..at % log.len()].to_vec(),
            Self::Remove { line } => drop(own.remove(line % count)),
            Self::Copy { from, to } => own.insert(to % (count + 1), own[from % count].clone()),
            Self::Swap { first, second } => own.swap(first % count, second % count),
            Self::Splice { line, from } => own[line % count] = foreign[from % foreign.len()].clone(),
            Self::Insert { line, text } => own.insert(line % (count + 1), format!("{text}\n").into_bytes()),
            Self::Relink { line } => {
                let mut head = ChainHead::start();
                for (index, bytes) in own.iter_mut().enumerate() {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    let Some((body, link)) = text.trim_end().rsplit_once(",\"seq\":") else { continue };
                    let signature = link.split_once(",\"signature\"").map(|(_, signature)| signature);
                    let tool = if index == line % count { ",\"tool\":\"other\"" } else { "" };
                    let (linked, _) = head.link(&format!("{body}{tool}}}"));
                    let line = match signature {
                        Some(signature) => {
                            format!("{},\"signature\"{signature}", linked.trim_end_matches('}'))
                        }
                        None => linked,
                    };
                    head = ChainHead { seq: head.seq + 1, digest: Digest::compute(line.as_bytes()) };
                    *bytes = format!("{line}\n").into_bytes();
                }
            }
        }
        own.concat()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_edit_is_found(edits in prop::collection::vec(edits(), 1..3)) {
        static LOGS: std::sync::OnceLock<(Vec<u8>, Vec<u8>, PublicKey)> = std::sync::OnceLock::new();
        let (log, other, key) = LOGS.get_or_init(|| {
            // Of the same key: only the digests tell their lines apart.
            let logs = Logs::new();
            let write = |logs: &Logs| {
                for _ in 0..2 {
                    record(&logs.open(), 4).expect("space");
                }
                let bytes = logs.read();
                fs::remove_file(logs.path()).expect("a log");
                bytes
            };
            (write(&logs), write(&logs), logs.key().public_key())
        });
        let last = verify(log, key, None).last;
        let mut edited = log.clone();
        for edit in &edits {
            if !edited.is_empty() {
                edited = edit.apply(&edited, other);
            }
        }
        prop_assume!(&edited != log);
        let report = verify(&edited, key, last);
        // Whoever has no key can at most add lines that nothing proves.
        let only_adds = edited.starts_with(log) && !report.is_closed && report.proven == last.map(|last| last.seq);
        prop_assert!(!report.is_intact() || only_adds, "with the expected last line: {report:?}");
        // Without it, no more than the end can be missing: what is proven is the beginning of the log.
        let report = verify(&edited, key, None);
        if report.is_intact() {
            let proven = report.proven.unwrap_or_default() as usize;
            let lines = |bytes: &[u8]| bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
            let beginning = |bytes: &[u8]| lines(bytes).into_iter().take(proven).collect::<Vec<_>>();
            prop_assert_eq!(beginning(&edited), beginning(log));
            prop_assert!(report.last != last);
        }
    }
}
