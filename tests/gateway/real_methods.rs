//! Policies for MCP methods in front of the reference server `server-everything`: resources, prompts, sampling and elicitation.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use callgate::json::{self, Value, json};
use tempfile::TempDir;

use super::script;
use crate::packages;

const RULES: &str = r#"
policies:
  - { id: no-blobs, match: { method: resources/read, where: { path: $.input.uri, starts_with: "demo://resource/dynamic/blob/" } }, deny: { message: No blobs } }
  - { id: no-args-prompt, match: { method: prompts/get, where: { path: $.input.name, eq: args-prompt } }, deny: {} }
  - { id: no-simple-prompt, match: { method: prompts/get, where: { path: $.input.name, eq: simple-prompt } }, deny: {} }
  - { id: no-sampling, match: { method: sampling/createMessage }, deny: {} }
  - { id: no-forms, match: { method: elicitation/create }, respond: { output: { action: decline } } }
"#;

/// A client of the gateway in front of the server.
struct Client {
    gateway: Child,
    say: ChildStdin,
    heard: Lines<BufReader<ChildStdout>>,
    /// The methods of the requests that the server sent.
    asked: Vec<String>,
    _rules: TempDir,
}

impl Client {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let rules = directory.path().join("rules.yaml");
        std::fs::write(&rules, RULES).unwrap();
        let packages = packages::node("mcp-node", &script(""));
        let server = packages.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        let mut gateway = Command::new(env!("CARGO_BIN_EXE_callgate"))
            .args(["proxy", "--policies"])
            .arg(rules)
            .args(["--", "node"])
            .arg(server)
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (say, heard) = (gateway.stdin.take().unwrap(), gateway.stdout.take().unwrap());
        let heard = BufReader::new(heard).lines();
        let mut client = Self { gateway, say, heard, asked: Vec::new(), _rules: directory };
        let capabilities = json!({ "sampling": {}, "elicitation": {}, "roots": {} });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "t", "version": "0" } });
        client.request(0, "initialize", hello);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.say, "{message}").unwrap();
    }

    /// The response to a request. Requests of the server are noted, and answered with an error.
    fn request(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message: Value = json::from_str(&self.heard.next().unwrap().unwrap()).unwrap();
            match (message["method"].as_str(), &message["id"]) {
                (Some(_), Value::Null) => {}
                (Some(method), asked) => {
                    self.asked.push(method.to_owned());
                    let error = json!({ "code": -1, "message": "no" });
                    self.send(&json!({ "jsonrpc": "2.0", "id": asked.clone(), "error": error }));
                }
                (None, answered) if *answered == id => return message,
                (None, _) => {}
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

#[test]
fn methods_of_the_reference_server_are_restricted() {
    let mut client = Client::new();
    let read = |client: &mut Client, uri: &str| client.request(1, "resources/read", json!({ "uri": uri }));
    assert!(read(&mut client, "demo://resource/dynamic/text/1")["result"]["contents"].is_array());
    assert_eq!(read(&mut client, "demo://resource/dynamic/blob/1")["error"]["message"], "No blobs");
    let prompt =
        client.request(2, "prompts/get", json!({ "name": "args-prompt", "arguments": { "city": "Rome" } }));
    assert_eq!(prompt["error"]["data"]["dev.callgate/outcome"]["policy"], "no-args-prompt", "{prompt}");
    let listed = client.request(3, "prompts/list", json!({})).to_string();
    assert!(!listed.contains("simple-prompt") && listed.contains("args-prompt"), "{listed}");
    let sampled = client.request(
        4,
        "tools/call",
        json!({ "name": "trigger-sampling-request", "arguments": { "prompt": "hello", "maxTokens": 5 } }),
    );
    assert!(sampled.to_string().contains("not permitted"), "{sampled}");
    let elicited =
        client.request(5, "tools/call", json!({ "name": "trigger-elicitation-request", "arguments": {} }));
    assert!(elicited.to_string().contains("declined"), "{elicited}");
    client.asked.retain(|method| method != "roots/list");
    assert_eq!(client.asked, Vec::<String>::new(), "what policies don't permit does not reach the client");
}
