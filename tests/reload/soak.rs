//! Soak test with random file operations: once the files stop changing, their rules are active, or the last good rules
//! are and the status says why.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use callgate::Engine;
use callgate::engine;
use callgate::reload::{Reloader, RulesWatcher, WatcherOptions};
use fastrand::Rng;

use super::{TIMEOUT, TestDir};

const SEEDS: u64 = 6;
const ROUNDS: usize = 25;
const MOST_STEPS: usize = 6;

/// A bundle that random operations change and break.
struct Soak {
    dir: TestDir,
    chance: Rng,
    engine: Engine,
    /// Each valid revision of the files, with the last step after which they had it.
    revisions: HashMap<String, usize>,
    /// The operations so far, for the failure message.
    operations: Vec<String>,
    /// A counter that makes all written content unique.
    versions: usize,
}

impl Soak {
    fn new(seed: u64) -> Self {
        let dir = TestDir::new(&[
            ("bundle/rules/a.yaml", &super::denying("first")),
            ("bundle/schemas/s.json", "{}"),
        ]);
        let engine = dir.engine(&["bundle"]);
        let revisions = HashMap::from([(engine.revision(), 0)]);
        Self { dir, chance: Rng::with_seed(seed), engine, revisions, operations: Vec::new(), versions: 0 }
    }

    fn watch(&self) -> RulesWatcher {
        let short = Duration::from_millis(2);
        let options = WatcherOptions { debounce: short, poll: short, notify: false };
        RulesWatcher::start(Reloader::new(self.engine.clone(), self.dir.paths(&["bundle"])), options).unwrap()
    }

    /// New rules: one in five with a mistake, one in three with a referenced file.
    fn rules(&mut self) -> String {
        self.versions += 1;
        let version = self.versions;
        let kind = match self.chance.u8(0..15) {
            0..3 => "dney: {}",
            3..8 => "validate: { schema: { file: ../schemas/s.json } }",
            _ => "deny: {}",
        };
        let policies: Vec<String> = (0..self.chance.usize(1..4))
            .map(|number| format!("  - id: p{version}-{number}\n    match: t{version}\n    {kind}\n"))
            .collect();
        format!("policies:\n{}", policies.concat())
    }

    fn a_file(&mut self) -> PathBuf {
        let names = [
            "bundle/rules/a.yaml",
            "bundle/rules/b.yaml",
            "bundle/rules/deep/c.yaml",
            "bundle/schemas/s.json",
        ];
        self.dir.path(self.chance.choice(names).unwrap())
    }

    fn content_for(&mut self, path: &std::path::Path) -> String {
        if path.extension().is_some_and(|ending| ending == "json") {
            self.versions += 1;
            let schema = format!("{{ \"maxProperties\": {} }}", self.versions);
            if self.chance.u8(0..4) == 0 { schema.replace('}', "") } else { schema }
        } else {
            self.rules()
        }
    }

    /// Runs a random file operation, in one file system step, or in several of which only the last makes the files loadable.
    /// An operation on a missing file or directory has no effect.
    fn step(&mut self) {
        let path = self.a_file();
        let what = self.chance.u8(0..10);
        let text = self.content_for(&path);
        let done = match what {
            0 | 1 => fs::write(&path, text),
            2 => self.replace(&text, &path),
            3 => OpenOptions::new().write(true).open(&path).and_then(|file: File| {
                let length = file.metadata()?.len();
                file.set_len(length / 2)
            }),
            4 => fs::remove_file(&path),
            5 => self.link(&path, &text),
            6 => self.forbid(&path),
            7 => fs::rename(self.dir.path("bundle/rules"), self.dir.path(&format!("gone/{}", self.versions))),
            8 => fs::create_dir_all(self.dir.path("bundle/rules/deep")),
            _ => self.bring_back(),
        };
        self.operations.push(format!("{what} {} {:?}", path.display(), done.map_err(|error| error.kind())));
        if let Ok(chains) = engine::load(&self.dir.paths(&["bundle"])) {
            self.revisions.insert(chains.revision().to_owned(), self.operations.len());
        }
    }

    fn replace(&self, text: &str, path: &std::path::Path) -> std::io::Result<()> {
        self.dir.write("beside", text);
        fs::rename(self.dir.path("beside"), path)
    }

    /// Replaces the file by a symlink to another file, sometimes a dangling one.
    fn link(&mut self, path: &std::path::Path, text: &str) -> std::io::Result<()> {
        let target = format!("bundle/targets/{}", self.versions);
        if self.chance.u8(0..4) > 0 {
            self.dir.write(&target, text);
        }
        self.dir.link("beside-link", self.dir.path(&target).to_str().unwrap());
        fs::rename(self.dir.path("beside-link"), path)
    }

    /// Removes or restores the read permission. It has no effect for root.
    fn forbid(&mut self, path: &std::path::Path) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let mode = if self.chance.bool() { 0o000 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    /// Moves back one of the directories that were moved away.
    fn bring_back(&mut self) -> std::io::Result<()> {
        let gone = fs::read_dir(self.dir.path("gone"))?.collect::<Result<Vec<_>, _>>()?;
        match self.chance.choice(gone) {
            Some(entry) => fs::rename(entry.path(), self.dir.path("bundle/rules")),
            None => Ok(()),
        }
    }

    /// What is wrong with the active rules and the status, or `None`.
    fn problem(&self, floor: usize) -> Option<String> {
        let status = self.engine.status();
        let refused = status.last_rejected.map(|refused| refused.reason.to_string());
        match engine::load(&self.dir.paths(&["bundle"])) {
            Ok(chains) if status.revision != chains.revision() => Some("other rules are active".to_owned()),
            Ok(_) => refused.map(|why| format!("valid rules are rejected: {why}")),
            Err(error) if refused.as_ref() != Some(&error.to_string()) => {
                Some(format!("{refused:?} is reported for\n{error}"))
            }
            Err(_) => match self.revisions.get(&status.revision) {
                Some(moment) if *moment >= floor => None,
                moment => {
                    Some(format!("the active rules were valid after step {moment:?}, not after {floor}"))
                }
            },
        }
    }
}

#[cfg(unix)]
#[test]
fn engine_and_status_are_right_once_files_stop_changing() {
    for seed in 0..SEEDS {
        let mut soak = Soak::new(seed);
        fs::create_dir(soak.dir.path("gone")).unwrap();
        let _watch = soak.watch();
        for _ in 0..ROUNDS {
            // Replaced rules must not become active again unless the files contain them again.
            let floor = soak.revisions[&soak.engine.revision()];
            for _ in 0..soak.chance.usize(1..=MOST_STEPS) {
                soak.step();
                thread::sleep(Duration::from_millis(soak.chance.u64(0..4)));
            }
            let begun = Instant::now();
            while let Some(wrong) = soak.problem(floor) {
                assert!(begun.elapsed() < TIMEOUT, "seed {seed}: {wrong}\n{}", soak.operations.join("\n"));
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}
