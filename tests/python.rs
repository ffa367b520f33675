//! The Python package: its wheel is built and installed as users install it, and tested in Python with the real agent frameworks.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use callgate::SessionState;
use callgate::call::{Outcome, RecordedResult};
use callgate::json::{Value, json};

use crate::packages::{self, run};
use crate::{cases, dialects, fixtures, history_corpus};

/// The environment with the test tools and the frameworks.
fn frameworks() -> PathBuf {
    packages::python("python-frameworks", &fixtures::root().join("tests/python/requirements.txt"))
}

/// Runs a command that must succeed. Returns what it prints.
fn succeed(command: &mut Command) -> String {
    let (printed, done) = run(command, "");
    assert!(done, "{command:?}:\n{printed}");
    printed
}

/// What the tests of one run have in common. They build it once: each runs in a process of its own.
struct BuiltPackage {
    wheel: PathBuf,
    /// A directory with the unpacked wheel, to be used with the packages of the frameworks' environment.
    site: PathBuf,
}

fn built_package() -> &'static BuiltPackage {
    static PACKAGE: OnceLock<BuiltPackage> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let packages = fixtures::root().join("target/python-package");
        fs::create_dir_all(&packages).unwrap();
        let lock = fs::File::create(packages.join("lock")).unwrap();
        lock.lock().unwrap();
        // A later run may have other sources.
        let run = std::env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| std::process::id().to_string());
        let home = packages.join(run);
        if !home.exists() {
            remove_finished_runs(&packages);
            let unfinished = packages.join("unfinished");
            let _ = fs::remove_dir_all(&unfinished);
            build_into(&unfinished);
            fs::rename(&unfinished, &home).unwrap();
        }
        let wheel = fs::read_dir(home.join("wheel")).unwrap().next().unwrap().unwrap().path();
        BuiltPackage { wheel, site: home.join("site") }
    })
}

/// Runs take less than an hour.
fn remove_finished_runs(packages: &Path) {
    for entry in fs::read_dir(packages).unwrap() {
        let path = entry.unwrap().path();
        let age = fs::metadata(&path).unwrap().modified().unwrap().elapsed().unwrap_or_default();
        if path.is_dir() && age > Duration::from_secs(3600) {
            fs::remove_dir_all(path).unwrap();
        }
    }
}

