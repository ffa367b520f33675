//! `--log journald`: what a real journald stores, and `journalctl` prints.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use callgate::json::json;

use super::{CommandResult, TestDir};
use crate::packages;

const JOURNALD: &str = "lib/systemd/systemd-journald";

/// Starts a journald of its own in a mount namespace where `/run` is empty, logs to it, and prints what it has.
const SCRIPT: &str = r#"
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal /run/log/journal
"$JOURNALD" 2> journald.txt &
journald=$!
while [ ! -S /run/systemd/journal/dev-log ]; do kill -0 $journald; sleep 0.1; done
"$CALLGATE" run --policies rules.yaml --log journald --log lines.jsonl --log-content redacted calls.jsonl
"$JOURNALCTL" -D /run/log/journal --sync 2> /dev/null || sleep 1
"$JOURNALCTL" -D /run/log/journal -q -t callgate -p info -o cat > journal.jsonl
"$JOURNALCTL" -D /run/log/journal -q -t callgate -p err -o cat > errors.jsonl
kill $journald
"#;

/// Also a user who is not root can do this, in a user namespace.
fn run_in_namespace(dir: &Path) -> CommandResult {
    // The programs of the system, or else those of Debian's packages.
    let system = Path::new("/").to_owned();
    let home = match system.join(JOURNALD).exists() {
        true => system,
        false => packages::debian(&["systemd", "libsystemd-shared"]),
    };
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-euc", SCRIPT]).current_dir(dir).stdin(Stdio::null());
    command
        .env("JOURNALD", home.join(JOURNALD))
        .env("JOURNALCTL", home.join("bin/journalctl"))
        .env("LD_LIBRARY_PATH", home.join("usr/lib/x86_64-linux-gnu/systemd"))
        .env("CALLGATE", env!("CARGO_BIN_EXE_callgate"))
        .env_remove("CALLGATE_KEYS");
    command.output().unwrap().into()
}

#[test]
fn every_line_arrives_whole_in_the_journal() {
    let texts =
        ["a\nb \u{1b}[31m \u{0} é 漢 \u{1f600} \"\\".to_owned(), "x".repeat(5_000), "é".repeat(30_000)];
    let calls: String = texts
        .iter()
        .map(|text| format!("{}\n", json!({ "tool": "read", "input": { "text": text } })))
        .collect();
    let dir = TestDir::new(&[("rules.yaml", "policies: []"), ("calls.jsonl", &calls)]);
    let run = run_in_namespace(dir.0.path());
    let read = |file: &str| fs::read_to_string(dir.0.path().join(file)).unwrap_or_default();
    assert_eq!(run.code, Some(0), "{}{}", run.transcript(), read("journald.txt"));
    let (journal, lines) = (read("journal.jsonl"), read("lines.jsonl"));
    let (journal, lines): (Vec<&str>, Vec<&str>) = (journal.lines().collect(), lines.lines().collect());
    assert!(lines.iter().any(|line| line.len() > 60_000), "a line is nearly as long as a message can be");
    // The first line, `log_opened`, is that of its log.
    assert_eq!(journal.len(), lines.len(), "{journal:.3000?}");
    assert!(journal[0].contains("\"log_opened\""), "{}", journal[0]);
    assert!(journal[1..] == lines[1..], "{journal:.3000?}");
    assert_eq!(read("errors.jsonl"), "", "events of normal operation are no errors");
}
