//! The helper: requests on its socket → answers, by rules and state that stay open.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

use super::helper_socket::HelperSocket;
use super::{IDLE_TIME, MAX_HEADER, answer_text};
use crate::exit::{CommandError, ExitStatus};
use crate::hook::agent_environment::AgentEnvironment;
use crate::hook::decision::{HookRequest, failure};
use crate::hook::hook_engine::{HookEngine, undecided};
use crate::hook::{HookArgs, MAX_EVENT, parse_event};
use callgate_hooks::{Agent, Answer};
use tokio::runtime::Runtime;

/// The most events that are decided at the same time; later ones wait.
const MAX_CONCURRENT: usize = 64;

/// How long a hook process may take to send its event, which it has read already.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the helper looks whether it is still needed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Serves events until none has arrived for a while, or the socket is gone.
///
/// # Errors
/// The socket can't be used.
pub(in crate::hook) fn serve(
    socket: &HelperSocket,
    arguments: &HookArgs,
) -> Result<ExitStatus, CommandError> {
    let error = |error: std::io::Error| CommandError::new(format!("the helper can't start: {error}"));
    // Of several that start at once, one serves. The lock ends with the process, however it ends.
    let mut lock = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(socket.lock_path())
        .map_err(error)?;
    if lock.try_lock().is_err() {
        return Ok(ExitStatus::Success);
    }
    // For people who look for the process.
    lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())).map_err(error)?;
    // What is there was left by a helper that was killed.
    let _ = fs::remove_file(socket.path());
    let listener = UnixListener::bind(socket.path()).map_err(error)?;
    let bound = file_number(socket.path());
    let helper = Helper::new(arguments);
    std::thread::scope(|scope| {
        scope.spawn(|| helper.end_when_unused(socket.path(), bound));
        for stream in listener.incoming() {
            let active = helper.wait_for_turn();
            // A connection without a thread is closed, and its hook process denies.
            if let Ok(stream) = stream {
                let _ =
                    std::thread::Builder::new().spawn_scoped(scope, move || active.helper.answer(&stream));
            }
        }
    });
    drop(lock);
    Ok(ExitStatus::Success)
}

/// Device and inode of the socket. `None` if it is gone.
fn file_number(path: &Path) -> Option<[u64; 2]> {
    fs::symlink_metadata(path).ok().map(|metadata| [metadata.dev(), metadata.ino()])
}

struct Helper<'a> {
    arguments: &'a HookArgs,
    /// What decides. Events hold it for reading; it is opened again while none does, because two must not write the same audit log.
    engine: RwLock<Option<HookEngine>>,
    activity: Mutex<Activity>,
    ended: Condvar,
}

struct Activity {
    active: usize,
    last: Instant,
}

/// An event that is being decided.
struct ActiveEvent<'h, 'a> {
    helper: &'h Helper<'a>,
}

impl Drop for ActiveEvent<'_, '_> {
    fn drop(&mut self) {
        let mut activity = self.helper.activity();
        activity.active = activity.active.saturating_sub(1);
        activity.last = Instant::now();
        self.helper.ended.notify_all();
    }
}

impl<'a> Helper<'a> {
    fn new(arguments: &'a HookArgs) -> Self {
        let activity = Activity { active: 0, last: Instant::now() };
        Self { arguments, engine: RwLock::new(None), activity: Mutex::new(activity), ended: Condvar::new() }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_turn(&self) -> ActiveEvent<'_, 'a> {
        let activity = self.activity();
        let waited = self.ended.wait_while(activity, |activity| activity.active >= MAX_CONCURRENT);
        waited.unwrap_or_else(PoisonError::into_inner).active += 1;
        ActiveEvent { helper: self }
    }

    /// Ends the process once it is unused. Connections that were made before the socket was removed are answered first.
    fn end_when_unused(&self, socket: &Path, bound: Option<[u64; 2]>) {
        loop {
            std::thread::sleep(CHECK_INTERVAL);
            let is_idle = {
                let activity = self.activity();
                activity.active == 0 && activity.last.elapsed() >= IDLE_TIME
            };
            let is_bound = bound.is_some() && file_number(socket) == bound;
            if is_bound && !is_idle {
                continue;
            }
            if is_bound {
                let _ = fs::remove_file(socket);
            }
            std::thread::sleep(CHECK_INTERVAL);
            let activity = self.ended.wait_while(self.activity(), |activity| activity.active > 0);
            // Closes the logs, too.
            drop(self.engine.write().unwrap_or_else(PoisonError::into_inner).take());
            drop(activity);
            std::process::exit(0);
        }
    }

    /// Reads a request, and writes its answer. A request that is cut off gets none: its hook process has ended.
    fn answer(&self, stream: &UnixStream) {
        let _ = stream.set_read_timeout(Some(READ_TIMEOUT));
        let _ = stream.set_write_timeout(Some(READ_TIMEOUT));
        let Some((environment, text)) = read_request(stream) else { return };
        let agent = Agent::from(self.arguments.agent);
        let answer = match parse_event(agent, text) {
            Ok((event, _)) => self.decide(&HookRequest::new(agent, event, environment)),
            Err(reason) => agent.refuse(&format!("Callgate can't use the event: {reason}")),
        };
        let mut stream = stream;
        let _ = stream.write_all(answer_text(&answer).as_bytes());
    }

    fn decide(&self, request: &HookRequest) -> Answer {
        let decided = catch_unwind(AssertUnwindSafe(|| self.decide_unguarded(request)));
        decided.unwrap_or_else(|_| {
            failure(request.agent, &request.event, "Callgate failed to decide this event")
        })
    }

    fn decide_unguarded(&self, request: &HookRequest) -> Answer {
        let current = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = current.as_ref().filter(|engine| engine.is_current()) {
            return engine.answer(request);
        }
        drop(current);
        let mut opened = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        if !opened.as_ref().is_some_and(HookEngine::is_current) {
            // Before the new one, which may open the same log.
            drop(opened.take());
            match new_runtime().and_then(|runtime| HookEngine::open(self.arguments, runtime)) {
                Ok(engine) => *opened = Some(engine),
                Err(error) => return undecided(request, &error),
            }
        }
        match RwLockWriteGuard::downgrade(opened).as_ref() {
            Some(engine) => engine.answer(request),
            None => failure(request.agent, &request.event, "Callgate failed to decide this event"),
        }
    }
}

/// A runtime for stores whose work goes on between events.
fn new_runtime() -> Result<Runtime, CommandError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.worker_threads(1).enable_all().build();
    built.map_err(|error| CommandError::new(format!("the async runtime can't be started: {error}")))
}

/// The environment and the event of a request.
fn read_request(stream: &UnixStream) -> Option<(AgentEnvironment, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut header = String::new();
    reader.by_ref().take(MAX_HEADER).read_line(&mut header).ok()?;
    let environment = AgentEnvironment::parse(&header)?;
    let mut event = Vec::new();
    reader.take(MAX_EVENT + 1).read_to_end(&mut event).ok()?;
    Some((environment, event))
}
