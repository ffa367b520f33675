//! The gateway options that `callgate install` passes to each `callgate proxy`. They are checked at install time, because clients don't
//! show the gateway's errors.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgGroup;

use crate::exit::{CommandError, ExitStatus};
use crate::json_inputs::read_context;
use crate::pins::read_lock;
use crate::rules_args;
use callgate::json::Map;
use callgate::policy::{CompiledPolicies, Mode};
use callgate_mcp::LockFile;

/// The options for `callgate proxy`; paths are made absolute.
#[derive(clap::Args)]
// Without policies and pins, a gateway allows every call.
#[command(group = ArgGroup::new("before").args(["policies", "server_policies", "pins"]).required(true).multiple(true))]
pub(super) struct GatewayArgs {
    /// Rules files, or directories to search for them
    #[arg(long, value_name = "PATH", num_args = 1..)]
    policies: Vec<PathBuf>,
    /// Rules of one server, beside those of `--policies`; repeatable
    #[arg(long, value_name = "SERVER=PATH", value_parser = parse_server_policies, conflicts_with = "hooks")]
    server_policies: Vec<(String, PathBuf)>,
    /// A JSON object, the context of every call
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// The state store for approvals, limits and session state: `file:PATH` or `memory:`
    #[arg(long, value_name = "URL")]
    state: Option<String>,
    /// Show and run only tools that match this lock file; see `callgate pins`
    #[arg(long, value_name = "FILE", conflicts_with = "hooks")]
    pins: Option<PathBuf>,
    /// Require a signature of the lock file by one of the public keys in FILE
    #[arg(long, value_name = "FILE", requires = "pins")]
    pins_signed_by: Option<PathBuf>,
}

fn parse_server_policies(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((server, path)) if !server.is_empty() && !path.is_empty() => {
            Ok((server.to_owned(), path.into()))
        }
        _ => Err("write the server's name and the path of its rules, `SERVER=PATH`".to_owned()),
    }
}

/// The checked options.
pub(super) struct GatewayOptions {
    /// The rules of servers that have none of their own. `None` without rules.
    common: Option<ServerRules>,
    of_servers: Vec<(String, ServerRules)>,
    /// The options but the rules, as command line arguments.
    words: Vec<String>,
    context: Map,
    lock: Option<LockFile>,
}

/// The rules for a server.
struct ServerRules {
    /// `--policies` with the paths.
    words: Vec<String>,
    policies: Arc<CompiledPolicies>,
}

impl ServerRules {
    /// Loads rules. If they have errors, reports them and returns the exit status.
    fn load(paths: &[PathBuf]) -> Result<Result<Self, ExitStatus>, CommandError> {
        let policies = match rules_args::load(paths) {
            Ok(policies) => policies,
            Err(exit) => return Ok(Err(exit)),
        };
        let paths = paths.iter().map(|path| absolute_path(path));
        let words = std::iter::once(Ok("--policies".to_owned())).chain(paths).collect::<Result<_, _>>()?;
        Ok(Ok(Self { words, policies }))
    }
}

impl GatewayArgs {
    /// Checks the options. If the rules have errors, reports them and returns the exit status.
    pub(super) fn options(&self) -> Result<Result<GatewayOptions, ExitStatus>, CommandError> {
        let mut common = None;
        if !self.policies.is_empty() {
            match ServerRules::load(&self.policies)? {
                Ok(rules) => common = Some(rules),
                Err(exit) => return Ok(Err(exit)),
            }
        }
        let mut of_servers = Vec::new();
        let servers: BTreeSet<&str> =
            self.server_policies.iter().map(|(server, _)| server.as_str()).collect();
        for server in servers {
            let own = self.server_policies.iter().filter(|(name, _)| name == server).map(|(_, path)| path);
            let paths: Vec<PathBuf> = self.policies.iter().chain(own).cloned().collect();
            match ServerRules::load(&paths)? {
                Ok(rules) => of_servers.push((server.to_owned(), rules)),
                Err(exit) => return Ok(Err(exit)),
            }
        }
        let mut words = Vec::new();
        let mut context = Map::new();
        if let Some(path) = &self.context {
            context = read_context(path)?;
            words.extend(["--context".to_owned(), absolute_path(path)?]);
        }
        if let Some(url) = &self.state {
            let url = match url.strip_prefix("file:") {
                Some(path) if !path.is_empty() => format!("file:{}", absolute_path(Path::new(path))?),
                _ if url == "memory:" => url.clone(),
                _ => {
                    return Err(CommandError::new(format!(
                        "`{url}` is not a state store; use `file:PATH` or `memory:`"
                    )));
                }
            };
            words.extend(["--state".to_owned(), url]);
        }
        let mut lock = None;
        if let Some(path) = &self.pins {
            lock = Some(read_lock(path, self.pins_signed_by.as_deref())?);
            words.extend(["--pins".to_owned(), absolute_path(path)?]);
        }
        if let Some(path) = &self.pins_signed_by {
            words.extend(["--pins-signed-by".to_owned(), absolute_path(path)?]);
        }
        Ok(Ok(GatewayOptions { common, of_servers, words, context, lock }))
    }
}

