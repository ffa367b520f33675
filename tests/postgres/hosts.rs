//! Several decision servers on one database.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callgate::json::{self, Value, json};

use super::server::PostgresServer;

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } }
  - { id: one, match: build, concurrency: { max: 1 } }
";

/// A running `callgate serve`.
struct Host {
    child: Child,
    address: String,
    token: String,
    _folder: tempfile::TempDir,
}

impl Host {
    fn start(database: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rules.yaml"), RULES).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
            .args([
                "serve",
                "--policies",
                "rules.yaml",
                "--listen",
                "127.0.0.1:0",
                "--approver",
                "ann",
                "--state",
                database,
            ])
            .env("CALLGATE_KEYS", "5a".repeat(32))
            .current_dir(&folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut after = |mark: &str| {
            let line = lines.next().unwrap().unwrap();
            line.split_once(mark).unwrap_or_else(|| panic!("{line}")).1.to_owned()
        };
        let address = after("http://").split(';').next().unwrap().to_owned();
        let token = after("#token=");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, token, _folder: folder }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        json::parse(response.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn call(&self, id: &str, tool: &str) -> Value {
        // The token's holder is one caller at every host only if the hosts have the same identities; sessions belong to the caller.
        self.send(
            "POST",
            "/v1/calls",
            &json!({ "call": { "id": id, "tool": tool, "input": {} }, "session": "s" }),
        )
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_approval_that_one_host_requests_is_answered_at_another() {
    let server = PostgresServer::start();
    let url = server.url("shared");
    let [first, second] = [Host::start(&url), Host::start(&url)];
    assert_eq!(first.call("c1", "pay")["outcome"]["outcome"], "suspended");
    let pending = second.send("GET", "/v1/approvals", &json!({}));
    let request = &pending["approvals"][0];
    let path = format!("/v1/approvals/{}/answers", request["key"].as_str().unwrap());
    let answered = second.send("POST", &path, &json!({ "decision": "approve", "digest": request["digest"] }));
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
