//! Tools of MCP servers that the decision server runs itself, on servers that misbehave.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use callgate::Engine;
use callgate::json::{self, Value, json};
use callgate_mcp::{Gateway, ServerSpec, StdioSpec, ToolServers, Transport};
use tempfile::TempDir;

use super::harness::{Reply, RunningServer, call};
use super::process::{ServerProcess, send};
use crate::fixtures::root;

const RULES: &str = "policies:
  - { id: never, match: { server: files, tool: forbidden }, deny: { message: 'Not here' } }
  - { id: ask, match: { server: files, tool: guarded }, approval: { message: 'Do it?', expires: 1h } }
  - { id: cards, match: { server: files, tool: give }, redact: { detect: [payment_card] } }
  - { id: brief, match: { server: files, tool: never }, timeout: 200ms }
";

/// A gateway to a server that misbehaves as its calls ask for, with its files in a folder.
fn gateway(engine: &Engine, folder: &Path, name: &str) -> Gateway {
    let script = root().join("tests/gateway/faulty.py");
    let spec = StdioSpec {
        command: "python3".to_owned(),
        args: [&script, folder, Path::new(name)].map(|path| path.display().to_string()).to_vec(),
        env: Vec::new(),
        cwd: None,
    };
    let reach = Transport::Child(spec);
    Gateway::new(engine.clone(), [ServerSpec::new(name, reach).with_prefix(format!("{name}__"))])
}

/// A decision server with the server `files`, after a change of its gateway.
async fn start(folder: TempDir, change: impl FnOnce(Gateway) -> Gateway) -> RunningServer {
    let files = folder.path().to_owned();
    RunningServer::start_with(RULES, folder, &["lookup"], |server, engine| {
        let gateway = change(gateway(engine, &files, "files"));
        server.with_tool_servers(ToolServers::connect(engine, [gateway]).unwrap())
    })
    .await
}

async fn started() -> RunningServer {
    start(tempfile::tempdir().unwrap(), |gateway| gateway).await
}

/// Runs a call of a tool of the server `files` to its outcome.
async fn run(server: &RunningServer, id: &str, tool: &str, input: Value) -> Value {
    outcome(&server.post("/v1/calls", &call(id, &format!("files__{tool}"), input)).await)
}

fn outcome(reply: &Reply) -> Value {
    assert_eq!(reply.body["status"], "completed", "{reply:?}");
    reply.body["outcome"].clone()
}

/// The messages that the server `files` has received, of this method.
fn received(server: &RunningServer, method: &str) -> Vec<Value> {
    let log = fs::read_to_string(server.folder.path().join("log")).unwrap();
    let messages = log.lines().map(|line| json::parse(line).unwrap());
    messages.filter(|message| message["method"] == method).collect()
}

#[tokio::test]
async fn runs_calls_on_its_servers_and_leaves_the_others_to_the_host() {
    let server = started().await;
    let done = run(&server, "c1", "echo", json!({ "text": "it" })).await;
    assert_eq!(done["outcome"], "executed", "{done}");
    assert_eq!(done["output"]["content"][0]["text"], "done it");
    let denied = run(&server, "c2", "forbidden", json!({})).await;
    assert_eq!((&denied["outcome"], &denied["reason"]["message"]), (&json!("denied"), &json!("Not here")));
    let card = json!({ "result": { "content": [ { "type": "text", "text": "4111 1111 1111 1111" } ] } });
    let redacted = run(&server, "c3", "give", card).await;
    assert_eq!(redacted["output"]["content"][0]["text"], "[payment_card]", "{redacted}");
    for tool in [json!({ "tool": "lookup" }), json!({ "tool": "echo", "server": "other" })] {
        let reply = server.post("/v1/calls", &json!({ "call": tool })).await;
        assert_eq!(reply.body["status"], "execute", "{reply:?}");
    }
    let names: Vec<Value> =
        received(&server, "tools/call").iter().map(|call| call["params"]["name"].clone()).collect();
    assert_eq!(names, [json!("echo"), json!("give")]);
}

