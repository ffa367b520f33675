//! Several decision servers on one server, or on a server and a database.

use std::process::Command;
use std::time::{Duration, Instant};

use callgate::json::{Value, json};
use tempfile::TempDir;

use super::server::RedisServer;
use crate::postgres::server::PostgresServer;
use crate::server::process::ServerProcess;

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } }
  - { id: one, match: build, concurrency: { max: 1 } }
  - { id: few, match: mail, rate_limit: { limit: 3, per: 1h } }
  - { id: many, match: counted, rate_limit: { limit: 1000, per: 1h } }
  - { id: never, match: never, deny: { message: No } }
";

/// A decision server, with its folder.
pub struct Host(ServerProcess, #[expect(dead_code, reason = "it is deleted at the end")] TempDir);

impl Host {
    pub fn start(state: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rules.yaml"), RULES).unwrap();
        let arguments = ["--listen", "127.0.0.1:0", "--approver", "ann", "--state", state];
        Self(ServerProcess::start(folder.path(), &arguments), folder)
    }

    /// Runs a call of the local approver, who is the same caller at every host.
    pub fn call(&self, id: &str, tool: &str) -> Value {
        let call = json!({ "call": { "id": id, "tool": tool, "input": {} }, "session": "s" });
        self.0.send("POST", "/v1/calls", &call)
    }

    /// Approves the only pending request.
    pub fn approve(&self) {
        let pending = self.0.send("GET", "/v1/approvals", &json!({}));
        let request = &pending["approvals"][0];
        let path = format!("/v1/approvals/{}/answers", request["key"].as_str().unwrap());
        let answer = json!({ "decision": "approve", "digest": request["digest"] });
        let answered = self.0.send("POST", &path, &answer);
        assert_eq!(answered["stage"], "answered", "{answered}");
    }
}

fn check_sharing(state: &str) {
    let [first, second] = [Host::start(state), Host::start(state)];
    assert_eq!(first.call("c1", "pay")["outcome"]["outcome"], "suspended");
    second.approve();
    // Either host resumes it, and only one of them.
    let begun = first.call("c1", "pay");
    assert_eq!(begun["status"], "execute", "{begun}");
    let other = second.call("c1", "pay");
    assert_eq!(other["outcome"]["outcome"], "indeterminate", "{other}");
    // A limit counts the calls of both.
    let admitted = (0..6).filter(|number| {
        let host = if number % 2 == 0 { &first } else { &second };
        host.call(&format!("m{number}"), "mail")["status"] == "execute"
    });
    assert_eq!(admitted.count(), 3);
}

#[test]
fn an_approval_that_one_host_requests_is_answered_at_another() {
    let server = RedisServer::start();
    check_sharing(&server.url("shared"));
}

#[test]
fn hosts_share_a_valkey_server() {
    let server = RedisServer::start_valkey(&["--appendonly", "yes"]);
    check_sharing(&server.url("shared").replace("redis://", "valkey://"));
}

#[test]
fn limits_and_records_may_be_in_different_engines() {
    let (redis, postgres) = (RedisServer::start(), PostgresServer::start());
    check_sharing(&format!(
        "records={} limits={} cache=memory:",
        postgres.url("shared"),
        redis.url("shared")
    ));
    let keys = redis.cli(&["--scan", "--pattern", "*"]);
    assert!(keys.contains(":limits}:k:") && !keys.contains(":records}:k:"), "{keys}");
    assert_ne!(postgres.sql("SELECT count(*) FROM shared.records"), "0");
    assert_eq!(postgres.sql("SELECT count(*) FROM shared.limits"), "0");
}

#[test]
fn a_killed_host_frees_its_slots() {
    let server = RedisServer::start();
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
fn a_server_without_keys_or_with_other_keys_is_not_used() {
    let server = RedisServer::start_with(&["--requirepass", "secret"]);
    let url = server.url("shared").replace("redis://", "redis://:secret@");
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
