//! `callgate serve --servers`: MCP servers whose tools the decision server runs itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::exit::{CommandError, ExitStatus};
use super::observability::Observability;
use super::output::{print_diagnostics, print_warning};
use super::pins::read_signers;
use super::supervise;
use callgate::engine::Engine;
use callgate_mcp::{Config, Gateway, ServerSpec, ToolServers, Transport};

/// The largest message of a server, in bytes: as large as the bodies of hosts.
const MAX_MESSAGE_SIZE: usize = 16 << 20;

/// The option that names MCP servers of the decision server.
#[derive(clap::Args)]
pub(super) struct ToolServerArgs {
    /// MCP servers whose tools are run here rather than by hosts: a file as for `callgate proxy --config`, with `servers` and `pins`
    #[arg(long, value_name = "FILE")]
    servers: Option<PathBuf>,
}

impl ToolServerArgs {
    /// Reads the file, if one is given. What is wrong with it is reported.
    pub(super) fn read(&self) -> Result<Result<Option<Config>, ExitStatus>, CommandError> {
        let Some(path) = &self.servers else { return Ok(Ok(None)) };
        match Config::read(path, |name| std::env::var(name).ok()) {
            Ok(config) => check(&config, path).map(|()| Ok(Some(config))),
            Err(error) => {
                print_diagnostics(&error.diagnostics, &error.sources);
                Ok(Err(ExitStatus::Failure))
            }
        }
    }
}

/// Rejects what only a gateway does: it would have no effect.
fn check(config: &Config, path: &Path) -> Result<(), CommandError> {
    let keys = [
        ("policies", !config.policies.is_empty()),
        ("candidate", !config.candidate.is_empty()),
        ("context", !config.context.is_empty()),
        ("state", config.state.is_some()),
        ("log", !config.log.is_empty()),
    ];
    let path = path.display();
    if let Some((key, _)) = keys.iter().find(|(_, is_given)| *is_given) {
        return Err(CommandError::new(format!(
            "`{key}` in `{path}` has no effect here; use the option `--{key}` of `callgate serve`"
        )));
    }
    if let Some(server) = config.servers.iter().find(|server| server.needs_caller_token()) {
        return Err(CommandError::Message(format!(
            "the server `{}` in `{path}` needs the tokens of callers (`auth`), which only `callgate proxy` has; use `headers`",
            server.name
        )));
    }
    match config.servers.iter().find(|server| !server.policies.is_empty()) {
        Some(server) => Err(CommandError::new(format!(
            "`policies` of the server `{}` in `{path}` have no effect here; move them to `--policies` and add `server: {}` to their \
             `match`",
            server.name, server.name
        ))),
        None => Ok(()),
    }
}

/// Connects to the servers. Call it in the runtime.
pub(super) fn connect(
    config: Config,
    engine: &Engine,
    observability: &Observability,
) -> Result<Arc<ToolServers>, CommandError> {
    let mut gateways = Vec::new();
    for server in config.servers {
        let reach = match server.reach {
            Transport::Child(child) => Transport::Child(
                child
                    .with_supervision(supervise::COMMAND_NAME)
                    .map_err(|error| CommandError::new(error.to_string()))?,
            ),
            over_http => over_http,
        };
        // Hosts have tools of their own beside those of a single server.
        let prefix = Some(server.prefix.unwrap_or_else(|| format!("{}__", server.name)));
        let spec = ServerSpec { name: server.name, prefix, reach, rules: None };
        let mut gateway = Gateway::new(engine.clone(), [spec])
            .with_max_message_size(MAX_MESSAGE_SIZE)
            .with_log(|message| print_warning(message));
        if let Some(file) = &config.pins {
            let signers = config.pins_signed_by.as_deref().map(read_signers).transpose()?;
            let pinned = gateway.with_pins(file.clone(), signers);
            gateway = pinned.map_err(|error| CommandError::new(error.to_string()))?;
        }
        gateways.push(observability.observe_gateway(gateway));
    }
    ToolServers::connect(engine, gateways).map_err(|error| CommandError::new(error.to_string()))
}
