//! What we write, checked against the types that the providers publish: their packages from PyPI and npm, at the versions
//! pinned beside this file, installed once below `target/providers`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use callgate::message::{Dialect, History};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::{corpus, generated};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/providers")
}

/// Runs a command to its end; what it printed, and whether it succeeded. The panic says what to install where the program
/// itself is missing.
fn run(command: &mut Command, input: &str) -> (String, bool) {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.unwrap_or_else(|error| {
        panic!("`{program}` could not be run ({error}); the providers' types need python3 with venv, node and npm")
    });
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that ends early closes its input; what it printed says why.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (printed.concat(), output.status.success())
}

fn install(commands: &mut [Command]) {
    for command in commands {
        let (printed, done) = run(command, "");
        assert!(
            done,
            "the providers' packages could not be installed by {command:?} (is the registry in reach?):\n{printed}"
        );
    }
}

/// The folder of these packages, installed by `install` unless the same were before; a broken installation is begun anew.
fn installed(name: &str, pins: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"));
    let folder = target.join("providers");
    let version = &callgate::json::digest(&pins.into()).short();
    let home = folder.join(format!("{name}-{version}"));
    if !home.join("installed").exists() {
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        install(&home);
        fs::write(home.join("installed"), pins).unwrap();
    }
    home
}

/// Messages as a provider gets them: of every history of the corpus, and of generated ones.
fn sent(dialect: Dialect) -> String {
    let mut lines = String::new();
    let mut add = |name: String, history: &History| {
        let document = history.for_provider(dialect).write(dialect);
        let case = json!({"name": name, "dialect": dialect.name(), "document": document});
        lines.push_str(&format!("{case}\n"));
    };
    for (from, name, document) in corpus() {
        // What is strange in its own dialect stays so.
        if name != "strange" || from != dialect {
            add(format!("{from}/{name}"), &History::read(from, &document).unwrap());
        }
    }
    let mut runner = TestRunner::deterministic();
    for number in 0..200 {
        add(format!("generated {number}"), &generated::history().new_tree(&mut runner).unwrap().current());
    }
    lines
}

#[test]
fn openai_anthropic_and_google_accept_what_is_sent() {
    let requirements = here().join("requirements.txt");
    let home = installed("python", &fs::read_to_string(&requirements).unwrap(), |home| {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(home);
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
        install(&mut [venv, pip]);
    });
    let cases: String = [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini]
        .map(sent)
        .concat();
    let (printed, accepted) = run(Command::new(home.join("bin/python")).arg(here().join("check.py")), &cases);
    assert!(accepted, "{printed}");
}

#[test]
fn the_ai_sdk_accepts_what_is_sent_and_what_is_kept() {
    let home = installed("node", &fs::read_to_string(here().join("package.json")).unwrap(), |home| {
        fs::copy(here().join("package.json"), home.join("package.json")).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(home);
        install(&mut [npm]);
    });
    // The module is looked for beside the script.
    fs::copy(here().join("check.mjs"), home.join("check.mjs")).unwrap();
    let mut cases = sent(Dialect::AiSdk);
    // Its approval parts are its own, so histories are kept in its form as they are.
    for (from, name, document) in corpus().into_iter().filter(|(_, name, _)| name.starts_with("approval")) {
        let kept = History::read(from, &document).unwrap().write(Dialect::AiSdk);
        cases.push_str(&format!(
            "{}\n",
            json!({"name": format!("{from}/{name}"), "dialect": "ai-sdk", "document": kept})
        ));
    }
    let (printed, accepted) = run(Command::new("node").arg(home.join("check.mjs")), &cases);
    assert!(accepted, "{printed}");
}
