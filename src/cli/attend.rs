//! How the gateway starts its servers.

use std::ffi::OsString;

use super::exit::{Exit, Stop};
use crate::mcp::become_server;

/// The command's name.
pub(super) const NAME: &str = "attend";

/// Become a server that ends when the gateway does. The gateway starts its servers by this; it is for nobody else.
#[derive(clap::Args)]
#[command(hide = true)]
pub(super) struct Attend {
    /// The gateway's process
    gateway: u32,
    /// The server's program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(super) fn attend(arguments: &Attend) -> Result<Exit, Stop> {
    match become_server(arguments.gateway, &arguments.command) {
        Ok(never) => match never {},
        Err(why) => Err(Stop::trouble(why)),
    }
}
