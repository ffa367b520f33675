//! Mutation testing of policies: small changes of the rules, one at a time, that a test should notice. A change that no test
//! notices shows behaviour without a test.
//!
//! [`mutate`] makes the changes in the text of the rules, so that each can also be made by hand, and runs the suite against
//! each changed bundle.

mod accepted_mutants;
mod kind_mutations;
mod mutant;
mod condition_mutations;
mod duration_mutations;
mod expression_mutations;
mod mutant_collector;
mod mutant_generator;
mod pattern_mutations;
mod render;
mod report;
mod mutant_runner;

pub use accepted_mutants::CommentProblem;
pub use render::{json, summary, text};
pub use report::{MutationReport, Survivor};

use crate::report::SuiteReport;
use crate::runner::Suite;
use callgate::policy::LoadedBundle;

/// A kind of mutation, with the name that comments use to accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// Its name, as in `# callgate: survives threshold because …`.
    pub name: &'static str,
    /// A description of the change.
    pub doc: &'static str,
}

const POLICY_REMOVED: Mutation = Mutation { name: "policy-removed", doc: "a policy is removed" };
const SHADOW_ENFORCED: Mutation =
    Mutation { name: "shadow-enforced", doc: "a policy in shadow mode is enforced" };
const DEFAULT: Mutation = Mutation { name: "default", doc: "a default of the bundle is changed" };
const TEST_REMOVED: Mutation = Mutation { name: "test-removed", doc: "a condition is removed" };
const OPERATOR: Mutation =
    Mutation { name: "operator", doc: "a test uses a similar operator, or the opposite" };
const NEGATION: Mutation = Mutation { name: "negation", doc: "a `not` is removed" };
const QUANTIFIER: Mutation =
    Mutation { name: "quantifier", doc: "`any` and `all`, or the values of `each`, are swapped" };
const ABSENCE: Mutation = Mutation { name: "absence", doc: "an absent field has the opposite effect" };
const THRESHOLD: Mutation = Mutation { name: "threshold", doc: "a bound is one more or one less" };
const EXPRESSION: Mutation =
    Mutation { name: "expression", doc: "an operator in an expression, a script or a filter is replaced" };
const PATTERN: Mutation = Mutation { name: "pattern", doc: "a name pattern matches more, or less" };
const ANCHOR: Mutation = Mutation { name: "anchor", doc: "an anchor of a regular expression is removed" };
const ITEM_REMOVED: Mutation = Mutation { name: "item-removed", doc: "an item of a list is removed" };
const LIMIT: Mutation = Mutation { name: "limit", doc: "a number of a policy is one more or one less" };
const DURATION: Mutation = Mutation { name: "duration", doc: "a duration is doubled or halved" };
const CHOICE: Mutation = Mutation { name: "choice", doc: "a keyword is replaced by another" };
const KEY_REMOVED: Mutation = Mutation {
    name: "key-removed",
    doc: "a `key`, a `cost`, the `approvers` or the folding of a test is removed",
};

/// All mutations.
pub const MUTATIONS: [Mutation; 17] = [
    POLICY_REMOVED,
    SHADOW_ENFORCED,
    DEFAULT,
    TEST_REMOVED,
    OPERATOR,
    NEGATION,
    QUANTIFIER,
    ABSENCE,
    THRESHOLD,
    EXPRESSION,
    PATTERN,
    ANCHOR,
    ITEM_REMOVED,
    LIMIT,
    DURATION,
    CHOICE,
    KEY_REMOVED,
];

/// Applies every mutation to the rules of `built`, one at a time, and runs the suite against each. `only`: limits the changes to policies
/// whose id, or whose file's name, contains this text, ignoring case. `seen` is called with the number of changes tried so far and their
/// total.
///
/// # Errors
/// Returns the report of the suite if a case fails against the unchanged rules, because no change can then be judged. Returns an empty
/// report if the rules have errors.
pub fn mutate(
    built: &LoadedBundle,
    suite: &Suite,
    only: Option<&str>,
    seen: &mut dyn FnMut(usize, usize),
) -> Result<MutationReport, SuiteReport> {
    let trial = mutant_runner::MutantRunner::new(built, suite)?;
    let changes = mutant_generator::generate_mutants(built, only);
    let verdicts = trial.test_all(&changes, seen);
    Ok(report::build_report(built, &changes, &verdicts, only.is_none()))
}