impl GatewayOptions {
    fn rules(&self, server: &str) -> Option<&ServerRules> {
        let own = self.of_servers.iter().find(|(name, _)| name == server).map(|(_, rules)| rules);
        own.or(self.common.as_ref())
    }

    /// The servers with rules of their own.
    pub(super) fn named_servers(&self) -> impl Iterator<Item = &str> {
        self.of_servers.iter().map(|(name, _)| name.as_str())
    }

    /// The options for all servers, without a name and rules of single servers.
    ///
    /// # Errors
    /// They are not for hooks.
    pub(super) fn hook_words(&self) -> Result<Vec<String>, CommandError> {
        if self.words.iter().any(|word| word == "memory:") {
            return Err(CommandError::new("`memory:` ends with each event; use `file:PATH`"));
        }
        let rules = self.common.iter().flat_map(|rules| &rules.words);
        Ok(rules.chain(&self.words).cloned().collect())
    }

    /// The options for one server. `None` if no rules and no lock file apply to it, so that everything would be allowed.
    pub(super) fn server_words(&self, server: &str) -> Option<Vec<String>> {
        let rules = self.rules(server);
        if rules.is_none() && self.lock.is_none() {
            return None;
        }
        // A name that begins with a dash would be parsed as an option.
        let name = match server.starts_with('-') {
            true => vec![format!("--name={server}")],
            false => vec!["--name".to_owned(), server.to_owned()],
        };
        let rules = rules.iter().flat_map(|rules| &rules.words);
        Some(name.iter().chain(rules).chain(&self.words).cloned().collect())
    }

    /// The compiled rules for one server.
    pub(super) fn policies(&self, server: &str) -> Option<&Arc<CompiledPolicies>> {
        self.rules(server).map(|rules| &rules.policies)
    }

    /// The lock file.
    pub(super) fn lock(&self) -> Option<&LockFile> {
        self.lock.as_ref()
    }

    /// The members of the context that rules read, and that neither `--context` nor whoever makes the calls provides.
    pub(super) fn missing_context(&self, provided: &[&str]) -> Vec<String> {
        let all = self.common.iter().chain(self.of_servers.iter().map(|(_, rules)| rules));
        let policies =
            all.flat_map(|rules| rules.policies.policies()).filter(|policy| policy.mode != Mode::Off);
        let read = policies.filter_map(|policy| policy.context_reads.members()).flatten();
        let missing: BTreeSet<&str> =
            read.filter(|member| !provided.contains(member) && !self.context.contains_key(member)).collect();
        missing.into_iter().map(str::to_owned).collect()
    }
}

/// A path as a string, for a client's config file.
pub(super) fn path_to_string(path: &Path) -> Result<String, CommandError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| CommandError::new(format!("the path `{}` is not UTF-8", path.display())))
}

fn absolute_path(path: &Path) -> Result<String, CommandError> {
    let path = std::path::absolute(path).map_err(|error| {
        CommandError::new(format!("`{}` can't be made absolute: {error}", path.display()))
    })?;
    path_to_string(&path)
}
