//! Rules with a snapshot of the files that they were loaded from: paths → rules that know whether their files have changed.

use std::path::PathBuf;
use std::sync::Arc;

use super::file_snapshot::FileSnapshot;
use super::reloader::{LoadedFiles, read_consistently};
use super::test_runner::TestRunner;
use crate::engine::RejectionReason;
use crate::policy::{self, CompiledPolicies};

/// Rules, and the state of their files when they were loaded.
///
/// For a host that loads rules again where they have changed, and uses no rules whose files have errors. A [`Reloader`](super::Reloader) keeps
/// the active rules in that case.
#[derive(Debug)]
pub struct CurrentRules {
    policies: Arc<CompiledPolicies>,
    paths: Vec<PathBuf>,
    referenced_files: Vec<PathBuf>,
    files: FileSnapshot,
}

impl CurrentRules {
    /// Loads the rules at and below these paths, as [`load`](super::load) does.
    ///
    /// # Errors
    /// The reason why the rules can't be used, or that their files changed during every attempt to read them.
    pub fn load(paths: &[PathBuf], tests: &dyn TestRunner) -> Result<Self, RejectionReason> {
        let mut referenced_files = Vec::new();
        let take_snapshot = |referenced: &[PathBuf]| FileSnapshot::of(paths, referenced);
        let read = || LoadedFiles { built: policy::build(paths), tests: tests.load(paths) };
        let Some((files, LoadedFiles { mut built, tests })) =
            read_consistently(&mut referenced_files, take_snapshot, read)
        else {
            return Err(RejectionReason::Internal("the files change while they are read".to_owned()));
        };
        let Some(policies) = built.policies.take().map(Arc::new) else {
            return Err(RejectionReason::Errors(Arc::new(built)));
        };
        if policies.reload_settings().require_tests {
            tests.run(&policies)?;
        }
        Ok(Self { policies, paths: paths.to_vec(), referenced_files, files })
    }

    /// The rules.
    pub fn policies(&self) -> &Arc<CompiledPolicies> {
        &self.policies
    }

    /// Whether the files have the contents and the metadata that they had when the rules were loaded. Reads all of them.
    pub fn is_current(&self) -> bool {
        FileSnapshot::of(&self.paths, &self.referenced_files) == self.files
    }
}
