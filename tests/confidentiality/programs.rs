//! The same property for the programs: the output, the files and the messages of `callgate run`, `callgate approvals` and the gateway.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io::Write};

use callgate::Engine;
use callgate::engine;
use callgate::json::{Value, json};
use callgate::seal::Keys;
use callgate_mcp::{Gateway, ServerSpec, StdioSpec, Transport};
use callgate_sqlite::SqliteStore;
use tokio::io::AsyncReadExt;

use super::search::Search;
use super::{KEY, files};

const SECRET: &str = "CANARY 0badcafe/77";
const PIN: &str = "483920175";
const RULES: &str = r#"
policies:
  - id: hide
    match: { tool: [setPin, safe, danger] }
    redact: { patterns: ["CANARY [0-9a-f]{8}/[0-9]{2}", "^\\d{9}$"], with: hash }
  - id: ask
    match: { tool: [setPin, danger] }
    approval: { message: "Set {{ input.pin }} for {{ input.who }}?", expires: 24h, edits: [$.input.note], remember: { scope: arguments, for: 1h } }
  - { id: keep, match: setPin, fact: { name: pin, key: $.input.who, value: $.input.pin } }
  - { id: limit, match: { tool: [setPin, safe] }, rate_limit: { limit: 5, per: 1h, key: [$.input.pin, $.input.who] } }
  - { id: cache, match: safe, cache: { ttl: 1h } }
  - id: wrong
    match: { tool: unlock, where: [ { path: $.session.facts.pin, exists: true } ] }
    deny: { message: "not {{ session.facts.pin }}" }
"#;

fn input() -> Value {
    json!({ "pin": PIN, "who": SECRET, "note": "n", "text": format!("{SECRET} has {PIN}") })
}

fn search() -> Search {
    let input = input();
    let documents = ["setPin", "safe", "danger"].map(|tool| json!([tool, null, input])).into_iter();
    let values = [json!([PIN]), json!([SECRET]), json!([[PIN], [SECRET]]), input.clone()];
    Search::new(&[SECRET.to_owned(), PIN.to_owned()], &documents.chain(values).collect::<Vec<_>>())
}

/// Runs the binary in a directory and returns its output from both streams.
fn callgate(directory: &Path, arguments: &[&str], stdin: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
        .current_dir(directory)
        .args(arguments)
        .env_remove("CALLGATE_KEYS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may exit before it reads all of its input.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn i10_command_line_prints_and_stores_no_secret() {
    let rules = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    fs::write(rules.path().join("rules.yaml"), RULES).unwrap();
    let policies = rules.path().display().to_string();
    let call = |id: &str, tool: &str, input: Value, more: Value| json!({ "id": id, "tool": tool, "input": input, "session": "s", "context": { "principal": "bot" }, "recorded": more });
    let text = format!("failed for {SECRET}, {PIN}");
    let calls = [
        call("c1", "setPin", input(), json!({ "output": input() })),
        call("c2", "safe", input(), json!({ "output": text })),
        call("c3", "safe", json!({ "pin": PIN, "who": SECRET, "other": 1 }), json!({ "error": text })),
        call("c4", "unlock", json!({ "at": 1 }), json!({ "output": 1 })),
    ];
    let calls: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let with = |arguments: &[&str], stdin: &str| {
        callgate(place.path(), &[arguments, &["--state", "file:json.db"]].concat(), stdin)
    };
    let run = |more: &[&str]| {
        [("json", "file:json.db"), ("text", "file:text.db")].map(|(format, state)| {
            let run = ["run", "--policies", &policies, "--format", format, "--state", state, "-"];
            callgate(place.path(), &[&run, more].concat(), &calls)
        })
    };
    let mut printed: Vec<String> = run(&[]).to_vec();
    assert!(printed[0].contains("approval_required"), "{printed:#?}");
    for format in ["json", "text"] {
        printed.push(with(&["approvals", "list", "--all", "--format", format], ""));
        printed.push(with(&["approvals", "show", "approval_c1", "--format", format], ""));
    }
    let edit = ["approvals", "edit", "approval_c1", "--set", "$.input.note=\"x\"", "--as", "ana"];
    printed.push(with(&edit, ""));
    printed.extend(run(&["--resume"]));
    printed.push(with(&["approvals", "grants", "--all", "--format", "json"], ""));
    printed.push(with(&["approvals", "list", "--all", "--format", "json"], ""));
    printed.push(callgate(place.path(), &["explain", "--policies", &policies, "-"], &calls));
    let search = search();
    for printed in &printed {
        // Output of a failed command would prove nothing.
        assert!(!printed.contains("error:"), "{printed}");
        assert_eq!(search.find(printed.as_bytes()), None, "{printed}");
    }
    assert!(printed.iter().any(|printed| printed.contains("executed")), "{printed:#?}");
    assert_eq!(search.find(&files(place.path())), None);
}

#[test]
fn i10_gateway_sends_and_stores_no_secret() {
    let place = tempfile::tempdir().unwrap();
    let logs = tempfile::tempdir().unwrap();
    let recorder = crate::gateway::script("recorder.py").display().to_string();
    let log = logs.path().join("log").display().to_string();
    let args = ["-S", "-E", &recorder, &log].map(str::to_owned).to_vec();
    let child = StdioSpec { command: "python3".to_owned(), args, env: Vec::new(), cwd: None };
    let server = ServerSpec::new("server", Transport::Child(child));
    let store = Arc::new(SqliteStore::open(&place.path().join("state.db")).unwrap());
    let engine: Engine = Engine::builder(engine::load_text(RULES).unwrap())
        .keys(Keys::parse(KEY).unwrap())
        .store(store)
        .build();
    let gateway = Arc::new(Gateway::new(engine, [server]).with_session("s"));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let call = |id: u64, tool: &str, more: Value| {
        let mut params = json!({ "name": tool, "arguments": input(), "_meta": meta });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string() + "\n"
    };
    let asked = answers(&gateway, &[call(1, "danger", json!({})), call(2, "safe", json!({}))].concat());
    let answer: Vec<Value> = asked.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let state = answer.iter().find_map(|answer| answer["result"]["requestState"].as_str()).unwrap();
    let approving = json!({
        "requestState": state,
        "inputResponses": { "dev.callgate/approval": { "action": "accept", "content": { "decision": "approve" } } },
    });
    let approved = answers(&gateway, &call(3, "danger", approving));
    assert!(approved.contains("danger did it"), "{approved}");
    let search = search();
    for sent in [asked, approved] {
        assert_eq!(search.find(sent.as_bytes()), None, "{sent}");
    }
    drop(gateway);
    assert_eq!(search.find(&files(place.path())), None);
    assert!(
        fs::read_to_string(logs.path().join("log")).unwrap().contains(PIN),
        "the server did not get the unredacted arguments"
    );
}

/// Everything that a client receives if it sends these lines and then closes its end.
fn answers(gateway: &Arc<Gateway>, said: &str) -> String {
    let (to, mut from) = tokio::io::duplex(1 << 20);
    let mut heard = String::new();
    let session = async {
        let (served, read) = tokio::join!(
            Arc::clone(gateway).serve_stdio(said.as_bytes(), to),
            from.read_to_string(&mut heard)
        );
        served.unwrap();
        read.unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), session).await.unwrap() });
    heard
}
