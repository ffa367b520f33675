//! A stdio upstream: a server as a child process, one message per line on its stdin and stdout. Its stderr is inherited.

use std::convert::Infallible;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::BufReader;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot, watch};

use super::jsonrpc::JsonRpcMessage;
use super::line_codec::{self, Line, LineReader};
use super::malformed_recovery;
use super::upstream_event::{UpstreamError, UpstreamEvent, UpstreamEventSender};

/// How long a server has to exit after its input is closed, and again after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Capacity of the queue of messages to write.
const QUEUE_CAPACITY: usize = 256;

/// The command that starts a server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdioSpec {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables in addition to the gateway's.
    pub env: Vec<(String, String)>,
    /// Its working directory; `None` means the gateway's.
    pub cwd: Option<std::path::PathBuf>,
}

/// A running server process.
pub(super) struct StdioUpstream {
    sender: mpsc::Sender<JsonRpcMessage>,
    ended: watch::Receiver<bool>,
    /// Dropping it shuts the server down.
    _keep_alive: oneshot::Sender<Infallible>,
}

impl StdioUpstream {
    /// Starts the process. Its messages go to `events`; the last event reports its end.
    pub(super) fn start(
        spec: &StdioSpec,
        events: UpstreamEventSender,
        limit: usize,
    ) -> Result<Self, UpstreamError> {
        let mut command = Command::new(&spec.command);
        command.args(&spec.args).envs(spec.env.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &spec.cwd {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // A process group of its own: descendants of the server end with it, and Ctrl-C in the terminal reaches only the gateway, which
        // passes it on.
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| UpstreamError(format!("`{}` can't be started: {error}", spec.command)))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(UpstreamError(format!("the stdin and stdout of `{}` can't be opened", spec.command)));
        };
        let (sender, outgoing) = mpsc::channel(QUEUE_CAPACITY);
        let (ended_sender, ended) = watch::channel(false);
        tokio::spawn(line_codec::write_messages(stdin, outgoing));
        let (wanted, unwanted) = oneshot::channel();
        tokio::spawn(async move {
            let group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
            let mut forwarded = pin!(forward_messages(stdout, &events, limit));
            let forwarded_all = tokio::select! {
                forwarded = &mut forwarded => Some(forwarded),
                _ = unwanted => None,
            };
            let why = match forwarded_all {
                Some(Ok(())) => wait_for_exit(&mut child, &group).await,
                Some(Err(MessageTooLong(why))) => {
                    group.signal(Signal::KILL);
                    wait_for_exit(&mut child, &group).await;
                    why
                }
                // Reads what it still sends, but not for longer than its shutdown takes.
                None => {
                    let mut ending = pin!(wait_for_exit(&mut child, &group));
                    tokio::select! {
                        _ = &mut forwarded => ending.await,
                        ended = &mut ending => {
                            // Its descendants would keep its output open.
                            group.signal(Signal::KILL);
                            let _ = tokio::time::timeout(EXIT_TIMEOUT, forwarded).await;
                            ended
                        }
                    }
                }
            };
            let _ = ended_sender.send(true);
            let _ = events.send(UpstreamEvent::Closed(UpstreamError(why))).await;
        });
        Ok(Self { sender, ended, _keep_alive: wanted })
    }

    pub(super) async fn send(&self, message: JsonRpcMessage) -> Result<(), UpstreamError> {
        self.sender.send(message).await.map_err(|_| UpstreamError("it accepts no more messages".to_owned()))
    }

    /// Closes the server's input after writing all queued messages. The server must then exit, and is killed if it does not.
    pub(super) fn close(self) -> watch::Receiver<bool> {
        self.ended
    }
}

/// A message was too long: which request it answers is unknown, so one would never get its response.
struct MessageTooLong(String);

/// Forwards a server's messages as events until its output or the event channel closes.
async fn forward_messages(
    stdout: ChildStdout,
    events: &UpstreamEventSender,
    limit: usize,
) -> Result<(), MessageTooLong> {
    let mut lines = LineReader::new(BufReader::with_capacity(64 << 10, stdout), limit);
    loop {
        let event = match lines.next().await {
            Line::Text(text) => match JsonRpcMessage::parse(&text) {
                Ok(message) => UpstreamEvent::Message { message, about: None },
                Err(why) => UpstreamEvent::Malformed {
                    why: why.message,
                    answers: malformed_recovery::recover_response_ids(&text),
                },
            },
            Line::NotUtf8 { why, text } => {
                UpstreamEvent::Malformed { why, answers: malformed_recovery::recover_response_ids(&text) }
            }
            Line::TooLong(why) => return Err(MessageTooLong(why)),
            Line::End => return Ok(()),
        };
        if events.send(event).await.is_err() {
            return Ok(());
        }
    }
}

/// A process group, killed on drop: no descendant survives, whatever happens to the task that watches the server.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The group may be empty by now.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Waits for a server to exit, with SIGTERM and then SIGKILL to its group if it does not; returns how it ended.
async fn wait_for_exit(child: &mut Child, group: &ProcessGroup) -> String {
    for signal in [Signal::TERM, Signal::KILL] {
        match tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await {
            Ok(Ok(status)) if status.success() => return "it exited".to_owned(),
            Ok(Ok(status)) => return format!("it ended with {status}"),
            Ok(Err(error)) => return format!("waiting for it failed: {error}"),
            Err(_) => group.signal(signal),
        }
    }
    let _ = child.wait().await;
    "it did not exit and was killed".to_owned()
}