#[tokio::test]
async fn lists_the_tools_that_may_run() {
    let server = started().await;
    let tools = server.send("GET", "/v1/tools", "", None).await.body["tools"].clone();
    let find = |name: &str| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
    let of_server = json!({ "name": "files__echo", "server": "files", "description": "Does it.", "input_schema": { "type": "object" },
        "output_schema": null, "annotations": null, "executed_by": "server" });
    assert_eq!(find("files__echo"), Some(&of_server));
    assert_eq!(find("lookup").map(|tool| &tool["executed_by"]), Some(&json!("host")));
    assert_eq!(find("files__forbidden"), None, "a tool that is always denied is hidden");
}

#[tokio::test]
async fn an_approved_call_runs_once_with_the_history_of_its_host() {
    let server = started().await;
    let messages = json!([ { "role": "user", "content": "do it" }, { "role": "assistant", "content": null, "tool_calls": [
        { "id": "c1", "type": "function", "function": { "name": "files__guarded", "arguments": "{}" } } ] } ]);
    let body = json!({ "session": "chat", "messages": messages });
    let round = server.post("/v1/histories/openai-chat/round", &body).await;
    assert_eq!(round.body["suspended"], true, "{round:?}");
    let pending = server.pending().await;
    assert_eq!(pending[0]["server"], "files", "{pending:?}");
    server.answer(&pending[0], "approve").await;
    let body = json!({ "session": "chat", "messages": round.body["messages"] });
    for _ in 0..2 {
        let resumed = server.post("/v1/histories/openai-chat/resume", &body).await;
        assert!(resumed.body["messages"].to_string().contains("done "), "{resumed:?}");
    }
    assert_eq!(received(&server, "tools/call").len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_fails_its_call_and_is_started_again() {
    let server = started().await;
    let failed = run(&server, "c1", "die", json!({})).await;
    assert_eq!(failed["outcome"], "failed", "{failed}");
    assert!(failed["error"].as_str().unwrap().contains("may have taken effect"), "{failed}");
    assert_eq!(run(&server, "c2", "echo", json!({})).await["outcome"], "executed");
}

#[tokio::test]
async fn a_call_in_progress_at_a_kill_does_not_run_again() {
    let server = started().await;
    let slow = json!({ "call": { "id": "c1", "tool": "files__slow", "input": { "seconds": 600 } }, "session": "s1" });
    let running = server.post("/v1/calls?wait=1", &slow).await;
    assert_eq!(running.body["status"], "running", "{running:?}");
    let folder = server.kill().await;
    let server = start(folder, |gateway| gateway).await;
    assert_eq!(outcome(&server.post("/v1/calls", &slow).await)["outcome"], "indeterminate");
    assert_eq!(received(&server, "tools/call").len(), 1);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    let server = started().await;
    let given_up = run(&server, "c1", "never", json!({})).await;
    assert_eq!(given_up["outcome"], "indeterminate", "{given_up}");
    let id = received(&server, "tools/call")[0]["id"].clone();
    for _ in 0..500 {
        if let [cancelled] = received(&server, "notifications/cancelled").as_slice() {
            assert_eq!(cancelled["params"]["requestId"], id);
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server was not notified");
}

#[tokio::test]
async fn a_server_can_ask_nobody() {
    let server = started().await;
    let asked = run(&server, "c1", "ask", json!({ "message": "Who?" })).await;
    assert!(asked["output"]["content"][0]["text"].as_str().unwrap().contains("-32601"), "{asked}");
    let form = run(&server, "c2", "form", json!({ "times": 1 })).await;
    assert_eq!(form["outcome"], "failed", "{form}");
    assert!(form["error"].as_str().unwrap().contains("asks for input"), "{form}");
}

#[tokio::test]
async fn names_that_a_lenient_server_reads_as_others_are_rejected() {
    let server = started().await;
    for path in ["/v1/decide", "/v1/calls"] {
        let reply = server
            .post(path, &json!({ "call": { "tool": "FORBIDDEN", "server": "files", "input": {} } }))
            .await;
        assert_eq!((reply.status, &reply.body["code"]), (422, &json!("ambiguous_call")), "{reply:?}");
    }
    assert!(received(&server, "tools/call").is_empty());
}

#[tokio::test]
async fn a_tool_that_nobody_has_reviewed_is_neither_listed_nor_run() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("pins.json");
    let server = start(folder, |gateway| gateway.with_pins(lock, None).unwrap()).await;
    let tools = server.send("GET", "/v1/tools", "", None).await;
    assert_eq!(tools.body["tools"].as_array().map(Vec::len), Some(1), "only the host's: {tools:?}");
    let reply = server.post("/v1/calls", &call("c1", "files__echo", json!({}))).await;
    assert_eq!((reply.status, &reply.body["code"]), (403, &json!("tool_quarantined")), "{reply:?}");
    assert!(received(&server, "tools/call").is_empty());
}

#[tokio::test]
async fn a_server_that_does_not_start_is_unavailable_until_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("dead");
    fs::write(&dead, "").unwrap();
    let server = start(folder, |gateway| gateway).await;
    let echo =
        json!({ "call": { "id": "c1", "tool": "echo", "server": "files", "input": {} }, "session": "s1" });
    let reply = server.post("/v1/calls", &echo).await;
    assert_eq!((reply.status, &reply.body["code"]), (503, &json!("server_unavailable")), "{reply:?}");
    assert!(reply.header("retry-after").is_some());
    fs::remove_file(dead).unwrap();
    assert_eq!(outcome(&server.post("/v1/calls", &echo).await)["outcome"], "executed");
}

#[tokio::test]
async fn a_name_that_two_servers_have_belongs_to_the_one_that_the_call_names() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let paths = folders.each_ref().map(|folder| folder.path().to_owned());
    let [folder, _other] = folders;
    let server = RunningServer::start_with(RULES, folder, &[], |server, engine| {
        let gateways = [gateway(engine, &paths[0], "files"), gateway(engine, &paths[1], "mail")];
        server.with_tool_servers(ToolServers::connect(engine, gateways).unwrap())
    })
    .await;
    let effect = async |call: Value| {
        let reply = server.post("/v1/decide", &json!({ "call": call })).await;
        reply.body["decision"]["effect"].clone()
    };
    assert_eq!(effect(json!({ "tool": "forbidden", "server": "files" })).await, "deny");
    assert_eq!(effect(json!({ "tool": "files__forbidden" })).await, "deny");
    assert_eq!(effect(json!({ "tool": "forbidden", "server": "mail" })).await, "run");
    assert_eq!(effect(json!({ "tool": "mail__forbidden" })).await, "run");
}

#[test]
fn the_command_line_starts_servers_and_rejects_what_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rules.yaml"), RULES).unwrap();
    let script = root().join("tests/gateway/faulty.py");
    let command = format!("command: [python3, {}, ., files]", script.display());
    let write = |text: String| fs::write(folder.path().join("servers.yaml"), text).unwrap();
    for (text, why) in [
        (format!("servers: [ {{ name: files, {command} }} ]\nstate: 'file:x.db'"), "`state` in `servers.yaml`"),
        (format!("servers: [ {{ name: files, {command}, policies: rules.yaml }} ]"), "add `server: files` to their `match`"),
        (
            "servers: [ { name: files, url: 'https://x.test/mcp', auth: { pass_through: { audience: x } } } ]".to_owned(),
            "which only `callgate proxy` has",
        ),
    ] {
        write(text);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_callgate"));
        command.args(["serve", "--policies", "rules.yaml", "--servers", "servers.yaml", "--listen", "127.0.0.1:0"]);
        let output = command.current_dir(&folder).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && printed.contains(why), "{printed}");
    }
    write(format!("servers: [ {{ name: files, {command} }} ]"));
    let server =
        ServerProcess::start(folder.path(), &["--servers", "servers.yaml", "--listen", "127.0.0.1:0"]);
    let done = server.send("POST", "/v1/calls", &call("c1", "files__echo", json!({ "text": "it" })));
    assert_eq!(done["outcome"]["output"]["content"][0]["text"], "done it", "{done}");
}

