//! File watcher: a thread that runs a [`Reloader`] after files have changed and then stayed unchanged for the debounce time.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::file_snapshot::FileSnapshot;
use super::watched_directories::DirectoryIdentity;
use super::{ReloadResult, Reloader};

/// While nothing changes, comparing the files takes at most this part of the time, as `1 / (1 + REST_FACTOR)`.
const REST_FACTOR: u32 = 20;

/// Options of a [`RulesWatcher`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatcherOptions {
    /// How long files must stay unchanged before they are read, so that a program can finish writing several files, or one in parts.
    /// While they keep changing, the active rules stay.
    pub debounce: Duration,
    /// How often files are compared without a notification, as not every file system sends them: network file systems don't.
    pub poll: Duration,
    /// Whether to use the operating system's change notifications. Without them, files are only polled.
    pub notify: bool,
}

impl Default for WatcherOptions {
    /// 100 ms, 5 s, with notifications.
    fn default() -> Self {
        Self { debounce: Duration::from_millis(100), poll: Duration::from_secs(5), notify: true }
    }
}

/// Keeps the rules of an engine up to date with its files, until it is dropped. The engine's [`status`](crate::Engine::status) has
/// the results.
///
/// A file that is rewritten in place over longer than [`WatcherOptions::debounce`] may be read half-written. Most often that is an
/// error, and rejected; but the first half of a list of policies is a valid list of policies. Replace files by renaming, or require
/// confirmation with `reload: { widening: confirm }`.
///
/// ```no_run
/// use callgate::Engine;
/// use callgate::reload::ReloadEvent;
/// use callgate::reload::{Reloader, RulesWatcher, WatcherOptions};
///
/// let paths = ["policies".into()];
/// let engine = Engine::from_paths(&paths)?;
/// engine.on_change(|change| match change {
///     ReloadEvent::Applied { to, .. } => println!("the rules of revision {to} are active"),
///     ReloadEvent::Rejected(refused) => println!("rejected: {}", refused.reason),
///     ReloadEvent::Pending(held) => println!("`engine.confirm(\"{}\")` activates them", held.revision),
///     _ => {}
/// });
/// let _watch = RulesWatcher::start(Reloader::new(engine.clone(), paths), WatcherOptions::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RulesWatcher {
    wake_signal: WakeSignal,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for RulesWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulesWatcher").finish_non_exhaustive()
    }
}

impl RulesWatcher {
    /// Starts watching, and reloads once, as files may have changed since they were loaded.
    ///
    /// # Errors
    /// If the thread can't be started.
    pub fn start(reloader: Reloader, options: WatcherOptions) -> io::Result<Self> {
        let (sender, wake_receiver) = sync_channel(1);
        let wake_signal = WakeSignal { sender, stop: Arc::default() };
        let notifications = if options.notify { start_notifications(wake_signal.clone()) } else { None };
        let watching = WatcherThread {
            reloader,
            options,
            wake_receiver,
            stop: wake_signal.stop.clone(),
            notifications,
            watched_directories: HashMap::new(),
        };
        let thread =
            thread::Builder::new().name("callgate-watch".to_owned()).spawn(move || watching.run())?;
        Ok(Self { wake_signal, thread: Some(thread) })
    }
}

impl Drop for RulesWatcher {
    /// Stops watching. Waits for a reload in progress: nothing changes afterwards.
    fn drop(&mut self) {
        self.wake_signal.stop.store(true, Ordering::Release);
        self.wake_signal.wake();
        // A listener on the watch thread itself may drop it.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

/// Wakes the thread. Several signals before it wakes count as one.
#[derive(Clone)]
struct WakeSignal {
    sender: SyncSender<()>,
    stop: Arc<AtomicBool>,
}

impl WakeSignal {
    fn wake(&self) {
        // Full: a signal is pending already.
        let _ = self.sender.try_send(());
    }
}

/// Creates a watcher that wakes the thread at every change in its directories. Returns `None` if the system has no notifications.
fn start_notifications(wake_signal: WakeSignal) -> Option<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading a file is not a change, and the reload itself reads files.
        let only_read = event.is_ok_and(|event| match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) => true,
            _ => false,
        });
        if !only_read {
            wake_signal.wake();
        }
    })
    .ok()
}

