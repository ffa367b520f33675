//! `callgate install` and `callgate uninstall`: a client's servers put behind the gateway, and taken out again.
//!
//! Nothing but the replaced texts changes in a file. The backup beside it is the file without Callgate; by it, and not by a record of
//! its own, taking out gives the very bytes back.

mod clients;
mod edits;
mod entry;
mod file;
mod gateway;
mod json_file;
mod report;
mod toml_file;

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::exit::{Exit, Stop};
use super::output::Output;
use crate::diagnostic::nearest;
use crate::text::inert;
use clients::{Client, Facts, System};
use edits::{apply, put_behind, take_out};
use entry::{Entry, Origin, Standing};
use file::{Backup, ClientFile};
use gateway::Gateway;
use report::{Report, Row};

/// Put the servers of an MCP client behind the gateway, by editing the client's file.
///
/// The command of each server becomes `callgate proxy … -- COMMAND`; a server that is reached over streamable HTTP without headers gets
/// `--upstream URL`. All else in the file stays as it is written, comments and line ends included, and a backup is kept beside it. Done
/// again, it takes in servers that came since, and changes the options of the others.
///
/// Exit status: 0 all servers are behind, 1 some could not be put there, or the rules hold errors, 2 wrong usage, or a file that can't be
/// read or written.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate install cursor --policies ~/rules --dry-run\n  \
    callgate install claude-code --scope project --policies rules --server files github\n  \
    callgate install codex --policies ~/rules --pins ~/callgate.lock --state file:$HOME/state.db")]
pub(super) struct Install {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    gateway: Gateway,
}

/// Take the servers of an MCP client from behind the gateway.
///
/// Where nothing else has changed since `callgate install`, the file has the very bytes again that it had before; otherwise the changes of
/// others stay.
///
/// Exit status: 0 no server is behind, 1 some could not be taken out, 2 wrong usage, or a file that can't be read or written.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  callgate uninstall cursor\n  callgate uninstall vscode --scope project --server files"
)]
pub(super) struct Uninstall {
    #[command(flatten)]
    whose: Whose,
}

/// Whose servers, and which.
#[derive(clap::Args)]
struct Whose {
    /// The client
    #[arg(value_enum)]
    client: Client,
    /// Only these servers
    #[arg(long = "server", value_name = "NAME", num_args = 1..)]
    servers: Vec<String>,
    /// The file of the person, or of the project in this directory
    #[arg(long, value_enum, default_value_t = Scope::User)]
    scope: Scope,
    /// Another file than the client's usual one
    #[arg(long, value_name = "PATH", conflicts_with = "scope")]
    file: Option<PathBuf>,
    /// Show what would change, as a diff, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// For all that the person does
    User,
    /// For this project
    Project,
}

impl Whose {
    fn open(&self) -> Result<ClientFile, Stop> {
        let facts = self.client.facts();
        let path = match (&self.file, self.scope) {
            (Some(file), _) => file.clone(),
            (None, Scope::User) => {
                facts.user_file(System::here(), |name| std::env::var_os(name)).map_err(|variable| {
                    Stop::trouble(format!(
                        "where is the file of {}? `{variable}` is not set; name it with `--file`",
                        facts.title
                    ))
                })?
            }
            (None, Scope::Project) => facts.project_file(Path::new("")).ok_or_else(|| {
                Stop::trouble(format!("{} has no files of projects; leave out `--scope`", facts.title))
            })?,
        };
        ClientFile::open(path, facts)
    }

    /// The servers that are asked for.
    fn chosen<'f>(&self, file: &'f ClientFile) -> Result<Vec<&'f Entry>, Stop> {
        let known = || file.entries.iter().map(Entry::name);
        if let Some(unknown) = self.servers.iter().find(|server| known().all(|name| name != *server)) {
            let near = nearest(unknown, known());
            let hint = near.map(|near| format!("; did you mean `{}`?", inert(near))).unwrap_or_default();
            let shown = file.shown.display();
            return Err(Stop::trouble(format!("`{shown}` has no server `{}`{hint}", inert(unknown))));
        }
        let is_chosen =
            |entry: &&Entry| self.servers.is_empty() || self.servers.iter().any(|name| name == entry.name());
        Ok(file.entries.iter().filter(is_chosen).collect())
    }
}

