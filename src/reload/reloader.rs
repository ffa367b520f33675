//! One reload: a bundle's files → new active rules, a rejection or a pending reload. Independent of time and of file watching.

use std::cell::LazyCell;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use super::file_snapshot::FileSnapshot;
use super::test_runner::{LoadedTests, NoTestRunner, TestRunner};
use crate::engine::{Candidate, Engine, RejectionReason, ReloadDecision};
use crate::policy::{self, CompiledPolicies, LoadedBundle, ReloadSettings, find_widenings};

/// The result of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReloadResult {
    /// The files match the active rules.
    Unchanged,
    /// The rules in the files are active now.
    Applied,
    /// The rules in the files were rejected; [`ReloadStatus::last_rejected`](crate::engine::ReloadStatus::last_rejected) has the reason.
    Rejected,
    /// The rules in the files are pending confirmation; [`ReloadStatus::pending`](crate::engine::ReloadStatus::pending) has the details.
    Pending,
    /// The files kept changing while they were read, so nothing was changed.
    Unstable,
}

/// Maximum number of attempts to read files that change while they are read.
const MAX_READ_ATTEMPTS: usize = 5;

/// Loads the rules at and below these paths, as [`engine::load`](crate::engine::load) does. Rules with
/// `reload: { tests: require }` must pass their own policy tests the first time, too. With [`NoTestRunner`] they are rejected.
///
/// # Errors
/// The reason why the rules can't be used.
pub fn load(paths: &[PathBuf], tests: &dyn TestRunner) -> Result<Arc<CompiledPolicies>, RejectionReason> {
    let mut built = policy::build(paths);
    let Some(policies) = built.policies.take().map(Arc::new) else {
        return Err(RejectionReason::Errors(Arc::new(built)));
    };
    if policies.reload_settings().require_tests {
        tests.load(paths).run(&policies)?;
    }
    Ok(policies)
}

