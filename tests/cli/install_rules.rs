//! `callgate install` with rules of single servers, the probe of what they leave, and the context that they need.

use std::fs;

use callgate::json::{Value, json};

use super::TestDir;

/// A server with three tools.
const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) [ -n "$TOKEN" ] && printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"read","inputSchema":{"type":"object"}},{"name":"write","inputSchema":{"type":"object"}},{"name":"drop","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
  esac
done"#;

const COMMON: &str = "policies: [{ id: no-drop, match: { tool: drop }, deny: {} }]";
const OF_GITHUB: &str = "policies: [{ id: own-rule, match: { tool: write, where: [{ path: $.context.tenant, eq: a }] }, deny: {} }]";

/// A client's config file with these servers, and rules.
fn test_dir(servers: &Value) -> TestDir {
    let dir = TestDir::new(&[("common.yaml", COMMON), ("github.yaml", OF_GITHUB), ("server.sh", SERVER)]);
    fs::write(dir.0.path().join("mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    dir
}

fn server(env: &Value) -> Value {
    json!({ "command": "sh", "args": ["server.sh"], "env": env })
}

impl TestDir {
    fn args_of(&self, server: &str) -> Vec<String> {
        let text = fs::read_to_string(self.0.path().join("mcp.json")).unwrap();
        let config: Value = callgate::json::from_str(&text).unwrap();
        let args = config["mcpServers"][server]["args"].as_array().unwrap();
        args.iter().map(|word| word.as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    }
}

const INSTALL: [&str; 4] = ["install", "cursor", "--file", "mcp.json"];

#[test]
fn servers_have_rules_of_their_own_beside_the_common_ones() {
    let dir = test_dir(&json!({ "github": server(&json!({})), "files": server(&json!({})) }));
    let more = ["--policies", "common.yaml", "--server-policies", "github=github.yaml"];
    let installed = dir.run(&[&INSTALL[..], &more].concat());
    assert_eq!(installed.code, Some(0), "{}", installed.transcript());
    let github =
        ["proxy", "--name", "github", "--policies", "common.yaml", "github.yaml", "--", "sh", "server.sh"];
    assert_eq!(dir.args_of("github"), github);
    assert_eq!(
        dir.args_of("files"),
        ["proxy", "--name", "files", "--policies", "common.yaml", "--", "sh", "server.sh"]
    );
    // What is no longer named is no longer used.
    let updated = dir.run(&[&INSTALL[..], &["--policies", "common.yaml"]].concat());
    assert_eq!(updated.code, Some(0), "{}", updated.transcript());
    assert_eq!(dir.args_of("github").len(), 8);
}

#[test]
fn a_server_without_any_rules_is_not_put_behind_a_gateway_that_allows_everything() {
    let dir = test_dir(&json!({ "github": server(&json!({})), "files": server(&json!({})) }));
    let installed = dir.run(&[&INSTALL[..], &["--server-policies", "github=github.yaml"]].concat());
    assert_eq!(installed.code, Some(1), "{}", installed.transcript());
    assert!(installed.stdout.contains("there are no rules for it"), "{}", installed.transcript());
    assert_eq!(dir.args_of("files"), ["server.sh"]);
    for (value, problem) in [
        ("gihub=github.yaml", "did you mean `github`"),
        ("github", "SERVER=PATH"),
        ("github=missing.yaml", "missing.yaml"),
    ] {
        let refused = dir.run(&[&INSTALL[..], &["--server-policies", value]].concat());
        assert!(
            refused.code == Some(2) && refused.stderr.contains(problem),
            "{value}: {}",
            refused.transcript()
        );
    }
}

#[test]
fn the_probe_says_which_tools_remain() {
    let dir = test_dir(&json!({
        "github": server(&json!({ "TOKEN": "x" })),
        "missing": json!({ "command": "./no-such-server" }),
        "expanded": server(&json!({ "TOKEN": "${TOKEN}" })),
    }));
    let arguments = [&INSTALL[..], &["--policies", "common.yaml", "--probe"]].concat();
    let shown = dir.run(&[&arguments[..], &["--dry-run"]].concat());
    assert!(shown.stderr.contains("github: 2 of 3 tools remain, without drop"), "{}", shown.transcript());
    // The first time without the gateway, then behind it.
    for _ in 0..2 {
        let installed = dir.run(&arguments);
        assert_eq!(installed.code, Some(0), "{}", installed.transcript());
        for line in [
            "2 of 3 tools remain, without drop",
            "its tools are unknown: the server `missing`",
            "only the client replaces",
        ] {
            assert!(installed.stdout.contains(line), "{line}: {}", installed.transcript());
        }
    }
}

#[test]
fn context_that_no_call_will_have_is_named() {
    let dir = test_dir(&json!({ "github": server(&json!({})) }));
    let arguments = [&INSTALL[..], &["--server-policies", "github=github.yaml", "--dry-run"]].concat();
    let warned = dir.run(&arguments);
    assert!(warned.stderr.contains("`$.context.tenant`"), "{}", warned.transcript());
    fs::write(dir.0.path().join("context.json"), r#"{ "tenant": "a" }"#).unwrap();
    let provided = dir.run(&[&arguments[..], &["--context", "context.json"]].concat());
    assert!(!provided.stderr.contains("$.context"), "{}", provided.transcript());
    // Hooks set some members themselves.
    fs::write(
        dir.0.path().join("hook.yaml"),
        "policies: [{ id: a, match: { tool: Bash, where: [{ path: $.context.agent, eq: codex }, { path: $.context.team, eq: x }] }, deny: {} }]",
    )
    .unwrap();
    let hooks = dir.run(&[
        "install",
        "codex",
        "--hooks",
        "--file",
        "hooks.json",
        "--policies",
        "hook.yaml",
        "--dry-run",
    ]);
    assert!(
        hooks.stderr.contains("`$.context.team`") && !hooks.stderr.contains("agent`"),
        "{}",
        hooks.transcript()
    );
}
