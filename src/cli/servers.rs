//! Which MCP servers a command is about, and the rules before them: named on the command line, or in a file.

use std::path::PathBuf;

use super::exit::Stop;
use super::output::complain_of;
use crate::json::{Map, Value};
use crate::mcp::{ChildSpec, Config, ConfiguredServer, HttpSpec, Reach};

/// The servers.
#[derive(clap::Args)]
#[group(id = "server", multiple = true)]
pub(super) struct Servers {
    /// A file that says which servers there are, with what else is said here: see `callgate schema gateway`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "command", "upstream"])]
    config: Option<PathBuf>,
    /// What policies and lock files call the server (`server:` in `match`)
    #[arg(long, value_name = "NAME", default_value = "server")]
    name: String,
    /// A server that is reached over streamable HTTP, in the place of a command
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    upstream: Option<String>,
    /// The server's command, after `--`
    #[arg(value_name = "SERVER COMMAND", last = true)]
    command: Vec<String>,
}

/// What is said of servers, and of the gateway before them.
pub(super) enum Said {
    /// All of it.
    Config(Config),
    /// The file holds errors, which are told.
    Errors,
}

impl Servers {
    pub(super) fn read(&self) -> Result<Said, Stop> {
        if let Some(file) = &self.config {
            return Ok(match Config::read(file, |name| std::env::var(name).ok()) {
                Ok(config) => Said::Config(config),
                Err(error) => {
                    complain_of(&error.diagnostics, &error.sources);
                    Said::Errors
                }
            });
        }
        let reach = self.reach()?;
        let server = ConfiguredServer { name: self.name.clone(), prefix: None, reach, policies: Vec::new() };
        Ok(Said::Config(Config { servers: vec![server], ..Config::default() }))
    }

    fn reach(&self) -> Result<Reach, Stop> {
        if let Some(url) = &self.upstream {
            let spec = HttpSpec { url: url.clone(), headers: Vec::new() };
            spec.check().map_err(Stop::Trouble)?;
            return Ok(Reach::Http(spec));
        }
        let Some((command, args)) = self.command.split_first() else {
            return Err(Stop::trouble(
                "which server? name its command after `--`, its URL with `--upstream`, or a file with `--config`",
            ));
        };
        Ok(Reach::Child(ChildSpec {
            command: command.clone(),
            args: args.to_vec(),
            env: Vec::new(),
            cwd: None,
        }))
    }
}

/// A context over another one: its members stand before those of the same name.
pub(super) fn over(more: Option<Map>, base: Map) -> Value {
    let mut both = base;
    both.extend(more.unwrap_or_default());
    if both.is_empty() { Value::Null } else { Value::Object(both) }
}
