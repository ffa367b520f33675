//! Conformance of sent messages to the types that the providers publish: their packages from PyPI and npm, at the versions pinned in
//! this folder, installed once below `target/packages`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use callgate::json::json;
use callgate::message::{Dialect, History};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::{corpus, generated};
use crate::packages::{install, installed, run};

fn here() -> PathBuf {
    crate::fixtures::root().join("tests/providers")
}

/// The messages that a provider gets for every history of the corpus and for generated ones.
fn sent(dialect: Dialect) -> String {
    let mut lines = String::new();
    let mut add = |name: String, history: &History| {
        let document = history.for_provider(dialect).write(dialect);
        let case = json!({"name": name, "dialect": dialect.name(), "document": document});
        lines.push_str(&format!("{case}\n"));
    };
    for (from, name, document) in corpus() {
        // A malformed history stays malformed in its own dialect.
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
fn openai_anthropic_and_google_types_accept_sent_messages() {
    let requirements = here().join("requirements.txt");
    let home = installed("python", &fs::read_to_string(&requirements).unwrap(), |home| {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(home);
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
        install(&mut [venv, pip]);
    });
    let cases: String =
        Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::AiSdk).map(sent).collect();
    let (printed, accepted) = run(Command::new(home.join("bin/python")).arg(here().join("check.py")), &cases);
    assert!(accepted, "{printed}");
}

#[test]
fn ai_sdk_schema_accepts_sent_and_stored_messages() {
    let home = installed("node", &fs::read_to_string(here().join("package.json")).unwrap(), |home| {
        fs::copy(here().join("package.json"), home.join("package.json")).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(home);
        install(&mut [npm]);
    });
    // Node resolves the module relative to the script.
    fs::copy(here().join("check.mjs"), home.join("check.mjs")).unwrap();
    let mut cases = sent(Dialect::AiSdk);
    // The AI SDK has approval parts of its own, so stored histories contain them.
    for (from, name, document) in corpus().into_iter().filter(|(_, name, _)| name.starts_with("approval")) {
        let stored = History::read(from, &document).unwrap().write(Dialect::AiSdk);
        cases.push_str(&format!(
            "{}\n",
            json!({"name": format!("{from}/{name}"), "dialect": "ai-sdk", "document": stored})
        ));
    }
    let (printed, accepted) = run(Command::new("node").arg(home.join("check.mjs")), &cases);
    assert!(accepted, "{printed}");
}
