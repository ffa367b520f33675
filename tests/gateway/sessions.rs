//! Transparency of the gateway: the official clients receive the same messages from the official servers with and without it, except for
//! what policies change.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use callgate::json::{Value, json};
use insta::Settings;
use regex::Regex;
use tempfile::TempDir;

use super::script;
use crate::packages;

/// Patterns of text that differs from run to run, with their replacements.
const MASK: [(&str, &str); 13] = [
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", "<time>"),
    (r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT[^\x22\\]*", "<time>"),
    (r"\d\d?:\d\d:\d\d [AP]M", "<time>"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
    (r"\b[0-9a-f]{40}\b|(index|\[b|\[master|\[main)( \(root-commit\))? [0-9a-f.]{7,16}", "<commit>"),
    (r#""requestState":"[^"]*""#, r#""requestState":"<sealed>""#),
    (r#""callId":"[^"]*""#, r#""callId":"<id>""#),
    (r"(approval_|callgate-)[0-9a-f]{8}[\w-]*", "$1<id>"),
    // A keyed digest of arguments that contain a random directory.
    (r"Digest: [0-9a-f]{16}", "Digest: <digest>"),
    // Base64 of a text that contains the time.
    (r#""blob":"UmVzb3VyY2Ug[^"]*""#, r#""blob":"<time>""#),
    // A random level.
    (r#""level":"[a-z]+","data":"[A-Z][a-z]+[- ]level[- ]message""#, r#""level":"<any>""#),
    // The client numbers these across all of its sessions.
    (r"listen-\d+", "listen-<n>"),
    // The environment marker of the session's processes.
    (r"gateway-\d+-[0-9a-f]{16}", "<mark>"),
];

/// A client and its protocol mode.
#[derive(Clone, Copy)]
enum Client {
    Python(&'static str),
    TypeScript(&'static str),
}

/// The installed packages.
struct InstalledPackages {
    python: PathBuf,
    sqlite: PathBuf,
    node: PathBuf,
}

impl InstalledPackages {
    fn new() -> Self {
        let folder = script("");
        Self {
            python: packages::python("mcp", &folder.join("requirements.txt")),
            sqlite: packages::python("mcp-sqlite", &folder.join("requirements-sqlite.txt")),
            node: packages::node("mcp-node", &folder),
        }
    }

    /// The command of a server whose working directory is `folder`.
    fn server(&self, name: &str, folder: &Path) -> Vec<String> {
        let folder = folder.display().to_string();
        let node = |server: &str| {
            let file = format!("node_modules/@modelcontextprotocol/server-{server}/dist/index.js");
            vec!["node".to_owned(), self.node.join(file).display().to_string()]
        };
        let python = |home: &Path, program: &str| vec![home.join("bin").join(program).display().to_string()];
        let with = |mut command: Vec<String>, rest: &[&str]| {
            command.extend(rest.iter().map(|&part| part.to_owned()));
            command
        };
        match name {
            "everything" => with(node(name), &["stdio"]),
            "filesystem" => with(node(name), &[&folder]),
            "memory" => {
                let file = format!("MEMORY_FILE_PATH={folder}/memory.json");
                with(vec!["env".to_owned(), file], &node(name).iter().map(String::as_str).collect::<Vec<_>>())
            }
            "git" => python(&self.python, "mcp-server-git"),
            "time" => with(python(&self.python, "mcp-server-time"), &["--local-timezone", "UTC"]),
            "sqlite" => {
                with(python(&self.sqlite, "mcp-server-sqlite"), &["--db-path", &format!("{folder}/a.db")])
            }
            "workshop" => {
                let file = script("workshop.py").display().to_string();
                with(python(&self.python, "python"), &["-W", "ignore", &file])
            }
            other => panic!("unknown server {other}"),
        }
    }
}

/// One session: the server, the gateway's rules (`None` without a gateway), and the script.
struct Session {
    server: &'static str,
    rules: Option<&'static str>,
    elicits: bool,
    script: &'static str,
}

/// The transcript of a session.
struct Transcript {
    /// The messages that the client received.
    messages: Vec<Value>,
    /// The client's result of each step.
    results: String,
}

/// Creates the files of a server's working directory.
fn create_working_directory(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("a.txt"), "one\n").unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    fs::write(folder.join("large.png"), bytes).unwrap();
    fs::write(folder.join("sound.wav"), b"RIFF....WAVE".repeat(50)).unwrap();
}

/// Fills in a step's placeholders. A step with `crowd` becomes that many concurrent calls, numbered from 0.
fn expand_step(mut step: Value, folder: &Path, state: &str) -> Value {
    if let Some(count) = step["crowd"].as_u64() {
        let argument = step["argument"].as_str().unwrap();
        let calls = (0..count).map(|number| {
            json!({ "request": "tools/call", "params": { "name": step["name"], "arguments": { argument: number } } })
        });
        return json!({ "together": calls.collect::<Vec<_>>() });
    }
    if step["approve"] == true {
        step["approve"] = json!([
            env!("CARGO_BIN_EXE_callgate"),
            "approvals",
            "approve",
            "<id>",
            "--state",
            state,
            "--as",
            "someone"
        ]);
    }
    callgate::json::from_str(&step.to_string().replace("<dir>", &folder.display().to_string())).unwrap()
}

/// Runs the sessions with one client. Returns the transcript of each.
fn run_sessions(client: Client, sessions: &[Session]) -> Vec<Transcript> {
    let parts = InstalledPackages::new();
    // Some servers report canonical paths.
    let home = TempDir::new().unwrap();
    let home_path = home.path().canonicalize().unwrap();
    let mark = format!("gateway-{}-{:016x}", std::process::id(), fastrand::u64(..));
    let mode = match client {
        Client::Python(mode) | Client::TypeScript(mode) => mode,
    };
    let plans: Vec<Value> = sessions
        .iter()
        .enumerate()
        .map(|(number, session)| {
            let folder = home_path.join(format!("dir{number:02}"));
            create_working_directory(&folder);
            let log = home_path.join(format!("log{number:02}")).display().to_string();
            let state = format!("file:{}/state{number:02}.db", home_path.display());
            let mut command: Vec<String> =
                vec!["python3".into(), script("tap.py").display().to_string(), log, mark.clone()];
            if let Some(rules) = session.rules {
                command.extend([env!("CARGO_BIN_EXE_callgate").into(), "proxy".into()]);
                if !rules.is_empty() {
                    let file = home_path.join(format!("rules{number:02}.yaml"));
                    fs::write(&file, rules).unwrap();
                    command.extend([
                        "--policies".into(),
                        file.display().to_string(),
                        "--state".into(),
                        state.clone(),
                    ]);
                }
                command.push("--".into());
            }
            command.extend(parts.server(session.server, &folder));
            let text =
                fs::read_to_string(script("sessions").join(session.script).with_extension("json")).unwrap();
            let steps: Vec<Value> = callgate::json::from_str(&text).unwrap();
            let steps: Vec<Value> =
                steps.into_iter().map(|step| expand_step(step, &folder, &state)).collect();
            json!({ "mode": mode, "elicits": session.elicits, "command": command, "script": steps })
        })
        .collect();
    let plan = home_path.join("plan.json");
    fs::write(&plan, Value::from(plans).to_string()).unwrap();
    let mut command = match client {
        Client::Python(_) => {
            let mut command = Command::new(parts.python.join("bin/python"));
            command.args(["-W", "ignore"]).arg(script("client.py"));
            command
        }
        Client::TypeScript(_) => {
            // Node resolves the modules relative to the script.
            let file = parts.node.join(format!("client-{mark}.mjs"));
            fs::copy(script("client.mjs"), &file).unwrap();
            let mut command = Command::new("node");
            command.arg(file);
            command
        }
    };
    let (printed, is_done) = packages::run(command.arg(&plan), "");
    if let Client::TypeScript(_) = client {
        fs::remove_file(parts.node.join(format!("client-{mark}.mjs"))).unwrap();
    }
    let told = printed.lines().find_map(|line| callgate::json::from_str::<Vec<Value>>(line).ok());
    let told = told.filter(|_| is_done).unwrap_or_else(|| panic!("the client failed:\n{printed}"));
    assert_no_processes_left(&mark);
    let heard = told.into_iter().enumerate().map(|(number, told)| {
        let log = fs::read_to_string(home_path.join(format!("log{number:02}"))).unwrap();
        let folder = home_path.join(format!("dir{number:02}"));
        let mask = |text: &str| {
            mask(
                &text
                    .replace(&*folder.to_string_lossy(), "<dir>")
                    .replace(&*home_path.to_string_lossy(), "<home>"),
            )
        };
        Transcript {
            messages: log.lines().map(|line| callgate::json::from_str(&mask(line)).unwrap()).collect(),
            results: mask(&told.to_string()),
        }
    });
    heard.collect()
}

fn mask(text: &str) -> String {
    MASK.iter().fold(text.to_owned(), |text, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned()
    })
}

/// Asserts that all processes of a session end within a few seconds.
fn assert_no_processes_left(mark: &str) {
    let begun = Instant::now();
    loop {
        let left: Vec<PathBuf> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|process| {
                let environment = fs::read(process.join("environ")).unwrap_or_default();
                String::from_utf8_lossy(&environment).contains(&format!("CALLGATE_TEST={mark}"))
            })
            .collect();
        if left.is_empty() {
            return;
        }
        let commands: Vec<_> =
            left.iter().map(|process| fs::read_to_string(process.join("cmdline"))).collect();
        assert!(begun.elapsed() < Duration::from_secs(20), "processes are still running: {commands:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Groups messages, in order: a response with the progress notifications of its request, all other messages by method.
fn group_by_request(messages: &[Value]) -> BTreeMap<String, Vec<String>> {
    let mut subjects: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in messages {
        let subject = match (&message["method"], &message["params"]["progressToken"]) {
            (Value::Null, _) => format!("request {}", message["id"]),
            (_, token) if !token.is_null() => format!("request {token}"),
            (method, _) => method.to_string(),
        };
        subjects.entry(subject).or_default().push(message.to_string());
    }
    let number = Regex::new(r#""id":\d+"#).unwrap();
    for told in subjects.values_mut() {
        if told.iter().all(|message| message.contains("\"method\"") && message.contains("\"id\":")) {
            // The order of concurrent server requests is not deterministic.
            told.iter_mut()
                .for_each(|question| *question = number.replace(question, "\"id\":0").into_owned());
            told.sort();
        }
        // The number of progress notifications before a cancellation is not deterministic.
        if told.iter().all(|message| message.contains("progressToken")) {
            told.truncate(1);
        }
    }
    subjects
}

/// The differences between two sessions, as text. Empty if they are the same.
fn differences(direct: &Transcript, behind: &Transcript, change: impl Fn(&str) -> String) -> String {
    let (direct_by, behind_by) = (group_by_request(&direct.messages), group_by_request(&behind.messages));
    let mut differences = String::new();
    let mut compare = |subject: &str, direct: &str, behind: &str| {
        let direct = change(direct);
        if direct != behind {
            let at = direct.bytes().zip(behind.bytes()).take_while(|(one, other)| one == other).count();
            let part = |text: &str| {
                String::from_utf8_lossy(
                    text.as_bytes()
                        .iter()
                        .skip(at.saturating_sub(80))
                        .take(400)
                        .copied()
                        .collect::<Vec<u8>>()
                        .as_slice(),
                )
                .into_owned()
            };
            writeln!(differences, "{subject}:\n  direct  …{}\n  gateway …{}", part(&direct), part(behind))
                .unwrap();
        }
    };
    for subject in
        direct_by.keys().chain(behind_by.keys().filter(|subject| !direct_by.contains_key(*subject)))
    {
        let joined = |all: &BTreeMap<String, Vec<String>>| {
            all.get(subject).map(|all| all.join("\n")).unwrap_or_default()
        };
        compare(subject, &joined(&direct_by), &joined(&behind_by));
    }
    compare("the client's results", &direct.results, &behind.results);
    differences
}

const SERVERS: [&str; 7] = ["everything", "filesystem", "memory", "git", "time", "sqlite", "workshop"];
/// All calls run; email addresses are redacted.
const PERMISSIVE: &str = "policies:
  - { id: all, match: '*', allow: {} }
  - { id: hidden, match: '*', redact: { in: output, detect: email } }";

/// Runs every session of the corpus directly, through a gateway without rules, and through one with permissive rules. The messages are the
/// same, except for the capabilities that the gateway declares.
fn assert_transparent(client: Client) {
    let session = |server: &'static str, rules| Session { server, rules, elicits: true, script: server };
    let sessions: Vec<Session> = SERVERS
        .into_iter()
        .flat_map(|server| {
            [session(server, None), session(server, Some("")), session(server, Some(PERMISSIVE))]
        })
        .collect();
    let heard = run_sessions(client, &sessions);
    let address = Regex::new(r"\b(ada|bob)@example\.com\b").unwrap();
    let mut all = String::new();
    for (server, heard) in SERVERS.iter().zip(heard.chunks(3)) {
        let [direct, without_rules, permissive] = heard else { panic!("three sessions of each server") };
        assert!(direct.messages.len() > 5, "{server} sent too few messages");
        let plain = differences(direct, without_rules, str::to_owned);
        // If rules can change, the gateway itself sends `tools/list_changed` and declares that to the clients it can notify: these
        // servers support no subscriptions, so the client must have initialized a session.
        let declared = |text: &str| match text.contains(r#""protocolVersion":"#) {
            true => text.replace(r#""tools":{"listChanged":false}"#, r#""tools":{"listChanged":true}"#),
            false => text.to_owned(),
        };
        let hidden = differences(direct, permissive, |text| {
            address.replace_all(&declared(text), "[email]").into_owned()
        });
        write!(
            all,
            "{}",
            [("without rules", plain), ("with permissive rules", hidden)]
                .map(|(rules, found)| match found.is_empty() {
                    true => String::new(),
                    false => format!("## {server}, {rules}\n{found}\n"),
                })
                .concat()
        )
        .unwrap();
    }
    assert!(all.is_empty(), "the gateway is not transparent:\n{all}");
}

#[test]
fn gateway_is_transparent_to_the_python_client() {
    assert_transparent(Client::Python("auto"));
}

#[test]
fn gateway_is_transparent_to_the_legacy_python_client() {
    assert_transparent(Client::Python("legacy"));
}

#[test]
fn gateway_is_transparent_to_the_typescript_client() {
    assert_transparent(Client::TypeScript("auto"));
}

#[test]
fn gateway_is_transparent_to_the_typescript_client_version_one() {
    assert_transparent(Client::TypeScript("sdk"));
}

/// Strict rules: unlisted tools, denied calls, and calls that require approval.
const STRICT: &str = "policies:
  - { id: no-writes, match: [write_file, move_file, touch], deny: { code: read_only, message: Nothing is written here } }
  - { id: not-there, match: { tool: read_text_file, where: { path: $.input.path, starts_with: /etc } }, deny: {} }
  - { id: ask-first, match: [list_directory, structured], approval: { message: May it look? } }
  - { id: ask-too, match: ask, approval: { message: May it ask? } }";

fn assert_strict_session(name: &str, client: Client, server: &'static str, elicits: bool) {
    let script = match (server, elicits) {
        ("filesystem", true) => "strict_filesystem",
        ("filesystem", false) => "asked_filesystem",
        (_, true) => "strict_workshop",
        (_, false) => "asked_workshop",
    };
    let heard = run_sessions(client, &[Session { server, rules: Some(STRICT), elicits, script }]);
    let mut lines: Vec<String> = heard[0].messages.iter().map(Value::to_string).collect();
    lines.push(format!("The client made of it: {}", heard[0].results));
    let mut settings = Settings::new();
    settings.set_snapshot_path("../../snapshots/gateway");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, lines.join("\n\n")));
}

#[test]
fn strict_rules_with_the_python_client() {
    assert_strict_session("strict_python", Client::Python("auto"), "workshop", true);
    assert_strict_session("strict_python_legacy", Client::Python("legacy"), "workshop", true);
}

#[test]
fn strict_rules_with_the_typescript_clients() {
    assert_strict_session("strict_typescript", Client::TypeScript("auto"), "workshop", true);
    assert_strict_session("strict_typescript_sdk", Client::TypeScript("sdk"), "filesystem", true);
}

#[test]
fn call_runs_after_approval_on_the_command_line() {
    assert_strict_session("approved_elsewhere_python", Client::Python("auto"), "workshop", false);
    assert_strict_session(
        "approved_elsewhere_typescript_sdk",
        Client::TypeScript("sdk"),
        "filesystem",
        false,
    );
}
