//! Renders a [`SuiteReport`](crate::SuiteReport) and a [`CoverageReport`](crate::CoverageReport) as text, JSON, JUnit XML, GitHub annotations and
//! lcov.

mod coverage;
mod diff;
mod github;
mod json;
mod junit;
mod lcov;
mod text;

pub use coverage::{coverage, coverage_annotations, coverage_summary, percent};
pub use github::github;
pub use json::json;
pub use junit::junit;
pub use lcov::lcov;
pub(super) use text::escape_invisible;
pub use text::{summary, text};
