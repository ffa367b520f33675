//! `callgate serve` as a process, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use callgate::json::{self, Value};

/// Longer than anything that works takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running `callgate serve`, which is killed at the end.
pub struct ServerProcess {
    child: Child,
    pub address: SocketAddr,
    /// The token of the local approver.
    pub token: String,
}

impl ServerProcess {
    /// Starts a server with the rules file `rules.yaml` of a folder.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
            .args(["serve", "--policies", "rules.yaml"])
            .args(arguments)
            .current_dir(folder)
            .env("CALLGATE_KEYS", "5a".repeat(32))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut after = |mark: &str| {
            let line = lines.next().unwrap().unwrap();
            line.split_once(mark).unwrap_or_else(|| panic!("{line}")).1.to_owned()
        };
        let address = after("http://").split(';').next().unwrap().parse().unwrap();
        let token = after("#token=");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, token }
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The body of a response to the local approver.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let headers = format!("authorization: Bearer {}\r\n", self.token);
        send(self.address, (method, path), &headers, body).unwrap().1
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The status and body of a response. `None` if the server was killed meanwhile.
pub fn send(
    address: SocketAddr,
    (method, path): (&str, &str),
    headers: &str,
    body: &Value,
) -> Option<(u16, Value)> {
    let mut socket = TcpStream::connect(address).ok()?;
    socket.set_read_timeout(Some(TIMEOUT)).ok()?;
    let body = body.to_string();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    socket.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, json::parse(body).ok()?))
}
