//! Decisions over HTTP: `callgate serve` beside OPA's server, with the same rules and calls in one run, one request at a time and from
//! 32 connections, with 100 and 10,000 rules.
//!
//! Each rule names a tool and tests two arguments; about half of the calls are denied. For OPA each rule is a partial rule whose first
//! expression tests the tool, which its index finds. Before the measurement both servers must agree on every call. The rounds of the two
//! alternate, because the speed of a machine changes with its load. `CPU` is the processor time of the server for each request.
//!
//! The client has the last processor for itself and polls its sockets there, as if it were another machine; the servers have the others.
//! A client that sleeps on the same machine would be measured with the server, which wakes it with each response.
//!
//! The floor is the HTTP server of Callgate without Callgate: it reads each request, and answers with the same bytes each time. What it takes
//! no decision can save.
//!
//! `cargo bench -p callgate-cli --bench server`

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run has no result"
)]

#[path = "server/floor.rs"]
mod floor;
#[path = "opa_binary/mod.rs"]
mod opa_binary;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use opa_binary::opa_binary;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const ROUNDS: usize = 10;
/// The requests of a round.
const REQUESTS: usize = 6_400;
const CALLS: usize = 64;
/// The header with the length of a response.
const LENGTH: &[u8] = b"content-length:";

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != floor::ARGUMENT);
    if let Some(response) = arguments.nth(1) {
        return floor::serve(&response);
    }
    let opa = opa_binary();
    let (server_processors, client_processors) = processors();
    println!(
        "  rules  at once |  callgate/s      CPU      p50      p99 |       OPA/s      CPU      p50      p99 | throughput     CPU     p99 |     floor/s      CPU      p50      p99"
    );
    for rules in [100, 10_000] {
        let folder = tempfile::tempdir().expect("a folder");
        sched_setaffinity(None, &server_processors).expect("the processors of this process");
        let callgate = Server::callgate(folder.path(), rules);
        let peer = Server::opa(&opa, folder.path(), rules);
        let floor = Server::floor(&Connection::open(&callgate, 0).ask(&callgate.request(0, rules)));
        sched_setaffinity(None, &client_processors).expect("the processors of this process");
        let denied = agreement(&callgate, &peer, rules);
        assert!((CALLS / 4..CALLS * 3 / 4).contains(&denied), "{denied} of {CALLS} calls are denied");
        for at_once in [1, 32] {
            let [mut own, mut other, mut least] = [const { Measurement::new() }; 3];
            for _ in 0..ROUNDS {
                own.add(&callgate, rules, at_once);
                other.add(&peer, rules, at_once);
                least.add(&floor, rules, at_once);
            }
            let (own, other, least) = (own.summary(), other.summary(), least.summary());
            println!(
                "{rules:>7} {at_once:>8} | {own} | {other} | {:>8.1} × {:>5.2} × {:>5.2} × | {least}",
                own.per_second / other.per_second,
                own.cpu.as_secs_f64() / other.cpu.as_secs_f64(),
                own.p99.as_secs_f64() / other.p99.as_secs_f64(),
            );
        }
    }
}

