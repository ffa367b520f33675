//! Several MCP gateways on one Redis server: calls a second as gateways are added, and the processor time of the server for each call.
//!
//! Every gateway has a client with eight calls at once and a server that responds immediately. All calls share two limits: one of all
//! callers, and one of each caller. The client, gateways and servers need processors as well, so on a small machine they are the bound: what
//! counts for a fleet is the processor time of the Redis server for each call, which all gateways share.
//!
//! `cargo bench -p callgate-cli --bench gateways`

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run has no result"
)]
#![allow(dead_code, missing_docs, reason = "the servers of the tests")]

#[path = "../tests/cutting_proxy.rs"]
mod cutting_proxy;
#[path = "immediate_server/mod.rs"]
mod immediate_server;
#[path = "../tests/packages.rs"]
mod packages;
#[path = "processor_time/mod.rs"]
mod processor_time;
#[path = "../tests/redis/server.rs"]
mod redis_server;

mod fixtures {
    use std::path::{Path, PathBuf};

    pub fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }
}

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use callgate::json::Value;

use processor_time::processor_time;

/// Environment variable that makes a child process of this program run as a server.
const ROLE: &str = "CALLGATE_BENCH_SERVER";
const MEASURED_FOR: Duration = Duration::from_secs(4);
const AT_ONCE: usize = 8;

const RULES: &str = "
policies:
  - { id: everybody, match: '*', rate_limit: { limit: 1000000, per: 1h } }
  - { id: each-caller, match: '*', rate_limit: { limit: 1000000, per: 1h, key: $.context.principal } }
";

fn main() {
    if std::env::var(ROLE).is_ok() {
        return immediate_server::serve_lines();
    }
    let server = redis_server::RedisServer::start();
    println!("gateways | calls/s | Redis: CPU for a call, of a core | gateways: CPU for a call");
    for (number, gateways) in [1, 2, 4, 8].into_iter().enumerate() {
        let mut all: Vec<Gateway> =
            (0..gateways).map(|caller| Gateway::start(&server.url(&format!("n{number}")), caller)).collect();
        let (redis, own) = (processor_time(server.process_id()), gateways_time(&all));
        let begun = Instant::now();
        let calls: u64 = std::thread::scope(|scope| {
            let clients: Vec<_> = all.iter_mut().map(|gateway| scope.spawn(|| gateway.call(begun))).collect();
            clients.into_iter().map(|client| client.join().expect("a client")).sum()
        });
        let elapsed = begun.elapsed();
        let redis = processor_time(server.process_id()) - redis;
        let own = gateways_time(&all) - own;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
        println!(
            "{gateways:8} | {:7.0} | {:5.0} µs, {:3.0} % | {:5.0} µs",
            calls as f64 / elapsed.as_secs_f64(),
            each(redis),
            100.0 * redis.as_secs_f64() / elapsed.as_secs_f64(),
            each(own),
        );
    }
}

/// A gateway, and its client.
struct Gateway {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    _folder: tempfile::TempDir,
}

impl Gateway {
    fn start(state: &str, caller: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("rules.yaml"), RULES).expect("a file");
        let context = folder.path().join("context.json");
        fs::write(&context, format!(r#"{{"principal":"caller-{caller}"}}"#)).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command.args(["proxy", "--state", state, "--policies"]).arg(folder.path());
        command.arg("--context").arg(context).arg("--");
        command.arg(std::env::current_exe().expect("this program"));
        command.env("CALLGATE_KEYS", "5a".repeat(32)).env(ROLE, "stdio");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the gateway starts");
        let to = process.stdin.take().expect("a pipe");
        let from = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut gateway = Self { process, to, from, _folder: folder };
        gateway.send(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        );
        gateway.receive();
        gateway.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        gateway
    }

    /// Makes calls until the time is over. Returns how many.
    fn call(&mut self, begun: Instant) -> u64 {
        let (mut sent, mut received) = (0, 0);
        while sent < AT_ONCE as u64 || received < sent {
            if sent < AT_ONCE as u64 || begun.elapsed() < MEASURED_FOR && sent - received < AT_ONCE as u64 {
                sent += 1;
                let call =
                    r#""method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}"#;
                self.send(&format!(r#"{{"jsonrpc":"2.0","id":{sent},{call}}}"#));
                continue;
            }
            let answer = self.receive();
            assert!(answer["result"].get("isError").is_none(), "{answer}");
            received += 1;
        }
        received
    }

    fn send(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).expect("the gateway reads");
    }

    /// The next response.
    fn receive(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("the gateway writes") > 0, "it has ended");
            let message: Value = callgate::json::from_str(&line).expect("a message");
            if message.get("result").is_some() || message.get("error").is_some() {
                return message;
            }
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn gateways_time(gateways: &[Gateway]) -> Duration {
    gateways.iter().map(|gateway| processor_time(gateway.process.id())).sum()
}
