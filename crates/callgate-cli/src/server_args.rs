//! Server arguments of commands: MCP servers from the command line or from a config file → [`Config`].

use std::path::PathBuf;

use super::exit::CommandError;
use super::output::print_diagnostics;
use callgate::json::{Map, Value};
use callgate_mcp::{Config, ConfigError, ConfiguredServer, HttpSpec, StdioSpec, Transport};

/// Arguments that name MCP servers.
#[derive(clap::Args)]
#[group(id = "server", multiple = true)]
pub(super) struct ServerArgs {
    /// A config file with servers, policies and other options; see `callgate schema gateway`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "command", "upstream"])]
    config: Option<PathBuf>,
    /// The name of the server in policies (`server:` in `match`) and lock files
    #[arg(long, value_name = "NAME", default_value = "server")]
    name: String,
    /// The URL of a server that speaks streamable HTTP, instead of a command
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    upstream: Option<String>,
    /// The server's command and its arguments, after `--`
    #[arg(value_name = "SERVER COMMAND", last = true)]
    command: Vec<String>,
}

/// A config file, by its path.
#[derive(Clone)]
pub(super) struct ConfigFile(PathBuf);

impl ConfigFile {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Reads it.
    pub(super) fn read(&self) -> Result<Config, Box<ConfigError>> {
        Config::read(&self.0, |name| std::env::var(name).ok())
    }

    /// Its text at present, which is read by a thread of its own; `None` if it can't be read.
    pub(super) async fn contents(&self) -> Option<Vec<u8>> {
        let path = self.0.clone();
        tokio::task::spawn_blocking(move || std::fs::read(path).ok()).await.ok().flatten()
    }
}

impl std::fmt::Display for ConfigFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.display().fmt(f)
    }
}

/// The result of reading the arguments.
pub(super) enum ServerSetup {
    /// The configuration.
    Config(Box<Config>),
    /// The config file has errors, which have been reported.
    Invalid,
}

impl ServerArgs {
    /// The config file, if there is one.
    pub(super) fn config_file(&self) -> Option<ConfigFile> {
        self.config.clone().map(ConfigFile)
    }

    pub(super) fn read_config(&self) -> Result<ServerSetup, CommandError> {
        if let Some(file) = self.config_file() {
            return Ok(match file.read() {
                Ok(config) => ServerSetup::Config(Box::new(config)),
                Err(error) => {
                    print_diagnostics(&error.diagnostics, &error.sources);
                    ServerSetup::Invalid
                }
            });
        }
        let reach = self.transport()?;
        let server = ConfiguredServer::new(&self.name, reach);
        Ok(ServerSetup::Config(Box::new(Config { servers: vec![server], ..Config::default() })))
    }

    fn transport(&self) -> Result<Transport, CommandError> {
        if let Some(url) = &self.upstream {
            let spec = HttpSpec { url: url.clone(), headers: Vec::new(), auth: None };
            spec.validate().map_err(CommandError::Message)?;
            return Ok(Transport::Http(spec));
        }
        let Some((command, args)) = self.command.split_first() else {
            return Err(CommandError::new(
                "no server given; add its command after `--`, its URL with `--upstream`, or a file with `--config`",
            ));
        };
        Ok(Transport::Child(StdioSpec {
            command: command.clone(),
            args: args.to_vec(),
            env: Vec::new(),
            cwd: None,
        }))
    }
}

/// Merges two contexts; members of `more` override those of `base`.
pub(super) fn merge_context(more: Option<Map>, base: Map) -> Value {
    let mut both = base;
    both.extend(more.unwrap_or_default());
    if both.is_empty() { Value::Null } else { Value::Object(both) }
}
