//! `callgate attend` (hidden): runs an MCP server as a child process that ends with the gateway.

use std::ffi::OsString;

use super::exit::{CommandError, ExitStatus};
use callgate_mcp::{Transport, exec_server};

/// The name of the command.
const COMMAND_NAME: &str = "attend";

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

/// The way to a server, which ends with this process if it is a child of it.
///
/// # Errors
/// The program of this process is unknown.
pub(super) fn supervised(reach: Transport) -> Result<Transport, CommandError> {
    match reach {
        Transport::Child(child) => {
            let child = child.with_supervision(COMMAND_NAME);
            child.map(Transport::Child).map_err(|error| CommandError::new(error.to_string()))
        }
        over_http => Ok(over_http),
    }
}
