//! `tests/run`: progress on a terminal, results only in a pipe.

use super::{bash, finished, write_program};

/// What `tests/run` passes to cargo; `terminal` runs it on a terminal of its own.
fn cargo_arguments(arguments: &str, terminal: bool) -> String {
    let home = tempfile::tempdir().unwrap();
    write_program(&home.path().join("cargo"), "echo \"cargo $*\"; exit 3");
    let line = match terminal {
        true => format!(
            "python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' tests/run {arguments}"
        ),
        false => format!("tests/run {arguments}"),
    };
    let (code, stdout, stderr) = finished(bash(&line, home.path()).output().unwrap());
    assert_eq!(code, 3, "{stderr}");
    stdout.trim_end().to_owned()
}

#[test]
fn shows_progress_on_a_terminal_and_is_quiet_in_a_pipe() {
    let common = "--locked --workspace --all-features";
    assert_eq!(cargo_arguments("", false), format!("cargo test --quiet {common}"));
    assert_eq!(cargo_arguments("readme", false), format!("cargo test --quiet {common} readme"));
    assert_eq!(cargo_arguments("", true), format!("cargo test {common} -- --quiet"));
    assert_eq!(cargo_arguments("readme", true), format!("cargo test {common} readme -- --quiet"));
    assert_eq!(
        cargo_arguments("readme -- --nocapture", true),
        format!("cargo test {common} readme -- --nocapture --quiet")
    );
}
