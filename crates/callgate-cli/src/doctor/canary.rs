//! Fires events through a configured hook command, as the agent does.

use std::io::Write;
use std::process::{Command, Stdio};

use super::Finding;
use crate::agent_hooks::HookSettings;
use crate::hook::REFUSALS;
use callgate::json::{Value, json};
use callgate_hooks::Agent;

/// Runs a configured command as the agent does.
pub(super) fn fire(settings: &HookSettings, command: &str, canary: &str) -> Vec<Finding> {
    let is_blocked =
        |input: &str| run(command, input).map(|(status, reason)| status == 2 && !reason.is_empty());
    let unusable = match is_blocked("{ \"not\": \"an event\" }") {
        Ok(true) => Finding::Passed("an event that can't be used is blocked".to_owned()),
        Ok(false) => Finding::Failed("an event that can't be used is not blocked".to_owned()),
        Err(why) => Finding::Failed(format!("the configured command can't be run: {why}")),
    };
    let denied = match run(command, &canary_event(settings, canary).to_string()) {
        Ok((2, reason)) if REFUSALS.iter().any(|refusal| reason.starts_with(refusal)) => {
            Finding::Passed(format!("`{canary}` is denied: {}", reason.lines().next().unwrap_or_default()))
        }
        Ok((2, reason)) if !reason.is_empty() => {
            Finding::Failed(format!("every call is denied, because Callgate can't decide: {reason}"))
        }
        Ok(_) => {
            Finding::Failed(format!("the policies do not deny `{canary}`; name another call with `--canary`"))
        }
        Err(why) => Finding::Failed(format!("the configured command can't be run: {why}")),
    };
    vec![unusable, denied]
}

fn canary_event(settings: &HookSettings, canary: &str) -> Value {
    let tool = match settings.agent {
        Agent::GeminiCli => "run_shell_command",
        Agent::Cursor => "Shell",
        Agent::ClaudeCode | Agent::Codex | Agent::Cline => "Bash",
    };
    let cwd = std::env::current_dir().unwrap_or_default().display().to_string();
    json!({
        "session_id": "callgate-doctor",
        "conversation_id": "callgate-doctor",
        "hook_event_name": settings.first_event(),
        "cwd": cwd,
        "workspace_roots": [cwd],
        "permission_mode": "bypassPermissions",
        "tool_name": tool,
        "tool_input": { "command": canary },
        "tool_use_id": format!("doctor-{:08x}", fastrand::u32(..)),
    })
}

/// The exit status of a command with this input, and its stderr.
fn run(command: &str, input: &str) -> Result<(i32, String), String> {
    let shell = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = shell.map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that has ended reads nothing.
        let _ = stdin.write_all(input.as_bytes());
    }
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    Ok((ended.status.code().unwrap_or(-1), String::from_utf8_lossy(&ended.stderr).trim().to_owned()))
}