/// Reloads the rules files of an engine.
///
/// Bundles with errors are rejected. The `reload:` settings of the *active* rules say which further checks new rules must pass, so
/// that an edit can't remove a check that applies to itself; the host can require more. New rules that say `tests: require` must
/// pass their tests, too. The tests are the policy tests in the directories among the paths, as they are at the time of the reload;
/// [`Reloader::with_tests`] sets what runs them. Without a test runner, rules that must pass tests are rejected.
pub struct Reloader {
    engine: Engine,
    paths: Vec<PathBuf>,
    referenced_files: Vec<PathBuf>,
    /// Snapshot of the files at the last reload.
    last_snapshot: Option<FileSnapshot>,
    required: ReloadSettings,
    /// Whether rules that may allow more can be held for confirmation.
    holds_widenings: bool,
    tests: Box<dyn TestRunner>,
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Reloader {
    /// Creates a reloader of the rules at and below these paths.
    pub fn new(engine: Engine, paths: impl Into<Vec<PathBuf>>) -> Self {
        Self {
            engine,
            paths: paths.into(),
            referenced_files: Vec::new(),
            last_snapshot: None,
            required: ReloadSettings::default(),
            holds_widenings: true,
            tests: Box::new(NoTestRunner),
        }
    }

    /// Creates a reloader of candidate rules at and below these paths. They permit nothing, so new ones are never held for confirmation.
    pub fn for_candidate(candidate: &Candidate, paths: impl Into<Vec<PathBuf>>) -> Self {
        Self { holds_widenings: false, ..Self::new(candidate.engine().clone(), paths) }
    }

    /// Sets what runs the policy tests of new rules: `PolicyTests` of the crate `callgate-policy-tests`, or a test runner of the host.
    #[must_use]
    pub fn with_tests(mut self, tests: impl TestRunner + 'static) -> Self {
        self.tests = Box::new(tests);
        self
    }

    /// Sets checks that the host requires of new rules, whatever the rules say.
    #[must_use]
    pub fn with_required_checks(mut self, demanded: ReloadSettings) -> Self {
        self.required = demanded;
        self
    }

    /// Reads the files, then activates the rules, rejects them or leaves them pending. Never panics: an internal error is a rejection.
    pub fn reload(&mut self) -> ReloadResult {
        self.catch_panic(Self::reload_unguarded)
    }

    fn catch_panic(&mut self, reload: impl FnOnce(&mut Self) -> ReloadResult) -> ReloadResult {
        catch_unwind(AssertUnwindSafe(|| reload(self))).unwrap_or_else(|_| self.reject_internal_error())
    }

    pub(super) fn reject_internal_error(&self) -> ReloadResult {
        self.reject(RejectionReason::Internal(
            "internal error: Callgate failed to load these rules".to_owned(),
        ))
    }

    fn reload_unguarded(&mut self) -> ReloadResult {
        // After a failure, the next check reloads again.
        self.last_snapshot = None;
        let Self { engine, paths, referenced_files, tests, .. } = self;
        let active = engine.active_policies();
        let take_snapshot = |referenced: &[PathBuf]| FileSnapshot::of(paths, referenced);
        let read = || LoadedFiles { built: policy::rebuild(paths, &active), tests: tests.load(paths) };
        let (snapshot, read) = read_consistently(referenced_files, take_snapshot, read).unzip();
        self.last_snapshot = snapshot;
        let Some(LoadedFiles { mut built, tests }) = read else { return ReloadResult::Unstable };
        match built.policies.take() {
            Some(policies) => self.apply(&Arc::new(policies), tests),
            None => self.reject(RejectionReason::Errors(Arc::new(built))),
        }
    }

    #[cfg(feature = "watch")]
    pub(super) fn free_retired(&self) {
        self.engine.free_retired();
    }

    /// Snapshot of the files at the last reload.
    #[cfg(feature = "watch")]
    pub(super) fn last_snapshot(&self) -> Option<&FileSnapshot> {
        self.last_snapshot.as_ref()
    }

    #[cfg(feature = "watch")]
    pub(super) fn snapshot(&self) -> FileSnapshot {
        FileSnapshot::of(&self.paths, &self.referenced_files)
    }

    #[cfg(feature = "watch")]
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Compares the new rules with the active ones and applies the verdict; repeats if the active rules were replaced in the meantime.
    fn apply(&self, policies: &Arc<CompiledPolicies>, tests: Box<dyn LoadedTests>) -> ReloadResult {
        // The tests run at most once.
        let tested = LazyCell::new(|| tests.run(policies));
        loop {
            let active = self.engine.active_policies();
            let (verdict, result) = self.decide(&active, policies, &tested);
            if self.engine.apply_decision(&active, verdict) {
                return result;
            }
        }
    }

    fn reject(&self, why: RejectionReason) -> ReloadResult {
        while !self
            .engine
            .apply_decision(&self.engine.active_policies(), ReloadDecision::Reject(None, why.clone()))
        {
        }
        ReloadResult::Rejected
    }

    fn decide(
        &self,
        active: &CompiledPolicies,
        policies: &Arc<CompiledPolicies>,
        tested: &impl Deref<Target = Result<(), RejectionReason>>,
    ) -> (ReloadDecision, ReloadResult) {
        if active.revision() == policies.revision() {
            return (ReloadDecision::Unchanged, ReloadResult::Unchanged);
        }
        let governing = active.reload_settings().merge(self.required);
        if (governing.require_tests || policies.reload_settings().require_tests)
            && let Err(why) = &**tested
        {
            return (
                ReloadDecision::Reject(Some(policies.revision().to_owned()), why.clone()),
                ReloadResult::Rejected,
            );
        }
        let widenings = if governing.confirm_widening && self.holds_widenings {
            find_widenings(active, policies)
        } else {
            Vec::new()
        };
        if widenings.is_empty() {
            (ReloadDecision::Apply(Arc::clone(policies)), ReloadResult::Applied)
        } else {
            (ReloadDecision::RequireConfirmation(Arc::clone(policies), widenings), ReloadResult::Pending)
        }
    }
}

/// Rules and their tests, as read.
pub(super) struct LoadedFiles {
    pub(super) built: LoadedBundle,
    pub(super) tests: Box<dyn LoadedTests>,
}

impl LoadedFiles {
    /// The files that the rules or the tests refer to.
    fn referenced_files(&self) -> Vec<PathBuf> {
        self.built.referenced_files.iter().chain(self.tests.referenced_files()).cloned().collect()
    }
}

/// Reads a consistent set of files: a read counts only if the snapshots before and after it are equal, including the files that the
/// rules refer to. Returns `None` if the files changed during every attempt.
pub(super) fn read_consistently<F: PartialEq>(
    referenced_files: &mut Vec<PathBuf>,
    take_snapshot: impl Fn(&[PathBuf]) -> F,
    read: impl Fn() -> LoadedFiles,
) -> Option<(F, LoadedFiles)> {
    for _ in 0..MAX_READ_ATTEMPTS {
        let before = take_snapshot(referenced_files);
        let read = read();
        *referenced_files = read.referenced_files();
        if take_snapshot(referenced_files) == before {
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
    fn rereads_files_that_change_during_the_read_and_gives_up_after_some_attempts() {
        for (changes, expected) in [(0, Some("0")), (3, Some("3")), (100, None)] {
            let (now, reads) = (Cell::new(0), Cell::new(0));
            let read = || {
                // Half is read before the change, and half after it.
                let text = format!("policies: [ {{ id: '{}', match: a, deny: {{}} }} ]", now.get());
                now.set((now.get() + 1).min(changes));
                reads.set(reads.get() + 1);
                LoadedFiles { built: policy::build_texts([("rules.yaml", text)]), tests: no_tests() }
            };
            let found = read_consistently(&mut Vec::new(), |_| now.get(), read);
            let id = found.map(|(_, read)| read.built.policies.unwrap().policies()[0].id.clone());
            assert_eq!(id.as_deref(), expected);
            assert!(reads.get() <= MAX_READ_ATTEMPTS);
        }
    }

    fn no_tests() -> Box<dyn LoadedTests> {
        NoTestRunner.load(&[])
    }

    /// Tests that refer to a file.
    struct ReferringTests([PathBuf; 1]);

    impl LoadedTests for ReferringTests {
        fn referenced_files(&self) -> &[PathBuf] {
            &self.0
        }

        fn run(self: Box<Self>, _: &Arc<CompiledPolicies>) -> Result<(), RejectionReason> {
            Ok(())
        }
    }

    #[test]
    fn files_that_rules_or_tests_refer_to_must_be_stable_too() {
        let (schema, tools) = (PathBuf::from("schema.json"), PathBuf::from("tools.json"));
        let mut referenced_files = Vec::new();
        let take_snapshot = |referenced: &[PathBuf]| referenced.to_vec();
        let read = || {
            let mut built = policy::build_texts([("a.yaml", "policies: []")]);
            built.referenced_files.push(schema.clone());
            LoadedFiles { built, tests: Box::new(ReferringTests([tools.clone()])) }
        };
        let (seen, _) = read_consistently(&mut referenced_files, take_snapshot, read).unwrap();
        let expected = [schema.clone(), tools.clone()];
        assert_eq!(
            (seen.as_slice(), referenced_files.as_slice()),
            (expected.as_slice(), expected.as_slice())
        );
    }

    #[test]
    fn a_panic_during_a_reload_rejects_it() {
        let engine = Engine::from_text("policies: []").unwrap();
        let revision = engine.revision();
        let mut reloader = Reloader::new(engine.clone(), []);
        assert_eq!(reloader.catch_panic(|_| panic!("a mistake in Callgate")), ReloadResult::Rejected);
        let status = engine.status();
        assert_eq!(
            status.last_rejected.unwrap().reason.summary(),
            "internal error: Callgate failed to load these rules"
        );
        assert_eq!(status.revision, revision);
    }
}
