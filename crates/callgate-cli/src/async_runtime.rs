//! The async runtime of commands that serve nobody.

use tokio::runtime::{Builder, Runtime};

use super::exit::CommandError;

/// The async runtime for stores and sessions.
pub(super) fn new_runtime() -> Result<Runtime, CommandError> {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| CommandError::new(format!("the async runtime can't be started: {error}")))
}

/// The async runtime of commands that talk to servers.
pub(super) fn new_network_runtime() -> Result<Runtime, CommandError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::new(format!("the async runtime can't be started: {error}")))
}
