//! `callgate hook`: each agent's session from start to end through the real binary, and the answers to input that can't be used.
//!
//! The events are those of the agents' documentation: Claude Code, code.claude.com/docs/en/hooks; Codex, the schemas in codex-rs/hooks of
//! 0.169.0; Gemini CLI, docs/hooks/reference.md of 0.61.0; Cursor, cursor.com/docs/hooks; Cline, docs.cline.bot/features/hooks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use callgate::json::{self, Value, json};

use super::{CommandResult, TestDir};

#[cfg(unix)]
mod cline_hooks;
#[cfg(unix)]
mod helper;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod real_agents;
mod recorded;

const RULES: &str = r#"
policies:
  - id: no-force-push
    match: { tool: Bash, where: [{ path: $.input.command, contains: "push --force" }] }
    deny: { message: "force pushes are not allowed" }
  - id: no-secrets
    match: { tool: [Read, Edit, Write], where: [{ path: $.input.file_path, matches: '\.env$' }] }
    deny: { message: "this file has secrets" }
  - id: deploy-asks
    match: { tool: Bash, where: [{ path: $.input.command, eq: deploy }] }
    approval: { message: "Deploy now?" }
  - id: only-if-asked-for
    match: { tool: Bash, where: [{ path: $.input.command, eq: publish }, { not: { path: $.task.text, contains: publish } }] }
    deny: { message: "the user did not ask for this" }
  - id: seen-secret
    match: { tool: Read, where: [{ path: $.output, contains: token }] }
    label: { add: [secret] }
  - id: no-upload-of-secrets
    match: { tool: Bash, where: [{ path: $.input.command, contains: curl }, { path: "$.session.labels[*]", each: any, eq: secret }] }
    deny: { message: "a secret was read in this session" }
  - id: three-tests
    match: { tool: Bash, where: [{ path: $.input.command, eq: make test }] }
    rate_limit: { limit: 3, per: 1h }
  - id: hide-numbers
    match: Bash
    redact: { in: output, patterns: ['4111-[0-9-]+'], with: mask }
"#;

fn test_dir() -> TestDir {
    TestDir::new(&[("rules.yaml", RULES)])
}

impl TestDir {
    fn hook(&self, agent: &str, event: &Value) -> CommandResult {
        self.hook_text(agent, event.to_string().as_bytes())
    }

    fn hook_text(&self, agent: &str, event: &[u8]) -> CommandResult {
        let arguments =
            ["hook", agent, "--policies", "rules.yaml", "--state", "file:state.db", "--in-process"];
        self.run_with_input(&arguments, event)
    }
}

/// The events of an agent, as its documentation shows them.
fn before(agent: &str, tool: &str, input: Value) -> Value {
    match agent {
        "claude-code" => json!({
            "session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/work", "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "toolu_1",
        }),
        "codex" => json!({
            "session_id": "s1", "transcript_path": null, "cwd": "/work", "permission_mode": "default", "turn_id": "t1",
            "model": "gpt", "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "c1",
        }),
        "gemini-cli" => json!({
            "session_id": "s1", "transcript_path": "/t.json", "cwd": "/work", "timestamp": "2026-01-01T00:00:00Z",
            "hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": input,
        }),
        "cursor" => json!({
            "conversation_id": "s1", "generation_id": "g1", "model": "m", "hook_event_name": "preToolUse",
            "cursor_version": "2.1.0", "workspace_roots": ["/work"], "tool_name": tool, "tool_input": input,
            "tool_use_id": "c1",
        }),
        _ => json!({
            "clineVersion": "3.36.0", "hookName": "PreToolUse", "timestamp": "1", "taskId": "s1", "userId": "u",
            "workspaceRoots": ["/work"], "preToolUse": { "toolName": tool, "parameters": input },
        }),
    }
}

fn with(mut event: Value, members: Value) -> Value {
    if let (Some(event), Value::Object(members)) = (event.as_object_mut(), members) {
        event.extend(members);
    }
    event
}

