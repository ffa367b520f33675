//! The official conformance suite, against a server directly and with the gateway before it: test by test the same.

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

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The gateway ends its server when it is told to end.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// The line of a process's complaints that has this in it, from there on.
fn said(child: &mut Child, words: &str) -> String {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let found = lines.find_map(|line| line.split_once(words).map(|(_, rest)| rest.to_owned()));
    // What it complains of later must not stop it.
    std::thread::spawn(move || lines.for_each(drop));
    found.unwrap_or_else(|| panic!("it does not say `{words}`"))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn server(node: &Path) -> PathBuf {
    node.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// What a version of the suite prints about a server.
fn printed(node: &Path, name: &str, url: &str) -> String {
    let folder = TempDir::new().unwrap();
    let mut suite = Command::new("node");
    suite.arg("--import").arg(script("node20.mjs"));
    suite.arg(node.join("node_modules").join(name).join("dist/index.js"));
    suite.args(["server", "--url", url, "-o"]).arg(folder.path());
    packages::run(&mut suite, "").0
}

/// What the suite says of each test: its name, and how much of it fails. What passes beside is not counted: the suite checks streams
/// where a server answers by streams, and leaves it to servers whether they do.
fn verdicts(node: &Path, url: &str) -> Vec<String> {
    let printed = printed(node, SUITE, url);
    let verdict = |line: &str| {
        let (name, counts) = line.strip_prefix(['✓', '✗'])?.split_once(':')?;
        Some(format!("{}: {}", name.trim(), counts.split_once(", ")?.1))
    };
    let verdicts: Vec<String> = printed.lines().filter_map(verdict).collect();
    assert!(verdicts.len() > 20, "the suite did not run:\n{printed}");
    verdicts
}

/// A server that says on stderr at which port it listens.
fn listening(mut server: Command) -> (Running, String) {
    let spawned = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut running = Running(spawned.unwrap());
    let port = said(&mut running.0, "listening on port").trim().to_owned();
    (running, port)
}

fn gateway(arguments: &[&str]) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
    command.args(["proxy", "--listen", "127.0.0.1:0"]).args(arguments);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let url = said(&mut child, "listening at ");
    (Running(child), url)
}

/// In this the gateway does better than the server: it refuses hosts that are not its own.
const BETTER: &str = "dns-rebinding-protection: 0 failed";

#[test]
fn the_conformance_suite_finds_the_same_with_the_gateway_and_without() {
    let node = packages::node("mcp-node", &script(""));
    let mut direct = Command::new("node");
    let port = free_port();
    direct.arg(server(&node)).arg("streamableHttp").env("PORT", port.to_string());
    let (_direct, _) = listening(direct);
    let url = format!("http://localhost:{port}/mcp");
    let without = verdicts(&node, &url);
    let server = server(&node).display().to_string();
    for (before, arguments) in [
        ("a server over HTTP", vec!["--upstream", &url]),
        ("a server of its own", vec!["--", "node", &server, "stdio"]),
    ] {
        let (_running, url) = gateway(&arguments);
        for (one, other) in without.iter().zip(verdicts(&node, &url)) {
            assert!(*one == other || other.starts_with(BETTER), "before {before}: {one}, now {other}");
        }
    }
}

/// A server that does all that the suite asks for, under a policy for every tool: with the gateway before it every check passes, too.
#[test]
fn a_server_that_passes_every_check_passes_them_behind_the_gateway() {
    let node = packages::node("mcp-node", &script(""));
    // Its modules are looked for beside the script.
    let file = node.join(format!("conforming-{}.mjs", std::process::id()));
    std::fs::copy(script("conforming.mjs"), &file).unwrap();
    let mut server = Command::new("node");
    server.arg(&file);
    let (_server, port) = listening(server);
    std::fs::remove_file(&file).unwrap();
    let direct = format!("http://127.0.0.1:{port}/mcp");
    let rules = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let text = "policies: [ { id: some, match: '*', rate_limit: { limit: 1000, per: 1m } } ]";
    std::fs::write(rules.path(), text).unwrap();
    let policies = rules.path().display().to_string();
    let (_gateway, behind) = gateway(&["--policies", &policies, "--upstream", &direct]);
    for (suite, checks) in [(SUITE, 40), (NEXT, 73)] {
        for (which, url) in [("without", &direct), ("with", &behind)] {
            let printed = printed(&node, suite, url);
            let total = printed.lines().find(|line| line.starts_with("Total: "));
            let expected = format!("Total: {checks} passed, 0 failed");
            assert_eq!(total, Some(expected.as_str()), "{which} the gateway:\n{printed}");
        }
    }
}
