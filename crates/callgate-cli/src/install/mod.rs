//! `callgate install` and `callgate uninstall`: put the servers of an MCP client behind the gateway, and remove the gateway again; with
//! `--hooks` the same for the hooks of coding agents (`hook_install`).
//!
//! Only the edited values change in a file. The backup next to it is the file without Callgate; uninstalling restores the exact bytes
//! from it, without a separate record of the changes.

mod clients;
mod cline_install;
mod text_edits;
mod server_entry;
mod config_file;
mod gateway_args;
mod hook_install;
mod json_config;
mod probe;
mod report;
mod toml_config;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::exit::{CommandError, ExitStatus};
use super::output::{Output, print_warning};
use callgate::diagnostic::closest_match;
use callgate::safe_text::escape_controls;
use clients::{Client, ClientProperties, OperatingSystem};
use config_file::{ConfigBackup, ConfigFile};
use gateway_args::GatewayArgs;
use probe::Probe;
use report::{InstallReport, ServerRow};
use server_entry::{ServerEntry, ServerTarget, Standing};
use text_edits::{add_gateway, apply_edits, remove_gateway};

/// Put the servers of an MCP client behind the gateway, by editing the client's config file.
///
/// The command of each server becomes `callgate proxy … -- COMMAND`; a server over streamable HTTP without headers gets
/// `--upstream URL`. Everything else in the file stays unchanged, including comments and line endings, and a backup is written next to
/// it. Running the command again adds new servers and updates the options of the others.
///
/// Exit status: 0 all servers are behind the gateway, 1 some are not, or the rules have errors, 2 usage error, or a file can't be read or
/// written.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate install cursor --policies ~/rules --dry-run\n  \
    callgate install claude-code --scope project --policies rules --server files github\n  \
    callgate install codex --policies ~/rules --pins ~/callgate.lock --state file:$HOME/state.db\n  \
    callgate install vscode --policies ~/rules/all --server-policies github=$HOME/rules/github --probe --dry-run\n  \
    callgate install claude-code --hooks --policies ~/rules")]
pub(super) struct Install {
    #[command(flatten)]
    whose: ClientArgs,
    #[command(flatten)]
    gateway: GatewayArgs,
    /// Start each server, and show how many of its tools the rules leave
    #[arg(long, conflicts_with = "hooks")]
    probe: bool,
}

/// Remove the gateway from the servers of an MCP client.
///
/// If nothing else has changed since `callgate install`, the file is restored byte for byte; otherwise other changes are preserved.
///
/// Exit status: 0 no server is behind the gateway, 1 some could not be restored, 2 usage error, or a file can't be read or written.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  callgate uninstall cursor\n  callgate uninstall vscode --scope project --server files"
)]
pub(super) struct UninstallArgs {
    #[command(flatten)]
    whose: ClientArgs,
}

/// The client, its config file and the servers.
#[derive(clap::Args)]
struct ClientArgs {
    /// The MCP client
    #[arg(value_enum)]
    client: Client,
    /// Only these servers
    #[arg(long = "server", value_name = "NAME", num_args = 1..)]
    servers: Vec<String>,
    /// The hooks of a coding agent instead of its MCP servers: `callgate hook` then decides every tool call of the agent
    #[arg(long, conflicts_with = "servers")]
    hooks: bool,
    /// Which config file of the client to edit
    #[arg(long, value_enum, default_value_t = ConfigScope::User)]
    scope: ConfigScope,
    /// The config file, if it is not at the client's default location
    #[arg(long, value_name = "PATH", conflicts_with = "scope")]
    file: Option<PathBuf>,
    /// Show the changes as a diff, without writing files
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConfigScope {
    /// The user's config file
    User,
    /// The config file of the project in the current directory
    Project,
    /// The settings file of administrators, which users can't change; only with `--hooks`
    Managed,
}

impl ClientArgs {
    fn open(&self) -> Result<ConfigFile, CommandError> {
        let facts = self.client.properties();
        let path = match (&self.file, self.scope) {
            (Some(file), _) => file.clone(),
            (None, ConfigScope::User) => {
                facts.user_file(OperatingSystem::current(), |name| std::env::var_os(name)).map_err(|variable| {
                    CommandError::new(format!(
                        "the config file of {} can't be located, because `{variable}` is not set; use `--file`",
                        facts.title
                    ))
                })?
            }
            (None, ConfigScope::Managed) => {
                return Err(CommandError::new("`--scope managed` is for hooks; add `--hooks`"));
            }
            (None, ConfigScope::Project) => facts.project_file(Path::new("")).ok_or_else(|| {
                CommandError::new(format!("{} has no project config files; omit `--scope`", facts.title))
            })?,
        };
        ConfigFile::open(path, facts)
    }