struct WatcherThread {
    reloader: Reloader,
    options: WatcherOptions,
    wake_receiver: Receiver<()>,
    stop: Arc<AtomicBool>,
    notifications: Option<RecommendedWatcher>,
    /// The watched directories with their identities: a new directory of the same name must be watched again.
    watched_directories: HashMap<PathBuf, Option<DirectoryIdentity>>,
}

impl WatcherThread {
    fn run(mut self) {
        while !self.stop.load(Ordering::Acquire) {
            let started = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(|| self.reload_if_changed()))
                .unwrap_or_else(|_| Some(self.reloader.reject_internal_error()));
            self.reloader.free_retired();
            // The stop signal may have been consumed during the debounce time.
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let pause = match result {
                Some(ReloadResult::Unstable) => self.options.debounce,
                _ => self.options.poll,
            };
            let ended = Instant::now();
            if self.wake_receiver.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            // Other files of these directories, such as logs, may change all the time, and each change wakes the thread.
            let rest =
                (self.options.debounce / 2).max(REST_FACTOR * ended.duration_since(started)).min(pause);
            if result.is_none() && !self.wait_until(ended + rest) {
                return;
            }
        }
    }

    /// Reloads if the files' contents have changed since the last reload.
    fn reload_if_changed(&mut self) -> Option<ReloadResult> {
        let mut seen = self.take_snapshot();
        if self.reloader.last_snapshot().is_some_and(|last| last.has_same_contents(&seen)) {
            return None;
        }
        loop {
            // The snapshot after it covers the notifications during it.
            if !self.wait_until(Instant::now() + self.options.debounce) {
                return None;
            }
            let now = self.take_snapshot();
            if now.has_same_contents(&seen) {
                break;
            }
            seen = now;
        }
        let result = self.reloader.reload();
        // The rules may refer to files whose directories are watched only from here on.
        let seen = self.take_snapshot();
        let overtaken = self.reloader.last_snapshot().is_some_and(|last| !last.has_same_contents(&seen));
        Some(if overtaken { ReloadResult::Unstable } else { result })
    }

    /// Waits, also if notifications come. Returns `false` if the watch must stop.
    fn wait_until(&self, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let signal = self.wake_receiver.recv_timeout(left);
            if self.stop.load(Ordering::Acquire) || signal == Err(RecvTimeoutError::Disconnected) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
        }
    }

    /// Takes a snapshot of the files. Every directory is watched before its files are read, so that no change is missed.
    fn take_snapshot(&mut self) -> FileSnapshot {
        loop {
            let seen = self.reloader.snapshot();
            if !self.watch_directories(&seen.watched_directories(self.reloader.paths())) {
                return seen;
            }
        }
    }

    /// Watches exactly these directories. Returns whether there are new ones.
    fn watch_directories(&mut self, directories: &[PathBuf]) -> bool {
        let Some(notifications) = &mut self.notifications else { return false };
        let gone: Vec<PathBuf> =
            self.watched_directories.keys().filter(|known| !directories.contains(known)).cloned().collect();
        for directory in gone {
            self.watched_directories.remove(&directory);
            let _ = notifications.unwatch(&directory);
        }
        let mut any = false;
        for directory in directories {
            let identity = DirectoryIdentity::new(directory);
            if self.watched_directories.get(directory) == Some(&identity) {
                continue;
            }
            if self.watched_directories.insert(directory.clone(), identity).is_some() {
                let _ = notifications.unwatch(directory);
            }
            // A directory that can't be watched, because of a system limit, is still polled.
            any |= notifications.watch(directory, RecursiveMode::NonRecursive).is_ok();
        }
        any
    }
}
