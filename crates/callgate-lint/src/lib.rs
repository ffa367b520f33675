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

// The modules are listed in the order of their use: a module uses only modules listed above it; tests/layering.rs enforces this.
mod lint_inputs;
mod scalars;
mod condition_source;
mod policy_source;
mod lint_context;
mod expression_source;
mod lint;
mod subsumption;
mod subsumption_index;
mod argument_lookup;
mod example_call;
mod schema_type;
mod bundle_types;
mod any_of_several;
mod approver_names_role;
mod cache_of_changes;
mod cache_shared_too_widely;
mod contradicting_tests;
mod costly_regex;
mod costly_script;
mod duplicate_policy;
mod escape_by_absence;
mod gate_behind_transform;
mod key_chosen_by_client;
mod line_break_in_pattern;
mod moot_behind_respond;
mod nothing_restricted;
mod optional_null_list;
mod output_of_declared_result;
mod overlapping_policies;
mod pattern_in_literal;
mod question_shows_redacted;
mod secret_in_rules;
mod shadowed_name;
mod shadowed_policy;
mod slashes_in_regex;
mod substring_provenance;
mod task_never_set;
mod test_of_wrong_type;
mod unanchored_regex;
mod unknown_argument;
mod unknown_enum_value;
mod unknown_tool;
mod untested_policy;
mod untrusted_source;
mod unused_name;
mod unwritten_name;
mod type_findings;
mod unknown_member;
mod type_check;
mod registry;
mod suppressions;
mod linter;
mod fixes;

pub use fixes::{FixResult, fix};
pub use lint::Lint;
pub use lint_inputs::{LintInputs, RequiredInput};
pub use linter::{LintResult, lint};
pub use registry::{LINTS, SUPPRESSION_CODES};
