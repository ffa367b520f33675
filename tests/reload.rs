//! Rules files that change while calls are decided.

mod files;
mod judging;
mod load;
#[cfg(unix)]
mod soak;

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use callgate::engine::{self, Change, Refusal, Refused};
use callgate::json::json;
use callgate::reload::{Reloader, Watch, WatchOptions};
use callgate::{Effect, Engine, SessionState, ToolCall};
use tempfile::TempDir;

/// Nothing takes so long; whoever waits for it in vain has found a mistake.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory whose files are written, renamed and removed.
struct Desk(TempDir);

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| desk.write(name, text));
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes in place, as `>` does.
    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes beside it and renames, as editors do.
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

    /// Lets a link lead elsewhere in one step.
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

/// An engine whose files are watched, and the news of it.
struct Watched {
    engine: Engine,
    news: Receiver<Change>,
    /// Watches until it is dropped.
    _watch: Watch,
}

impl Watched {
    fn new(engine: Engine, reloader: Reloader, options: WatchOptions) -> Self {
        let (tell, news) = channel();
        engine.on_change(move |change| drop(tell.send(change.clone())));
        Self { engine, news, _watch: Watch::start(reloader, options).unwrap() }
    }

    /// Waits for this news. A file that is just being written may be seen empty, or a directory half removed, and be
    /// refused as that; such news is passed over.
    fn wait_for(&self, what: &str, is_it: impl Fn(&Change) -> bool) -> Change {
        let mut passed_over = Vec::new();
        loop {
            match self.news.recv_timeout(PATIENCE) {
                Ok(change) if is_it(&change) => return change,
                Ok(change) => passed_over.push(change),
                Err(_) => panic!("waited in vain for {what} after {passed_over:?}"),
            }
        }
    }

    fn taken_in(&self, rules: &str) {
        self.taken_in_revision(&revision_of(rules));
    }

    fn taken_in_files(&self, desk: &Desk, paths: &[&str]) {
        self.taken_in_revision(&desk.engine(paths).revision());
    }

    fn taken_in_revision(&self, revision: &str) {
        self.wait_for(revision, |change| matches!(change, Change::TakenIn { to, .. } if *to == revision));
        let status = self.engine.status();
        assert_eq!(status.revision, revision);
        assert!(status.last_refused.is_none() && status.held.is_none());
    }

    /// Waits until rules are refused with these words; what was active stays.
    fn refused(&self, words: &str) -> Refused {
        let before = self.engine.revision();
        let news = self.wait_for(words, |change| match change {
            Change::Refused(refused) => refused.why.to_string().contains(words),
            _ => false,
        });
        let Change::Refused(refused) = news else { panic!("{news:?}") };
        assert!(matches!(refused.why, Refusal::Errors(_)), "{:?}", refused.why);
        let status = self.engine.status();
        assert_eq!(status.last_refused.unwrap().why.to_string(), refused.why.to_string());
        assert_eq!(status.revision, before);
        refused
    }

    fn restored(&self) {
        self.wait_for("what was there before", |change| matches!(change, Change::Restored));
        assert!(self.engine.status().last_refused.is_none());
    }
}

/// Does the same with signs of change and nothing else, and with polling and nothing else.
fn both_ways(test: impl Fn(WatchOptions)) {
    let debounce = Duration::from_millis(20);
    test(WatchOptions { debounce, poll: 10 * PATIENCE, notify: true });
    test(WatchOptions { debounce, poll: Duration::from_millis(20), notify: false });
}

/// Watches what the files say from the beginning. The watch has looked once, so what comes next it has to notice.
fn watched(desk: &Desk, paths: &[&str], options: WatchOptions) -> Watched {
    let engine = Engine::from_text("policies: []").unwrap();
    let watched = Watched::new(engine.clone(), Reloader::new(engine, desk.paths(paths)), options);
    watched.taken_in_files(desk, paths);
    watched
}
