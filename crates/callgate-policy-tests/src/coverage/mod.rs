//! Branch coverage: which policies of a bundle, and which of their branches, the cases of a suite reach.
//!
//! A branch is one side of one coverage point of a rules file: a test that holds, or the same test that does not hold. [`coverage_points`] lists
//! the points of a bundle, [`recorder`] counts events while cases run, and [`report`] summarizes the counts.

mod recorder;
mod definition_points;
mod coverage_points;
mod report;
mod branch_kind;

pub use branch_kind::BranchKind;
pub use report::{
    CoverageReport, CoveredBranch, CoveredFile, CoveredPoint, CoveredPolicy, UncountedPolicy, UncountedReason,
};

use std::sync::Mutex;

use coverage_points::CoveragePoints;
use recorder::BranchCounts;

use callgate::policy::CompiledPolicies;
use callgate::source::LoadedFile;

/// A listener to the calls of cases, which counts how often each branch of a bundle is taken.
///
/// ```
/// # use std::sync::Arc;
/// use callgate_policy_tests::{Coverage, load_texts};
/// let rules = "policies: [ { id: none-large, match: { tool: pay, where: { path: $.input.amount, gt: 9 } }, deny: {} } ]";
/// let cases = "cases: [ { name: large ones are denied, call: { tool: pay, input: { amount: 10 } }, expect: denied } ]";
/// let built = callgate::policy::build_texts([("rules.yaml", rules)]);
/// let chains = Arc::new(built.policies.unwrap());
/// let coverage = Arc::new(Coverage::new(&chains, &built.files));
/// load_texts([("rules.test.yaml", cases)]).suite.run_with_coverage(&chains, &coverage, &mut |_| {});
/// let report = coverage.report(&built.sources);
/// // No case tests a small amount, or another tool.
/// assert_eq!((report.covered, report.total), (4, 7));
/// ```
#[derive(Debug)]
pub struct Coverage {
    points: CoveragePoints,
    counts: Mutex<BranchCounts>,
}

impl Coverage {
    /// Creates empty counts for a bundle that was compiled from these files.
    pub fn new(policies: &CompiledPolicies, files: &[LoadedFile]) -> Self {
        let points = CoveragePoints::new(policies, files);
        let counts = Mutex::new(BranchCounts::new(&points));
        Self { points, counts }
    }
}