/// Builds the wheel in the profile of the tests, with the command that they test, and unpacks it.
fn build_into(home: &Path) {
    let mut path = OsString::from(frameworks().join("bin"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = home.join("wheel");
    fs::create_dir_all(&output).unwrap();
    succeed(
        Command::new(fixtures::root().join("scripts/wheels"))
            .args(["--profile", "dev", "--binary", env!("CARGO_BIN_EXE_callgate"), "--output"])
            .arg(&output)
            .env("PATH", path),
    );
    let wheel = fs::read_dir(&output).unwrap().next().unwrap().unwrap().path();
    succeed(
        Command::new(frameworks().join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"])
            .arg(home.join("site"))
            .arg(wheel),
    );
}

/// A new environment that has only the wheel and what it requires.
fn installed(directory: &Path) -> PathBuf {
    let home = directory.join("environment");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&home));
    succeed(
        Command::new(home.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .arg(&built_package().wheel),
    );
    home
}

fn python(site: &Path) -> Command {
    let mut command = Command::new(frameworks().join("bin/python"));
    command.env("PYTHONPATH", site).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

#[test]
fn the_wheel_installs_the_package_and_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let home = installed(directory.path());
    let version = succeed(Command::new(home.join("bin/callgate")).arg("--version"));
    let program = "import callgate, importlib.metadata as m\n\
                   assert callgate.__version__ == m.version('callgate')\n\
                   print('callgate', callgate.__version__)\n\
                   print(callgate.Engine.from_text('policies: []').decide({'tool': 'x', 'input': {}}).effect)";
    let printed = succeed(Command::new(home.join("bin/python")).args(["-c", program]));
    assert_eq!(printed, format!("{version}run\n"));
}

#[test]
fn the_package_and_the_adapters_behave_as_documented() {
    let printed = succeed(
        python(&built_package().site)
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."])
            .current_dir(fixtures::root().join("bindings/python/tests")),
    );
    assert!(printed.contains(" passed"), "{printed}");
}

/// The type stubs describe the package, and its own code and the tests use it as they say.
#[test]
fn the_types_of_the_package_are_consistent() {
    let directory = tempfile::tempdir().unwrap();
    let site = &built_package().site;
    succeed(
        python(site)
            .args([
                "-m",
                "mypy",
                "--strict",
                "--no-incremental",
                "--cache-dir",
                "/dev/null",
                "-p",
                "callgate",
            ])
            .env("MYPYPATH", site)
            .current_dir(directory.path()),
    );
}

/// One case as JSON for `run_cases.py`: the rules, the tools, and the calls of each round with their recorded results.
fn exported(path: &Path) -> Value {
    let case = cases::Case::read(path);
    let rounds: Vec<Value> = case
        .rounds()
        .map(|round| {
            let calls = round.iter().map(|record| {
                json!({
                    "method": record.call.method(),
                    "call": callgate::json::to_value(&record.call).unwrap(),
                })
            });
            let task = round.iter().filter_map(callgate::CallRecord::task).next_back();
            let task = task.and_then(|task| task.document().cloned());
            json!({ "calls": calls.collect::<Vec<_>>(), "task": task.map(|task| task["turns"].clone()) })
        })
        .collect();
    let results: Vec<Value> = case
        .records
        .iter()
        .filter_map(|record| {
            let recorded = match record.recorded.as_ref()? {
                RecordedResult::Output(output) => json!({ "output": output }),
                RecordedResult::Error { message, kind } => json!({ "error": message, "kind": kind }),
            };
            Some(json!([record.call.id, recorded]))
        })
        .collect();
    json!({ "rules": case.rules, "tools": case.tools, "layers": case.layers, "rounds": rounds, "results": results })
}

/// The outcomes as printed, and the state of the session, in which numbers are equal by value. A session in which nothing happened that
/// policies could read has none: Rust tells it from a new one.
fn outcomes_and_state(printed: &str) -> (String, Option<Value>) {
    let (outcomes, state) = match printed.rsplit_once("session: ") {
        Some((outcomes, state)) => (outcomes, Some(callgate::json::from_str(state.trim_end()).unwrap())),
        None => (printed, None),
    };
    (outcomes.to_owned(), state.filter(|state| state != SessionState::default().document()))
}

/// What Python printed of one case, in the form of the cases' snapshots.
fn printed(result: &Value) -> String {
    if let Some(error) = result["error"].as_str() {
        return error.to_owned();
    }
    let outcomes = result["outcomes"].as_array().unwrap();
    let outcomes =
        outcomes.iter().map(|text| callgate::json::from_str::<Outcome>(text.as_str().unwrap()).unwrap());
    let mut printed: String = outcomes.map(|outcome| cases::print(&outcome)).collect();
    printed.push_str(&format!("session: {}\n", result["state"]));
    printed
}

#[test]
fn each_case_has_the_same_outcomes_in_python() {
    let mut paths: Vec<PathBuf> = fs::read_dir(fixtures::root().join("tests/cases"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let input: String = paths.iter().map(|path| format!("{}\n", exported(path))).collect();
    let (output, done) =
        run(python(&built_package().site).arg(fixtures::root().join("tests/python/run_cases.py")), &input);
    assert!(done, "{output}");
    let results: Vec<Value> = output.lines().map(|line| callgate::json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), paths.len());
    for (path, result) in paths.iter().zip(&results) {
        let (found, expected) = (outcomes_and_state(&printed(result)), outcomes_and_state(&cases::run(path)));
        assert_eq!(found, expected, "{}", path.display());
    }
}

#[test]
fn each_history_becomes_the_same_in_python() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (mut input, mut expected) = (String::new(), Vec::new());
    for rules in history_corpus::RULES {
        for (dialect, name, document) in dialects::corpus() {
            let mut session = history_corpus::engine(rules).build().session().with_name("s");
            let own = runtime.block_on(history_corpus::run(&mut session, dialect, &document));
            expected.push((format!("{dialect} {name} under {rules}"), own));
            let output = history_corpus::output();
            let case =
                json!({ "rules": rules, "dialect": dialect.name(), "messages": document, "output": output });
            input.push_str(&format!("{case}\n"));
        }
    }
    let (output, done) =
        run(python(&built_package().site).arg(fixtures::root().join("tests/python/run_cases.py")), &input);
    assert!(done, "{output}");
    assert_eq!(output.lines().count(), expected.len());
    for (line, (name, own)) in output.lines().zip(expected) {
        let found: Value = callgate::json::from_str(line).unwrap();
        assert_eq!(history_corpus::printed(&found["outcomes"], &found["messages"]), own, "{name}");
    }
}
