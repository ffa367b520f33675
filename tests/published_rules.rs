//! Rules that are published once for many instances: `callgate bundle`, and `callgate serve` with `--policies URL`.

mod commands;
mod confirmation;
mod fleet;
mod hostile_publisher;
mod instance;
mod publisher;
mod pull;
mod registry;
mod restarts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use callgate::seal::SigningKey;
use callgate_bundle::{Bundle, sign};
use tempfile::TempDir;

/// Longer than anything that works takes.
const TIMEOUT: Duration = Duration::from_secs(60);

const ALLOW_PAY: &str = "policies:\n  - { id: pay, match: pay, allow: {} }\n";
const DENY_PAY: &str = "policies:\n  - { id: pay, match: pay, deny: { message: Not now } }\n";

/// A directory with a publisher's key, its public key, and what instances store.
struct Workplace(TempDir);

impl Workplace {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let public_key = place.key("publisher.key").public_key().to_string();
        std::fs::write(place.path("publishers.keys"), format!("{public_key}\n")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn key(&self, name: &str) -> SigningKey {
        SigningKey::from_file_or_new(&self.path(name)).unwrap()
    }

    /// A bundle with these rules, signed by the publisher.
    fn bundle(&self, version: u64, rules: &str) -> Vec<u8> {
        self.bundle_named("payments", version, rules)
    }

    fn bundle_named(&self, name: &str, version: u64, rules: &str) -> Vec<u8> {
        sign(&document(name, version, rules), &[&self.key("publisher.key")])
    }

    /// Runs a `callgate` command here, whose output is short. One that does not end is killed.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = callgate(self.0.path(), arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > TIMEOUT {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child.wait_with_output().unwrap()
    }

    /// The output of a command that must succeed.
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }
}

fn callgate(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
    command.args(arguments).current_dir(directory).env("CALLGATE_KEYS", "5a".repeat(32));
    command.env("HOME", directory).env_remove("XDG_STATE_HOME");
    command
}

fn document(name: &str, version: u64, rules: &str) -> Vec<u8> {
    let files = BTreeMap::from([("rules.yaml".to_owned(), rules.to_owned())]);
    Bundle::new(name, version, files).unwrap().document()
}

/// Waits until a condition holds.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}