    /// Checks that a file has these servers.
    fn check_known<'n>(
        &self,
        file: &ConfigFile,
        mut servers: impl Iterator<Item = &'n str>,
    ) -> Result<(), CommandError> {
        let known = || file.entries.iter().map(ServerEntry::name);
        if let Some(unknown) = servers.find(|server| known().all(|name| name != *server)) {
            let near = closest_match(unknown, known());
            let hint =
                near.map(|near| format!("; did you mean `{}`?", escape_controls(near))).unwrap_or_default();
            let display_path = file.file.display_path.display();
            return Err(CommandError::new(format!(
                "`{display_path}` has no server `{}`{hint}",
                escape_controls(unknown)
            )));
        }
        Ok(())
    }

    /// The entries of the selected servers.
    fn selected_entries<'f>(&self, file: &'f ConfigFile) -> Result<Vec<&'f ServerEntry>, CommandError> {
        self.check_known(file, self.servers.iter().map(String::as_str))?;
        let is_chosen = |entry: &&ServerEntry| {
            self.servers.is_empty() || self.servers.iter().any(|name| name == entry.name())
        };
        Ok(file.entries.iter().filter(is_chosen).collect())
    }
}

pub(super) fn install(arguments: &Install, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let whose = &arguments.whose;
    let facts = whose.client.properties();
    let program = current_program()?;
    let options = match arguments.gateway.options()? {
        Ok(options) => options,
        Err(exit) => return Ok(exit),
    };
    if whose.hooks {
        let words = options.hook_words()?;
        let exit = match whose.client {
            Client::Cline => cline_install::install(whose, &program, &words, output)?,
            _ => hook_install::install(whose, &program, &words, output)?,
        };
        warn_of_missing_context(&options.missing_context(&HOOK_CONTEXT), output)?;
        return Ok(exit);
    }
    let file = whose.open()?;
    let backup = file.backup(facts);
    whose.check_known(&file, options.named_servers())?;
    let probe = arguments.probe.then(Probe::new).transpose()?;
    let mut rows = Vec::new();
    let mut changed: Vec<(&ServerEntry, Vec<String>)> = Vec::new();
    for entry in whose.selected_entries(&file)? {
        let Some(server_words) = options.server_words(entry.name()) else {
            rows.push(ServerRow::failed(
                entry,
                "there are no rules for it; add `--policies PATH`, or `--server-policies` with its name",
            ));
            continue;
        };
        let row = match entry.gateway_status(&program) {
            Standing::Unsupported(why) => ServerRow::failed(entry, why),
            Standing::Custom => {
                ServerRow::unchanged(entry, "already starts Callgate, with a command of its own")
            }
            Standing::NotInstalled(origin) => {
                changed.push((entry, server_words));
                let caution = match origin {
                    ServerTarget::Command { .. } => "",
                    // The gateway does not do the client's OAuth sign-in.
                    ServerTarget::Remote(_) => ", which must not require sign-in (OAuth)",
                };
                ServerRow::done(
                    entry,
                    format!("put behind the gateway: {}{caution}", display_target(&origin)),
                )
            }
            Standing::Installed { options: now, .. }
                if now == server_words
                    && entry.command.as_ref().is_some_and(|command| command.value == program) =>
            {
                ServerRow::unchanged(entry, "is already behind the gateway")
            }
            Standing::Installed { origin, .. } => {
                changed.push((entry, server_words));
                ServerRow::done(entry, format!("gateway options updated: {}", display_target(&origin)))
            }
        };
        rows.push(match &probe {
            Some(probe) if !row.is_failed() => row.with_detail(probe.describe(entry, &program, &options)),
            _ => row,
        });
    }
    let out = GatewayRemoval { file: &file, facts, backup: backup.as_ref(), program: &program };
    let paths: Vec<&[String]> = changed.iter().map(|(entry, _)| entry.path.as_slice()).collect();
    let bare = out.apply(changed.iter().map(|(entry, _)| *entry), &mut rows);
    let mut edits = Vec::new();
    for entry in file.parse_entries(&bare, facts)? {
        let Some(at) = paths.iter().position(|path| *path == entry.path) else { continue };
        if let (Standing::NotInstalled(_), Some((_, options))) =
            (entry.gateway_status(&program), changed.get(at))
        {
            edits.extend(add_gateway(&bare, &entry, facts, &program, options));
        }
    }
    let text = apply_edits(&bare, edits);
    let report = InstallReport { file: &file, facts, rows, dry_run: whose.dry_run };
    let is_written = text != file.file.text && !whose.dry_run;
    if is_written {
        file.file.replace(&text, &out.apply(&file.entries, &mut Vec::new()))?;
    }
    report.write_rows(&text, output)?;
    if is_written {
        report.write_next_steps(Some(&file.file.backup_path()), output)?;
    }
    warn_of_missing_context(&options.missing_context(&[]), output)?;
    Ok(report.exit(true))
}

