//! `callgate serve --servers`: MCP servers whose tools the decision server runs itself.

use std::path::PathBuf;
use std::sync::Arc;

use super::exit::{CommandError, ExitStatus};
use super::observability::Observability;
use super::output::{print_diagnostics, print_warning};
use super::pins::read_signers;
use super::server_args::ConfigFile;
use super::server_list_file::{self, FollowServers, ServersError, check_other_keys};
use super::supervise;
use callgate::engine::Engine;
use callgate_mcp::{Config, ConfiguredServer, Gateway, ServerSpec, ToolServers};

/// The largest message of a server, in bytes: as large as the bodies of hosts.
const MAX_MESSAGE_SIZE: usize = 16 << 20;

/// The option that names MCP servers of the decision server.
#[derive(clap::Args)]
pub(super) struct ToolServerArgs {
    /// MCP servers whose tools are run here rather than by hosts: a file as for `callgate proxy --config`, with `servers` and `pins`
    #[arg(long, value_name = "FILE")]
    servers: Option<PathBuf>,
}

/// The file of MCP servers, and what it said at the start.
pub(super) struct ToolServerFile {
    file: ConfigFile,
    config: Config,
}

impl ToolServerArgs {
    /// Reads the file, if one is given. What is wrong with it is reported.
    pub(super) fn read(&self) -> Result<Result<Option<ToolServerFile>, ExitStatus>, CommandError> {
        let Some(path) = &self.servers else { return Ok(Ok(None)) };
        let file = ConfigFile::new(path);
        match file.read() {
            Ok(config) => match check(&config, &file) {
                Ok(()) => Ok(Ok(Some(ToolServerFile { file, config }))),
                Err(why) => Err(CommandError::Message(why)),
            },
            Err(error) => {
                print_diagnostics(&error.diagnostics, &error.sources);
                Ok(Err(ExitStatus::Failure))
            }
        }
    }
}

/// Rejects what only a gateway does: it would have no effect.
fn check(config: &Config, file: &ConfigFile) -> Result<(), String> {
    let keys = [
        ("policies", !config.policies.is_empty()),
        ("candidate", !config.candidate.is_empty()),
        ("context", !config.context.is_empty()),
        ("state", config.state.is_some()),
        ("log", !config.log.is_empty()),
    ];
    if let Some((key, _)) = keys.iter().find(|(_, is_given)| *is_given) {
        return Err(format!(
            "`{key}` in `{file}` has no effect here; use the option `--{key}` of `callgate serve`"
        ));
    }
    if let Some(server) = config.servers.iter().find(|server| server.needs_caller_token()) {
        return Err(format!(
            "the server `{}` in `{file}` needs the tokens of callers (`auth`), which only `callgate proxy` has; use `headers`",
            server.name
        ));
    }
    match config.servers.iter().find(|server| !server.policies.is_empty()) {
        Some(server) => Err(format!(
            "`policies` of the server `{}` in `{file}` have no effect here; move them to `--policies` and add `server: {}` to their \
             `match`",
            server.name, server.name
        )),
        None => Ok(()),
    }
}

impl ToolServerFile {
    /// Connects to the servers. Call it in the runtime.
    pub(super) fn connect(
        &self,
        engine: &Engine,
        observability: &Observability,
    ) -> Result<Arc<ToolServers>, CommandError> {
        let gateways =
            self.config.servers.iter().map(|server| gateway(server, &self.config, engine, observability));
        let gateways = gateways.collect::<Result<Vec<_>, _>>()?;
        ToolServers::connect(engine, gateways).map_err(|error| CommandError::new(error.to_string()))
    }

    /// Keeps the servers as the file lists them; never returns.
    pub(super) async fn follow(
        self,
        servers: Arc<ToolServers>,
        engine: Engine,
        observability: Arc<Observability>,
    ) {
        let (engine, observability) = (&engine, &*observability);
        let mut follower = FollowingServers { file: &self.file, servers, engine, observability };
        server_list_file::follow(&self.file, self.config, &mut follower).await;
    }
}

/// Connected servers that follow their file.
struct FollowingServers<'s> {
    file: &'s ConfigFile,
    servers: Arc<ToolServers>,
    engine: &'s Engine,
    observability: &'s Observability,
}

impl FollowServers for FollowingServers<'_> {
    fn check(&self, present: &Config, next: &Config) -> Result<(), String> {
        check(next, self.file)?;
        check_other_keys(present, next)
    }

    fn replace(&mut self, present: &Config, next: &Config) -> Result<(), ServersError> {
        let present: Vec<ConfiguredServer> = present.servers.iter().map(with_prefix).collect();
        let is_kept = |server: &ConfiguredServer| present.contains(&with_prefix(server));
        let added = next.servers.iter().filter(|server| !is_kept(server));
        let added = added.map(|server| gateway(server, next, self.engine, self.observability));
        let added = added.collect::<Result<Vec<_>, _>>()?;
        let kept = |name: &str| next.servers.iter().any(|server| server.name == name && is_kept(server));
        let replaced = self.servers.replace(kept, added);
        Ok(replaced.map_err(|error| CommandError::new(error.to_string()))?)
    }
}

/// A gateway in front of one server.
fn gateway(
    server: &ConfiguredServer,
    config: &Config,
    engine: &Engine,
    observability: &Observability,
) -> Result<Gateway, CommandError> {
    let reach = supervise::supervised(server.reach.clone())?;
    let spec = ServerSpec::new(&server.name, reach).with_prefix(prefix(server));
    let mut gateway = Gateway::new(engine.clone(), [spec])
        .with_max_message_size(MAX_MESSAGE_SIZE)
        .with_log(|message| print_warning(message));
    if let Some(file) = &config.pins {
        let signers = config.pins_signed_by.as_deref().map(read_signers).transpose()?;
        let pinned = gateway.with_pins(file.clone(), signers);
        gateway = pinned.map_err(|error| CommandError::new(error.to_string()))?;
    }
    Ok(observability.observe_gateway(gateway))
}

/// The prefix of a server's tools, also of a single server, because hosts have tools of their own.
fn prefix(server: &ConfiguredServer) -> String {
    server.prefix.clone().unwrap_or_else(|| format!("{}__", server.name))
}

/// The same server with its prefix, which the file need not have.
fn with_prefix(server: &ConfiguredServer) -> ConfiguredServer {
    let mut server = server.clone();
    server.prefix = Some(prefix(&server));
    server
}
