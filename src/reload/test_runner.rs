//! The test runner of a host: reads and runs the policy tests of rules that must pass them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::RejectionReason;
use crate::policy::CompiledPolicies;

/// A test runner for rules that must pass their policy tests (`reload: { tests: require }`). `PolicyTests` of the crate
/// `callgate-policy-tests` runs `*.test.yaml` files.
pub trait TestRunner: Send + Sync {
    /// Reads the tests at and below the paths of the rules.
    fn load(&self, paths: &[PathBuf]) -> Box<dyn LoadedTests>;
}

/// Tests that were read, and are not affected by later changes of their files.
pub trait LoadedTests {
    /// The files that the tests refer to, including unreadable ones.
    fn referenced_files(&self) -> &[PathBuf];

    /// Runs the tests against new rules.
    ///
    /// # Errors
    /// The tests fail, have errors, or there are none.
    fn run(self: Box<Self>, policies: &Arc<CompiledPolicies>) -> Result<(), RejectionReason>;
}

/// No test runner. Rejects rules that must pass policy tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTestRunner;

impl TestRunner for NoTestRunner {
    fn load(&self, _: &[PathBuf]) -> Box<dyn LoadedTests> {
        Box::new(Self)
    }
}

impl LoadedTests for NoTestRunner {
    fn referenced_files(&self) -> &[PathBuf] {
        &[]
    }

    fn run(self: Box<Self>, _: &Arc<CompiledPolicies>) -> Result<(), RejectionReason> {
        Err(RejectionReason::MissingTestRunner)
    }
}
