//! Coverage: which policies of a bundle, and which branches of them, the cases of a suite come to.
//!
//! A branch is one side of one place of a rules file: a test that holds, the same test that does not. [`places`] lists
//! what there is of a bundle, [`heard`] counts what is heard while cases run, [`report`] says what came.

mod heard;
mod places;
mod report;
mod side;

pub use report::{CoverageReport, CoveredFile, CoveredPlace, CoveredPolicy, CoveredSide, NotCounted, WhyNot};
pub use side::Side;

use std::sync::Mutex;

use heard::Counts;
use places::Places;

use crate::policy::Chains;
use crate::source::LoadedFile;

/// Listens to the calls of cases, and keeps how often each branch of a bundle was taken.
///
/// ```
/// # use std::sync::Arc;
/// use callgate::suite::{Coverage, load_texts};
/// let rules = "policies: [ { id: none-large, match: { tool: pay, where: { path: $.input.amount, gt: 9 } }, deny: {} } ]";
/// let cases = "cases: [ { name: large ones are denied, call: { tool: pay, input: { amount: 10 } }, expect: denied } ]";
/// let built = callgate::policy::build_texts([("rules.yaml", rules)]);
/// let chains = Arc::new(built.chains.unwrap());
/// let coverage = Arc::new(Coverage::of(&chains, &built.files));
/// load_texts([("rules.test.yaml", cases)]).suite.run_covered(&chains, &coverage, &mut |_| {});
/// let report = coverage.report(&built.sources);
/// // Nobody has tried a small one, or another tool.
/// assert_eq!((report.covered, report.total), (4, 7));
/// ```
#[derive(Debug)]
pub struct Coverage {
    places: Places,
    counts: Mutex<Counts>,
}

impl Coverage {
    /// What is to be covered of a bundle that was compiled out of these files.
    pub fn of(chains: &Chains, files: &[LoadedFile]) -> Self {
        let places = Places::of(chains, files);
        let counts = Mutex::new(Counts::of(&places));
        Self { places, counts }
    }
}
