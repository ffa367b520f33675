//! `callgate serve` with published rules, as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use callgate::json::{Value, json};

use super::{Workplace, callgate, wait_for};
use crate::server::process::send;

/// A running instance, which is killed when it is dropped.
pub struct Instance {
    child: Child,
    address: SocketAddr,
    token: String,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Instance {
    /// Starts an instance that follows a URL, with a directory and a shared state of the workplace. Without an argument for it, it checks the
    /// URL once and then on request.
    pub fn start(place: &Workplace, url: &str, directory: &str, more: &[&str]) -> Self {
        let arguments = [
            &[
                "serve",
                "--policies",
                url,
                "--policies-signed-by",
                "publishers.keys",
                "--policies-dir",
                directory,
            ][..],
            &["--policies-interval", "1h", "--state", "file:shared.db", "--listen", "127.0.0.1:0"],
            more,
        ]
        .concat();
        let mut child = callgate(place.0.path(), &arguments).stderr(Stdio::piped()).spawn().unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (written, stderr) = (Arc::clone(&lines), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                written.lock().unwrap().push(line);
            }
        });
        let after = |mark: &str| {
            let found = || {
                let lines = lines.lock().unwrap();
                lines.iter().find_map(|line| Some(line.split_once(mark)?.1.to_owned()))
            };
            wait_for(&format!("{mark} in {lines:?}"), || found().is_some());
            found().unwrap()
        };
        let address = after("listening on http://").split(';').next().unwrap().parse().unwrap();
        let token = after("#token=");
        Self { child, address, token, lines }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let headers = format!("authorization: Bearer {}\r\n", self.token);
        send(self.address, (method, path), &headers, body).unwrap()
    }

    /// What it says of its rules.
    pub fn rules(&self) -> Value {
        let (status, body) = self.send("GET", "/v1/rules", &json!({}));
        assert_eq!(status, 200, "{body}");
        body
    }

    /// The version in effect.
    pub fn version(&self) -> u64 {
        self.rules()["bundle"]["version"].as_u64().unwrap()
    }

    /// Makes it check the URL now.
    pub fn check_now(&self) {
        assert_eq!(self.send("POST", "/v1/rules/check", &json!({})).0, 202);
    }

    /// Checks the URL, and waits for an error with this text. Returns it.
    pub fn check_fails(&self, text: &str) -> String {
        self.check_now();
        let error = || self.rules()["bundle"]["error"].as_str().unwrap_or_default().to_owned();
        wait_for(&format!("an error with `{text}`, not `{}`,", error()), || error().contains(text));
        error()
    }

    /// What all instances report.
    pub fn instances(&self) -> Vec<Value> {
        let (status, body) = self.send("GET", "/v1/rules/instances", &json!({}));
        assert_eq!(status, 200, "{body}");
        body["instances"].as_array().unwrap().clone()
    }

    /// Confirms pending rules.
    pub fn confirm(&self, revision: &str) -> u16 {
        self.send("POST", "/v1/rules/confirm", &json!({ "revision": revision })).0
    }

    /// Whether a call is allowed.
    pub fn allows(&self, tool: &str) -> bool {
        let call = json!({ "call": { "id": "c", "tool": tool, "input": {} } });
        let (status, body) = self.send("POST", "/v1/decide", &call);
        assert_eq!(status, 200, "{body}");
        body["decision"]["effect"] == "run"
    }

    /// Its metrics, if it was started with `--metrics 0`.
    pub fn metrics(&self) -> String {
        let output = self.output();
        let address = output.split_once("metrics on http://").unwrap().1.split('/').next().unwrap();
        let mut socket = TcpStream::connect(address).unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    }

    /// What it has written to stderr.
    pub fn output(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.kill();
    }
}
