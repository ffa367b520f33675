//! A denied call reaches the server by no spelling: messages that a lenient reader may take for another one than a strict reader does.
//! Each has a defined answer (`snapshots/`), and what servers are sent is judged by scripts that read as leniently as servers do.

mod lines;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use callgate::Engine;
use callgate::mcp::{ChildSpec, Gateway, Reach, ServerSpec};
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
/// Longer messages are not taken; short, so that one that is too long is quickly made.
const LONGEST: usize = 64 << 10;

/// A gateway before a server that writes down what it is sent.
fn gateway(log: &Path) -> Arc<Gateway> {
    let args = ["-S".to_owned(), "-E".to_owned()];
    let args = args
        .into_iter()
        .chain([script("recorder.py"), log.to_owned()].map(|path| path.display().to_string()));
    let child = ChildSpec { command: "python3".to_owned(), args: args.collect(), env: Vec::new(), cwd: None };
    let server =
        ServerSpec { name: "server".to_owned(), prefix: None, reach: Reach::Child(child), rules: None };
    Arc::new(Gateway::new(Engine::from_text(RULES).unwrap(), [server]).with_longest_message(LONGEST))
}

/// What a client is answered that sends these bytes and then nothing more: its lines, in order of their text. It stays until the server
/// has started, which writes its log then.
async fn answers(log: &Path, said: &[u8]) -> Vec<String> {
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
        let (served, read) = tokio::join!(gateway(log).serve_lines(hears, to), client);
        served.unwrap();
        read.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(60), session)
        .await
        .unwrap_or_else(|_| panic!("not all is answered of {}", shown(said)));
    let mut lines: Vec<String> = heard.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Finds denied calls in what servers were sent.
fn judge(logs: &[PathBuf]) {
    for (program, judge) in [("python3", "judge.py"), ("node", "judge.mjs")] {
        let (found, is_clean) = packages::run(Command::new(program).arg(script(judge)).args(logs), "");
        assert!(is_clean, "a server may have read a denied call:\n{found}");
    }
}

/// The text as one line that shows what is invisible, and not all of what is long.
fn shown(bytes: &[u8]) -> String {
    let shown = |bytes: &[u8]| {
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
        0..=400 => shown(bytes),
        length => format!("{} … {} ({length} bytes)", shown(&bytes[..150]), shown(&bytes[length - 100..])),
    }
}

/// Ids of calls are drawn.
fn masked(answer: &str) -> String {
    let drawn = regex::Regex::new(r#""callId":"[^"]*""#).unwrap();
    shown(drawn.replace_all(answer, r#""callId":"…""#).as_bytes())
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
            let (said, log) = (attempt.said.clone(), folder.path().join(number.to_string()));
            let at_once = Arc::clone(&at_once);
            tokio::spawn(async move {
                let _turn = at_once.acquire().await.unwrap();
                (answers(&log, &said).await, log)
            })
        })
        .collect();
    let (mut report, mut logs, mut family) = (String::new(), Vec::new(), "");
    for (Attempt { of, said, .. }, session) in attempts.iter().zip(sessions) {
        let (answers, log) = session.await.unwrap();
        if *of != family {
            family = of;
            writeln!(report, "\n## {family}").unwrap();
        }
        writeln!(report, "\n{}", shown(said.strip_suffix(b"\n").unwrap_or(said))).unwrap();
        for answer in &answers {
            writeln!(report, "  {}", masked(answer)).unwrap();
        }
        logs.push(log);
    }
    let mut settings = Settings::new();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!("hostile_lines", report));
    judge(&logs);
}

/// What one message leaves behind changes nothing about the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_reaches_it_when_all_come_in_one_session() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("all");
    let mut said = lines::GREETING.as_bytes().to_vec();
    for attempt in lines::attempts() {
        said.extend_from_slice(&attempt.said);
        if said.last() != Some(&b'\n') {
            said.push(b'\n');
        }
    }
    said.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}\n");
    let answers = answers(&log, &said).await;
    assert!(
        answers.iter().any(|answer| answer == r#"{"jsonrpc":"2.0","id":"last","result":{"done":"ping"}}"#),
        "the session is whole: {answers:#?}"
    );
    judge(&[log]);
}