pub(super) fn install(arguments: &Install, output: &mut Output) -> Result<Exit, Stop> {
    let whose = &arguments.whose;
    let facts = whose.client.facts();
    let program = this_program()?;
    let options = match arguments.gateway.options()? {
        Ok(options) => options,
        Err(exit) => return Ok(exit),
    };
    let file = whose.open()?;
    let backup = file.backup(facts);
    let mut rows = Vec::new();
    let mut changed: Vec<(&Entry, Vec<String>)> = Vec::new();
    for entry in whose.chosen(&file)? {
        let options = gateway::named(entry.name(), &options);
        let row = match entry.standing(&program) {
            Standing::Apart(why) => Row::failed(entry, why),
            Standing::OfItsOwn => Row::unchanged(entry, "starts Callgate already, as it is"),
            Standing::Before(origin) => {
                changed.push((entry, options));
                let caution = match origin {
                    Origin::Command { .. } => "",
                    // What the client does to sign in, the gateway does not.
                    Origin::Remote(_) => ", which must let in who has not signed in",
                };
                Row::done(entry, format!("put behind the gateway: {}{caution}", told(&origin)))
            }
            Standing::Behind { options: now, .. }
                if now == options && entry.command.as_ref().is_some_and(|command| command.is == program) =>
            {
                Row::unchanged(entry, "is behind the gateway already")
            }
            Standing::Behind { origin, .. } => {
                changed.push((entry, options));
                Row::done(entry, format!("behind the gateway with other options: {}", told(&origin)))
            }
        };
        rows.push(row);
    }
    let out = Out { file: &file, facts, backup: backup.as_ref(), program: &program };
    let places: Vec<&[String]> = changed.iter().map(|(entry, _)| entry.place.as_slice()).collect();
    let bare = out.text(changed.iter().map(|(entry, _)| *entry), &mut rows);
    let mut edits = Vec::new();
    for entry in file.read_again(&bare, facts)? {
        let Some(at) = places.iter().position(|place| *place == entry.place) else { continue };
        if let (Standing::Before(_), Some((_, options))) = (entry.standing(&program), changed.get(at)) {
            edits.extend(put_behind(&bare, &entry, facts, &program, options));
        }
    }
    let text = apply(&bare, edits);
    let report = Report { file: &file, facts, rows, dry_run: whose.dry_run };
    let is_written = text != file.text && !whose.dry_run;
    if is_written {
        file.replace(&text, &out.text(&file.entries, &mut Vec::new()))?;
    }
    report.show(&text, output)?;
    if is_written {
        report.changed(Some(&file.backup_path()), output)?;
    }
    Ok(report.exit(true))
}

pub(super) fn uninstall(arguments: &Uninstall, output: &mut Output) -> Result<Exit, Stop> {
    let whose = &arguments.whose;
    let facts = whose.client.facts();
    let program = this_program()?;
    let file = whose.open()?;
    let backup = file.backup(facts);
    let chosen = whose.chosen(&file)?;
    let mut rows = Vec::new();
    for entry in &chosen {
        match entry.standing(&program) {
            Standing::Behind { origin, .. } => {
                rows.push(Row::done(entry, format!("as before: {}", told(&origin))));
            }
            Standing::OfItsOwn => rows.push(Row::unchanged(entry, "starts Callgate in a way of its own")),
            Standing::Before(_) | Standing::Apart(_) => {}
        }
    }
    let out = Out { file: &file, facts, backup: backup.as_ref(), program: &program };
    let text = out.text(chosen, &mut rows);
    let report = Report { file: &file, facts, rows, dry_run: whose.dry_run };
    let is_written = text != file.text && !whose.dry_run;
    let kept = if is_written { file.restore(&text)? } else { None };
    report.show(&text, output)?;
    if is_written {
        report.changed(kept.as_deref(), output)?;
    }
    Ok(report.exit(false))
}

/// How servers are taken out of a file.
struct Out<'f> {
    file: &'f ClientFile,
    facts: &'f Facts,
    backup: Option<&'f Backup>,
    program: &'f str,
}

impl Out<'_> {
    /// The file's text with these servers taken out. Where that can't be done, its row says so.
    fn text<'e>(&self, entries: impl IntoIterator<Item = &'e Entry>, rows: &mut Vec<Row>) -> String {
        let text = &self.file.text;
        let mut edits = Vec::new();
        for entry in entries {
            let before = self.backup.and_then(|backup| backup.entry(&entry.place));
            match take_out(text, entry, self.facts, before, self.program) {
                Ok(more) => edits.extend(more),
                Err(why) => {
                    rows.retain(|row| row.place != entry.place);
                    rows.push(Row::failed(entry, why));
                }
            }
        }
        apply(text, edits)
    }
}

/// Without what may be secret: arguments and queries are for the server alone.
fn told(origin: &Origin) -> String {
    let told = match origin {
        Origin::Command { command } => command,
        Origin::Remote(url) => url.split('?').next().unwrap_or_default(),
    };
    format!("`{}`", inert(told))
}

/// Clients start it from directories of their own, often with other search paths.
fn this_program() -> Result<String, Stop> {
    let path =
        std::env::current_exe().map_err(|error| Stop::trouble(format!("where is this program? {error}")))?;
    gateway::text_of(&path)
}

#[cfg(test)]
mod properties;
