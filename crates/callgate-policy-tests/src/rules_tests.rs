//! The test runner for [`Reloader`](callgate::reload::Reloader): rules with `reload: { tests: require }` take effect only if their tests
//! pass.

use std::path::PathBuf;
use std::sync::Arc;

use callgate::diagnostic::render;
use callgate::engine::RejectionReason;
use callgate::policy::CompiledPolicies;
use callgate::reload::{LoadedTests, TestRunner};

use crate::loader::{self, LoadedSuite};
use crate::render as report_render;

/// Runs the policy tests beside rules files before new rules take effect.
///
/// ```no_run
/// use callgate::Engine;
/// use callgate::reload::{self, Reloader};
/// use callgate_policy_tests::PolicyTests;
///
/// let paths = ["policies".into()];
/// let engine = Engine::new(reload::load(&paths, &PolicyTests)?);
/// let mut reloader = Reloader::new(engine.clone(), paths).with_tests(PolicyTests);
/// reloader.reload();
/// # Ok::<(), callgate::engine::RejectionReason>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicyTests;

impl TestRunner for PolicyTests {
    fn load(&self, paths: &[PathBuf]) -> Box<dyn LoadedTests> {
        Box::new(loader::load(paths))
    }
}

impl LoadedTests for LoadedSuite {
    fn referenced_files(&self) -> &[PathBuf] {
        &self.referenced_files
    }

    fn run(mut self: Box<Self>, policies: &Arc<CompiledPolicies>) -> Result<(), RejectionReason> {
        self.check_against(policies);
        if self.diagnostics.has_errors() {
            let problems = render::text(&self.diagnostics, &self.sources, false);
            return Err(RejectionReason::TestFailures(problems));
        }
        if self.suite.is_empty() {
            return Err(RejectionReason::MissingTests);
        }
        let report = self.suite.run(policies);
        if report.passed() {
            return Ok(());
        }
        let (text, summary) = (report_render::text(&report, false), report_render::summary(&report));
        Err(RejectionReason::TestFailures(format!("{text}{summary}")))
    }
}
