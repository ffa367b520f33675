//! Analysis of Callgate's rules: what a change of policies means for calls.
//!
//! [`compare`] reports which policies of a bundle became looser, stricter or equivalent, each with example calls that both versions
//! of the rules have been evaluated for. It executes nothing.
//!
//! ```
//! use callgate_analysis::{ComparisonInputs, Direction, RulesVersion, compare};
//!
//! let rules = |limit: u32| {
//!     let text = format!(
//!         "policies: [ {{ id: large, match: {{ tool: refund, where: {{ path: $.input.amount, gt: {limit} }} }}, deny: {{}} }} ]"
//!     );
//!     RulesVersion::from_texts([("rules.yaml", text)])
//! };
//! let (Ok(old), Ok(new)) = (rules(100), rules(200)) else { panic!("the rules have errors") };
//! let compared = compare(&old, &new, &ComparisonInputs::default(), &mut |_, _| {});
//! assert_eq!(compared.changes[0].direction, Direction::Looser);
//! let witness = &compared.changes[0].witnesses[0];
//! assert_eq!(witness.call.to_string(), r#"{"tool":"refund","input":{"amount":200}}"#);
//! assert_eq!((witness.before.effect, witness.after.effect), ("deny", "run"));
//! ```

// The modules are listed in the order of their use: a module uses only modules listed above it; tests/layering.rs enforces this.
mod field_path;
mod source_scanner;
mod pattern_examples;
mod candidate_values;
mod shell_examples;
mod vocabulary;
mod call_sample;
mod sample_space;
mod sample_tools;
mod rules_version;
mod evaluator;
mod report;
mod setting_changes;
mod policy_pair;
mod policy_changes;
mod witness_search;
mod bundle_comparison;
#[doc(hidden)]
pub mod recorded_executor;
#[doc(hidden)]
pub mod recording;
#[doc(hidden)]
pub mod backtest;
#[doc(hidden)]
pub mod suggest;
pub mod render;

pub use bundle_comparison::{ComparisonInputs, compare};
pub use call_sample::{CallSample, SampleOrigin};
pub use evaluator::DecisionSummary;
pub use report::{
    BundleComparison, CallDirection, Change, ChangeReason, ChangeSubject, Direction, PolicyState,
    REPORT_VERSION, Witness, WitnessBasis,
};
pub use rules_version::RulesVersion;
