//! Servers that end with their gateway, even where it is killed: the system is asked for that by the server's own process before it
//! becomes the server.

use std::convert::Infallible;
use std::ffi::OsString;

use super::child::ChildSpec;

impl ChildSpec {
    /// The same server, started by way of this very program, which is to call [`become_server`] with what follows the words
    /// `before`: the gateway's process, `--`, the command. On systems that can't end a process with another one it stays as it is.
    /// Errors: there is no such program.
    #[cfg(target_os = "linux")]
    pub fn attended(self, before: &str) -> Result<Self, String> {
        if !self.is_there() {
            return Err(format!(
                "`{}` can't be started: there is no such program that may be run",
                self.command
            ));
        }
        let gateway = std::process::id().to_string();
        let words = [before.to_owned(), gateway, "--".to_owned(), self.command];
        // Of the process that is started, so that it is this program also when the file has been replaced meanwhile.
        let command = "/proc/self/exe".to_owned();
        Ok(Self { command, args: words.into_iter().chain(self.args).collect(), ..self })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn attended(self, _: &str) -> Result<Self, String> {
        Ok(self)
    }

    /// Whether there is such a program, where the server's process would look for it.
    #[cfg(target_os = "linux")]
    fn is_there(&self) -> bool {
        let here = self.cwd.clone().unwrap_or_default();
        if self.command.contains('/') {
            return is_program(&here.join(&self.command));
        }
        let own = self.env.iter().rev().find(|(name, _)| name == "PATH");
        let own = own.map(|(_, value)| OsString::from(value));
        let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&path).any(|folder| is_program(&here.join(folder).join(&self.command)))
    }
}

#[cfg(target_os = "linux")]
fn is_program(path: &std::path::Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Becomes a server that ends when its gateway does. Errors, which are all that returns: the gateway has ended already, the command
/// can't be run.
#[cfg(target_os = "linux")]
pub fn become_server(gateway: u32, command: &[OsString]) -> Result<Infallible, String> {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    // The system ends this process with the thread that started it. Servers are started by the runtime's own threads, which live as
    // long as the gateway.
    let (program, rest) = command.split_first().ok_or("there is no command")?;
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("the server can't be bound to its gateway: {error}"))?;
    // It may have ended before it was asked for.
    let parent = getppid().and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok());
    if parent != Some(gateway) {
        return Err("the gateway has ended".to_owned());
    }
    let error = std::process::Command::new(program).args(rest).exec();
    Err(format!("`{}` can't be started: {error}", program.to_string_lossy()))
}

#[cfg(not(target_os = "linux"))]
pub fn become_server(_: u32, _: &[OsString]) -> Result<Infallible, String> {
    Err("this system does not end a process with another one".to_owned())
}
