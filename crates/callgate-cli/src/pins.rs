//! `callgate pins`: reviews, accepts and verifies pinned tools of MCP servers in a lock file.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::OutputFormat;
use super::async_runtime::new_network_runtime;
use super::exit::{CommandError, ExitStatus};
use super::output::{BOLD, DIM, GREEN, Output, RED, YELLOW, count_noun, print_warning};
use super::server_args::{ServerArgs, ServerSetup};
use callgate::diagnostic::closest_match;
use callgate::engine::{self, Engine};
use callgate::json::{Value, json};
use callgate::safe_text::escape_controls;
use callgate_mcp::{
    DescriptionFinding, Gateway, LockFile, LockFileError, PinStatus, PinnedTool, ServerSpec, Signers,
    SigningKey, ToolInventory, scan_description,
};

/// Review and pin the tools of MCP servers.
///
/// A server can change its tool descriptions at any time, and models follow what descriptions say (tool poisoning, prompt injection).
/// With `callgate proxy --pins FILE`, only tools that match FILE are shown and run; new or changed tools are blocked until a person has
/// reviewed and accepted them.
///
/// Exit status: 0 done; 1 for `review`: something is new, changed or flagged, for `verify`: the lock file was edited or lacks a required
/// signature; 2 usage error, a server can't be reached, or a file can't be used.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        callgate pins review -- npx -y @modelcontextprotocol/server-filesystem ~/work\n  \
        callgate pins accept -- npx -y @modelcontextprotocol/server-filesystem ~/work\n  \
        callgate pins key ~/.config/callgate-pins.key >> reviewers.keys\n  \
        callgate pins accept --sign ~/.config/callgate-pins.key -- npx -y @modelcontextprotocol/server-filesystem ~/work\n  \
        callgate pins verify --signed-by reviewers.keys\n  \
        callgate proxy --pins callgate.lock -- npx -y @modelcontextprotocol/server-filesystem ~/work"
)]
pub(super) struct PinsArgs {
    #[command(subcommand)]
    command: PinsCommand,
}

#[derive(Subcommand)]
enum PinsCommand {
    /// Show tools that are new or changed since they were accepted, and suspicious content in them
    Review {
        #[command(flatten)]
        file: LockFileArgs,
        /// Output format
        #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
        format: OutputFormat,
        #[command(flatten)]
        servers: ServerArgs,
    },
    /// Accept the current tools into the lock file
    Accept {
        #[command(flatten)]
        file: LockFileArgs,
        /// Accept only this tool; repeatable. Without it, all tools are accepted, and missing ones removed from the lock file
        #[arg(long, value_name = "NAME")]
        tool: Vec<String>,
        /// Sign the lock file with the secret key in KEY, created if missing. Earlier entries that no trusted key has signed are dropped
        #[arg(long, value_name = "KEY")]
        sign: Option<PathBuf>,
        #[command(flatten)]
        servers: ServerArgs,
    },
    /// Verify that the lock file was not edited, and its signature; contacts no server
    Verify {
        #[command(flatten)]
        file: LockFileArgs,
    },
    /// Print the public key of a signing key, which is created if missing
    Key {
        /// The secret key file, readable only by its owner
        #[arg(value_name = "KEY")]
        path: PathBuf,
    },
}

#[derive(clap::Args)]
struct LockFileArgs {
    /// The lock file
    #[arg(long = "pins", value_name = "FILE", default_value = "callgate.lock")]
    path: PathBuf,
    /// Require a signature of the lock file by one of the public keys in FILE, one a line
    #[arg(long, value_name = "FILE")]
    signed_by: Option<PathBuf>,
}

/// One tool and its pin status.
#[derive(Serialize)]
struct ToolReview {
    server: String,
    tool: String,
    standing: &'static str,
    #[serde(serialize_with = "places")]
    flags: Vec<DescriptionFinding>,
    was: Option<Value>,
    is: Option<Value>,
}

fn places<S: serde::Serializer>(flags: &[DescriptionFinding], serializer: S) -> Result<S::Ok, S::Error> {
    let list =
        flags.iter().map(|flag| json!({ "place": flag.path, "what": flag.problem, "excerpt": flag.excerpt }));
    serializer.collect_seq(list)
}

