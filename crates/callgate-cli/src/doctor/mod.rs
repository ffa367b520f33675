//! `callgate doctor`: fires events through the hook commands that coding agents have configured, and reports what policies do not reach.

mod canary;
mod cline;
mod codex_settings;
mod permissions;
mod version;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::agent_hooks::{
    BACKUP_SUFFIX, HookSettings, InstalledHook, allows_managed_hooks_only, find_hooks, is_disabled,
};
use super::edited_file::EditedFile;
use super::exit::{CommandError, ExitStatus};
use super::hook::HookAgent;
use super::output::{BOLD, Output, escape_line};
use callgate_hooks::Agent;
use canary::{HookProgram, fire};
use permissions::{files_of, writable_by_others};

/// Check that the policies reach coding agents, by events through their configured hooks.
///
/// For each agent whose settings call `callgate hook`: runs the configured command with an event that can't be used, which must be blocked, and
/// with a canary, a shell command that the policies must deny. Reports settings that switch hooks off, hooks that the user has not trusted,
/// programs, rules and settings that other users can write, and the agent's version. No tool is run.
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

/// Said of a hook that is not run.
const NOT_RUN: &str =
    "its command is the project's and was not run; if you trust the project, add `--project`";
/// Said if no hook is run.
const NOTHING_RUN: &str = "no command was run, so nothing is known of the policies";

/// The result of a check.
enum Finding {
    Passed(String),
    Failed(String),
    /// What the user should know, and what was not checked.
    Noted(String),
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
            None => cline::examine(arguments)?,
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
                Finding::Noted(text) => writeln!(output, "  - {}", escape_line(&text))?,
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

/// A settings file, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Administrators,
    User,
    Project,
}

/// The settings files of an agent, those of the administrators first.
fn settings_files(settings: &HookSettings) -> Vec<(PathBuf, Owner)> {
    let user = settings.user_file();
    let is_user = |path: &Path| user.as_deref().is_some_and(|user| is_same_file(user, path));
    let project = settings.project_file(Path::new(""));
    let local = project.with_file_name("settings.local.json");
    let of_project = [project, local].into_iter().filter(|path| !is_user(path));
    let mut files = vec![(settings.managed_file(), Owner::Administrators)];
    files.extend(user.iter().map(|path| (path.clone(), Owner::User)));
    files.extend(of_project.map(|path| (path, Owner::Project)));
    files
}

/// Examines the settings of an agent. `None` if they have no hooks of ours.
fn examine(settings: &HookSettings, arguments: &DoctorArgs) -> Result<Option<Vec<Finding>>, CommandError> {
    let version = settings.program.map(|program| version::examine(settings.agent.title(), program));
    let mut findings: Vec<Finding> = version.into_iter().collect();
    let mut hooks: Vec<(PathBuf, Owner, InstalledHook)> = Vec::new();
    let mut ignores_users = false;
    for (path, owner) in settings_files(settings) {
        if settings.agent == Agent::Codex {
            findings.extend(codex_settings::is_switched_off(&path.with_file_name("config.toml")));
        }
        let file = EditedFile::open(path, BACKUP_SUFFIX)?;
        if !file.exists() {
            continue;
        }
        let shown = file.display_path.display();
        let read = find_hooks(&file.text, settings.first_event())
            .and_then(|own| Ok((own, is_disabled(&file.text)?, allows_managed_hooks_only(&file.text)?)));
        let (own, disabled, managed_only) = match read {
            Ok(read) => read,
            Err(why) => {
                findings.push(Finding::Failed(format!("`{shown}` can't be read by the agent: {why}")));
                continue;
            }
        };
        if let Some(setting) = disabled {
            findings.push(Finding::Failed(format!("`{shown}` switches every hook off: `{setting}`")));
        }
        ignores_users |= managed_only && owner == Owner::Administrators;
        findings.extend(writable_by_others(&file.display_path));
        hooks.extend(own.into_iter().map(|hook| (file.display_path.clone(), owner, hook)));
    }
    if hooks.is_empty() {
        return Ok(None);
    }
    if ignores_users && hooks.iter().all(|(_, owner, _)| *owner != Owner::Administrators) {
        findings.push(Finding::Failed(
            "the administrators' settings permit only their own hooks (`allowManagedHooksOnly`), so these do not run".to_owned(),
        ));
    }
    let mut has_run = false;
    for (path, owner, hook) in hooks {
        findings.push(Finding::Passed(format!("`{}` calls Callgate before every tool", path.display())));
        if settings.agent == Agent::Codex {
            findings.extend(codex_settings::examine(&path, &hook, owner == Owner::Administrators));
        }
        findings.extend(files_of(&hook.command).iter().filter_map(|file| writable_by_others(file)));
        // Anybody can write a project's settings. The agent asks before it trusts them.
        if arguments.project || owner != Owner::Project {
            has_run = true;
            let program = HookProgram::Command(&hook.command);
            findings.extend(fire(settings.agent, settings.first_event(), program, &arguments.canary));
        } else {
            findings.push(Finding::Noted(NOT_RUN.to_owned()));
        }
    }
    if !has_run {
        findings.push(Finding::Failed(NOTHING_RUN.to_owned()));
    }
    Ok(Some(findings))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let resolve = |path: &Path| std::fs::canonicalize(path).ok();
    one == other || resolve(one).is_some_and(|one| resolve(other) == Some(one))
}
