//! The approvals page with 10 and with 10,000 pending requests, in Chromium: the time from opening the page to its first paint and to the
//! first request on it, to the appearance of a new request, and to the disappearance of an answered one.
//!
//! The smaller number is the floor: what takes longer with the larger one is what the list costs. The page shows a change a moment after
//! its event, so that many events are one update. Chromium and the packages are those of the tests of the page (`cargo nextest run
//! approvals_page` installs them).
//!
//! `cargo bench -p callgate-cli --bench approvals_page`

#![expect(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot run has no result")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay {{ input.amount }} for {{ input.note }}?', expires: 24h } }
";
const CONNECTIONS: usize = 8;

fn main() {
    let home = browser_packages();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::copy(root.join("benches/approvals_page/measure.mjs"), home.join("measure.mjs"))
        .expect("the script");
    println!(
        "{:>8} {:>13} {:>15} {:>13} {:>13}",
        "pending", "first paint", "first request", "new request", "answered"
    );
    for pending in [10, 10_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start(folder.path());
        server.fill(pending);
        let mut node = Command::new("node");
        node.arg(home.join("measure.mjs")).arg(format!("http://{}", server.address)).arg(&server.token);
        let output = node.stderr(Stdio::inherit()).output().expect("node runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        let [paint, first, new, answered] = printed
            .split_whitespace()
            .map(|figure| format!("{figure} ms"))
            .collect::<Vec<_>>()
            .try_into()
            .unwrap_or_else(|figures| panic!("four figures, not {figures:?}"));
        println!("{pending:>8} {paint:>13} {first:>15} {new:>13} {answered:>13}");
    }
}

/// A running server, and the token that signs in to its page.
struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(folder: &Path) -> Self {
        std::fs::write(folder.join("rules.yaml"), RULES).expect("rules");
        let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
            .args([
                "serve",
                "--policies",
                "rules.yaml",
                "--listen",
                "127.0.0.1:0",
                "--state",
                "file:state.db",
            ])
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .expect("callgate starts");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines().map_while(Result::ok);
        let address = lines
            .find_map(|line| line.split_once("http://")?.1.split(';').next()?.parse().ok())
            .expect("the server prints its address");
        let token = lines
            .find_map(|line| Some(line.split_once("#token=")?.1.trim().to_owned()))
            .expect("the server prints the token of the page");
        // What the server prints later must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, token }
    }

    /// Makes this number of calls that require approval.
    fn fill(&self, pending: usize) {
        std::thread::scope(|scope| {
            for connection in 0..CONNECTIONS {
                scope.spawn(move || {
                    let mut stream =
                        BufReader::new(TcpStream::connect(self.address).expect("the server listens"));
                    for number in (connection..pending).step_by(CONNECTIONS) {
                        request_approval(&mut stream, self.address, number);
                    }
                });
            }
        });
    }
}

fn request_approval(stream: &mut BufReader<TcpStream>, address: SocketAddr, number: usize) {
    let session = number / 20;
    let body = format!(
        r#"{{"session":"s{session}","call":{{"id":"c{number}","tool":"pay","input":{{"amount":{number},"note":"invoice {number} of the customer"}}}}}}"#
    );
    let length = body.len();
    write!(
        stream.get_mut(),
        "POST /v1/calls HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("the server reads");
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).expect("the server answers");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the whole body");
    assert!(String::from_utf8_lossy(&body).contains("suspended"), "{}", String::from_utf8_lossy(&body));
}

/// The directory where the tests of the page have installed what drives the browser.
fn browser_packages() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let installed = std::fs::read_dir(target.join("packages")).into_iter().flatten().flatten();
    installed
        .map(|entry| entry.path())
        .find(|path| {
            let is_of_page =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("approvals-page-"));
            is_of_page && path.join("installed").exists()
        })
        .expect("`cargo nextest run approvals_page` installs the packages of this benchmark")
}
