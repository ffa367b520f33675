//! Policies changed on purpose, one small change at a time, to see whether a test notices: a change that none notices is
//! behaviour that no test holds.
//!
//! [`mutate`] makes the changes in the text of the rules, so that each can be made by hand, too, and runs the suite over
//! what each makes of the bundle.

mod accepted;
mod behaviour;
mod change;
mod condition;
mod expression;
mod find;
mod pattern;
mod render;
mod report;
mod trial;

pub use render::{json, summary, text};
pub use report::{Mutated, Survivor, Unused};

use crate::policy::Built;
use crate::suite::{Report, Suite};

/// A kind of change, with the name by which comments accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// Its name, as in `# callgate: survives threshold because …`.
    pub name: &'static str,
    /// What it changes.
    pub doc: &'static str,
}

const POLICY_REMOVED: Mutation = Mutation { name: "policy-removed", doc: "a policy is left out" };
const SHADOW_ENFORCED: Mutation = Mutation { name: "shadow-enforced", doc: "a policy in shadow acts" };
const DEFAULT: Mutation = Mutation { name: "default", doc: "a default of the bundle is another" };
const TEST_REMOVED: Mutation = Mutation { name: "test-removed", doc: "a condition is left out" };
const OPERATOR: Mutation = Mutation { name: "operator", doc: "a test asks something near, or the opposite" };
const NEGATION: Mutation = Mutation { name: "negation", doc: "a `not` is left out" };
const QUANTIFIER: Mutation =
    Mutation { name: "quantifier", doc: "`any` for `all`, or the other way round, also of `each`" };
const ABSENCE: Mutation = Mutation { name: "absence", doc: "an absent field means the opposite" };
const THRESHOLD: Mutation = Mutation { name: "threshold", doc: "a bound is one more or one less" };
const EXPRESSION: Mutation =
    Mutation { name: "expression", doc: "an operator in an expression, a script or a filter is another" };
const PATTERN: Mutation = Mutation { name: "pattern", doc: "a name pattern fits more, or less" };
const ANCHOR: Mutation = Mutation { name: "anchor", doc: "a regular expression is found elsewhere, too" };
const ITEM_REMOVED: Mutation = Mutation { name: "item-removed", doc: "an item of a list is left out" };
const LIMIT: Mutation = Mutation { name: "limit", doc: "a number of a policy is one more or one less" };
const DURATION: Mutation = Mutation { name: "duration", doc: "a span of time is twice or half as long" };
const CHOICE: Mutation = Mutation { name: "choice", doc: "one of a few words is another" };
const KEY_REMOVED: Mutation = Mutation { name: "key-removed", doc: "what is counted or kept apart is not" };

/// Every kind of change.
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

/// Makes every change to the rules that `built` was made of, and runs the suite over each. `only`: in policies in whose id,
/// or in the name of whose file, this text occurs, letter case aside. `seen` is told how many changes have been tried, of
/// how many.
///
/// # Errors
/// The report of the suite where a case fails over the rules as they are: what notices a change can't be told then. Nothing
/// is tried either where the rules hold errors; the report is empty then.
pub fn mutate(
    built: &Built,
    suite: &Suite,
    only: Option<&str>,
    seen: &mut dyn FnMut(usize, usize),
) -> Result<Mutated, Report> {
    let trial = trial::Trial::new(built, suite)?;
    let changes = find::changes(built, only);
    let verdicts = trial.judge_all(&changes, seen);
    Ok(report::report(built, &changes, &verdicts, only.is_none()))
}
