//! Looks at a bundle's files once and judges what they say. Knows nothing of time and of watching.

use std::cell::LazyCell;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use super::footprint::Footprint;
use crate::diagnostic::render;
use crate::engine::{Engine, Refusal, Verdict};
use crate::policy::{self, Built, Chains, ReloadSettings, widenings};
use crate::suite::{self, LoadedSuite};

/// What came of a look at the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// They say what is active.
    Same,
    /// What they say is active now.
    TakenIn,
    /// What they say is refused; [`Status::last_refused`](crate::engine::Status::last_refused) says why.
    Refused,
    /// What they say waits for the host's word; [`Status::held`](crate::engine::Status::held) says what for.
    Held,
    /// They changed all the while they were read, so nothing is known and nothing has changed.
    Unsteady,
}

/// As often files are read anew that change while they are read.
const ATTEMPTS: usize = 5;

/// Loads the rules at and below these paths, as [`engine::load`](crate::engine::load) does, and holds those to it that say
/// `reload: { tests: require }`: their own policy tests have to pass, the first time, too.
///
/// Errors: why they can't be used.
pub fn load(paths: &[PathBuf]) -> Result<Arc<Chains>, Refusal> {
    let mut built = policy::build(paths);
    let Some(chains) = built.chains.take().map(Arc::new) else {
        return Err(Refusal::Errors(Arc::new(built)));
    };
    if chains.reload().require_tests {
        pass(suite::load(paths), &chains)?;
    }
    Ok(chains)
}

