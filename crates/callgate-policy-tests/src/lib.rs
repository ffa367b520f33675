//! Policy tests: cases in `*.test.yaml` beside the rules, each run in an engine of its own with stubbed tools and a manual
//! clock.
//!
//! [`load`] reads test files; [`Suite::run`] runs them against a bundle and returns a [`SuiteReport`].
//!
//! ```
//! let chains = callgate::load_text("policies: [ { id: none-large, match: refund, deny: {} } ]")?;
//! let mut loaded = callgate_policy_tests::load_texts([(
//!     "refunds.test.yaml",
//!     "cases: [ { name: refunds are denied, call: { tool: refund }, expect: { policy: none-large } } ]",
//! )]);
//! loaded.check_against(&chains);
//! assert!(!loaded.diagnostics.has_errors() && !loaded.suite.is_empty());
//! assert!(loaded.suite.run(&chains).passed());
//! # Ok::<(), callgate::LoadError>(())
//! ```

// The modules are listed in the order of their use: a module uses only modules listed above it; tests/layering.rs enforces this.
mod report;
mod comparison;
mod stub;
mod test_schema;
mod test_file_reader;
mod expectation;
mod case;
mod call_reader;
mod step_reader;
mod case_reader;
mod test_file;
mod stubbed_tools;
mod case_history;
mod reached_definitions;
mod coverage;
mod runner;
mod loader;
pub mod render;
mod rules_tests;
#[doc(hidden)]
pub mod yaml_writer;
mod generation;
pub mod mutation;

#[doc(hidden)]
pub use case::TestedCall;
pub use coverage::{
    BranchKind, Coverage, CoverageReport, CoveredBranch, CoveredFile, CoveredPoint, CoveredPolicy,
    UncountedPolicy, UncountedReason,
};
pub use generation::{GenerateError, GeneratedTests, RecordingSource, generate};
pub use loader::{LoadedSuite, load, load_texts, rules_paths};
#[doc(hidden)]
pub use reached_definitions::{definitions_of_policy, reached_names};
pub use report::{CallReport, CaseReport, Difference, Failure, FileReport, ReplyReport, SuiteReport};
pub use rules_tests::PolicyTests;
pub use runner::Suite;
pub use test_schema::test_file_record;
