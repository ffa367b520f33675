//! Looks at a bundle's files once and judges what they say. Knows nothing of time and of watching.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use super::footprint::Footprint;
use crate::engine::{Engine, Refusal, Verdict};
use crate::policy::{self, Built, Chains, ReloadSettings, widenings};

/// Runs the policy tests that lie beside rules; an error says which fail, for people.
pub type PolicyTests = Box<dyn Fn(&Arc<Chains>) -> Result<(), String> + Send>;

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

/// Takes in the rules files of an engine.
///
/// Bundles with errors are refused. Beyond that the `reload:` of the rules that are *active* says what new rules have to
/// pass, so that no edit can lift what it has to pass itself; the host can ask for more. New rules that say `tests:
/// require` of themselves are held to it, too.
pub struct Reloader {
    engine: Engine,
    paths: Vec<PathBuf>,
    drawn_files: Vec<PathBuf>,
    /// What the files said when they were last judged.
    judged: Option<Footprint>,
    demanded: ReloadSettings,
    tests: Option<PolicyTests>,
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
            tests: None,
        }
    }

    /// What the host demands of new rules, whatever the rules say.
    #[must_use]
    pub fn demanding(mut self, demanded: ReloadSettings) -> Self {
        self.demanded = demanded;
        self
    }

    /// How policy tests are run. Without it, rules whose tests are required are refused.
    #[must_use]
    pub fn tests(mut self, tests: impl Fn(&Arc<Chains>) -> Result<(), String> + Send + 'static) -> Self {
        self.tests = Some(Box::new(tests));
        self
    }

    /// Reads the files and takes in, refuses or holds what they say. Never panics; what fails in here is a refusal.
    pub fn look(&mut self) -> Looked {
        catch_unwind(AssertUnwindSafe(|| self.look_unguarded())).unwrap_or_else(|_| self.fail())
    }

    pub(super) fn fail(&self) -> Looked {
        self.refuse(Refusal::Failure("Callgate failed to read or to judge these rules".to_owned()))
    }

    fn look_unguarded(&mut self) -> Looked {
        // Should it fail, it will be looked at again.
        self.judged = None;
        let Self { paths, drawn_files, .. } = self;
        let read =
            read_in_one_moment(drawn_files, |drawn| Footprint::of(paths, drawn), || policy::build(paths));
        let (judged, built) = read.unzip();
        self.judged = judged;
        let Some(mut built) = built else { return Looked::Unsteady };
        match built.chains.take() {
            Some(chains) => self.judge(&Arc::new(chains)),
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
    fn judge(&self, chains: &Arc<Chains>) -> Looked {
        loop {
            let active = self.engine.active();
            let (verdict, looked) = self.verdict(&active, chains);
            if self.engine.follow(&active, verdict) {
                return looked;
            }
        }
    }

    fn refuse(&self, why: Refusal) -> Looked {
        while !self.engine.follow(&self.engine.active(), Verdict::Refuse(None, why.clone())) {}
        Looked::Refused
    }

    fn verdict(&self, active: &Chains, chains: &Arc<Chains>) -> (Verdict, Looked) {
        if active.revision() == chains.revision() {
            return (Verdict::Same, Looked::Same);
        }
        let governing = active.reload().or(self.demanded);
        if (governing.require_tests || chains.reload().require_tests)
            && let Err(why) = self.pass_tests(chains)
        {
            return (Verdict::Refuse(Some(chains.revision().to_owned()), why), Looked::Refused);
        }
        let widenings = if governing.confirm_widening { widenings(active, chains) } else { Vec::new() };
        if widenings.is_empty() {
            (Verdict::TakeIn(Arc::clone(chains)), Looked::TakenIn)
        } else {
            (Verdict::Hold(Arc::clone(chains), widenings), Looked::Held)
        }
    }

    fn pass_tests(&self, chains: &Arc<Chains>) -> Result<(), Refusal> {
        match &self.tests {
            Some(tests) => tests(chains).map_err(Refusal::Tests),
            None => Err(Refusal::Failure(
                "their policy tests are required, and this program runs none".to_owned(),
            )),
        }
    }
}

/// Several files are not read in one moment: what was read counts only if what is there was the same before and after, the
/// files that policies draw on included. `None` if it never was.
fn read_in_one_moment<F: PartialEq>(
    drawn_files: &mut Vec<PathBuf>,
    see: impl Fn(&[PathBuf]) -> F,
    read: impl Fn() -> Built,
) -> Option<(F, Built)> {
    for _ in 0..ATTEMPTS {
        let before = see(drawn_files);
        let built = read();
        drawn_files.clone_from(&built.drawn_files);
        if see(drawn_files) == before {
            return Some((before, built));
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
                policy::build_texts([("rules.yaml", text)])
            };
            let found = read_in_one_moment(&mut Vec::new(), |_| now.get(), read);
            let id = found.map(|(_, built)| built.chains.unwrap().policies()[0].id.clone());
            assert_eq!(id.as_deref(), expected);
            assert!(reads.get() <= ATTEMPTS);
        }
    }

    #[test]
    fn a_file_that_policies_draw_on_must_keep_still_too() {
        let drawn = PathBuf::from("schema.json");
        let mut drawn_files = Vec::new();
        let see = |drawn: &[PathBuf]| drawn.to_vec();
        let read = || Built {
            drawn_files: vec![drawn.clone()],
            ..policy::build_texts([("a.yaml", "policies: []")])
        };
        let (seen, _) = read_in_one_moment(&mut drawn_files, see, read).unwrap();
        assert_eq!((&seen, &drawn_files), (&vec![drawn.clone()], &vec![drawn.clone()]));
    }
}
