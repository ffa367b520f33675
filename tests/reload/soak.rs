//! Whatever is done to files, and in whatever order: once they keep still, what they say is active, or what was last good
//! is, with the truth about why.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use callgate::Engine;
use callgate::engine;
use callgate::reload::{Reloader, Watch, WatchOptions};
use fastrand::Rng;

use super::{Desk, PATIENCE};

const SEEDS: u64 = 6;
const ROUNDS: usize = 25;
const MOST_STEPS: usize = 6;

/// One desk at which everything goes wrong.
struct Soak {
    desk: Desk,
    chance: Rng,
    engine: Engine,
    /// Each revision that the files ever had, with the last step after which they had it.
    moments: HashMap<String, usize>,
    /// What was done, for the one who has to find out what went wrong.
    story: Vec<String>,
    /// Whatever is written is new.
    versions: usize,
}

impl Soak {
    fn new(seed: u64) -> Self {
        let desk =
            Desk::new(&[("bundle/rules/a.yaml", &super::denying("first")), ("bundle/schemas/s.json", "{}")]);
        let engine = desk.engine(&["bundle"]);
        let moments = HashMap::from([(engine.revision(), 0)]);
        Self { desk, chance: Rng::with_seed(seed), engine, moments, story: Vec::new(), versions: 0 }
    }

    fn watch(&self) -> Watch {
        let short = Duration::from_millis(2);
        let options = WatchOptions { debounce: short, poll: short, notify: false };
        Watch::start(Reloader::new(self.engine.clone(), self.desk.paths(&["bundle"])), options).unwrap()
    }

    /// Rules that nobody wrote before, one in five of them with a mistake, and one in three drawing on a file.
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
        self.desk.path(self.chance.choice(names).unwrap())
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

    /// Does something to the files, in one step of the file system or in some of which only the last makes them loadable.
    /// What can't be done, since a file or directory is not there, is left undone.
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
            7 => {
                fs::rename(self.desk.path("bundle/rules"), self.desk.path(&format!("gone/{}", self.versions)))
            }
            8 => fs::create_dir_all(self.desk.path("bundle/rules/deep")),
            _ => self.bring_back(),
        };
        self.story.push(format!("{what} {} {:?}", path.display(), done.map_err(|error| error.kind())));
        if let Ok(chains) = engine::load(&self.desk.paths(&["bundle"])) {
            self.moments.insert(chains.revision().to_owned(), self.story.len());
        }
    }

    fn replace(&self, text: &str, path: &std::path::Path) -> std::io::Result<()> {
        self.desk.write("beside", text);
        fs::rename(self.desk.path("beside"), path)
    }

    /// Has a link to another file stand there from now on; now and then it leads nowhere.
    fn link(&mut self, path: &std::path::Path, text: &str) -> std::io::Result<()> {
        let target = format!("bundle/targets/{}", self.versions);
        if self.chance.u8(0..4) > 0 {
            self.desk.write(&target, text);
        }
        self.desk.link("beside-link", self.desk.path(&target).to_str().unwrap());
        fs::rename(self.desk.path("beside-link"), path)
    }

    /// Takes the right to read away, or gives it back. To some users it means nothing.
    fn forbid(&mut self, path: &std::path::Path) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let mode = if self.chance.bool() { 0o000 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    /// Has one of the directories that are gone stand there again.
    fn bring_back(&mut self) -> std::io::Result<()> {
        let gone = fs::read_dir(self.desk.path("gone"))?.collect::<Result<Vec<_>, _>>()?;
        match self.chance.choice(gone) {
            Some(entry) => fs::rename(entry.path(), self.desk.path("bundle/rules")),
            None => Ok(()),
        }
    }

    /// What is wrong with what is active, now that the files keep still.
    fn wrong(&self, floor: usize) -> Option<String> {
        let status = self.engine.status();
        let refused = status.last_refused.map(|refused| refused.why.to_string());
        match engine::load(&self.desk.paths(&["bundle"])) {
            Ok(chains) if status.revision != chains.revision() => Some("other rules are active".to_owned()),
            Ok(_) => refused.map(|why| format!("good rules are refused: {why}")),
            Err(error) if refused.as_ref() != Some(&error.to_string()) => {
                Some(format!("{refused:?} is told of\n{error}"))
            }
            Err(_) => match self.moments.get(&status.revision) {
                Some(moment) if *moment >= floor => None,
                moment => Some(format!("what is active was good after step {moment:?}, not after {floor}")),
            },
        }
    }
}

#[cfg(unix)]
#[test]
fn whatever_happens_to_files_once_they_keep_still_the_engine_and_its_status_are_right() {
    for seed in 0..SEEDS {
        let mut soak = Soak::new(seed);
        fs::create_dir(soak.desk.path("gone")).unwrap();
        let _watch = soak.watch();
        for _ in 0..ROUNDS {
            // Rules that were replaced do not come back unless the files say them again.
            let floor = soak.moments[&soak.engine.revision()];
            for _ in 0..soak.chance.usize(1..=MOST_STEPS) {
                soak.step();
                thread::sleep(Duration::from_millis(soak.chance.u64(0..4)));
            }
            let begun = Instant::now();
            while let Some(wrong) = soak.wrong(floor) {
                assert!(begun.elapsed() < PATIENCE, "seed {seed}: {wrong}\n{}", soak.story.join("\n"));
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}
