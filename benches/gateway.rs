//! Overhead of the MCP gateway: the same calls with and without `callgate proxy` in one run, over stdio and HTTP, one at a time and 32
//! concurrently, with 0, 100 and 10,000 policies.
//!
//! The cost of two more process wake-ups depends mainly on whether they wake an idle core, and the scheduler places processes differently
//! in each run. So calls over stdio are also measured with pinned processes: all on one core, which shows the cost of the gateway
//! itself, and the client on another core than its server.
//!
//! The server responds immediately, so the difference is the gateway alone. If the tests have installed the reference server
//! `server-everything` (below `target/packages`), its `echo` tool is called as well, as an example of a real upstream server.
//!
//! `cargo bench --bench gateway`

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run has no result"
)]

#[path = "immediate_server/mod.rs"]
mod immediate_server;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use immediate_server::{answer, serve_lines};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Environment variable that makes a child process of this program run as a server.
const ROLE: &str = "CALLGATE_BENCH_SERVER";
const ROUNDS: usize = 6;
const CALLS: usize = 400;

fn main() {
    match std::env::var(ROLE).as_deref() {
        Ok("stdio") => return serve_lines(),
        Ok("http") => return serve_http(),
        _ => {}
    }
    println!(
        "transport       server     policies  at once |  direct p50    p99 |   gateway p50    p99 | added p50 | throughput | memory"
    );
    let reference = reference_server();
    let free = sched_getaffinity(None).expect("there are cores");
    for policies in [0, 100, 10_000] {
        let rules = Rules::of(policies);
        let immediate = [own_path()];
        for placement in Placement::all(&free) {
            row(
                placement.name,
                "immediate",
                policies,
                1,
                || placement.start(|| Lines::start(&immediate, None)),
                || placement.start(|| Lines::start(&immediate, Some(&rules))),
            );
        }
        run_on(&free);
        for at_once in [1, 32] {
            row(
                "stdio",
                "immediate",
                policies,
                at_once,
                || Lines::start(&immediate, None),
                || Lines::start(&immediate, Some(&rules)),
            );
            if let Some(server) = &reference {
                let command = [PathBuf::from("node"), server.clone(), PathBuf::from("stdio")];
                row(
                    "stdio",
                    "reference",
                    policies,
                    at_once,
                    || Lines::start(&command, None),
                    || Lines::start(&command, Some(&rules)),
                );
            }
            row(
                "http",
                "immediate",
                policies,
                at_once,
                || Http::start(None, None),
                || Http::start(None, Some(&rules)),
            );
            if let Some(server) = &reference {
                row(
                    "http",
                    "reference",
                    policies,
                    at_once,
                    || Http::start(Some(server), None),
                    || Http::start(Some(server), Some(&rules)),
                );
            }
        }
    }
}

/// The cores on which the client and its child processes run.
struct Placement {
    name: &'static str,
    client: CpuSet,
    servers: CpuSet,
}

impl Placement {
    /// All processes on one core; and the client on one core with all others on another. Unpinned, placement differs in each run.
    fn all(free: &CpuSet) -> Vec<Self> {
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| free.is_set(*core)).collect();
        let of = |name, client: usize, servers: usize| {
            let [client, servers] = [client, servers].map(|core| {
                let mut one = CpuSet::new();
                one.set(core);
                one
            });
            Self { name, client, servers }
        };
        let (first, last) = (cores[0], cores[cores.len() - 1]);
        let mut all = vec![of("stdio, 1 core", first, first)];
        all.extend((first != last).then(|| of("stdio, 2 cores", first, last)));
        all
    }

    fn start<T>(&self, start: impl FnOnce() -> T) -> T {
        run_on(&self.servers);
        let started = start();
        run_on(&self.client);
        started
    }
}

/// Pins this process and all that it starts later.
fn run_on(cores: &CpuSet) {
    sched_setaffinity(None, cores).expect("cores of this process");
}

fn own_path() -> PathBuf {
    std::env::current_exe().expect("a program has a path")
}

/// The reference server, if the tests have installed it.
fn reference_server() -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/packages");
    let installed = std::fs::read_dir(packages).ok()?.flatten();
    let within = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    installed.map(|folder| folder.path().join(within)).find(|server| server.exists())
}

/// Rules with `count` policies: most are for other tools, a few evaluate the call.
struct Rules(tempfile::TempDir);

