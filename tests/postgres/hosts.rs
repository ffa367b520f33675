//! Several decision servers on one database.

use std::process::Command;
use std::time::{Duration, Instant};

use callgate::json::{Value, json};
use tempfile::TempDir;

use super::server::PostgresServer;
use crate::server::process::ServerProcess;

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } }
  - { id: one, match: build, concurrency: { max: 1 } }
";

/// A decision server, with its folder.
struct Host(ServerProcess, #[expect(dead_code, reason = "it is deleted at the end")] TempDir);

impl Host {
    fn start(database: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rules.yaml"), RULES).unwrap();
        let arguments = ["--listen", "127.0.0.1:0", "--approver", "ann", "--state", database];
        Self(ServerProcess::start(folder.path(), &arguments), folder)
    }

    /// Runs a call of the local approver, who is the same caller at every host.
    fn call(&self, id: &str, tool: &str) -> Value {
        let call = json!({ "call": { "id": id, "tool": tool, "input": {} }, "session": "s" });
        self.0.send("POST", "/v1/calls", &call)
    }
}

#[test]
fn an_approval_that_one_host_requests_is_answered_at_another() {
    let server = PostgresServer::start();
    let url = server.url("shared");
    let [first, second] = [Host::start(&url), Host::start(&url)];
    assert_eq!(first.call("c1", "pay")["outcome"]["outcome"], "suspended");
    let pending = second.0.send("GET", "/v1/approvals", &json!({}));
    let request = &pending["approvals"][0];
    let path = format!("/v1/approvals/{}/answers", request["key"].as_str().unwrap());
    let answered =
        second.0.send("POST", &path, &json!({ "decision": "approve", "digest": request["digest"] }));
    assert_eq!(answered["stage"], "answered", "{answered}");
    // Either host resumes it, and only one of them.
    let begun = first.call("c1", "pay");
    assert_eq!(begun["status"], "execute", "{begun}");
    let other = second.call("c1", "pay");
    assert_eq!(other["outcome"]["outcome"], "indeterminate", "{other}");
}

#[test]
fn a_killed_host_frees_its_slots() {
    let server = PostgresServer::start();
    let url = server.url("shared");
    let first = Host::start(&url);
    assert_eq!(first.call("c1", "build")["status"], "execute");
    let second = Host::start(&url);
    assert_eq!(second.call("c2", "build")["outcome"]["outcome"], "denied");
    drop(first);
    let deadline = Instant::now() + Duration::from_secs(60);
    for number in 0.. {
        let begun = second.call(&format!("d{number}"), "build");
        if begun["status"] == "execute" {
            return;
        }
        assert!(Instant::now() < deadline, "{begun}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_database_without_keys_or_with_other_keys_is_not_used() {
    let server = PostgresServer::start();
    let url = server.url("shared").replace("callgate@", "callgate:secret@");
    let run = |keys: Option<String>| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command.args(["approvals", "list", "--state", &url]).env_remove("CALLGATE_KEYS").current_dir(&folder);
        command.envs(keys.map(|keys| ("CALLGATE_KEYS", keys)));
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (done, printed) = run(None);
    assert!(!done && printed.contains("set CALLGATE_KEYS") && !printed.contains("secret"), "{printed}");
    let (done, printed) = run(Some("5a".repeat(32)));
    assert!(done, "{printed}");
    let (done, printed) = run(Some("5b".repeat(32)));
    assert!(!done && printed.contains("another key") && !printed.contains("secret"), "{printed}");
}
