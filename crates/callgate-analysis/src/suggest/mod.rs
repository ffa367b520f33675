//! Drafts least-privilege rules from recorded calls.
//!
//! [`UsageProfile`] collects how tools are used, [`UsageProfile::draft`] writes rules that permit what is usual, with their tests, and
//! [`DraftEvaluation`] counts what they permit of the recordings. What was seen in too few sessions is never permitted: it is listed
//! for a person to decide. Recordings are untrusted: an agent that was attacked is recorded like any other.

mod support;
mod string_shape;
mod string_profile;
mod field_profile;
mod call_rates;
mod usage_profile;
mod confidential_values;
mod number_rounding;
mod rare_finding;
mod usual_directories;
mod value_rule;
mod field_rules;
mod tool_draft;
mod policy_ids;
mod rules_writer;
mod tests_writer;
mod draft;
mod session_numbers;
mod draft_evaluation;
mod draft_replay;

pub use draft::Draft;
pub use draft_evaluation::{DraftEvaluation, StoppedCalls};
pub use draft_replay::{DraftError, DraftReplay};
pub use rare_finding::RareFinding;
pub use session_numbers::{SessionNumbers, TrainingSplit};
pub use usage_profile::{ToolName, UsageProfile};
