//! The gateway's command in the README, run with the real server.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use callgate::json::{Value, json};

use super::markdown::Page;
use crate::fixtures::root;
use crate::packages;

/// Runs the gateway's command, with the installed server instead of the one that `npx` would fetch. It does what the page says.
#[test]
fn readme_gateway_command_does_what_the_page_says() {
    let home = tempfile::tempdir().unwrap();
    let shop = home.path().join("shop");
    fs::create_dir_all(shop.join(".github/workflows")).unwrap();
    fs::write(shop.join("notes.txt"), "the key is AKIAIOSFODNN7EXAMPLE\n").unwrap();
    let page = Page::read("README.md".as_ref());
    let block = |language: &str, part: &str| {
        let mut blocks = page.blocks.iter().filter(|block| block.language == language);
        blocks.find(|block| block.text.contains(part)).unwrap().text.clone()
    };
    fs::write(home.path().join("mine.yaml"), block("yaml", "nothing-is-moved")).unwrap();
    let context = json!({ "workspace": shop });
    fs::write(home.path().join("context.json"), context.to_string()).unwrap();
    let call = |id: u32, tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        call(3, "write_file", json!({ "path": home.path().join("other.txt"), "content": "x" })),
        call(4, "write_file", json!({ "path": shop.join(".github/workflows/ci.yml"), "content": "x" })),
        call(5, "read_text_file", json!({ "path": shop.join("notes.txt") })),
    ];
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    fs::write(home.path().join("messages"), lines).unwrap();

    let server = packages::node("mcp-node", &root().join("tests/gateway"))
        .join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let command = block("sh", "callgate proxy")
        .replace("policies/filesystem", &root().join("policies/filesystem").display().to_string())
        .replace("npx -y @modelcontextprotocol/server-filesystem", &format!("node {}", server.display()));
    // The client keeps its input open until its last request is answered.
    let client =
        r#"{ cat messages; for _ in $(seq 500); do grep -qs '"id":5' said && break; sleep 0.1; done; }"#;
    let line = format!(
        "export HOME={}; set -o pipefail; {client} | {{ {command}\n}} | tee said",
        home.path().display()
    );
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_callgate"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-c", &line]).env("PATH", path).env_remove("CALLGATE_KEYS").current_dir(home.path());
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = printed.lines().map(|line| callgate::json::from_str(line).unwrap()).collect();
    let answer = |id: u32| &answers.iter().find(|answer| answer["id"] == id).unwrap()["result"];
    let tools = answer(2)["tools"].as_array().unwrap();
    assert!(tools.len() > 10 && tools.iter().all(|tool| tool["name"] != "move_file"));
    let text = |id: u32| answer(id)["content"][0]["text"].as_str().unwrap();
    let shown = page.code_spans.iter().find(|span| span.target.starts_with("Not run (outside_workspace)"));
    let shown = &shown.unwrap().target;
    assert!(shown.split('…').all(|part| text(3).contains(part.trim())), "{}", text(3));
    assert!(text(4).starts_with("Not run: pending approval."), "{}", text(4));
    assert!(!text(5).contains("AKIA") && text(5).starts_with("the key is"), "{}", text(5));
    assert!(!home.path().join("other.txt").exists() && !shop.join(".github/workflows/ci.yml").exists());
}
