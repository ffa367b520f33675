//! Which MCP servers a command is about.

use super::exit::Stop;
use crate::mcp::{ChildSpec, Reach, ServerSpec};

/// The servers.
#[derive(clap::Args)]
pub(super) struct Servers {
    /// What policies and lock files call the server (`server:` in `match`)
    #[arg(long, value_name = "NAME", default_value = "server")]
    name: String,
    /// The server's command, after `--`
    #[arg(value_name = "SERVER COMMAND", last = true, required = true)]
    command: Vec<String>,
}

impl Servers {
    pub(super) fn specs(&self) -> Result<Vec<ServerSpec>, Stop> {
        let Some((command, args)) = self.command.split_first() else {
            return Err(Stop::trouble("which server? name its command after `--`"));
        };
        let child = ChildSpec { command: command.clone(), args: args.to_vec(), env: Vec::new(), cwd: None };
        Ok(vec![ServerSpec { name: self.name.clone(), prefix: None, reach: Reach::Child(child) }])
    }
}
