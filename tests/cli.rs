//! End-to-end tests of the command line: the real binary in a temporary directory.

mod approvals;
mod backtest;
mod candidate;
mod audit;
mod check;
mod completions;
mod decision_log;
mod journald;
mod log_destinations;
mod declared_tools;
mod diff;
mod explain;
#[cfg(unix)]
mod hook;
mod install;
mod install_rules;
mod manual_pages;
mod methods;
mod report;
mod run;
mod run_log;
mod schema;
mod state;
mod suggest;
#[cfg(unix)]
mod task;
mod test;
mod test_coverage;
mod test_formats;
mod test_generate;
mod watch;

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A temporary directory with files, in which `callgate` runs.
struct TestDir(TempDir);

impl TestDir {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        Self(directory)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command.current_dir(self.0.path()).args(arguments);
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CALLGATE_KEYS"] {
            command.env_remove(variable);
        }
        // Tests may run in a coding agent.
        for variable in ["CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ATTENDED", "GEMINI_PROJECT_DIR"] {
            command.env_remove(variable);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandResult {
        self.command(arguments).stdin(Stdio::null()).output().unwrap().into()
    }

    fn run_with_input(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> CommandResult {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        // The program need not read all of the input.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output.into()
    }
}

/// The result of a finished command.
#[derive(Debug)]
struct CommandResult {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for CommandResult {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl CommandResult {
    /// Exit code, stdout and stderr as one text.
    fn transcript(&self) -> String {
        format!("exit {:?}\n-- stdout\n{}-- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Snapshot settings, which mask text that differs from run to run.
fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(crate::fixtures::root().join("snapshots/cli"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"[\d.]+ (µs|ms|s) in total", "[time] in total");
    // Keeps the width of the column.
    settings.add_filter(r"[ .\d]{4} [µm]s", " [time]");
    settings.add_filter(r"revision [0-9a-f]{12}", "revision [revision]");
    settings.add_filter(r"until \d{4}-\d\d-\d\d \d\d:\d\d UTC", "until [expiry]");
    settings
}

const GOOD: &str = "policies: [{ id: no, match: t, deny: { message: No } }]";

#[test]
fn check_reports_its_result_by_the_exit_status() {
    let dir = TestDir::new(&[("good.yaml", GOOD), ("bad.yaml", "policies: [{ id: a, denny: {} }]")]);
    for (arguments, code) in [
        (&["check", "good.yaml"][..], 0),
        (&["check", "good.yaml", "--deny-warnings"], 0),
        (&["check", "bad.yaml"], 1),
        (&["check"], 1),
        (&["check", "bad.yaml", "nowhere.yaml"], 1),
        (&["check", "nowhere.yaml"], 2),
        (&["check", "--format", "xml"], 2),
        (&["check", "good.yaml", "--tools", "nowhere.json"], 2),
        (&["chekc"], 2),
        (&[], 2),
        (&["--help"], 0),
        (&["--version"], 0),
    ] {
        assert_eq!(dir.run(arguments).code, Some(code), "{arguments:?}");
    }
}

#[test]
fn check_prints_problems_to_stdout_and_their_number_to_stderr() {
    let dir = TestDir::new(&[("good.yaml", GOOD), ("bad.yaml", "policies:\n  - id: a\n    denny: {}\n")]);
    settings().bind(|| {
        insta::assert_snapshot!("check_good", dir.run(&["check", "good.yaml"]).transcript());
        insta::assert_snapshot!("check_bad", dir.run(&["check", "bad.yaml"]).transcript());
    });
}

#[test]
fn check_json_is_an_array_also_without_problems() {
    let dir = TestDir::new(&[("good.yaml", GOOD), ("bad.yaml", "policies: [{ id: a, denny: {} }]")]);
    let good = dir.run(&["check", "--format", "json", "good.yaml"]);
    assert_eq!((good.stdout.trim(), good.stderr.as_str()), ("[]", ""));
    let bad = dir.run(&["check", "--format", "json", "bad.yaml"]);
    let list: Vec<callgate::json::Value> = callgate::json::from_str(&bad.stdout).unwrap();
    assert!(list.iter().any(|problem| problem["code"] == "CG201" && problem["line"] == 1), "{list:?}");
    assert_eq!(bad.stderr, "");
}

#[test]
fn check_reads_tools_and_rejects_unusable_schemas() {
    let dir = TestDir::new(&[
        ("good.yaml", GOOD),
        ("list.json", r#"[{"name":"t","input_schema":{"type":"object"}}]"#),
        ("mcp.json", r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":null}"#),
        ("unusable.json", r#"[{"name":"t","input_schema":{"type":"objekt"}}]"#),
        ("nameless.json", "[\n  {\"input_schema\": {}}\n]"),
        ("twice.json", "[\n  {\"name\": \"a\", \"name\": \"b\"}\n]"),
        ("text.json", "\"t\""),
    ]);
    let check = |file| dir.run(&["check", "good.yaml", "--tools", file]);
    assert_eq!(check("list.json").code, Some(0));
    assert_eq!(check("mcp.json").code, Some(0));
    let unusable = check("unusable.json");
    assert_eq!(unusable.code, Some(1));
    assert!(unusable.stdout.contains("error[CG304]: the schema of the tool `t`"), "{}", unusable.stdout);
    for (file, place) in [
        ("nameless.json", "nameless.json:2:3: missing field `name`"),
        ("twice.json", "twice.json:2:17: duplicate key `name`"),
        ("text.json", "`text.json` is not an array of tools"),
    ] {
        let ended = check(file);
        assert_eq!(ended.code, Some(2), "{file}");
        assert!(ended.stderr.contains(place), "{}", ended.stderr);
    }
}

#[test]
fn init_writes_a_working_bundle() {
    let dir = TestDir::new(&[]);
    let written = dir.run(&["init", "my rules"]);
    let mut commands = written.stdout.lines().filter_map(|line| line.strip_prefix("  callgate "));
    let mut run_next = || {
        // The shell parses the printed command.
        let line = format!("'{}' {}", env!("CARGO_BIN_EXE_callgate"), commands.next().unwrap());
        let shell = Command::new("sh").current_dir(dir.0.path()).args(["-c", &line]).output();
        CommandResult::from(shell.unwrap())
    };
    let (check, run, test) = (run_next(), run_next(), run_next());
    settings().bind(|| {
        insta::assert_snapshot!("init", written.transcript());
        insta::assert_snapshot!("init_check", check.transcript());
        insta::assert_snapshot!("init_run", run.transcript());
        insta::assert_snapshot!("init_test", test.transcript());
    });
}

#[test]
fn init_writes_nothing_if_a_file_exists() {
    let dir = TestDir::new(&[("calls.jsonl", "mine")]);
    let ended = dir.run(&["init", "."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("`./calls.jsonl` already exists"), "{}", ended.stderr);
    assert!(!dir.0.path().join("rules.yaml").exists());
    assert_eq!(fs::read_to_string(dir.0.path().join("calls.jsonl")).unwrap(), "mine");
}

#[test]
fn rule_prints_a_page_for_every_listed_code() {
    let dir = TestDir::new(&[]);
    let listed = dir.run(&["rule"]).stdout;
    assert_eq!(listed.lines().count(), callgate::diagnostic::ALL.len());
    for line in listed.lines() {
        let (id, name) = line.split_once("  ").unwrap();
        let pages = [id, name, &id.to_lowercase()].map(|word| dir.run(&["rule", word]));
        assert!(pages.iter().all(|page| page.code == Some(0) && page.stdout == pages[0].stdout), "{line}");
        assert!(pages[0].stdout.contains(id) && pages[0].stdout.contains(name), "{line}");
    }
    let unknown = dir.run(&["rule", "unknwon-key"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("did you mean `unknown-key`?"), "{}", unknown.stderr);
}

#[test]
fn check_prints_colours_only_on_request() {
    let dir = TestDir::new(&[("good.yaml", GOOD)]);
    let plain = dir.run(&["check", "good.yaml"]);
    assert!(!plain.stdout.contains('\u{1b}'));
    let forced = dir.command(&["check", "good.yaml"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(CommandResult::from(forced).stdout.contains('\u{1b}'));
    let mut refused = dir.command(&["check", "good.yaml"]);
    let refused = refused.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!CommandResult::from(refused).stdout.contains('\u{1b}'));
}