fn after(agent: &str, tool: &str, input: Value, output: Value) -> Value {
    let event = before(agent, tool, input.clone());
    match agent {
        "claude-code" | "codex" => {
            with(event, json!({ "hook_event_name": "PostToolUse", "tool_response": output }))
        }
        "gemini-cli" => with(
            event,
            json!({ "hook_event_name": "AfterTool", "tool_response": { "llmContent": output, "returnDisplay": "" } }),
        ),
        "cursor" => with(event, json!({ "hook_event_name": "postToolUse", "tool_output": output })),
        _ => with(
            event,
            json!({ "hookName": "PostToolUse", "postToolUse": {
                "toolName": tool, "parameters": input, "result": output, "success": true,
            } }),
        ),
    }
}

fn prompt(agent: &str, text: &str) -> Value {
    let event = before(agent, "x", json!({}));
    match agent {
        "claude-code" | "codex" => {
            with(event, json!({ "hook_event_name": "UserPromptSubmit", "prompt": text }))
        }
        "gemini-cli" => with(event, json!({ "hook_event_name": "BeforeAgent", "prompt": text })),
        "cursor" => with(event, json!({ "hook_event_name": "beforeSubmitPrompt", "prompt": text })),
        _ => with(event, json!({ "hookName": "UserPromptSubmit", "userPromptSubmit": { "prompt": text } })),
    }
}

fn session(agent: &str, is_start: bool) -> Value {
    let name = match (agent, is_start) {
        ("claude-code" | "codex" | "gemini-cli", true) => "SessionStart",
        ("claude-code" | "codex" | "gemini-cli", false) => "SessionEnd",
        ("cursor", true) => "sessionStart",
        ("cursor", false) => "sessionEnd",
        (_, true) => "TaskStart",
        (_, false) => "TaskComplete",
    };
    let member = if agent == "cline" { "hookName" } else { "hook_event_name" };
    with(before(agent, "x", json!({})), json!({ member: name }))
}

/// Whether the agent would stop here, by its own rules.
fn is_blocked(agent: &str, ended: &CommandResult) -> bool {
    let document = json::parse(ended.stdout.trim()).unwrap_or_default();
    match agent {
        "cline" => document.get("cancel") == Some(&json!(true)),
        // Status 2 without a reason is a failed hook, which lets the tool run.
        _ => ended.code == Some(2) && !ended.stderr.trim().is_empty(),
    }
}

fn assert_proceeds(agent: &str, ended: &CommandResult) {
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{agent}");
    let silent = match agent {
        "claude-code" | "codex" => "",
        "gemini-cli" => "{}",
        "cline" => r#"{"cancel":false}"#,
        _ => ended.stdout.trim(),
    };
    assert_eq!(ended.stdout.trim(), silent, "{agent}");
    assert!(!ended.stdout.contains("deny"), "{agent}: {}", ended.stdout);
}

const AGENTS: [(&str, &str, &str, &str); 5] = [
    ("claude-code", "Bash", "Read", "file_path"),
    ("codex", "Bash", "view_image", "path"),
    ("gemini-cli", "run_shell_command", "read_file", "file_path"),
    ("cursor", "Shell", "Read", "path"),
    ("cline", "execute_command", "read_file", "path"),
];

#[test]
fn a_session_of_each_agent_from_start_to_end() {
    for (agent, shell, read, path) in AGENTS {
        let dir = test_dir();
        let run = |command: &str| dir.hook(agent, &before(agent, shell, json!({ "command": command })));
        assert_proceeds(agent, &dir.hook(agent, &session(agent, true)));
        assert!(is_blocked(agent, &run("publish")), "{agent}: the task is unknown");
        assert_proceeds(agent, &dir.hook(agent, &prompt(agent, "Fix the bug")));
        assert!(is_blocked(agent, &run("publish")), "{agent}");
        assert_proceeds(agent, &dir.hook(agent, &prompt(agent, "Now publish it")));
        assert_proceeds(agent, &run("publish"));
        assert_proceeds(agent, &run("git status"));
        let refused = run("git push --force");
        assert!(is_blocked(agent, &refused), "{agent}: {}", refused.transcript());
        assert!(refused.transcript().contains("force pushes are not allowed"), "{}", refused.transcript());
        let secrets = dir.hook(agent, &before(agent, read, json!({ path: "/work/.env" })));
        assert!(is_blocked(agent, &secrets), "{agent}: {}", secrets.transcript());
        // A label of a result counts in later processes.
        assert_proceeds(agent, &run("curl example.com"));
        assert_proceeds(agent, &dir.hook(agent, &before(agent, read, json!({ path: "/work/a" }))));
        let seen = after(agent, read, json!({ path: "/work/a" }), json!("a token"));
        assert_proceeds(agent, &dir.hook(agent, &seen));
        assert!(is_blocked(agent, &run("curl example.com")), "{agent}");
        // Limits count in the event before the tool, whether the one after it comes or not.
        for _ in 0..3 {
            assert_proceeds(agent, &run("make test"));
        }
        assert!(is_blocked(agent, &run("make test")), "{agent}");
        assert_proceeds(agent, &dir.hook(agent, &session(agent, false)));
    }
}

