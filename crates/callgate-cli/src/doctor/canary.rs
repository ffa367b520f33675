//! Fires events through a configured hook command, as the agent does.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Finding;
use crate::hook::REFUSALS;
use callgate::json::{self, Value, json};
use callgate_hooks::Agent;

/// What an agent runs as its hook.
#[derive(Clone, Copy)]
pub(super) enum HookProgram<'p> {
    /// A command, by the shell.
    Command(&'p str),
    /// An executable file.
    File(&'p Path),
}

/// Runs a configured hook as the agent does. `event`: the agent's event before a tool.
pub(super) fn fire(agent: Agent, event: &str, program: HookProgram<'_>, canary: &str) -> Vec<Finding> {
    let cannot_run = |why| Finding::Failed(format!("the configured command can't be run: {why}"));
    let unusable = match run(agent, program, "{ \"not\": \"an event\" }") {
        Ok(Some(_)) => Finding::Passed("an event that can't be used is blocked".to_owned()),
        Ok(None) => Finding::Failed("an event that can't be used is not blocked".to_owned()),
        Err(why) => cannot_run(why),
    };
    let denied = match run(agent, program, &canary_event(agent, event, canary).to_string()) {
        Ok(Some(reason)) if REFUSALS.iter().any(|refusal| reason.starts_with(refusal)) => {
            Finding::Passed(format!("`{canary}` is denied: {}", reason.lines().next().unwrap_or_default()))
        }
        Ok(Some(reason)) => {
            Finding::Failed(format!("every call is denied, because Callgate can't decide: {reason}"))
        }
        Ok(None) => {
            Finding::Failed(format!("the policies do not deny `{canary}`; name another call with `--canary`"))
        }
        Err(why) => cannot_run(why),
    };
    vec![unusable, denied]
}

fn canary_event(agent: Agent, event: &str, canary: &str) -> Value {
    let cwd = std::env::current_dir().unwrap_or_default().display().to_string();
    let tool = match agent {
        Agent::Cline => {
            return json!({
                "hookName": event,
                "taskId": "callgate-doctor",
                "workspaceRoots": [cwd],
                "preToolUse": { "toolName": "execute_command", "parameters": { "command": canary } },
            });
        }
        Agent::GeminiCli => "run_shell_command",
        Agent::Cursor => "Shell",
        Agent::ClaudeCode | Agent::Codex => "Bash",
    };
    json!({
        "session_id": "callgate-doctor",
        "conversation_id": "callgate-doctor",
        "hook_event_name": event,
        "cwd": cwd,
        "workspace_roots": [cwd],
        "permission_mode": "bypassPermissions",
        "tool_name": tool,
        "tool_input": { "command": canary },
        "tool_use_id": format!("doctor-{:08x}", fastrand::u32(..)),
    })
}

/// The reason by which a hook refuses this input; `None` if it does not. Most agents read the exit status, Cline reads stdout.
fn run(agent: Agent, program: HookProgram<'_>, input: &str) -> Result<Option<String>, String> {
    let mut command = match program {
        HookProgram::Command(text) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(text);
            shell
        }
        HookProgram::File(path) => Command::new(path),
    };
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that has ended reads nothing.
        let _ = stdin.write_all(input.as_bytes());
    }
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    Ok(match agent {
        Agent::Cline => {
            let answer = json::parse(&String::from_utf8_lossy(&ended.stdout)).unwrap_or_default();
            let is_cancelled = answer.get("cancel").and_then(Value::as_bool) == Some(true);
            let reason = answer.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
            is_cancelled.then(|| reason.to_owned())
        }
        _ => {
            let reason = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
            (ended.status.code() == Some(2) && !reason.is_empty()).then_some(reason)
        }
    })
}
