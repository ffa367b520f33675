//! Parser differentials: no spelling of a denied call reaches the server, also if a lenient parser reads a message differently from a
//! strict one. Each message has a defined response (`snapshots/`). Scripts that parse as leniently as servers check what servers received.

mod lines;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use callgate::Engine;
use callgate_mcp::{Gateway, ServerSpec, StdioSpec, Transport};
use insta::Settings;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use super::script;
use crate::packages;
use lines::Attempt;

const RULES: &str = "policies:
  - { id: no-danger, match: danger, deny: {} }
  - { id: not-there, match: { tool: write, where: { path: $.input.path, starts_with: /etc } }, deny: {} }";
/// The maximum message length: low, so that too long messages are cheap to build.
const LONGEST: usize = 64 << 10;

/// A gateway in front of a server that logs what it receives.
fn gateway(log: &Path) -> Arc<Gateway> {
    let args = ["-S".to_owned(), "-E".to_owned()];
    let args = args
        .into_iter()
        .chain([script("recorder.py"), log.to_owned()].map(|path| path.display().to_string()));
    let child = StdioSpec { command: "python3".to_owned(), args: args.collect(), env: Vec::new(), cwd: None };
    let server = ServerSpec::new("server", Transport::Child(child));
    Arc::new(Gateway::new(Engine::from_text(RULES).unwrap(), [server]).with_max_message_size(LONGEST))
}

/// Sends these bytes to a gateway. Returns the lines of its responses, sorted. The connection stays open until the server has started,
/// which creates the log.
async fn responses_to(log: &Path, said: &[u8]) -> Vec<String> {
    let (to, mut from) = tokio::io::duplex(1 << 20);
    let (mut say, hears) = tokio::io::duplex(1 << 20);
    let mut heard = String::new();
    let session = async {
        let client = async {
            say.write_all(said).await.unwrap();
            while !log.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            drop(say);
            from.read_to_string(&mut heard).await
        };
        let (served, read) = tokio::join!(gateway(log).serve_stdio(hears, to), client);
        served.unwrap();
        read.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(60), session)
        .await
        .unwrap_or_else(|_| panic!("timed out waiting for the responses to {}", escape_line(said)));
    let mut lines: Vec<String> = heard.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Asserts that the servers received no denied call.
fn assert_no_denied_call(logs: &[PathBuf]) {
    for (program, judge) in [("python3", "judge.py"), ("node", "judge.mjs")] {
        let (found, is_clean) = packages::run(Command::new(program).arg(script(judge)).args(logs), "");
        assert!(is_clean, "a server may have received a denied call:\n{found}");
    }
}

/// The text as one line, with invisible characters escaped and long text truncated.
fn escape_line(bytes: &[u8]) -> String {
    let escaped = |bytes: &[u8]| {
        bytes.utf8_chunks().fold(String::new(), |mut shown, chunk| {
            for c in chunk.valid().chars() {
                match c {
                    ' '..='~' => shown.push(c),
                    _ => write!(shown, "{}", c.escape_default()).unwrap(),
                }
            }
            chunk.invalid().iter().for_each(|byte| write!(shown, "\\x{byte:02x}").unwrap());
            shown
        })
    };
    match bytes.len() {
        0..=400 => escaped(bytes),
        length => {
            format!("{} … {} ({length} bytes)", escaped(&bytes[..150]), escaped(&bytes[length - 100..]))
        }
    }
}

/// Masks the random call ids.
fn mask_ids(answer: &str) -> String {
    let drawn = regex::Regex::new(r#""callId":"[^"]*""#).unwrap();
    escape_line(drawn.replace_all(answer, r#""callId":"…""#).as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_spelling_of_a_denied_call_reaches_the_server() {
    let folder = TempDir::new().unwrap();
    let attempts = lines::attempts();
    let at_once = Arc::new(Semaphore::new(6));
    let sessions: Vec<_> = attempts
        .iter()
        .enumerate()
        .map(|(number, attempt)| {
            let (said, log) = (attempt.bytes.clone(), folder.path().join(number.to_string()));
            let at_once = Arc::clone(&at_once);
            tokio::spawn(async move {
                let _turn = at_once.acquire().await.unwrap();
                (responses_to(&log, &said).await, log)
            })
        })
        .collect();
    let (mut report, mut logs, mut family) = (String::new(), Vec::new(), "");
    for (Attempt { family: of, bytes: said }, session) in attempts.iter().zip(sessions) {
        let (answers, log) = session.await.unwrap();
        if *of != family {
            family = of;
            writeln!(report, "\n## {family}").unwrap();
        }
        writeln!(report, "\n{}", escape_line(said.strip_suffix(b"\n").unwrap_or(said))).unwrap();
        for answer in &answers {
            writeln!(report, "  {}", mask_ids(answer)).unwrap();
        }
        logs.push(log);
    }
    let mut settings = Settings::new();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!("hostile_lines", report));
    assert_no_denied_call(&logs);
}

/// No message changes how the next one is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_denied_call_of_one_long_session_reaches_the_server() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("all");
    let mut said = lines::GREETING.as_bytes().to_vec();
    for attempt in lines::attempts() {
        said.extend_from_slice(&attempt.bytes);
        if said.last() != Some(&b'\n') {
            said.push(b'\n');
        }
    }
    said.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}\n");
    let answers = responses_to(&log, &said).await;
    assert!(
        answers.iter().any(|answer| answer == r#"{"jsonrpc":"2.0","id":"last","result":{"done":"ping"}}"#),
        "the session no longer works: {answers:#?}"
    );
    assert_no_denied_call(&[log]);
}