#[test]
fn results_are_redacted_where_the_agent_can_replace_them() {
    for (agent, shell, ..) in AGENTS {
        let dir = test_dir();
        let input = json!({ "command": "cat card" });
        assert_proceeds(agent, &dir.hook(agent, &before(agent, shell, input.clone())));
        let output = match agent {
            "claude-code" => {
                json!({ "stdout": "4111-1111", "stderr": "", "interrupted": false, "isImage": false })
            }
            _ => json!("4111-1111"),
        };
        let ended = dir.hook(agent, &after(agent, shell, input, output));
        assert_eq!(ended.code, Some(0), "{}", ended.transcript());
        assert!(!ended.stdout.contains("4111-"), "{}", ended.transcript());
        let document = json::parse(ended.stdout.trim()).unwrap();
        match agent {
            "claude-code" => {
                let shown = &document["hookSpecificOutput"]["updatedToolOutput"];
                assert_eq!(shown["interrupted"], json!(false), "{document}");
                assert!(shown["stdout"].as_str().is_some(), "{document}");
            }
            "codex" => assert_eq!(document["decision"], json!("block")),
            "gemini-cli" => assert_eq!(document["decision"], json!("deny")),
            _ => {}
        }
    }
}

#[test]
fn an_approval_asks_the_user_of_an_agent_that_can_ask() {
    let dir = test_dir();
    let event = before("claude-code", "Bash", json!({ "command": "deploy" }));
    let asked = dir.hook("claude-code", &event);
    let document = json::parse(asked.stdout.trim()).unwrap();
    assert_eq!(document["hookSpecificOutput"]["permissionDecision"], json!("ask"), "{}", asked.transcript());
    assert!(asked.stdout.contains("Deploy now?"));
    // The user said yes: the tool ran, and the next call asks again.
    let ran =
        with(event.clone(), json!({ "hook_event_name": "PostToolUse", "tool_response": { "stdout": "" } }));
    assert_proceeds("claude-code", &dir.hook("claude-code", &ran));
    let again = dir.hook("claude-code", &with(event.clone(), json!({ "tool_use_id": "toolu_2" })));
    assert!(again.stdout.contains("\"ask\""), "{}", again.transcript());
    // In modes without questions it is denied, without a way by which the agent could approve it.
    for mode in ["bypassPermissions", "dontAsk", "auto", "new-mode"] {
        let dir = test_dir();
        let denied = dir.hook("claude-code", &with(event.clone(), json!({ "permission_mode": mode })));
        assert!(is_blocked("claude-code", &denied), "{mode}: {}", denied.transcript());
        assert!(!denied.transcript().contains("callgate approvals"), "{}", denied.transcript());
    }
    for (agent, shell, ..) in AGENTS.into_iter().skip(1) {
        let denied = test_dir().hook(agent, &before(agent, shell, json!({ "command": "deploy" })));
        assert!(is_blocked(agent, &denied), "{agent}: {}", denied.transcript());
    }
}

