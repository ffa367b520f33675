//! A thread that has a [`Reloader`] look whenever files have changed and then kept still.

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

use super::directories::DirectoryIdentity;
use super::footprint::Footprint;
use super::{Looked, Reloader};

/// How files are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// So long files must have kept still before they are looked at: whoever writes several, or one in parts, is not to
    /// be interrupted. As long as they keep changing, what is active stays.
    pub debounce: Duration,
    /// So often files are compared without a sign of change, for not every file system gives one: those of a network
    /// give none.
    pub poll: Duration,
    /// Whether the operating system is asked for signs of change. Where it gives none, files are only polled.
    pub notify: bool,
}

impl Default for WatchOptions {
    /// 100 ms, 5 s, and signs of change.
    fn default() -> Self {
        Self { debounce: Duration::from_millis(100), poll: Duration::from_secs(5), notify: true }
    }
}

/// Keeps the rules of an engine as its files say, until it is dropped. What comes of it is in the engine's
/// [`status`](crate::Engine::status).
///
/// A file that is rewritten in place and not within the time of [`WatchOptions::debounce`] may be read half-written. Most
/// often that is an error, and refused; but the first half of a list of policies is a list of policies. Rename files into
/// their place, or have widenings confirmed.
///
/// ```no_run
/// use callgate::Engine;
/// use callgate::engine::Change;
/// use callgate::reload::{Reloader, Watch, WatchOptions};
///
/// let paths = ["policies".into()];
/// let engine = Engine::from_paths(&paths)?;
/// engine.on_change(|change| match change {
///     Change::TakenIn { to, .. } => println!("rules of revision {to} decide now"),
///     Change::Refused(refused) => println!("refused: {}", refused.why),
///     Change::Held(held) => println!("`engine.confirm(\"{}\")` takes them in", held.revision),
///     _ => {}
/// });
/// let _watch = Watch::start(Reloader::new(engine.clone(), paths), WatchOptions::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Watch {
    bell: Bell,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Begins to watch, and looks once, for files may have changed since they were loaded. Fails if the system has no more
    /// threads.
    pub fn start(reloader: Reloader, options: WatchOptions) -> io::Result<Self> {
        let (ring, heard) = sync_channel(1);
        let bell = Bell { ring, stop: Arc::default() };
        let signs = if options.notify { signs(bell.clone()) } else { None };
        let watching =
            Watching { reloader, options, heard, stop: bell.stop.clone(), signs, watched: HashMap::new() };
        let thread =
            thread::Builder::new().name("callgate-watch".to_owned()).spawn(move || watching.run())?;
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Watch {
    /// Ends watching. A look that is under way is waited for: afterwards nothing changes any more.
    fn drop(&mut self) {
        self.bell.stop.store(true, Ordering::Release);
        self.bell.ring();
        // One that listens to changes may drop it from within.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

/// Wakes the thread. However often it is rung, it is heard once.
#[derive(Clone)]
struct Bell {
    ring: SyncSender<()>,
    stop: Arc<AtomicBool>,
}

impl Bell {
    fn ring(&self) {
        // Full: it is ringing already.
        let _ = self.ring.try_send(());
    }
}

/// Rings at every sign of change in the directories that it is told of. `None` where the system gives no signs.
fn signs(bell: Bell) -> Option<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // That a file was read is no change; it is what looking at it does.
        let only_read = event.is_ok_and(|event| match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) => true,
            _ => false,
        });
        if !only_read {
            bell.ring();
        }
    })
    .ok()
}

struct Watching {
    reloader: Reloader,
    options: WatchOptions,
    heard: Receiver<()>,
    stop: Arc<AtomicBool>,
    signs: Option<RecommendedWatcher>,
    /// The directories that give signs, and which ones they were: another one of the same name has to be watched anew.
    watched: HashMap<PathBuf, Option<DirectoryIdentity>>,
}

impl Watching {
    fn run(mut self) {
        while !self.stop.load(Ordering::Acquire) {
            let looked =
                catch_unwind(AssertUnwindSafe(|| self.turn())).unwrap_or_else(|_| Some(self.reloader.fail()));
            self.reloader.free_retired();
            // The bell that says so may have been heard while files were to keep still.
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let pause = match looked {
                Some(Looked::Unsteady) => self.options.debounce,
                _ => self.options.poll,
            };
            if self.heard.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Looks at the files if they say something else than when they were looked at last.
    fn turn(&mut self) -> Option<Looked> {
        let mut seen = self.see();
        if self.reloader.judged().is_some_and(|judged| judged.says_the_same(&seen)) {
            return None;
        }
        loop {
            if !self.keep_still() {
                return None;
            }
            let now = self.see();
            if now.says_the_same(&seen) {
                break;
            }
            seen = now;
        }
        let looked = self.reloader.look();
        // What was read may draw on files whose directories are watched only from here on.
        let seen = self.see();
        let overtaken = self.reloader.judged().is_some_and(|judged| !judged.says_the_same(&seen));
        Some(if overtaken { Looked::Unsteady } else { looked })
    }

    /// Waits for the time in which files must keep still; signs in it are answered by what is seen after it. `false` if it
    /// is time to stop.
    fn keep_still(&self) -> bool {
        let until = Instant::now() + self.options.debounce;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let heard = self.heard.recv_timeout(left);
            if self.stop.load(Ordering::Acquire) || heard == Err(RecvTimeoutError::Disconnected) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
        }
    }

    /// What the files say, with every directory watched before they were read, so that no change goes unnoticed.
    fn see(&mut self) -> Footprint {
        loop {
            let seen = self.reloader.footprint();
            if !self.watch(&seen.directories(self.reloader.paths())) {
                return seen;
            }
        }
    }

    /// Asks for signs of these directories and no others. Says whether there are new ones.
    fn watch(&mut self, directories: &[PathBuf]) -> bool {
        let Some(signs) = &mut self.signs else { return false };
        let gone: Vec<PathBuf> =
            self.watched.keys().filter(|known| !directories.contains(known)).cloned().collect();
        for directory in gone {
            self.watched.remove(&directory);
            let _ = signs.unwatch(&directory);
        }
        let mut any = false;
        for directory in directories {
            let identity = DirectoryIdentity::of(directory);
            if self.watched.get(directory) == Some(&identity) {
                continue;
            }
            if self.watched.insert(directory.clone(), identity).is_some() {
                let _ = signs.unwatch(directory);
            }
            // One that can't be watched, for the system allows no more, is polled all the same.
            any |= signs.watch(directory, RecursiveMode::NonRecursive).is_ok();
        }
        any
    }
}
