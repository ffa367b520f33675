//! Sessions of the agents themselves, whose own hook runners call `callgate hook`: Codex 0.169.0, Gemini CLI 0.61.0 and Cline 3.0.65, all under
//! Apache-2.0, installed once below `target/packages` (240 MB to download, 660 MB on disk). A model on this machine follows a script.
//!
//! The licence of Claude Code does not say whether tests may install it; its events are recorded (`recorded.rs`).

mod model_server;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use callgate::json::json;

use super::TestDir;
use crate::packages;
use model_server::{ModelServer, ScriptedCall};

const RULES: &str = r#"
policies:
  - id: no-force-push
    match: { tool: Bash, where: [{ shell: { path: $.input.command, any: [{ program: git, subcommand: push, flags: ["--force*"] }] } }] }
    deny: { message: "force pushes are not allowed" }
  - id: no-secrets
    match: { tool: [Edit, Write], where: [{ path: $.input.file_path, matches: 'secret' }] }
    deny: { message: "this file has secrets" }
  - id: only-in-the-workspace
    match: { tool: [Edit, Write], where: [{ not: { path: $.input.file_path, inside: { path: $.context.workspace } } }] }
    deny: { message: "outside of the workspace" }
  - id: deploy-asks
    match: { tool: Bash, where: [{ path: $.input.command, eq: touch deployed }] }
    approval: { message: "Deploy now?" }
  - id: quiet
    match: { tool: Bash, where: [{ path: $.input.command, eq: echo loud }] }
    transform: { input: [{ path: $.input.command, set: echo quiet }] }
  - id: hide-numbers
    match: Bash
    redact: { in: output, patterns: ['4111-[0-9-]+'], with: mask }
"#;

/// An agent of this file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RealAgent {
    Codex,
    GeminiCli,
    Cline,
}

impl RealAgent {
    const ALL: [Self; 3] = [Self::Codex, Self::GeminiCli, Self::Cline];

    /// The call of the agent's shell tool.
    fn shell(self, command: &str) -> ScriptedCall {
        match self {
            Self::Codex => ("exec_command", json!({ "cmd": command })),
            Self::GeminiCli => ("run_shell_command", json!({ "command": command })),
            Self::Cline => ("run_commands", json!({ "commands": [command] })),
        }
    }

    /// The call that creates a file of the project.
    fn write(self, project: &Path, name: &str) -> ScriptedCall {
        match self {
            Self::Codex => {
                let patch = format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch");
                ("exec_command", json!({ "cmd": format!("apply_patch <<'EOF'\n{patch}\nEOF") }))
            }
            Self::GeminiCli => ("write_file", json!({ "file_path": name, "content": "x" })),
            Self::Cline => ("editor", json!({ "path": project.join(name).to_str(), "new_text": "x" })),
        }
    }

    /// Installs the hooks as users do.
    fn install(self, dir: &TestDir) {
        let client = match self {
            Self::Codex => "codex",
            Self::GeminiCli => "gemini",
            Self::Cline => "cline",
        };
        let arguments =
            ["install", client, "--hooks", "--policies", "rules.yaml", "--state", "file:state.db"];
        let installed = dir.run_at_home(&arguments);
        assert_eq!(installed.code, Some(0), "{}", installed.transcript());
    }

    /// The file of the hook before tools.
    fn hook_file(self) -> &'static str {
        match self {
            Self::Codex => ".codex/hooks.json",
            Self::GeminiCli => ".gemini/settings.json",
            Self::Cline => "Documents/Cline/Hooks/PreToolUse",
        }
    }

    /// Writes the settings that name the model server.
    fn configure(self, home: &Path, port: u16) {
        let (path, text) = match self {
            Self::Codex => (
                ".codex/config.toml",
                format!(
                    "model = \"local\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\n\
                     base_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\n"
                ),
            ),
            Self::GeminiCli => (
                ".gemini/settings.json",
                json!({
                    "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
                    "general": { "enableAutoUpdate": false },
                    "privacy": { "usageStatisticsEnabled": false },
                })
                .to_string(),
            ),
            Self::Cline => {
                let url = format!("http://127.0.0.1:{port}/v1");
                let settings = json!({
                    "provider": "openai-compatible", "apiKey": "local", "model": "local", "baseUrl": url,
                });
                let provider =
                    json!({ "settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual" });
                let document = json!({
                    "version": 1, "lastUsedProvider": "openai-compatible", "modes": {},
                    "providers": { "openai-compatible": provider },
                });
                (".cline/data/settings/providers.json", document.to_string())
            }
        };
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The agent without a terminal, which may use every tool without a question.
    fn command(self, port: u16) -> Command {
        let packages = packages::node("agents", &crate::fixtures::root().join("tests/cli/hook/real_agents"))
            .join("node_modules");
        let mut command = match self {
            Self::Codex => {
                let program = "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex";
                let mut command = Command::new(packages.join(program));
                command.args(["exec", "--skip-git-repo-check", "-s", "danger-full-access"]);
                // Users trust the hooks in a terminal.
                command.arg("--dangerously-bypass-hook-trust");
                command
            }
            Self::GeminiCli => {
                let mut command = Command::new("node");
                command.arg(packages.join("@google/gemini-cli/bundle/gemini.js"));
                command.args(["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p"]);
                command
            }
            Self::Cline => Command::new(packages.join("@cline/cli-linux-x64/bin/cline")),
        };
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("GEMINI_API_KEY", "local");
        command.env("GOOGLE_GEMINI_BASE_URL", format!("http://127.0.0.1:{port}"));
        command.env("CLINE_NO_AUTO_UPDATE", "1").env("CLINE_SESSION_BACKEND_MODE", "local");
        // Nothing leaves this machine.
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "https_proxy"] {
            command.env(proxy, "http://127.0.0.1:9");
        }
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }
}