#[test]
fn every_input_that_cannot_be_used_is_blocked() {
    for (agent, shell, ..) in AGENTS {
        let dir = test_dir();
        let valid = before(agent, shell, json!({ "command": "ls" }));
        assert_proceeds(agent, &dir.hook(agent, &valid));
        let text = valid.to_string();
        let huge = before(agent, shell, json!({ "command": "a".repeat(17 << 20) })).to_string();
        let duplicate = text.replacen('{', r#"{"hook_event_name":"Stop","hookName":"Stop","#, 1);
        let inputs: [(&str, &[u8]); 7] = [
            ("empty", b""),
            ("truncated", &text.as_bytes()[..text.len() / 2]),
            ("not UTF-8", b"{\"a\":\"\xff\"}"),
            ("not an object", b"[]"),
            ("no members", b"{}"),
            ("duplicate members", duplicate.as_bytes()),
            ("huge", huge.as_bytes()),
        ];
        for (what, input) in inputs {
            let ended = dir.hook_text(agent, input);
            assert!(is_blocked(agent, &ended), "{agent}, {what}: {}", ended.transcript());
        }
        let name = if agent == "cline" { "hookName" } else { "hook_event_name" };
        let unknown = dir.hook(agent, &with(valid.clone(), json!({ name: "SomethingNew" })));
        assert!(is_blocked(agent, &unknown), "{agent}: {}", unknown.transcript());
    }
}

#[test]
fn broken_rules_and_stores_block() {
    for (agent, shell, ..) in AGENTS {
        let event = before(agent, shell, json!({ "command": "ls" }));
        let dir = TestDir::new(&[("rules.yaml", "policies: [{ id: x, deny: { wehn: 1 } }]")]);
        assert!(is_blocked(agent, &dir.hook(agent, &event)), "{agent}");
        let dir = test_dir();
        fs::write(dir.0.path().join("state.db"), "not a database, but long enough to be read as one")
            .unwrap();
        let ended = dir.hook(agent, &event);
        assert!(is_blocked(agent, &ended), "{agent}: {}", ended.transcript());
        let missing = dir.run_with_input(&["hook", agent, "--policies", "missing"], event.to_string());
        assert!(is_blocked(agent, &missing), "{agent}: {}", missing.transcript());
    }
}

#[test]
fn every_file_of_a_patch_is_decided() {
    let dir = test_dir();
    let patch = |path: &str| {
        let text = format!(
            "*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Add File: {path}\n+z\n*** End Patch"
        );
        before("codex", "apply_patch", json!({ "command": text }))
    };
    assert_proceeds("codex", &dir.hook("codex", &patch("b.rs")));
    assert!(is_blocked("codex", &dir.hook("codex", &patch("prod.env"))));
    let unreadable = before("codex", "apply_patch", json!({ "command": "*** Rename File: a\n" }));
    assert!(is_blocked("codex", &dir.hook("codex", &unreadable)));
}

#[test]
fn mcp_tools_have_one_name_in_every_agent() {
    const RULES: &str = "policies:\n  - { id: none, match: mcp__files__delete, deny: { message: no } }\n";
    for (agent, tool, input, more) in [
        ("claude-code", "mcp__files__delete", json!({}), json!({})),
        ("codex", "mcp__files__delete", json!({}), json!({})),
        (
            "gemini-cli",
            "mcp_files_delete",
            json!({}),
            json!({ "mcp_context": { "server_name": "files", "tool_name": "delete" } }),
        ),
        ("cursor", "MCP:files:delete", json!({}), json!({})),
        (
            "cline",
            "use_mcp_tool",
            json!({ "server_name": "files", "tool_name": "delete", "arguments": "{}" }),
            json!({}),
        ),
    ] {
        let dir = TestDir::new(&[("rules.yaml", RULES)]);
        let ended = dir.hook(agent, &with(before(agent, tool, input), more));
        assert!(is_blocked(agent, &ended), "{agent}: {}", ended.transcript());
    }
}

#[test]
fn a_patch_in_two_members_is_ambiguous() {
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
    let event = before("codex", "apply_patch", json!({ "command": patch, "input": patch }));
    let ended = test_dir().hook("codex", &event);
    assert!(is_blocked("codex", &ended) && ended.stderr.contains("same thing"), "{}", ended.transcript());
}

#[test]
fn a_changed_input_never_skips_the_users_own_permissions() {
    const RULES: &str = "policies:
  - id: only-a-look
    match: { tool: Bash, where: [ { path: $.input.command, starts_with: make } ] }
    transform: { input: [ { path: $.input.command, set: make --dry-run } ] }
";
    let dir = TestDir::new(&[("rules.yaml", RULES)]);
    let event = |agent, tool| before(agent, tool, json!({ "command": "make all", "timeout": 5 }));
    let changed = json!({ "command": "make --dry-run", "timeout": 5 });
    for (mode, decision) in
        [("default", Some("ask")), ("bypassPermissions", Some("allow")), ("dontAsk", None), ("auto", None)]
    {
        let event = with(event("claude-code", "Bash"), json!({ "permission_mode": mode }));
        let ended = dir.hook("claude-code", &event);
        let Some(decision) = decision else {
            assert!(is_blocked("claude-code", &ended), "{mode}: {}", ended.transcript());
            continue;
        };
        let output = json::parse(ended.stdout.trim()).unwrap()["hookSpecificOutput"].clone();
        assert_eq!(
            (&output["permissionDecision"], &output["updatedInput"]),
            (&json!(decision), &changed),
            "{mode}"
        );
    }
    for (agent, tool, path) in [
        ("codex", "Bash", &["hookSpecificOutput", "updatedInput"][..]),
        ("gemini-cli", "run_shell_command", &["hookSpecificOutput", "tool_input"]),
        ("cursor", "Shell", &["updated_input"]),
    ] {
        let ended = dir.hook(agent, &event(agent, tool));
        let document = json::parse(ended.stdout.trim()).unwrap();
        let found = path.iter().fold(document, |value, name| value[*name].clone());
        assert_eq!(found, changed, "{agent}: {}", ended.transcript());
    }
    let cline = dir.hook("cline", &event("cline", "execute_command"));
    assert!(is_blocked("cline", &cline), "{}", cline.transcript());
}

#[test]
fn a_decision_that_hangs_denies_and_withholds_results() {
    let dir = test_dir();
    // A database that accepts connections and never answers.
    let database = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://hook@{}/hooks?sslmode=disable", database.local_addr().unwrap());
    let hang = |agent: &str, event: &Value| {
        let event_file = dir.0.path().join("event.json");
        fs::write(&event_file, event.to_string()).unwrap();
        let arguments =
            ["hook", agent, "--policies", "rules.yaml", "--state", &url, "--timeout", "1s", "--in-process"];
        let mut command = dir.command(&arguments);
        command.env("CALLGATE_KEYS", "ab".repeat(32)).stdin(fs::File::open(event_file).unwrap());
        CommandResult::from(command.output().unwrap())
    };
    for (agent, shell, ..) in AGENTS {
        let input = json!({ "command": "cat card" });
        let denied = hang(agent, &before(agent, shell, input.clone()));
        assert!(is_blocked(agent, &denied), "{agent}: {}", denied.transcript());
        assert!(denied.transcript().contains("in time"), "{agent}: {}", denied.transcript());
        if ["claude-code", "codex", "gemini-cli"].contains(&agent) {
            let withheld = hang(agent, &after(agent, shell, input, json!({ "stdout": "4111-1111" })));
            assert!(withheld.stdout.contains("[withheld"), "{agent}: {}", withheld.transcript());
        }
    }
}

impl TestDir {
    fn run_at_home(&self, arguments: &[&str]) -> CommandResult {
        let mut command = self.command(arguments);
        command.env("HOME", self.0.path());
        for variable in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_STATE_HOME"] {
            command.env_remove(variable);
        }
        command.output().unwrap().into()
    }
}