impl Rules {
    fn of(count: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut text = "policies:\n".to_owned();
        if count == 0 {
            text = "policies: []\n".to_owned();
        }
        for number in 0..count {
            text += &match number % 10 {
                0 => format!(
                    "  - {{ id: p{number}, match: {{ tool: echo, where: {{ path: $.input.message, eq: 'no {number}' }} }}, deny: {{}} }}\n"
                ),
                1 => format!("  - {{ id: p{number}, match: 'tool{number}.*', deny: {{}} }}\n"),
                _ => format!("  - {{ id: p{number}, match: tool{number}, deny: {{}} }}\n"),
            };
        }
        std::fs::write(folder.path().join("rules.yaml"), text).expect("a file");
        Self(folder)
    }
}

/// A client connection that makes calls.
trait Peer {
    /// Makes `count` calls with `at_once` in flight; returns the duration of each.
    fn call(&mut self, count: usize, at_once: usize) -> Vec<Duration>;
    /// Resident memory of the gateway, in bytes.
    fn memory(&self) -> u64;
}

fn row<D: Peer, G: Peer>(
    transport: &str,
    server: &str,
    policies: usize,
    at_once: usize,
    direct: impl FnOnce() -> D,
    gateway: impl FnOnce() -> G,
) {
    let (mut direct, mut gateway) = (direct(), gateway());
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let (mut time_without, mut time_with) = (Duration::ZERO, Duration::ZERO);
    direct.call(CALLS, at_once);
    gateway.call(CALLS, at_once);
    // Alternate, so that other load on the machine affects both.
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        without.extend(direct.call(CALLS, at_once));
        time_without += begun.elapsed();
        let begun = Instant::now();
        with.extend(gateway.call(CALLS, at_once));
        time_with += begun.elapsed();
    }
    without.sort();
    with.sort();
    let at =
        |times: &[Duration], share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
    println!(
        "{transport:15} {server:9}  {policies:8}  {at_once:7} | {:8.0} µs {:5.0} | {:8.0} µs  {:6.0} | {:6.0} µs | {:8.2} × | {:4.1} MB",
        at(&without, 0.5),
        at(&without, 0.99),
        at(&with, 0.5),
        at(&with, 0.99),
        at(&with, 0.5) - at(&without, 0.5),
        time_without.as_secs_f64() / time_with.as_secs_f64(),
        gateway.memory() as f64 / 1e6,
    );
}

fn request(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"hello"}}}}}}"#
    )
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn gateway(rules: &Rules) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
    command.args(["proxy", "--policies"]).arg(rules.0.path());
    command
}

fn memory_of(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// A server over stdio.
struct Lines {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: usize,
}

impl Lines {
    fn start(server: &[PathBuf], rules: Option<&Rules>) -> Self {
        let mut command = match rules {
            None => {
                let mut command = Command::new(&server[0]);
                command.args(&server[1..]);
                command
            }
            Some(rules) => {
                let mut command = gateway(rules);
                command.arg("--").args(server);
                command
            }
        };
        command.env(ROLE, "stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the server starts");
        let to = process.stdin.take().expect("a pipe");
        let from = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut peer = Self { process, to, from, next: 0 };
        peer.send(INITIALIZE);
        peer.receive();
        peer.send(INITIALIZED);
        peer
    }

    fn send(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).expect("the server reads");
    }

    /// Reads the next response; returns its id if it responds to a call.
    fn receive(&mut self) -> Option<usize> {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(
                self.from.read_line(&mut line).expect("the server writes") > 0,
                "the server has closed its output"
            );
            let message: callgate::json::Value = callgate::json::from_str(&line).expect("a message");
            if message.get("result").is_some() {
                return message["id"].as_u64().map(|id| id as usize);
            }
        }
    }
}

impl Peer for Lines {
    fn call(&mut self, count: usize, at_once: usize) -> Vec<Duration> {
        let mut sent = HashMap::new();
        let mut times = Vec::new();
        let begin = |peer: &mut Self, sent: &mut HashMap<usize, Instant>| {
            peer.next += 1;
            let line = request(peer.next);
            sent.insert(peer.next, Instant::now());
            peer.send(&line);
        };
        for _ in 0..at_once.min(count) {
            begin(self, &mut sent);
        }
        let mut begun = at_once.min(count);
        while times.len() < count {
            if let Some(at) = self.receive().and_then(|id| sent.remove(&id)) {
                times.push(at.elapsed());
                if begun < count {
                    begun += 1;
                    begin(self, &mut sent);
                }
            }
        }
        times
    }

