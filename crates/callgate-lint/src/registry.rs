//! The list of all lints.

use callgate::diagnostic::{ALLOWANCE_WITHOUT_REASON, Code, UNUSED_ALLOWANCE};

use crate::lint::Lint;

/// Every lint, in the order of codes. Two more codes, [`ALLOWANCE_WITHOUT_REASON`] and [`UNUSED_ALLOWANCE`], are about suppression
/// comments.
pub static LINTS: [&Lint; 35] = [
    &crate::contradicting_tests::LINT,
    &crate::unknown_tool::LINT,
    &crate::unknown_argument::LINT,
    &crate::test_of_wrong_type::LINT,
    &crate::unknown_enum_value::LINT,
    &crate::shadowed_policy::LINT,
    &crate::duplicate_policy::LINT,
    &crate::overlapping_policies::LINT,
    &crate::moot_behind_respond::LINT,
    &crate::gate_behind_transform::LINT,
    &crate::escape_by_absence::LINT,
    &crate::any_of_several::LINT,
    &crate::unanchored_regex::LINT,
    &crate::costly_regex::LINT,
    &crate::costly_script::LINT,
    &crate::cache_of_changes::LINT,
    &crate::cache_shared_too_widely::LINT,
    &crate::key_chosen_by_client::LINT,
    &crate::secret_in_rules::LINT,
    &crate::question_shows_redacted::LINT,
    &crate::nothing_restricted::LINT,
    &crate::untested_policy::LINT,
    &crate::approver_names_role::LINT,
    &crate::unwritten_name::LINT,
    &crate::unused_name::LINT,
    &crate::slashes_in_regex::LINT,
    &crate::pattern_in_literal::LINT,
    &crate::line_break_in_pattern::LINT,
    &crate::substring_provenance::LINT,
    &crate::shadowed_name::LINT,
    &crate::optional_null_list::LINT,
    &crate::untrusted_source::LINT,
    &crate::output_of_declared_result::LINT,
    &crate::task_never_set::LINT,
    &crate::unknown_member::LINT,
];

/// The codes about suppression comments, which can't be suppressed.
pub static SUPPRESSION_CODES: [&Code; 2] = [&ALLOWANCE_WITHOUT_REASON, &UNUSED_ALLOWANCE];