pub(super) fn pins(arguments: &PinsArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    match &arguments.command {
        PinsCommand::Review { file, format, servers } => {
            let lock = read_lock(&file.path, file.signed_by.as_deref())?;
            let Some(inspected) = fetch_tools(servers)? else { return Ok(ExitStatus::Failure) };
            let reviewed = review_tools(&lock, &inspected);
            match format {
                OutputFormat::Json => {
                    let document = json!({ "version": 1, "tools": reviewed });
                    writeln!(output, "{document:#}")?;
                }
                OutputFormat::Text => write_text(&reviewed, &file.path, output)?,
            }
            let is_fine = reviewed.iter().all(|tool| tool.standing == "accepted" && tool.flags.is_empty());
            Ok(if is_fine { ExitStatus::Success } else { ExitStatus::Failure })
        }
        PinsCommand::Accept { file, tool, sign, servers } => match fetch_tools(servers)? {
            Some(inspected) => accept_tools(file, tool, sign.as_deref(), &inspected, output),
            None => Ok(ExitStatus::Failure),
        },
        PinsCommand::Verify { file } => {
            let lock = match read_lock(&file.path, file.signed_by.as_deref()) {
                Ok(lock) => lock,
                Err(CommandError::Message(why)) => {
                    print_warning(&why);
                    return Ok(ExitStatus::Failure);
                }
                Err(stop) => return Err(stop),
            };
            let tools = lock.servers.values().map(|server| server.tools.len()).sum();
            let signed = if file.signed_by.is_some() { ", signed" } else { "" };
            writeln!(
                output,
                "{} verified{signed} ({})",
                count_noun(tools, "tool", "tools"),
                file.path.display()
            )?;
            Ok(ExitStatus::Success)
        }
        PinsCommand::Key { path } => {
            writeln!(output, "{}", read_signing_key(path)?.public_key())?;
            Ok(ExitStatus::Success)
        }
    }
}

/// Reads a lock file; with a file of public keys, one of them must have signed it.
pub(super) fn read_lock(path: &Path, signed_by: Option<&Path>) -> Result<LockFile, CommandError> {
    let signers = signed_by.map(read_signers).transpose()?;
    let lock = match signers {
        Some(signers) => LockFile::read_signed(path, &signers),
        None => LockFile::read(path),
    };
    lock.map_err(|error| CommandError::new(error.to_string()))
}

/// Reads the public keys of trusted signers.
pub(super) fn read_signers(path: &Path) -> Result<Signers, CommandError> {
    Signers::from_file(path).map_err(|error| CommandError::new(error.to_string()))
}

fn read_signing_key(path: &Path) -> Result<SigningKey, CommandError> {
    SigningKey::from_file_or_new(path).map_err(|error| CommandError::new(error.to_string()))
}

/// Reads the lock file that tools are accepted into. A signature covers the whole file, so entries that no trusted key has signed
/// are dropped before it is signed.
fn read_base_lock(file: &LockFileArgs, key: Option<&SigningKey>) -> Result<LockFile, CommandError> {
    let Some(key) = key else {
        let lock = read_lock(&file.path, file.signed_by.as_deref())?;
        if lock.is_signed() {
            print_warning("the lock file was signed before and will not be now; sign it with `--sign KEY`");
        }
        return Ok(lock);
    };
    let signers = match &file.signed_by {
        Some(path) => read_signers(path)?.with_signer(key.public_key()),
        None => Signers::from(key.public_key()),
    };
    match LockFile::read_signed(&file.path, &signers) {
        Ok(lock) => Ok(lock),
        Err(why @ (LockFileError::Unsigned(_) | LockFileError::UnknownSigner { .. })) => {
            print_warning(format!(
                "{why}; its entries are dropped, and the new lock file has only the tools accepted now"
            ));
            Ok(LockFile::empty())
        }
        Err(why) => Err(CommandError::new(why.to_string())),
    }
}

/// Requests the tools of the servers. Returns `None` if the config file has errors, which have been reported.
fn fetch_tools(servers: &ServerArgs) -> Result<Option<Vec<ToolInventory>>, CommandError> {
    let ServerSetup::Config(config) = servers.read_config()? else { return Ok(None) };
    let runtime = new_network_runtime()?;
    let rules = engine::load_text("policies: []").map_err(|error| CommandError::new(error.to_string()))?;
    let specs = config.servers.into_iter().map(|server| ServerSpec::new(server.name, server.reach));
    let gateway = Gateway::new(Engine::new(rules), specs).with_log(|message| print_warning(message));
    let tools = runtime.block_on(Arc::new(gateway).list_tools());
    tools.map(Some).map_err(|error| CommandError::Message(error.to_string()))
}

fn review_tools(lock: &LockFile, inspected: &[ToolInventory]) -> Vec<ToolReview> {
    let mut reviewed = Vec::new();
    for ToolInventory { server, tools } in inspected {
        let pinned = lock.servers.get(server);
        let names: BTreeSet<&String> = tools.iter().map(|(name, _)| name).collect();
        for (name, tool) in tools {
            let standing = match lock.status(server, name, tool) {
                PinStatus::Accepted => "accepted",
                PinStatus::New => "new",
                PinStatus::Changed => "changed",
            };
            reviewed.push(ToolReview {
                server: server.clone(),
                tool: name.clone(),
                standing,
                flags: scan_description(tool),
                was: pinned.and_then(|pinned| pinned.tools.get(name)).map(|pinned| pinned.tool.clone()),
                is: Some(tool.clone()),
            });
        }
        let gone =
            pinned.into_iter().flat_map(|pinned| &pinned.tools).filter(|(name, _)| !names.contains(name));
        reviewed.extend(gone.map(|(name, pinned)| ToolReview {
            server: server.clone(),
            tool: name.clone(),
            standing: "gone",
            flags: Vec::new(),
            was: Some(pinned.tool.clone()),
            is: None,
        }));
    }
    reviewed
}

