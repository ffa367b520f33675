//! `callgate doctor`: fires events through the hook commands that coding agents have configured, and reports what policies do not reach.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;

use super::agent_hooks::{BACKUP_SUFFIX, HookSettings, find_commands, is_disabled};
use super::edited_file::EditedFile;
use super::exit::{CommandError, ExitStatus};
use super::hook::{HookAgent, REFUSALS};
use super::output::{BOLD, Output, escape_line};
use callgate::json::{Value, json};
use callgate_hooks::Agent;

/// Check that the policies reach coding agents, by events through their configured hooks.
///
/// For each agent whose settings call `callgate hook`: runs the configured command with an event that can't be used, which must be blocked, and
/// with a canary, a shell command that the policies must deny. Reports settings that switch hooks off, files that others can write, and agents
/// without hooks. Nothing is run for an agent.
///
/// Exit status: 0 every check passed, 1 some did not, 2 usage error, or a settings file can't be read.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  callgate doctor\n  callgate doctor claude-code --canary 'git push --force'"
)]
pub(super) struct DoctorArgs {
    /// Only this agent; it must have hooks
    #[arg(value_enum)]
    agent: Option<HookAgent>,
    /// The shell command that the policies must deny
    #[arg(long, value_name = "COMMAND", default_value = "rm -rf /")]
    canary: String,
    /// Also run the commands that the settings of the project in this directory configure; they are whatever its authors wrote
    #[arg(long)]
    project: bool,
}

/// The result of a check.
enum Finding {
    Passed(String),
    Failed(String),
    Skipped(String),
}

pub(super) fn doctor(arguments: &DoctorArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let mut is_healthy = true;
    let mut has_hooks = false;
    for choice in HookAgent::value_variants() {
        if arguments.agent.is_some_and(|agent| agent != *choice) {
            continue;
        }
        let agent = Agent::from(*choice);
        let findings = match HookSettings::of(agent) {
            Some(settings) => examine(settings, arguments)?,
            None => None,
        };
        let Some(findings) = findings else {
            if arguments.agent.is_some() {
                writeln!(
                    output,
                    "{}\n  ✗ has no hooks of Callgate",
                    output.paint(BOLD, agent.title()).into_owned()
                )?;
                is_healthy = false;
            }
            continue;
        };
        has_hooks = true;
        writeln!(output, "{}", output.paint(BOLD, agent.title()).into_owned())?;
        for finding in findings {
            match finding {
                Finding::Passed(text) => writeln!(output, "  ✓ {}", escape_line(&text))?,
                Finding::Skipped(text) => writeln!(output, "  - {}", escape_line(&text))?,
                Finding::Failed(text) => {
                    is_healthy = false;
                    writeln!(output, "  ✗ {}", escape_line(&text))?;
                }
            }
        }
    }
    if !has_hooks && arguments.agent.is_none() {
        writeln!(output, "no agent has hooks of Callgate; see `callgate install --help`")?;
    }
    Ok(if is_healthy && has_hooks { ExitStatus::Success } else { ExitStatus::Failure })
}

/// Examines the settings of an agent. `None` if they have no hooks of ours.
fn examine(settings: &HookSettings, arguments: &DoctorArgs) -> Result<Option<Vec<Finding>>, CommandError> {
    let project = settings.project_file(Path::new(""));
    let local = project.with_file_name("settings.local.json");
    let user = settings.user_file();
    let is_user = |path: &Path| user.as_deref().is_some_and(|user| is_same_file(user, path));
    let of_project = [project, local].into_iter().filter(|path| !is_user(path));
    let paths: Vec<PathBuf> = user.iter().cloned().chain(of_project).collect();
    let mut findings = Vec::new();
    let mut commands: Vec<(PathBuf, String)> = Vec::new();
    for path in paths {
        let file = EditedFile::open(path, BACKUP_SUFFIX)?;
        if !file.exists() {
            continue;
        }
        let shown = file.display_path.display();
        let read = find_commands(&file.text, settings.first_event())
            .and_then(|own| Ok((own, is_disabled(&file.text)?)));
        let (own, disabled) = match read {
            Ok(read) => read,
            Err(why) => {
                findings.push(Finding::Failed(format!("`{shown}` can't be read by the agent: {why}")));
                continue;
            }
        };
        if let Some(setting) = disabled {
            findings.push(Finding::Failed(format!("`{shown}` switches every hook off: `{setting}`")));
        }
        findings.extend(writable_by_others(&file.display_path));
        commands.extend(own.into_iter().map(|command| (file.display_path.clone(), command)));
    }
    if commands.is_empty() {
        return Ok(None);
    }
    let mut has_run = false;
    for (path, command) in commands {
        let shown = path.display();
        findings.push(Finding::Passed(format!("`{shown}` calls Callgate before every tool")));
        // Anybody can write a project's settings. The agent asks before it trusts them.
        if arguments.project || is_user(&path) {
            has_run = true;
            findings.extend(fire(settings, &command, &arguments.canary));
        } else {
            findings.push(Finding::Skipped(
                "its command is the project's and was not run; if you trust the project, add `--project`"
                    .to_owned(),
            ));
        }
    }
    if !has_run {
        findings.push(Finding::Failed("no command was run, so nothing is known of the policies".to_owned()));
    }
    Ok(Some(findings))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let resolve = |path: &Path| std::fs::canonicalize(path).ok();
    one == other || resolve(one).is_some_and(|one| resolve(other) == Some(one))
}

/// Runs a configured command as the agent does.
fn fire(settings: &HookSettings, command: &str, canary: &str) -> Vec<Finding> {
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

/// Who else can change a file can switch the policies off.
fn writable_by_others(path: &Path) -> Option<Finding> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).ok()?.permissions().mode();
        (mode & 0o022 != 0).then(|| {
            Finding::Failed(format!("other users can write `{}` (mode {:o})", path.display(), mode & 0o777))
        })
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
