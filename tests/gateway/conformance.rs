//! The official MCP conformance suite, against a server directly and through the gateway: both give the same results, test by test.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::script;
use crate::packages;

const SUITE: &str = "@modelcontextprotocol/conformance";
/// The suite's next version, under the name that `package.json` gives it.
const NEXT: &str = "conformance-next";

/// A child process that is terminated at the end of the test.
struct RunningProcess(Child);

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // On SIGTERM the gateway terminates its server.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Waits for a line on the process's stderr that contains `words`. Returns the rest of that line.
fn wait_for_line(child: &mut Child, words: &str) -> String {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let found = lines.find_map(|line| line.split_once(words).map(|(_, rest)| rest.to_owned()));
    // Drain later output, so that a full pipe does not block the process.
    std::thread::spawn(move || lines.for_each(drop));
    found.unwrap_or_else(|| panic!("stderr has no line with `{words}`"))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn server(node: &Path) -> PathBuf {
    node.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// Runs a version of the suite against a server. Returns its output.
fn suite_output(node: &Path, name: &str, url: &str) -> String {
    let folder = TempDir::new().unwrap();
    let mut suite = Command::new("node");
    suite.arg("--import").arg(script("node20.mjs"));
    suite.arg(node.join("node_modules").join(name).join("dist/index.js"));
    suite.args(["server", "--url", url, "-o"]).arg(folder.path());
    packages::run(&mut suite, "").0
}

/// The suite's result of each test: its name and the number of failed checks. Passed checks are not compared: the suite runs its stream
/// checks only if a server responds with streams, and servers may choose.
fn check_results(node: &Path, url: &str) -> Vec<String> {
    let printed = suite_output(node, SUITE, url);
    let verdict = |line: &str| {
        let (name, counts) = line.strip_prefix(['✓', '✗'])?.split_once(':')?;
        Some(format!("{}: {}", name.trim(), counts.split_once(", ")?.1))
    };
    let verdicts: Vec<String> = printed.lines().filter_map(verdict).collect();
    assert!(verdicts.len() > 20, "the suite did not run:\n{printed}");
    verdicts
}

/// Starts a server that prints its port on stderr.
fn start_server(mut server: Command) -> (RunningProcess, String) {
    let spawned = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut running = RunningProcess(spawned.unwrap());
    let port = wait_for_line(&mut running.0, "listening on port").trim().to_owned();
    (running, port)
}

fn gateway(arguments: &[&str]) -> (RunningProcess, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
    command.args(["proxy", "--listen", "127.0.0.1:0"]).args(arguments);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let url = wait_for_line(&mut child, "listening on ");
    (RunningProcess(child), url)
}

/// Here the gateway is stricter than the server: it rejects other `Host` headers (DNS rebinding protection).
const BETTER: &str = "dns-rebinding-protection: 0 failed";

#[test]
fn conformance_results_are_the_same_through_the_gateway() {
    let node = packages::node("mcp-node", &script(""));
    let mut direct = Command::new("node");
    let port = free_port();
    direct.arg(server(&node)).arg("streamableHttp").env("PORT", port.to_string());
    let (_direct, _) = start_server(direct);
    let url = format!("http://localhost:{port}/mcp");
    let without = check_results(&node, &url);
    let server = server(&node).display().to_string();
    for (before, arguments) in [
        ("a server over HTTP", vec!["--upstream", &url]),
        ("a server of its own", vec!["--", "node", &server, "stdio"]),
    ] {
        let (_running, url) = gateway(&arguments);
        for (one, other) in without.iter().zip(check_results(&node, &url)) {
            assert!(*one == other || other.starts_with(BETTER), "before {before}: {one}, now {other}");
        }
    }
}

/// A server with every feature that the suite checks. It passes all checks, also behind a gateway whose policy matches every tool.
#[test]
fn fully_conforming_server_passes_all_checks_behind_the_gateway() {
    let node = packages::node("mcp-node", &script(""));
    // Node resolves the modules relative to the script.
    let file = node.join(format!("conforming-{}.mjs", std::process::id()));
    std::fs::copy(script("conforming.mjs"), &file).unwrap();
    let mut server = Command::new("node");
    server.arg(&file);
    let (_server, port) = start_server(server);
    std::fs::remove_file(&file).unwrap();
    let direct = format!("http://127.0.0.1:{port}/mcp");
    let rules = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let text = "policies: [ { id: some, match: '*', rate_limit: { limit: 1000, per: 1m } } ]";
    std::fs::write(rules.path(), text).unwrap();
    let policies = rules.path().display().to_string();
    let (_gateway, behind) = gateway(&["--policies", &policies, "--upstream", &direct]);
    for (suite, checks) in [(SUITE, 40), (NEXT, 73)] {
        for (which, url) in [("without", &direct), ("with", &behind)] {
            let printed = suite_output(&node, suite, url);
            let total = printed.lines().find(|line| line.starts_with("Total: "));
            let expected = format!("Total: {checks} passed, 0 failed");
            assert_eq!(total, Some(expected.as_str()), "{which} the gateway:\n{printed}");
        }
    }
}