/// Takes in the rules files of an engine.
///
/// Bundles with errors are refused. Beyond that the `reload:` of the rules that are *active* says what new rules have to
/// pass, so that no edit can lift what it has to pass itself; the host can ask for more. New rules that say `tests:
/// require` of themselves are held to it, too. The tests are the policy tests below the directories among the paths, as
/// they lie there beside the new rules.
pub struct Reloader {
    engine: Engine,
    paths: Vec<PathBuf>,
    drawn_files: Vec<PathBuf>,
    /// What the files said when they were last judged.
    judged: Option<Footprint>,
    demanded: ReloadSettings,
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Reloader {
    /// A reloader of the rules at and below these paths for this engine.
    pub fn new(engine: Engine, paths: impl Into<Vec<PathBuf>>) -> Self {
        Self {
            engine,
            paths: paths.into(),
            drawn_files: Vec::new(),
            judged: None,
            demanded: ReloadSettings::default(),
        }
    }

    /// What the host demands of new rules, whatever the rules say.
    #[must_use]
    pub fn demanding(mut self, demanded: ReloadSettings) -> Self {
        self.demanded = demanded;
        self
    }

    /// Reads the files and takes in, refuses or holds what they say. Never panics; what fails in here is a refusal.
    pub fn look(&mut self) -> Looked {
        self.guard(Self::look_unguarded)
    }

    fn guard(&mut self, look: impl FnOnce(&mut Self) -> Looked) -> Looked {
        catch_unwind(AssertUnwindSafe(|| look(self))).unwrap_or_else(|_| self.fail())
    }

    pub(super) fn fail(&self) -> Looked {
        self.refuse(Refusal::Failure("Callgate failed to read or to judge these rules".to_owned()))
    }

    fn look_unguarded(&mut self) -> Looked {
        // Should it fail, it will be looked at again.
        self.judged = None;
        let Self { paths, drawn_files, .. } = self;
        let see = |drawn: &[PathBuf]| Footprint::of(paths, drawn);
        let read = || Read { built: policy::build(paths), tests: suite::load(paths) };
        let (judged, read) = read_in_one_moment(drawn_files, see, read).unzip();
        self.judged = judged;
        let Some(Read { mut built, tests }) = read else { return Looked::Unsteady };
        match built.chains.take() {
            Some(chains) => self.judge(&Arc::new(chains), tests),
            None => self.refuse(Refusal::Errors(Arc::new(built))),
        }
    }

    #[cfg(feature = "watch")]
    pub(super) fn free_retired(&self) {
        self.engine.free_retired();
    }

    /// What the files said when they were last judged.
    #[cfg(feature = "watch")]
    pub(super) fn judged(&self) -> Option<&Footprint> {
        self.judged.as_ref()
    }

    #[cfg(feature = "watch")]
    pub(super) fn footprint(&self) -> Footprint {
        Footprint::of(&self.paths, &self.drawn_files)
    }

    #[cfg(feature = "watch")]
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Judges until nobody else has exchanged the rules meanwhile, with which new ones are compared.
    fn judge(&self, chains: &Arc<Chains>, tests: LoadedSuite) -> Looked {
        // Whether they pass is asked once at most.
        let tested = LazyCell::new(|| pass(tests, chains));
        loop {
            let active = self.engine.active();
            let (verdict, looked) = self.verdict(&active, chains, &tested);
            if self.engine.follow(&active, verdict) {
                return looked;
            }
        }
    }

    fn refuse(&self, why: Refusal) -> Looked {
        while !self.engine.follow(&self.engine.active(), Verdict::Refuse(None, why.clone())) {}
        Looked::Refused
    }

    fn verdict(
        &self,
        active: &Chains,
        chains: &Arc<Chains>,
        tested: &impl Deref<Target = Result<(), Refusal>>,
    ) -> (Verdict, Looked) {
        if active.revision() == chains.revision() {
            return (Verdict::Same, Looked::Same);
        }
        let governing = active.reload().or(self.demanded);
        if (governing.require_tests || chains.reload().require_tests)
            && let Err(why) = &**tested
        {
            return (Verdict::Refuse(Some(chains.revision().to_owned()), why.clone()), Looked::Refused);
        }
        let widenings = if governing.confirm_widening { widenings(active, chains) } else { Vec::new() };
        if widenings.is_empty() {
            (Verdict::TakeIn(Arc::clone(chains)), Looked::TakenIn)
        } else {
            (Verdict::Hold(Arc::clone(chains), widenings), Looked::Held)
        }
    }
}

/// Runs the policy tests of new rules.
fn pass(mut tests: LoadedSuite, chains: &Arc<Chains>) -> Result<(), Refusal> {
    tests.check_against(chains);
    if tests.diagnostics.has_errors() {
        return Err(Refusal::Tests(render::text(&tests.diagnostics, &tests.sources, false)));
    }
    if tests.suite.is_empty() {
        return Err(Refusal::NoTests);
    }
    let report = tests.suite.run(chains);
    if report.passed() {
        return Ok(());
    }
    let (text, summary) = (suite::render::text(&report, false), suite::render::summary(&report));
    Err(Refusal::Tests(format!("{text}{summary}")))
}

/// What was read of rules and of their tests.
struct Read {
    built: Built,
    tests: LoadedSuite,
}

impl Read {
    /// The files that either draws on.
    fn drawn_files(&self) -> Vec<PathBuf> {
        self.built.drawn_files.iter().chain(&self.tests.drawn_files).cloned().collect()
    }
}

/// Several files are not read in one moment: what was read counts only if what is there was the same before and after, the
/// files that they draw on included. `None` if it never was.
fn read_in_one_moment<F: PartialEq>(
    drawn_files: &mut Vec<PathBuf>,
    see: impl Fn(&[PathBuf]) -> F,
    read: impl Fn() -> Read,
) -> Option<(F, Read)> {
    for _ in 0..ATTEMPTS {
        let before = see(drawn_files);
        let read = read();
        *drawn_files = read.drawn_files();
        if see(drawn_files) == before {
            return Some((before, read));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_changes_while_it_is_read_is_read_anew_and_given_up_if_it_never_keeps_still() {
        for (changes, expected) in [(0, Some("0")), (3, Some("3")), (100, None)] {
            let (now, reads) = (Cell::new(0), Cell::new(0));
            let read = || {
                // Half of it is read before the change, and half after it.
                let text = format!("policies: [ {{ id: '{}', match: a, deny: {{}} }} ]", now.get());
                now.set((now.get() + 1).min(changes));
                reads.set(reads.get() + 1);
                Read { built: policy::build_texts([("rules.yaml", text)]), tests: no_tests() }
            };
            let found = read_in_one_moment(&mut Vec::new(), |_| now.get(), read);
            let id = found.map(|(_, read)| read.built.chains.unwrap().policies()[0].id.clone());
            assert_eq!(id.as_deref(), expected);
            assert!(reads.get() <= ATTEMPTS);
        }
    }

    fn no_tests() -> LoadedSuite {
        suite::load_texts::<&str, &str>([])
    }

    #[test]
    fn a_file_that_rules_or_tests_draw_on_must_keep_still_too() {
        let (schema, tools) = (PathBuf::from("schema.json"), PathBuf::from("tools.json"));
        let mut drawn_files = Vec::new();
        let see = |drawn: &[PathBuf]| drawn.to_vec();
        let read = || {
            let mut read =
                Read { built: policy::build_texts([("a.yaml", "policies: []")]), tests: no_tests() };
            read.built.drawn_files.push(schema.clone());
            read.tests.drawn_files.push(tools.clone());
            read
        };
        let (seen, _) = read_in_one_moment(&mut drawn_files, see, read).unwrap();
        let expected = [schema.clone(), tools.clone()];
        assert_eq!((seen.as_slice(), drawn_files.as_slice()), (expected.as_slice(), expected.as_slice()));
    }

    #[test]
    fn a_panic_in_a_reload_is_a_refusal() {
        let engine = Engine::from_text("policies: []").unwrap();
        let revision = engine.revision();
        let mut reloader = Reloader::new(engine.clone(), []);
        assert_eq!(reloader.guard(|_| panic!("a mistake in Callgate")), Looked::Refused);
        let status = engine.status();
        assert_eq!(
            status.last_refused.unwrap().why.summary(),
            "Callgate failed to read or to judge these rules"
        );
        assert_eq!(status.revision, revision);
    }
}