/// The processors of the servers, and that of the client.
fn processors() -> (CpuSet, CpuSet) {
    let mut servers = sched_getaffinity(None).expect("the processors of this process");
    let last = (0..CpuSet::MAX_CPU).rfind(|cpu| servers.is_set(*cpu)).expect("a processor");
    assert!(servers.count() > 1, "client and server need a processor each");
    servers.unset(last);
    let mut client = CpuSet::new();
    client.set(last);
    (servers, client)
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
    Floor,
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
        let address = printed_address(&mut child);
        Self { child, address, kind: Kind::Callgate }
    }

    /// A server that answers every request as Callgate answered one.
    fn floor(response: &str) -> Self {
        let (_, body) = response.split_once("\r\n\r\n").expect("a response with a body");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([floor::ARGUMENT, body])
            .stderr(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let address = printed_address(&mut child);
        Self { child, address, kind: Kind::Floor }
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
            Kind::Callgate | Kind::Floor => ("/v1/decide", format!(r#"{{"call":{call}}}"#)),
            Kind::Opa => ("/v1/data/callgate/deny", format!(r#"{{"input":{call}}}"#)),
        };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        format!("{head}{body}").into_bytes()
    }

    /// The processor time of the server's process, in ticks.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("Linux");
        let fields =
            stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ')).expect("the fields of a process");
        fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
    }

    fn is_denied(&self, response: &str) -> bool {
        match self.kind {
            Kind::Callgate | Kind::Floor => response.contains(r#""effect":"deny""#),
            Kind::Opa => !response.contains(r#""result":[]"#),
        }
    }
}

/// The address that a server prints when it listens.
fn printed_address(child: &mut Child) -> SocketAddr {
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().expect("stderr")).read_line(&mut line).expect("a first line");
    let address =
        line.split_once("http://").and_then(|(_, rest)| rest.split(';').next()?.trim().parse().ok());
    address.unwrap_or_else(|| panic!("{line}"))
}

/// A connection that stays open, and what has been received of the present response.
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    sent: Instant,
    left: usize,
}

impl Connection {
    fn open(server: &Server, requests: usize) -> Self {
        let stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_nodelay(true).expect("a TCP socket");
        Self { stream, received: Vec::with_capacity(4096), sent: Instant::now(), left: requests }
    }

    fn send(&mut self, request: &[u8]) {
        self.received.clear();
        self.sent = Instant::now();
        self.stream.write_all(request).expect("the server reads");
    }

    /// Reads what has come; returns whether the response is complete.
    fn receive(&mut self) -> bool {
        let before = self.received.len();
        self.received.resize(before + 4096, 0);
        let read = self.stream.read(&mut self.received[before..]).expect("the server answers");
        assert!(read > 0, "the server closed the connection");
        self.received.truncate(before + read);
        let mut lines = self.received.split_inclusive(|byte| *byte == b'\n');
        let (mut head, mut length) = (0, None);
        for line in &mut lines {
            head += line.len();
            if line == b"\r\n" {
                let length: usize = length.expect("a response with a length");
                return self.received.len() == head + length;
            }
            if line.get(..LENGTH.len()).is_some_and(|name| name.eq_ignore_ascii_case(LENGTH)) {
                length =
                    std::str::from_utf8(&line[LENGTH.len()..]).ok().and_then(|text| text.trim().parse().ok());
            }
        }
        false
    }

    fn ask(&mut self, request: &[u8]) -> String {
        self.send(request);
        while !self.receive() {}
        String::from_utf8_lossy(&self.received).into_owned()
    }
}

/// Checks that both servers decide every call alike; returns how many are denied.
fn agreement(callgate: &Server, opa: &Server, rules: usize) -> usize {
    let (mut own, mut other) = (Connection::open(callgate, 0), Connection::open(opa, 0));
    let denied = |index: &usize| {
        let found = own.ask(&callgate.request(*index, rules));
        let expected = other.ask(&opa.request(*index, rules));
        assert_eq!(callgate.is_denied(&found), opa.is_denied(&expected), "call {index}: {found} {expected}");
        callgate.is_denied(&found)
    };
    (0..CALLS).filter(denied).count()
}

/// The latencies of all requests, the time that they took together, and the processor time of the server in ticks.
struct Measurement {
    latencies: Vec<Duration>,
    elapsed: Duration,
    ticks: u64,
}

struct Summary {
    per_second: f64,
    cpu: Duration,
    p50: Duration,
    p99: Duration,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let micros = |time: Duration| format!("{} µs", time.as_micros());
        let [cpu, p50, p99] = [self.cpu, self.p50, self.p99].map(micros);
        write!(f, "{:>11.0} {cpu:>8} {p50:>8} {p99:>8}", self.per_second)
    }
}

impl Measurement {
    const fn new() -> Self {
        Self { latencies: Vec::new(), elapsed: Duration::ZERO, ticks: 0 }
    }

    /// One thread sends the requests of all connections.
    fn add(&mut self, server: &Server, rules: usize, at_once: usize) {
        let requests: Vec<Vec<u8>> = (0..CALLS).map(|index| server.request(index, rules)).collect();
        let each = REQUESTS / at_once;
        let mut connections: Vec<Connection> = (0..at_once).map(|_| Connection::open(server, each)).collect();
        let events = epoll::create(epoll::CreateFlags::empty()).expect("an epoll instance");
        for (index, connection) in connections.iter_mut().enumerate() {
            connection.ask(&requests[0]);
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&events, &connection.stream, data, epoll::EventFlags::IN).expect("a socket");
        }
        let (started, ticks) = (Instant::now(), server.ticks());
        for (index, connection) in connections.iter_mut().enumerate() {
            connection.send(&requests[index % CALLS]);
        }
        let mut ready = Vec::with_capacity(at_once);
        let mut open = at_once;
        while open > 0 {
            ready.clear();
            // Without a timeout it would sleep.
            epoll::wait(&events, spare_capacity(&mut ready), Some(&Timespec::default())).expect("events");
            for event in &ready {
                let index = event.data.u64() as usize;
                let connection = &mut connections[index];
                if !connection.receive() {
                    continue;
                }
                self.latencies.push(connection.sent.elapsed());
                connection.left -= 1;
                match connection.left {
                    0 => open -= 1,
                    left => connection.send(&requests[(index + left) % CALLS]),
                }
            }
        }
        self.elapsed += started.elapsed();
        self.ticks += server.ticks() - ticks;
    }

    fn summary(mut self) -> Summary {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        Summary {
            per_second: count as f64 / self.elapsed.as_secs_f64(),
            cpu: Duration::from_millis(self.ticks * 1000 / rustix::param::clock_ticks_per_second())
                / count as u32,
            p50: self.latencies[count / 2],
            p99: self.latencies[count * 99 / 100],
        }
    }
}
