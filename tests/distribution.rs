//! What users install, and how: release archives, the container image, the GitHub Action, pre-commit hooks, the page on installation;
//! and the workflows that build and test all of it.

mod container;
mod github_action;
mod install_page;
mod pre_commit;
mod release_archives;
mod test_script;
mod workflows;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_yaml::Value;

use crate::fixtures::root;
use crate::packages;

/// A rules file without problems, and a policy test that passes with it.
const GOOD_RULES: &str =
    "policies:\n  - { id: no-refunds, match: createRefund, deny: { message: No refunds } }\n";
const GOOD_TESTS: &str = "cases:\n  - { name: refunds are denied, call: { tool: createRefund }, expect: { policy: no-refunds } }\n";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_yaml::from_str(&read(path)).unwrap()
}

/// A tool from `tests/distribution/requirements.txt`.
fn tool(name: &str) -> PathBuf {
    let home = packages::python("distribution", &root().join("tests/distribution/requirements.txt"));
    home.join("bin").join(name)
}

/// Runs a tool and asserts that it succeeds. Returns what it prints.
fn run_tool(name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(tool(name));
    let (printed, succeeded) = packages::run(command.args(arguments).current_dir(root()), "");
    assert!(succeeded, "{name} {arguments:?}:\n{printed}");
    printed
}

/// A command of the root's shell, with the `callgate` of this build in its `PATH`, behind the programs in `programs`.
fn bash(script: &str, programs: &Path) -> Command {
    let callgate = Path::new(env!("CARGO_BIN_EXE_callgate")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(root());
    command.env("PATH", format!("{}:{}:{path}", programs.display(), callgate.display()));
    command
}

/// Writes an executable shell script.
fn write_program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/usr/bin/env bash\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Exit status, stdout and stderr.
fn finished(output: Output) -> (i32, String, String) {
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), stdout, stderr)
}