/// The members of the context that `callgate hook` sets.
const HOOK_CONTEXT: [&str; 4] = ["agent", "cwd", "permission_mode", "workspace"];

/// Conditions on missing context are undecided or don't hold, which nobody sees later: clients don't show the gateway's log.
fn warn_of_missing_context(missing: &[String], output: &mut Output) -> Result<(), CommandError> {
    if !missing.is_empty() {
        output.flush()?;
        let names: Vec<String> =
            missing.iter().map(|name| format!("`$.context.{}`", escape_controls(name))).collect();
        print_warning(format!(
            "the rules read {}, which no call will have: add it to a file, and name that with `--context`",
            names.join(", ")
        ));
    }
    Ok(())
}

pub(super) fn uninstall(arguments: &UninstallArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let whose = &arguments.whose;
    if whose.hooks {
        return match whose.client {
            Client::Cline => cline_install::uninstall(whose, output),
            _ => hook_install::uninstall(whose, output),
        };
    }
    let facts = whose.client.properties();
    let program = current_program()?;
    let file = whose.open()?;
    let backup = file.backup(facts);
    let chosen = whose.selected_entries(&file)?;
    let mut rows = Vec::new();
    for entry in &chosen {
        match entry.gateway_status(&program) {
            Standing::Installed { origin, .. } => {
                rows.push(ServerRow::done(entry, format!("restored: {}", display_target(&origin))));
            }
            Standing::Custom => {
                rows.push(ServerRow::unchanged(entry, "starts Callgate with a command of its own"))
            }
            Standing::NotInstalled(_) | Standing::Unsupported(_) => {}
        }
    }
    let out = GatewayRemoval { file: &file, facts, backup: backup.as_ref(), program: &program };
    let text = out.apply(chosen, &mut rows);
    let report = InstallReport { file: &file, facts, rows, dry_run: whose.dry_run };
    let is_written = text != file.file.text && !whose.dry_run;
    let backup_path = if is_written { file.file.restore(&text)? } else { None };
    report.write_rows(&text, output)?;
    if is_written {
        report.write_next_steps(backup_path.as_deref(), output)?;
    }
    Ok(report.exit(false))
}

/// Removes the gateway from servers of a file.
struct GatewayRemoval<'f> {
    file: &'f ConfigFile,
    facts: &'f ClientProperties,
    backup: Option<&'f ConfigBackup>,
    program: &'f str,
}

impl GatewayRemoval<'_> {
    /// Returns the file's text without the gateway for these servers. A server that can't be restored gets a failed row.
    fn apply<'e>(
        &self,
        entries: impl IntoIterator<Item = &'e ServerEntry>,
        rows: &mut Vec<ServerRow>,
    ) -> String {
        let text = &self.file.file.text;
        let mut edits = Vec::new();
        for entry in entries {
            let before = self.backup.and_then(|backup| backup.entry(&entry.path));
            match remove_gateway(text, entry, self.facts, before, self.program) {
                Ok(more) => edits.extend(more),
                Err(why) => {
                    rows.retain(|row| row.path != entry.path);
                    rows.push(ServerRow::failed(entry, why));
                }
            }
        }
        apply_edits(text, edits)
    }
}

/// The command or URL without arguments and query, which may contain secrets.
fn display_target(origin: &ServerTarget) -> String {
    let displayed = match origin {
        ServerTarget::Command { command } => command,
        ServerTarget::Remote(url) => url.split('?').next().unwrap_or_default(),
    };
    format!("`{}`", escape_controls(displayed))
}

/// The absolute path of this executable: clients start it from other directories, often with another `PATH`.
fn current_program() -> Result<String, CommandError> {
    let path = std::env::current_exe().map_err(|error| {
        CommandError::new(format!("the path of this program can't be determined: {error}"))
    })?;
    gateway_args::path_to_string(&path)
}

#[cfg(test)]
mod property_tests;