#[test]
fn installed_hooks_bite_and_doctor_reports_when_they_do_not() {
    for (client, agent, file) in [
        ("claude-code", "claude-code", ".claude/settings.json"),
        ("codex", "codex", ".codex/hooks.json"),
        ("gemini", "gemini-cli", ".gemini/settings.json"),
        ("cursor", "cursor", ".cursor/hooks.json"),
    ] {
        let dir = test_dir();
        let path = dir.0.path().join(file);
        let install = ["install", client, "--hooks", "--policies", "rules.yaml"];
        let doctor = ["doctor", agent, "--canary", "git push --force"];
        assert_eq!(dir.run_at_home(&doctor).code, Some(1), "{agent}: nothing is installed");
        let dry = dir.run_at_home(&[&install[..], &["--dry-run"]].concat());
        assert!(dry.stdout.contains("callgate-hook") && !path.exists(), "{}", dry.transcript());
        let installed = dir.run_at_home(&install);
        assert_eq!(installed.code, Some(0), "{}", installed.transcript());
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(dir.run_at_home(&install).code, Some(0));
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{agent}: installing again changes nothing");
        if agent == "codex" {
            let untrusted = dir.run_at_home(&doctor);
            assert!(
                untrusted.code == Some(1) && untrusted.stdout.contains("until its user trusts it"),
                "{}",
                untrusted.transcript()
            );
            trust_in_codex(&dir, "");
        }
        let healthy = dir.run_at_home(&doctor);
        assert_eq!(healthy.code, Some(0), "{}", healthy.transcript());
        assert!(healthy.stdout.contains("force pushes are not allowed"), "{}", healthy.transcript());
        // Rules that permit the canary, a switched off hook, and a missing program.
        let permitted = dir.run_at_home(&["doctor", agent, "--canary", "ls"]);
        assert!(
            permitted.code == Some(1) && permitted.stdout.contains("do not deny"),
            "{}",
            permitted.transcript()
        );
        fs::write(&path, text.replacen('{', "{ \"disableAllHooks\": true,", 1)).unwrap();
        let disabled = dir.run_at_home(&doctor);
        assert!(
            disabled.code == Some(1) && disabled.stdout.contains("disableAllHooks"),
            "{}",
            disabled.transcript()
        );
        fs::write(&path, text.replace(env!("CARGO_BIN_EXE_callgate"), "/missing/callgate")).unwrap();
        let missing = dir.run_at_home(&doctor);
        assert!(
            missing.code == Some(1) && missing.stdout.contains("every call is denied"),
            "{}",
            missing.transcript()
        );
        fs::write(&path, &text).unwrap();
        let uninstalled = dir.run_at_home(&["uninstall", client, "--hooks"]);
        assert_eq!(uninstalled.code, Some(0), "{}", uninstalled.transcript());
        assert!(!path.exists(), "{agent}: the file that was created is removed");
    }
}