#[test]
fn servers_follow_their_file() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [folder, mail, other_mail] = &folders;
    fs::write(folder.path().join("rules.yaml"), RULES).unwrap();
    let script = root().join("tests/gateway/faulty.py");
    let server = |name: &str, folder: &TempDir| {
        let paths = [&script, folder.path()].map(|path| path.display().to_string());
        format!("  - {{ name: {name}, command: {} }}\n", json!(["python3", paths[0], paths[1], name]))
    };
    let write = |servers: &[String], more: &str| {
        fs::write(folder.path().join("servers.yaml"), format!("servers:\n{}{more}", servers.concat()))
            .unwrap();
    };
    let count = |folder: &TempDir, method: &str| {
        let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        log.lines().filter(|line| json::parse(line).unwrap()["method"] == method).count()
    };
    let files = server("files", folder);
    write(std::slice::from_ref(&files), "");
    let process =
        ServerProcess::start(folder.path(), &["--servers", "servers.yaml", "--listen", "127.0.0.1:0"]);
    let run = |id: &str, tool: &str, input: Value| process.send("POST", "/v1/calls", &call(id, tool, input));
    let names = || {
        let listed = process.send("GET", "/v1/tools", &Value::Null)["tools"].clone();
        let name = |tool: &Value| tool["name"].as_str().unwrap().split("__").next().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(name).collect::<BTreeSet<String>>()
    };
    let wait_for = |expected: &[&str]| {
        while !names().iter().eq(expected) {
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    wait_for(&["files"]);
    assert_eq!(run("c1", "mail__echo", json!({}))["status"], "execute", "the host's own tool");
    let handshakes = count(folder, "initialize");

    write(&[files.clone(), server("mail", mail)], "");
    wait_for(&["files", "mail"]);
    assert_eq!(run("c2", "mail__echo", json!({}))["outcome"]["outcome"], "executed");

    // A file with other changes is rejected as a whole; the next good one is used.
    write(std::slice::from_ref(&files), "context: { principal: eve }\n");
    // A call in progress at a server that is replaced completes there.
    let slow = run_in_background(&process, &call("c3", "mail__slow", json!({ "seconds": 4 })));
    while count(mail, "tools/call") < 2 {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(names().len(), 2);
    write(&[files, server("mail", other_mail)], "");
    while count(other_mail, "tools/list") == 0 {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(run("c4", "mail__echo", json!({}))["outcome"]["outcome"], "executed");
    assert_eq!((count(other_mail, "tools/call"), count(mail, "tools/call")), (1, 2));
    assert_eq!(slow.join().unwrap()["outcome"]["outcome"], "executed");
    assert_eq!(count(folder, "initialize"), handshakes, "the server that stays is not restarted");

    write(&[server("mail", other_mail)], "");
    wait_for(&["mail"]);
    assert_eq!(run("c5", "files__echo", json!({}))["status"], "execute", "no server has it any more");
    assert_eq!(count(folder, "tools/call"), 0);
}

/// Sends a call from a thread of its own.
fn run_in_background(process: &ServerProcess, body: &Value) -> std::thread::JoinHandle<Value> {
    let (address, token, body) = (process.address, process.token.clone(), body.clone());
    std::thread::spawn(move || {
        let headers = format!("authorization: Bearer {token}\r\n");
        send(address, ("POST", "/v1/calls"), &headers, &body).unwrap().1
    })
}
