//! `callgate attend` (hidden): runs an MCP server as a child process that ends with the gateway.

use std::ffi::OsString;

use super::exit::{CommandError, ExitStatus};
use crate::mcp::become_server;

/// The name of the command.
pub(super) const NAME: &str = "attend";

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

pub(super) fn attend(arguments: &SuperviseArgs) -> Result<ExitStatus, CommandError> {
    match become_server(arguments.gateway, &arguments.command) {
        Ok(never) => match never {},
        Err(why) => Err(CommandError::trouble(why)),
    }
}