/// Writes what Codex writes if its user trusts the hook, and more settings.
fn trust_in_codex(dir: &TestDir, more: &str) {
    let hooks = dir.0.path().join(".codex/hooks.json");
    let config = format!(
        "{more}\n[hooks.state.\"{}:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:00\"\n",
        hooks.display()
    );
    fs::write(dir.0.path().join(".codex/config.toml"), config).unwrap();
}

#[test]
fn doctor_reports_how_hooks_are_bypassed() {
    let dir = test_dir();
    let install = |client: &str| {
        let installed = dir.run_at_home(&["install", client, "--hooks", "--policies", "rules.yaml"]);
        assert_eq!(installed.code, Some(0), "{}", installed.transcript());
    };
    let doctor = |agent: &str| dir.run_at_home(&["doctor", agent, "--canary", "git push --force"]);
    install("codex");
    for (settings, code, text) in [
        ("", 0, "codex features disable unified_exec"),
        ("[features]\nhooks = false", 1, "`features.hooks`"),
        ("[features]\ncodex_hooks = false", 1, "`features.codex_hooks`"),
        ("[profiles.fast.features]\nhooks = false", 1, "the profile `fast`"),
        ("[profiles.fast]\nmodel = \"x\"", 0, "force pushes are not allowed"),
    ] {
        trust_in_codex(&dir, settings);
        let examined = doctor("codex");
        assert_eq!(examined.code, Some(code), "{settings}: {}", examined.transcript());
        assert!(examined.stdout.contains(text), "{settings}: {}", examined.transcript());
    }
    trust_in_codex(&dir, "[features]\nunified_exec = false");
    assert!(!doctor("codex").stdout.contains("unified_exec"));
    // The project's settings, too.
    fs::create_dir_all(dir.0.path().join("project/.codex")).unwrap();
    fs::write(dir.0.path().join("project/.codex/config.toml"), "features.hooks = false").unwrap();
    let mut command = dir.command(&["doctor", "codex", "--canary", "git push --force"]);
    command.current_dir(dir.0.path().join("project")).env("HOME", dir.0.path()).env_remove("CODEX_HOME");
    let examined = CommandResult::from(command.output().unwrap());
    assert!(
        examined.code == Some(1) && examined.stdout.contains(".codex/config.toml"),
        "{}",
        examined.transcript()
    );

    install("claude-code");
    let rules = dir.0.path().join("rules.yaml");
    let mode = |mode| fs::set_permissions(&rules, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o666);
    let examined = doctor("claude-code");
    assert!(examined.code == Some(1) && examined.stdout.contains("rules.yaml"), "{}", examined.transcript());
    mode(0o644);
    // The agent's version is that of its program.
    let bin = dir.0.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("claude"), "#!/bin/sh\necho '1.0.0 (Claude Code)'\n").unwrap();
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = dir.command(&["doctor", "claude-code", "--canary", "git push --force"]);
    command.env("HOME", dir.0.path()).env_remove("CLAUDE_CONFIG_DIR");
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let examined = CommandResult::from(command.output().unwrap());
    assert_eq!(examined.code, Some(0), "{}", examined.transcript());
    assert!(examined.stdout.contains("`1.0.0 (Claude Code)`"), "{}", examined.transcript());
}

