//! Renders a comparison as JSON.

use serde::Serialize;

use crate::report::{BundleComparison, Direction, REPORT_VERSION};

/// Renders the stable JSON document; `schemas/diff.schema.json` describes it.
///
/// # Errors
/// Returns an error if serialization fails, which strings and numbers do not cause.
pub fn json(compared: &BundleComparison) -> callgate::json::Result<String> {
    #[derive(Serialize)]
    struct Document<'a> {
        version: u32,
        summary: Summary,
        #[serde(flatten)]
        compared: &'a BundleComparison,
    }
    #[derive(Serialize)]
    struct Summary {
        looser: usize,
        mixed: usize,
        may_be_looser: usize,
        stricter: usize,
        equivalent: usize,
    }
    let summary = Summary {
        looser: compared.count(Direction::Looser),
        mixed: compared.count(Direction::Mixed),
        may_be_looser: compared.count(Direction::MayBeLooser),
        stricter: compared.count(Direction::Stricter),
        equivalent: compared.count(Direction::Equivalent),
    };
    callgate::json::to_string_pretty(&Document { version: REPORT_VERSION, summary, compared })
}
