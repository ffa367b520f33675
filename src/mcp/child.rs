//! A server that is a process of ours: one message a line, on its stdin and stdout. What it writes to stderr goes to ours.

use std::convert::Infallible;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::BufReader;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot, watch};

use super::frame::Frame;
use super::lines::{self, Line, Lines};
use super::server::{FromServer, Gone, ServerEvents};
use super::unreadable;

/// How long a server has to end once its input is closed, and once more when it is told to.
const GRACE: Duration = Duration::from_secs(2);
/// Messages that wait to be written.
const QUEUE: usize = 256;

/// How a server process is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildSpec {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside those of the gateway.
    pub env: Vec<(String, String)>,
    /// Where it runs; where the gateway does, if nothing is said.
    pub cwd: Option<std::path::PathBuf>,
}

/// A running server process.
pub(super) struct ChildServer {
    to: mpsc::Sender<Frame>,
    ended: watch::Receiver<bool>,
    /// As long as it is there, the server is wanted.
    _wanted: oneshot::Sender<Infallible>,
}

impl ChildServer {
    /// Starts the process. What it says goes to `events`, at the end that it is gone.
    pub(super) fn start(spec: &ChildSpec, events: ServerEvents, limit: usize) -> Result<Self, Gone> {
        let mut command = Command::new(&spec.command);
        command.args(&spec.args).envs(spec.env.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &spec.cwd {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // A group of its own: what the server starts ends with it, and the terminal's Ctrl-C is for us to pass on.
        command.process_group(0);
        let mut child =
            command.spawn().map_err(|error| Gone(format!("`{}` can't be started: {error}", spec.command)))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Gone(format!("`{}` can't be talked to", spec.command)));
        };
        let (to, outgoing) = mpsc::channel(QUEUE);
        let (tell_ended, ended) = watch::channel(false);
        tokio::spawn(lines::write(stdin, outgoing));
        let (wanted, unwanted) = oneshot::channel();
        tokio::spawn(async move {
            let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
            let mut heard = pin!(hear(stdout, &events, limit));
            let all_heard = tokio::select! {
                heard = &mut heard => Some(heard),
                _ = unwanted => None,
            };
            let why = match all_heard {
                Some(Ok(())) => end(&mut child, &group).await,
                Some(Err(SaidTooMuch(why))) => {
                    group.signal(Signal::KILL);
                    end(&mut child, &group).await;
                    why
                }
                // It may have more to say, but does not stay for that: not all is taken from it any more.
                None => {
                    let mut ending = pin!(end(&mut child, &group));
                    tokio::select! {
                        _ = &mut heard => ending.await,
                        ended = &mut ending => {
                            // Whoever it has started would keep its output open.
                            group.signal(Signal::KILL);
                            let _ = tokio::time::timeout(GRACE, heard).await;
                            ended
                        }
                    }
                }
            };
            let _ = tell_ended.send(true);
            let _ = events.send(FromServer::Gone(Gone(why))).await;
        });
        Ok(Self { to, ended, _wanted: wanted })
    }

    pub(super) async fn send(&self, frame: Frame) -> Result<(), Gone> {
        self.to.send(frame).await.map_err(|_| Gone("it takes no more messages".to_owned()))
    }

    /// Closes the server's input; it is then to end, and is ended if it does not. Messages that were sent are written before.
    pub(super) fn close(self) -> watch::Receiver<bool> {
        self.ended
    }
}

/// A message was longer than it may be: whose answer it was can't be known, and somebody would wait for it for ever.
struct SaidTooMuch(String);

/// Passes on what a server says, until it says nothing more or nobody hears it.
async fn hear(stdout: ChildStdout, events: &ServerEvents, limit: usize) -> Result<(), SaidTooMuch> {
    let mut lines = Lines::new(BufReader::with_capacity(64 << 10, stdout), limit);
    loop {
        let event = match lines.next().await {
            Line::Text(text) => match Frame::parse(&text) {
                Ok(frame) => FromServer::Frame { frame, about: None },
                Err(why) => FromServer::Garbage { why: why.message, answers: unreadable::answered_by(&text) },
            },
            Line::Unreadable { why, text } => {
                FromServer::Garbage { why, answers: unreadable::answered_by(&text) }
            }
            Line::TooLong(why) => return Err(SaidTooMuch(why)),
            Line::End => return Ok(()),
        };
        if events.send(event).await.is_err() {
            return Ok(());
        }
    }
}

/// A process group. Whatever happens to the task that watches the server, nothing of it stays behind.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // There may be nobody left in it.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Waits for a server to end that says nothing more or that nobody wants any more; says how it did.
async fn end(child: &mut Child, group: &Group) -> String {
    for signal in [Signal::TERM, Signal::KILL] {
        match tokio::time::timeout(GRACE, child.wait()).await {
            Ok(Ok(status)) if status.success() => return "it has ended".to_owned(),
            Ok(Ok(status)) => return format!("it has ended with {status}"),
            Ok(Err(error)) => return format!("it can't be waited for: {error}"),
            Err(_) => group.signal(signal),
        }
    }
    let _ = child.wait().await;
    "it had to be ended".to_owned()
}
