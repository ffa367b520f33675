//! `callgate attend` (hidden): runs an MCP server as a child process that ends with the gateway.

use std::ffi::OsString;

use super::exit::{CommandError, ExitStatus};
use callgate_mcp::exec_server;

/// The name of the command.
pub(super) const COMMAND_NAME: &str = "attend";

/// Run an MCP server that ends when the gateway ends. Internal: only the gateway uses this command.
#[derive(clap::Args)]
#[command(hide = true)]
pub(super) struct SuperviseArgs {
    /// The process id of the gateway
    gateway: u32,
    /// The server's program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(super) fn supervise(arguments: &SuperviseArgs) -> Result<ExitStatus, CommandError> {
    match exec_server(arguments.gateway, &arguments.command) {
        Ok(never) => match never {},
        Err(error) => Err(CommandError::new(error.to_string())),
    }
}
