//! A hook process and its helper: an event → the helper's answer.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::helper_socket::HelperSocket;
use super::parse_answer;
use crate::hook::agent_environment::AgentEnvironment;
use callgate_hooks::Answer;

/// What became of a request to a helper.
pub(in crate::hook) enum HelperReply {
    Answer(Answer),
    /// No helper listens: nothing was sent.
    NotRunning,
    /// The helper may have decided and counted the event, and its answer is lost.
    Lost(String),
}

/// Sends an event to the helper. The caller limits the time.
pub(in crate::hook) fn ask(
    socket: &HelperSocket,
    environment: &AgentEnvironment,
    event: &str,
) -> HelperReply {
    let stream = match UnixStream::connect(socket.path()) {
        Ok(stream) => stream,
        Err(_) => return HelperReply::NotRunning,
    };
    match exchange(stream, environment, event) {
        Ok(text) => match parse_answer(&text) {
            Some(answer) => HelperReply::Answer(answer),
            None => HelperReply::Lost("the helper ended before it answered".to_owned()),
        },
        Err(error) => HelperReply::Lost(format!("the helper did not answer: {error}")),
    }
}

fn exchange(mut stream: UnixStream, environment: &AgentEnvironment, event: &str) -> std::io::Result<String> {
    stream.write_all(environment.to_line().as_bytes())?;
    stream.write_all(event.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    loop {
        match stream.read_to_string(&mut text) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(text),
        }
    }
}

/// Starts a helper for this process's arguments, directory and environment. It need not succeed: each process can decide its event itself.
pub(in crate::hook) fn start(socket: &HelperSocket) {
    let Ok(program) = std::env::current_exe() else { return };
    let mut helper = Command::new(program);
    helper.args(std::env::args_os().skip(1)).arg("--helper-socket").arg(socket.path());
    // A group of its own, so that it is not ended with this event.
    helper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    drop(helper.spawn());
}
