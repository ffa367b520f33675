//! Hot reload of rules files while calls are decided.

mod acceptance;
mod files;
mod load;
#[cfg(unix)]
mod soak;
mod unchanged_files;

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use callgate::engine::{self, RejectedReload, RejectionReason, ReloadEvent};
use callgate::json::json;
use callgate::reload::{Reloader, RulesWatcher, WatcherOptions};
use callgate::{Effect, Engine, SessionState, ToolCall};
use tempfile::TempDir;

/// Longer than anything that works takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A temporary directory whose files are written, renamed and removed.
struct TestDir(TempDir);

impl TestDir {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| dir.write(name, text));
        dir
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes in place, like the shell's `>`.
    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces a file by a rename, like editors.
    fn write_atomically(&self, name: &str, text: &str) {
        self.write(&format!("{name}.tmp"), text);
        self.rename(&format!("{name}.tmp"), name);
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn remove(&self, name: &str) {
        let path = self.path(name);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// Replaces a symlink atomically.
    #[cfg(unix)]
    fn link(&self, name: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.path(".new")).unwrap();
        self.rename(".new", name);
    }

    fn engine(&self, paths: &[&str]) -> Engine {
        Engine::from_paths(&self.paths(paths)).unwrap()
    }

    fn paths(&self, paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(|path| self.path(path)).collect()
    }
}

/// A bundle that denies this tool.
fn denying(tool: &str) -> String {
    format!("policies: [ {{ id: no-{tool}, match: {tool}, deny: {{}} }} ]\n")
}

fn revision_of(text: &str) -> String {
    engine::load_text(text).unwrap().revision().to_owned()
}

fn denies(engine: &Engine, tool: &str) -> bool {
    let call = ToolCall::new("c1", tool, json!({}));
    engine.decide(&call, &SessionState::default()).effect() == Effect::Deny
}

/// An engine whose files are watched, and its change notifications.
struct WatchedEngine {
    engine: Engine,
    news: Receiver<ReloadEvent>,
    /// Watches the files until dropped.
    _watch: RulesWatcher,
}

impl WatchedEngine {
    fn new(engine: Engine, reloader: Reloader, options: WatcherOptions) -> Self {
        let (tell, news) = channel();
        engine.on_change(move |change| drop(tell.send(change.clone())));
        Self { engine, news, _watch: RulesWatcher::start(reloader, options).unwrap() }
    }

    /// Waits for a change. Other changes are skipped: a file that is being written may be read empty, or a directory half removed,
    /// and be rejected for that.
    fn wait_for(&self, what: &str, is_it: impl Fn(&ReloadEvent) -> bool) -> ReloadEvent {
        let mut passed_over = Vec::new();
        loop {
            match self.news.recv_timeout(TIMEOUT) {
                Ok(change) if is_it(&change) => return change,
                Ok(change) => passed_over.push(change),
                Err(_) => panic!("timed out waiting for {what} after {passed_over:?}"),
            }
        }
    }

    fn wait_for_reload(&self, rules: &str) {
        self.wait_for_revision(&revision_of(rules));
    }

    fn wait_for_reload_of(&self, dir: &TestDir, paths: &[&str]) {
        self.wait_for_revision(&dir.engine(paths).revision());
    }

    fn wait_for_revision(&self, revision: &str) {
        self.wait_for(
            revision,
            |change| matches!(change, ReloadEvent::Applied { to, .. } if *to == revision),
        );
        let status = self.engine.status();
        assert_eq!(status.revision, revision);
        assert!(status.last_rejected.is_none() && status.pending.is_none());
    }

    /// Waits until a reload is rejected with this text. The active rules must stay.
    fn wait_for_rejection(&self, words: &str) -> RejectedReload {
        let before = self.engine.revision();
        let news = self.wait_for(words, |change| match change {
            ReloadEvent::Rejected(refused) => refused.reason.to_string().contains(words),
            _ => false,
        });
        let ReloadEvent::Rejected(refused) = news else { panic!("{news:?}") };
        assert!(matches!(refused.reason, RejectionReason::Errors(_)), "{:?}", refused.reason);
        let status = self.engine.status();
        assert_eq!(status.last_rejected.unwrap().reason.to_string(), refused.reason.to_string());
        assert_eq!(status.revision, before);
        refused
    }

    fn wait_for_restored(&self) {
        self.wait_for("the restored rules", |change| matches!(change, ReloadEvent::Reverted));
        assert!(self.engine.status().last_rejected.is_none());
    }
}

/// Runs a test with notifications only, and with polling only.
fn with_notify_and_polling(test: impl Fn(WatcherOptions)) {
    let debounce = Duration::from_millis(20);
    test(WatcherOptions { debounce, poll: 10 * TIMEOUT, notify: true });
    test(WatcherOptions { debounce, poll: Duration::from_millis(20), notify: false });
}

/// Starts a watch and waits for its first load, so that it must notice the next change.
fn watch(dir: &TestDir, paths: &[&str], options: WatcherOptions) -> WatchedEngine {
    let engine = Engine::from_text("policies: []").unwrap();
    let watched = WatchedEngine::new(engine.clone(), Reloader::new(engine, dir.paths(paths)), options);
    watched.wait_for_reload_of(dir, paths);
    watched
}
