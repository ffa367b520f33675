//! `tests/run`: progress on a terminal, results only in a pipe.

use super::{bash, finished, write_program};

/// The commands of cargo that `tests/run` runs, if each ends with this status; `terminal` runs it on a terminal of its own.
fn cargo_commands(arguments: &str, terminal: bool, status: i32) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    write_program(&home.path().join("cargo"), &format!("echo \"cargo $*\"; exit {status}"));
    let line = match terminal {
        true => format!(
            "python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' tests/run {arguments}"
        ),
        false => format!("tests/run {arguments}"),
    };
    let (code, stdout, stderr) = finished(bash(&line, home.path()).output().unwrap());
    assert_eq!(code, status, "{stderr}");
    stdout.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn shows_progress_on_a_terminal_and_is_quiet_in_a_pipe() {
    let suites =
        ["--locked --workspace --all-features", "--locked --package callgate --test without_features"];
    for (arguments, terminal, before, after) in [
        ("", false, "--quiet ", ""),
        ("readme", false, "--quiet ", " readme"),
        ("", true, "", " -- --quiet"),
        ("readme", true, "", " readme -- --quiet"),
        ("readme -- --nocapture", true, "", " readme -- --nocapture --quiet"),
    ] {
        let expected = suites.map(|suite| format!("cargo test {before}{suite}{after}"));
        assert_eq!(cargo_commands(arguments, terminal, 0), expected);
        assert_eq!(cargo_commands(arguments, terminal, 3), expected[..1]);
    }
}