fn write_text(reviewed: &[ToolReview], path: &Path, output: &mut Output) -> Result<(), CommandError> {
    for tool in reviewed {
        let (style, sign) = match tool.standing {
            "accepted" => (DIM, " "),
            "new" => (GREEN, "+"),
            "changed" => (YELLOW, "~"),
            _ => (RED, "-"),
        };
        if tool.standing == "accepted" && tool.flags.is_empty() {
            continue;
        }
        let head = format!(
            "{sign} {} {}/{}",
            tool.standing,
            escape_controls(&tool.server),
            escape_controls(&tool.tool)
        );
        writeln!(output, "{}", output.paint(style, &head).into_owned())?;
        for flag in &tool.flags {
            let line = format!("    ! {} in {}: {}", flag.problem, flag.path, flag.excerpt);
            writeln!(output, "{}", output.paint(RED, &line).into_owned())?;
        }
        if tool.standing != "gone" {
            write_diff(tool.was.as_ref(), tool.is.as_ref(), output)?;
        }
    }
    let count = |status: &str| reviewed.iter().filter(|tool| tool.standing == status).count();
    let flagged = reviewed.iter().filter(|tool| !tool.flags.is_empty()).count();
    let summary = format!(
        "{}: {} accepted, {} new, {} changed, {} gone, {} flagged ({})",
        count_noun(reviewed.len(), "tool", "tools"),
        count("accepted"),
        count("new"),
        count("changed"),
        count("gone"),
        flagged,
        path.display()
    );
    writeln!(output, "{}", output.paint(BOLD, &summary).into_owned())?;
    Ok(())
}

/// Writes the line diff of a tool's descriptor.
fn write_diff(was: Option<&Value>, is: Option<&Value>, output: &mut Output) -> Result<(), CommandError> {
    let text = |tool: Option<&Value>| tool.map(|tool| format!("{tool:#}")).unwrap_or_default();
    let (was, is) = (text(was), text(is));
    if was == is {
        return Ok(());
    }
    for change in TextDiff::from_lines(&was, &is).iter_all_changes() {
        let (sign, style) = match change.tag() {
            ChangeTag::Equal => (" ", DIM),
            ChangeTag::Insert => ("+", GREEN),
            ChangeTag::Delete => ("-", RED),
        };
        let line = format!("    {sign} {}", escape_controls(change.value().trim_end_matches('\n')));
        writeln!(output, "{}", output.paint(style, &line).into_owned())?;
    }
    Ok(())
}

fn accept_tools(
    file: &LockFileArgs,
    chosen: &[String],
    sign: Option<&Path>,
    inspected: &[ToolInventory],
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let key = sign.map(read_signing_key).transpose()?;
    let mut lock = read_base_lock(file, key.as_ref())?;
    let known: Vec<&str> =
        inspected.iter().flat_map(|server| &server.tools).map(|(name, _)| name.as_str()).collect();
    if let Some(unknown) = chosen.iter().find(|name| !known.contains(&name.as_str())) {
        let near = closest_match(unknown, known.iter().copied());
        let hint =
            near.map(|near| format!("; did you mean `{}`?", escape_controls(near))).unwrap_or_default();
        return Err(CommandError::new(format!("no server has a tool `{}`{hint}", escape_controls(unknown))));
    }
    let mut accepted = 0;
    for ToolInventory { server, tools } in inspected {
        let pinned = lock.servers.entry(server.clone()).or_default();
        if chosen.is_empty() {
            pinned.tools.retain(|name, _| tools.iter().any(|(known, _)| known == name));
        }
        for (name, tool) in tools.iter().filter(|(name, _)| chosen.is_empty() || chosen.contains(name)) {
            let now = PinnedTool::new(tool);
            if pinned.tools.get(name) != Some(&now) {
                pinned.tools.insert(name.clone(), now);
                accepted += 1;
            }
        }
    }
    lock.sign(key.as_ref());
    lock.write(&file.path).map_err(|error| CommandError::new(error.to_string()))?;
    writeln!(output, "{} accepted into {}", count_noun(accepted, "tool", "tools"), file.path.display())?;
    Ok(ExitStatus::Success)
}