/// A session: what the model received for each call, and what the agent printed.
struct Session {
    results: Vec<String>,
    printed: String,
}

/// Runs a session of an agent in `project` below its home, which is the directory of `dir`.
fn run(agent: RealAgent, dir: &TestDir, model: &ModelServer) -> Session {
    let home = dir.0.path();
    let output = fs::File::create(home.join("output")).unwrap();
    let mut command = agent.command(model.port);
    command
        .arg("Do it")
        .current_dir(home.join("project"))
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home.join("run"));
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{agent:?} did not end: {}", fs::read_to_string(home.join("output")).unwrap());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let printed = String::from_utf8_lossy(&fs::read(home.join("output")).unwrap()).into_owned();
    Session { results: model.results(), printed }
}

fn test_dir(rules: &str) -> TestDir {
    let dir = TestDir::new(&[("rules.yaml", rules)]);
    fs::create_dir(dir.0.path().join("project")).unwrap();
    dir
}

/// Starts the model, and installs the hooks.
fn prepare(agent: RealAgent, dir: &TestDir, script: Vec<ScriptedCall>) -> ModelServer {
    let model = ModelServer::start(script);
    agent.configure(dir.0.path(), model.port);
    agent.install(dir);
    model
}

/// The calls, and a text that the model must or must not be told of each.
fn expectations(agent: RealAgent, project: &Path) -> Vec<(ScriptedCall, &'static str, bool)> {
    let shell = |command: &str| agent.shell(command);
    let mut expected = vec![
        (shell("echo hello"), "hello", true),
        (shell("echo loud"), "quiet", true),
        (shell("echo 4111-1111"), "4111-1111", agent == RealAgent::Cline),
        (agent.write(project, "notes.txt"), "notes.txt", true),
    ];
    match agent {
        // A denial ends its run.
        RealAgent::Cline => {}
        RealAgent::Codex | RealAgent::GeminiCli => expected.extend([
            (agent.write(project, "secret.txt"), "this file has secrets", true),
            (shell("touch deployed"), "pending approval", true),
        ]),
    }
    expected.push((shell("touch pushed; git push -f"), "force pushes are not allowed", true));
    expected
}

#[test]
fn sessions_of_the_agents_are_decided() {
    for agent in RealAgent::ALL {
        let dir = test_dir(RULES);
        let project = dir.0.path().join("project");
        let expected = expectations(agent, &project);
        let model = prepare(agent, &dir, expected.iter().map(|(call, ..)| call.clone()).collect());
        let session = run(agent, &dir, &model);
        let told = if agent == RealAgent::Cline { expected.len() - 1 } else { expected.len() };
        assert_eq!(session.results.len(), told, "{agent:?}: {:?}\n{}", session.results, session.printed);
        for ((call, text, is_told), result) in expected.iter().zip(&session.results) {
            assert_eq!(result.contains(text), *is_told, "{agent:?} {call:?}: {result}\n{}", session.printed);
        }
        let files = ["notes.txt", "secret.txt", "deployed", "pushed"].map(|name| project.join(name).exists());
        assert_eq!(files, [true, false, false, false], "{agent:?}");
    }
}

#[test]
fn broken_rules_and_missing_programs_deny() {
    for agent in RealAgent::ALL {
        let dir = test_dir("policies: []");
        let model = prepare(agent, &dir, vec![agent.shell("touch created")]);
        let creates_file = || {
            let session = run(agent, &dir, &model);
            let created = dir.0.path().join("project/created");
            let is_created = created.exists();
            let _ = fs::remove_file(created);
            (is_created, session.printed)
        };
        let (is_created, printed) = creates_file();
        assert!(is_created, "{agent:?}: {printed}");
        fs::write(dir.0.path().join("rules.yaml"), "policies: [{ id: x, deny: { wehn: 1 } }]").unwrap();
        let (is_created, printed) = creates_file();
        assert!(!is_created, "{agent:?}: {printed}");
        fs::write(dir.0.path().join("rules.yaml"), "policies: []").unwrap();
        let path = dir.0.path().join(agent.hook_file());
        let text = fs::read_to_string(&path).unwrap();
        let broken = text.replace(env!("CARGO_BIN_EXE_callgate"), "/missing/callgate");
        assert_ne!(broken, text);
        fs::write(&path, broken).unwrap();
        let (is_created, printed) = creates_file();
        assert!(!is_created, "{agent:?}: {printed}");
    }
}