    fn memory(&self) -> u64 {
        memory_of(&self.process)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server over HTTP.
struct Http {
    server: Child,
    gateway: Option<Child>,
    port: u16,
    session: Option<String>,
    next: usize,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

impl Http {
    fn start(reference: Option<&PathBuf>, rules: Option<&Rules>) -> Self {
        let own = free_port();
        let mut command = match reference {
            Some(server) => {
                let mut command = Command::new("node");
                command.arg(server).arg("streamableHttp");
                command
            }
            None => Command::new(own_path()),
        };
        command.env(ROLE, "http").env("PORT", own.to_string()).stdin(Stdio::null()).stdout(Stdio::null());
        let server = command.stderr(Stdio::null()).spawn().expect("the server starts");
        wait_for(own);
        let (gateway, port) = match rules {
            None => (None, own),
            Some(rules) => {
                let port = free_port();
                let mut command = gateway(rules);
                command.args(["--listen", &format!("127.0.0.1:{port}")]);
                command.args(["--upstream", &format!("http://127.0.0.1:{own}/mcp")]);
                let gateway = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
                wait_for(port);
                (Some(gateway), port)
            }
        };
        let mut peer = Self { server, gateway, port, session: None, next: 0 };
        let mut stream = Stream::open(port);
        peer.session = stream.post(INITIALIZE, None).1;
        stream.post(INITIALIZED, peer.session.as_deref());
        peer
    }
}

fn wait_for(port: u16) {
    for _ in 0..600 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no server listens on {port}");
}

impl Peer for Http {
    fn call(&mut self, count: usize, at_once: usize) -> Vec<Duration> {
        let first = self.next;
        self.next += count;
        let (port, session) = (self.port, self.session.as_deref());
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..at_once)
                .map(|caller| {
                    scope.spawn(move || {
                        let mut stream = Stream::open(port);
                        let own = (caller..count).step_by(at_once);
                        own.map(|number| {
                            let begun = Instant::now();
                            let (body, _) = stream.post(&request(first + number + 1), session);
                            assert!(body.contains("Echo: hello"), "{body}");
                            begun.elapsed()
                        })
                        .collect::<Vec<_>>()
                    })
                })
                .collect();
            callers.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
        })
    }

    fn memory(&self) -> u64 {
        self.gateway.as_ref().map_or(0, memory_of)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        for process in [Some(&mut self.server), self.gateway.as_mut()].into_iter().flatten() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// An HTTP connection of the client.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a server listens");
        stream.set_nodelay(true).expect("an option");
        Self(BufReader::new(stream))
    }

    /// Posts a message; returns the body of the response and the session id in its headers.
    fn post(&mut self, message: &str, session: Option<&str>) -> (String, Option<String>) {
        let session = session.map(|session| format!("mcp-session-id: {session}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2025-06-18\r\n{session}content-length: {}\r\n\r\n",
            message.len()
        );
        self.0.get_mut().write_all(format!("{head}{message}").as_bytes()).expect("the server reads");
        let (mut length, mut chunked, mut named) = (0, false, None);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a header");
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().expect("a length"),
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "mcp-session-id" => named = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = Vec::new();
        while chunked {
            let mut size = String::new();
            self.0.read_line(&mut size).expect("a size");
            let size = usize::from_str_radix(size.trim(), 16).expect("a size");
            let mut chunk = vec![0; size + 2];
            self.0.read_exact(&mut chunk).expect("a chunk");
            body.extend_from_slice(&chunk[..size]);
            chunked = size > 0;
        }
        if length > 0 {
            body.resize(length, 0);
            self.0.read_exact(&mut body).expect("a body");
        }
        (String::from_utf8(body).expect("text"), named)
    }
}

/// Runs the HTTP server: one thread per connection.
fn serve_http() {
    let port: u16 = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).expect("a port");
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || serve_connection(stream));
    }
}

fn serve_connection(stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            match stream.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim_end().is_empty() => break,
                Ok(_) => {}
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        let answer = String::from_utf8(body).ok().and_then(|text| answer(&text));
        let head = match &answer {
            Some(answer) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            ),
            None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        let text = head + answer.as_deref().unwrap_or_default();
        if stream.get_mut().write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}
