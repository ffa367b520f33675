//! Supervision of server processes by a parent death signal: servers end with their gateway, even if it is killed. Each server's own
//! process requests the signal before it executes the server's command.

use std::convert::Infallible;
use std::ffi::OsString;

use thiserror::Error;

use super::stdio_upstream::StdioSpec;

/// The reason why a server can't run under supervision.
#[derive(Debug, Error)]
pub enum SupervisionError {
    /// The program does not exist or is not executable.
    #[error("`{0}` can't be started: there is no executable program of this name")]
    ProgramNotFound(String),
    /// The command is missing.
    #[error("the command is missing")]
    MissingCommand,
    /// The system refuses the parent death signal.
    #[error("can't set the parent death signal of the server: {0}")]
    Signal(std::io::Error),
    /// The gateway has already ended.
    #[error("the gateway has ended")]
    GatewayEnded,
    /// The command can't be run.
    #[error("`{program}` can't be started: {error}")]
    CommandFailed {
        /// The program.
        program: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The system has no parent death signal.
    #[error("this system has no parent death signal")]
    Unsupported,
}

impl StdioSpec {
    /// The same server, started through this program, which must call [`exec_server`] with the arguments after `before`: the gateway's
    /// process id, `--`, the command. Returns the server unchanged on systems without parent death signals.
    ///
    /// # Errors
    /// The program does not exist or is not executable.
    #[cfg(target_os = "linux")]
    pub fn with_supervision(self, before: &str) -> Result<Self, SupervisionError> {
        if !self.program_exists() {
            return Err(SupervisionError::ProgramNotFound(self.command));
        }
        let gateway = std::process::id().to_string();
        let words = [before.to_owned(), gateway, "--".to_owned(), self.command];
        // Resolved by the started process, so it is this program even if its file has been replaced meanwhile.
        let command = "/proc/self/exe".to_owned();
        Ok(Self { command, args: words.into_iter().chain(self.args).collect(), ..self })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn with_supervision(self, _: &str) -> Result<Self, SupervisionError> {
        Ok(self)
    }

    /// Whether the program is found where the server's process would look for it.
    #[cfg(target_os = "linux")]
    fn program_exists(&self) -> bool {
        let here = self.cwd.clone().unwrap_or_default();
        if self.command.contains('/') {
            return is_executable(&here.join(&self.command));
        }
        let own = self.env.iter().rev().find(|(name, _)| name == "PATH");
        let own = own.map(|(_, value)| OsString::from(value));
        let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&path).any(|folder| is_executable(&here.join(folder).join(&self.command)))
    }
}

#[cfg(target_os = "linux")]
fn is_executable(path: &std::path::Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Replaces this process by a server that ends with its gateway.
///
/// # Errors
/// Returns only on failure: the gateway has already ended, or the command can't be run.
#[cfg(target_os = "linux")]
pub fn exec_server(gateway: u32, command: &[OsString]) -> Result<Infallible, SupervisionError> {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    // The signal is sent when the *thread* that started this process ends. Servers are started by the runtime's own threads, which live
    // as long as the gateway.
    let (program, rest) = command.split_first().ok_or(SupervisionError::MissingCommand)?;
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| SupervisionError::Signal(error.into()))?;
    // The gateway may have ended before the signal was requested.
    let parent = getppid().and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok());
    if parent != Some(gateway) {
        return Err(SupervisionError::GatewayEnded);
    }
    let error = std::process::Command::new(program).args(rest).exec();
    Err(SupervisionError::CommandFailed { program: program.to_string_lossy().into_owned(), error })
}

#[cfg(not(target_os = "linux"))]
pub fn exec_server(_: u32, _: &[OsString]) -> Result<Infallible, SupervisionError> {
    Err(SupervisionError::Unsupported)
}
