//! Policy tests: cases in `*.test.yaml` beside the rules, each run in an engine of its own with stubbed tools and a manual
//! clock.
//!
//! [`load`] reads test files; [`Suite::run`] runs them against a bundle and returns a [`Report`].
//!
//! ```
//! let chains = callgate::engine::load_text("policies: [ { id: none-large, match: refund, deny: {} } ]")?;
//! let mut loaded = callgate::suite::load_texts([(
//!     "refunds.test.yaml",
//!     "cases: [ { name: refunds are denied, call: { tool: refund }, expect: { policy: none-large } } ]",
//! )]);
//! loaded.check_against(&chains);
//! assert!(!loaded.diagnostics.has_errors() && !loaded.suite.is_empty());
//! assert!(loaded.suite.run(&chains).passed());
//! # Ok::<(), callgate::LoadError>(())
//! ```

mod case;
mod compare;
mod conversation;
mod coverage;
mod expect;
mod generate;
mod load;
pub mod mutate;
mod read;
mod read_call;
mod read_case;
mod read_step;
pub mod render;
mod report;
mod run;
mod shapes;
mod stub;

pub use coverage::{
    Coverage, CoverageReport, CoveredBranch, CoveredFile, CoveredPoint, CoveredPolicy, Side, UncountedPolicy,
    WhyNot,
};
pub use generate::{GenerateError, GeneratedTests, Origin, generate};
pub use load::{LoadedSuite, load, load_texts, rules_paths};
pub use report::{CallReport, CaseReport, Difference, Failure, FileReport, ReplyReport, Report};
pub use run::Suite;
pub use shapes::test_file_record;
