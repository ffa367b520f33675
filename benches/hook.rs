//! A whole `callgate hook` process for one event of Claude Code, with 1,000 policies, beside starting a process that does nothing, in one run:
//! the helper answers, as it does for all events but the first, or the process itself (`--in-process`).
//!
//! `cargo bench -p callgate-cli --bench hook`

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run has no result"
)]

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const POLICIES: usize = 1_000;
const ROUNDS: usize = 500;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("rules.yaml"), rules()).expect("rules");
    println!("{POLICIES} policies, {ROUNDS} processes each | p50      p90      p99");
    measure("a process that does nothing", path, &mut || Command::new("/bin/true"));
    measure("answered by the helper", path, &mut || hook(path, &[]));
    measure("answered in the process", path, &mut || hook(path, &["--in-process"]));
}

/// Most policies name tools of MCP servers; the others test shell commands and paths.
fn rules() -> String {
    let mut text = "policies:\n".to_owned();
    for index in 0..POLICIES {
        let (tool, condition) = match index % 10 {
            0 => ("Bash".to_owned(), format!("{{ path: $.input.command, contains: forbidden-{index} }}")),
            1 => (
                "[Read, Write, Edit]".to_owned(),
                format!("{{ path: $.input.file_path, starts_with: /secret/{index} }}"),
            ),
            _ => (
                format!("mcp__server_{}__tool_{index}", index % 7),
                format!("{{ path: $.input.amount, gt: {index} }}"),
            ),
        };
        writeln!(
            text,
            "  - {{ id: p{index}, match: {{ tool: {tool}, where: [ {condition} ] }}, deny: {{}} }}"
        )
        .expect("texts take writes");
    }
    text
}

fn hook(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
    command.args(["hook", "claude-code", "--policies", "rules.yaml", "--state", "file:state.db"]).args(more);
    command.env("XDG_RUNTIME_DIR", folder);
    command
}

fn measure(name: &str, folder: &Path, command: &mut dyn FnMut() -> Command) {
    let mut times: Vec<Duration> =
        (0..ROUNDS + 20).map(|round| run(folder, round, command())).skip(20).collect();
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_micros() as f64 / 1000.0;
    println!("{name:<36} | {:<5.1} ms {:<5.1} ms {:<5.1} ms", at(50), at(90), at(99));
}

fn run(folder: &Path, round: usize, mut command: Command) -> Duration {
    let event = format!(
        r#"{{"session_id":"s{}","cwd":"/work","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"cargo test --workspace"}},"tool_use_id":"toolu_{}_{round}"}}"#,
        round / 50,
        fastrand::u64(..)
    );
    let file = folder.join("event.json");
    std::fs::write(&file, event).expect("an event");
    command.current_dir(folder).stdin(File::open(&file).expect("an event"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status().expect("the process starts");
    let elapsed = started.elapsed();
    assert!(status.success(), "{status}");
    elapsed
}