#[test]
fn hooks_of_administrators_have_files_of_their_own() {
    let dir = test_dir();
    for (client, file) in [
        ("claude-code", "claude-code/managed-settings.json"),
        ("codex", "codex/hooks.json"),
        ("gemini", "gemini-cli/settings.json"),
        ("cursor", "cursor/hooks.json"),
    ] {
        let arguments =
            ["install", client, "--hooks", "--scope", "managed", "--policies", "rules.yaml", "--dry-run"];
        let shown = dir.run_at_home(&arguments);
        assert_eq!(shown.code, Some(0), "{}", shown.transcript());
        if cfg!(target_os = "linux") {
            assert!(shown.stdout.contains(&format!("/etc/{file}")), "{}", shown.transcript());
        }
    }
    let servers = dir.run_at_home(&["install", "cursor", "--scope", "managed", "--policies", "rules.yaml"]);
    assert!(servers.code == Some(2) && servers.stderr.contains("--hooks"), "{}", servers.transcript());
}

#[test]
fn an_agent_that_nobody_attends_is_not_asked() {
    let dir = test_dir();
    let event = before("claude-code", "Bash", json!({ "command": "deploy" }));
    let file = dir.0.path().join("event.json");
    fs::write(&file, event.to_string()).unwrap();
    for more in [&["--in-process"][..], &[]] {
        let arguments = ["hook", "claude-code", "--policies", "rules.yaml", "--state", "file:state.db"];
        let mut command = dir.command(&[&arguments, more].concat());
        command.env("CLAUDE_CODE_SESSION_ATTENDED", "0").env("XDG_RUNTIME_DIR", dir.0.path().join("run"));
        command.stdin(fs::File::open(&file).unwrap());
        let denied = CommandResult::from(command.output().unwrap());
        assert!(is_blocked("claude-code", &denied), "{}", denied.transcript());
        assert!(denied.stderr.contains("pending approval"), "{}", denied.transcript());
    }
}

#[test]
fn doctor_runs_no_command_of_a_project_that_nobody_trusts() {
    let dir = test_dir();
    let home = dir.0.path().join("home");
    fs::create_dir(&home).unwrap();
    let hostile = json!({ "hooks": { "PreToolUse": [ { "hooks": [
        { "type": "command", "command": ": callgate-hook; touch pwned; echo 'Denied: no' >&2; exit 2" } ] } ] } });
    fs::create_dir(dir.0.path().join(".claude")).unwrap();
    fs::write(dir.0.path().join(".claude/settings.json"), hostile.to_string()).unwrap();
    let doctor = |more: &[&str]| {
        let mut command = dir.command(&[&["doctor", "claude-code"], more].concat());
        command.env("HOME", &home).env_remove("CLAUDE_CONFIG_DIR");
        CommandResult::from(command.output().unwrap())
    };
    let examined = doctor(&[]);
    assert!(examined.code == Some(1) && examined.stdout.contains("--project"), "{}", examined.transcript());
    assert!(!dir.0.path().join("pwned").exists(), "{}", examined.transcript());
    assert_eq!(doctor(&["--project"]).code, Some(0));
    assert!(dir.0.path().join("pwned").exists());
}

#[test]
fn uninstalling_restores_the_settings_byte_for_byte() {
    const SETTINGS: &str = "{\n\t// mine\n\t\"model\": \"opus\",   \"hooks\": {\"Stop\": [ ]},\n}\n";
    let dir = test_dir();
    let path = dir.0.path().join("settings.json");
    fs::write(&path, SETTINGS).unwrap();
    let file = ["claude-code", "--hooks", "--file", "settings.json"];
    let installed = dir.run_at_home(&[&["install"], &file[..], &["--policies", "rules.yaml"]].concat());
    assert_eq!(installed.code, Some(0), "{}", installed.transcript());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("// mine") && text.contains("\"model\": \"opus\",   \"hooks\""), "{text}");
    assert_eq!(dir.run_at_home(&[&["uninstall"], &file[..]].concat()).code, Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), SETTINGS);
    assert!(!dir.0.path().join("settings.json.before-callgate-hooks").exists());
}
