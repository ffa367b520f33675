//! Linter: finds probable mistakes in a valid bundle, with one file per lint.
//!
//! ```
//! let built = callgate::policy::build_texts([("rules.yaml", "
//! policies:
//!   - id: none-of-these
//!     match: { tool: refund, where: [ { path: $.input.amount, gt: 10, lt: 5 } ] }
//!     deny: {}
//! ")]);
//! let found = callgate_lint::lint(built, &callgate_lint::LintInputs::default());
//! let codes: Vec<&str> = found.diagnostics.iter().map(|diagnostic| diagnostic.code.id).collect();
//! assert_eq!(codes, ["CG501"]);
//! ```

mod suppressions;
mod any_of_several;
mod approver_names_role;
mod argument_lookup;
mod cache_of_changes;
mod cache_shared_too_widely;
mod lint_context;
mod condition_source;
mod contradicting_tests;
mod costly_regex;
mod costly_script;
mod subsumption;
mod subsumption_index;
mod duplicate_policy;
mod escape_by_absence;
mod fixes;
mod gate_behind_transform;
mod key_chosen_by_client;
mod moot_behind_respond;
mod nothing_restricted;
mod overlapping_policies;
mod question_shows_redacted;
mod scalars;
mod secret_in_rules;
mod shadowed_policy;
mod test_of_wrong_type;
mod unanchored_regex;
mod unknown_argument;
mod unknown_enum_value;
mod unknown_tool;
mod untested_policy;
mod example_call;
mod policy_source;

pub use fixes::{FixResult, fix};

use std::sync::Arc;

use callgate::diagnostic::{ALLOWANCE_WITHOUT_REASON, Code, Diagnostics, UNUSED_ALLOWANCE};
use callgate::policy::{CompiledPolicies, LoadedBundle};
use callgate::tools::ToolDescriptor;
use callgate_policy_tests::LoadedSuite;
use lint_context::LintContext;

/// Optional inputs of the linter.
#[derive(Clone, Copy, Debug, Default)]
pub struct LintInputs<'b> {
    /// The tools, if they are known.
    pub tools: Option<&'b [ToolDescriptor]>,
    /// The policy tests of the bundle, if there are any.
    pub tests: Option<&'b LoadedSuite>,
}

/// The input that a lint needs in addition to the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredInput {
    /// No other input.
    Nothing,
    /// The known tools.
    Tools,
    /// The policy tests.
    Tests,
}

/// A lint: its code, with name and page, and its check.
#[derive(Debug)]
pub struct Lint {
    /// The code.
    pub code: &'static Code,
    /// The input that it needs.
    pub needs: RequiredInput,
    check: fn(&LintContext<'_>, &mut Diagnostics),
}

/// Every lint, in the order of codes. Two more codes, [`ALLOWANCE_WITHOUT_REASON`] and [`UNUSED_ALLOWANCE`], are about suppression
/// comments.
pub static LINTS: [&Lint; 23] = [
    &contradicting_tests::LINT,
    &unknown_tool::LINT,
    &unknown_argument::LINT,
    &test_of_wrong_type::LINT,
    &unknown_enum_value::LINT,
    &shadowed_policy::LINT,
    &duplicate_policy::LINT,
    &overlapping_policies::LINT,
    &moot_behind_respond::LINT,
    &gate_behind_transform::LINT,
    &escape_by_absence::LINT,
    &any_of_several::LINT,
    &unanchored_regex::LINT,
    &costly_regex::LINT,
    &costly_script::LINT,
    &cache_of_changes::LINT,
    &cache_shared_too_widely::LINT,
    &key_chosen_by_client::LINT,
    &secret_in_rules::LINT,
    &question_shows_redacted::LINT,
    &nothing_restricted::LINT,
    &untested_policy::LINT,
    &approver_names_role::LINT,
];

/// The codes about suppression comments, which can't be suppressed.
pub static SUPPRESSION_CODES: [&Code; 2] = [&ALLOWANCE_WITHOUT_REASON, &UNUSED_ALLOWANCE];

/// A bundle with all its diagnostics, errors and lints.
#[derive(Debug)]
pub struct LintResult {
    /// The compiled bundle. `None` if there is an error.
    pub policies: Option<Arc<CompiledPolicies>>,
    /// The built bundle, with the lints among its diagnostics, and without its `policies`.
    pub bundle: LoadedBundle,
}

impl std::ops::Deref for LintResult {
    type Target = LoadedBundle;

    fn deref(&self) -> &LoadedBundle {
        &self.bundle
    }
}

/// Runs every lint whose input is available, and removes what comments in the files suppress. A bundle with errors is not linted.
pub fn lint(mut built: LoadedBundle, beside: &LintInputs<'_>) -> LintResult {
    let Some(policies) = built.policies.take().map(Arc::new) else {
        return LintResult { policies: None, bundle: built };
    };
    let checked = LintContext::new(&policies, &built, beside);
    let mut found = Diagnostics::default();
    let applicable: Vec<&Lint> = LINTS.into_iter().filter(|lint| checked.has_input(lint.needs)).collect();
    for lint in &applicable {
        (lint.check)(&checked, &mut found);
    }
    let codes: Vec<&Code> = applicable.iter().map(|lint| lint.code).collect();
    suppressions::apply_suppressions(&checked, &codes, &mut found);
    built.diagnostics.extend(found);
    built.diagnostics.sort();
    LintResult { policies: Some(policies), bundle: built }
}
