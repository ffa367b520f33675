//! Servers that end with their gateway, even where it is killed: the system is asked for that by the server's own process before it
//! becomes the server.

use std::ffi::OsString;

use crate::mcp::ChildSpec;

use super::exit::{Exit, Stop};

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

/// A server that is started so.
#[cfg(target_os = "linux")]
pub(super) fn attended(spec: ChildSpec) -> Result<ChildSpec, Stop> {
    if !is_there(&spec) {
        return Err(Stop::trouble(format!(
            "`{}` can't be started: there is no such program that may be run",
            spec.command
        )));
    }
    let gateway = std::process::id().to_string();
    let before = ["attend".to_owned(), gateway, "--".to_owned(), spec.command];
    // Of the process that is started, so that it is this program also when the file has been replaced meanwhile.
    let command = "/proc/self/exe".to_owned();
    Ok(ChildSpec { command, args: before.into_iter().chain(spec.args).collect(), ..spec })
}

/// Other systems have no such request.
#[cfg(not(target_os = "linux"))]
pub(super) fn attended(spec: ChildSpec) -> Result<ChildSpec, Stop> {
    Ok(spec)
}

/// Whether there is such a program, where the server would look for it.
#[cfg(target_os = "linux")]
fn is_there(spec: &ChildSpec) -> bool {
    let here = spec.cwd.clone().unwrap_or_default();
    if spec.command.contains('/') {
        return is_program(&here.join(&spec.command));
    }
    let own = spec.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| OsString::from(value));
    let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(&here.join(folder).join(&spec.command)))
}

#[cfg(target_os = "linux")]
fn is_program(path: &std::path::Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(target_os = "linux")]
pub(super) fn attend(arguments: &Attend) -> Result<Exit, Stop> {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    let Some((program, rest)) = arguments.command.split_first() else { return Ok(Exit::Fails) };
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Stop::trouble(format!("the server can't be bound to its gateway: {error}")))?;
    // It may have ended before it was asked to tell.
    let parent = getppid().and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok());
    if parent != Some(arguments.gateway) {
        return Ok(Exit::Fails);
    }
    let error = std::process::Command::new(program).args(rest).exec();
    Err(Stop::trouble(format!("`{}` can't be started: {error}", program.to_string_lossy())))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn attend(_: &Attend) -> Result<Exit, Stop> {
    Err(Stop::trouble("this system does not end a process with another one".to_owned()))
}
