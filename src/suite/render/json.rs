//! The stable document that programs read.

use serde::Serialize;

use crate::diagnostic::{Diagnostics, SourceMap, render};
use crate::json::Value;
use crate::suite::{CoverageReport, FileReport, Report};

/// The version of the document.
const VERSION: u32 = 1;

/// The members and their order are a contract.
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    /// Of the rules that were tested; null where they hold errors.
    revision: Option<&'a str>,
    passed: usize,
    failed: usize,
    /// What is wrong with rules and test files. While there are errors, nothing is run.
    problems: Vec<Value>,
    files: &'a [FileReport],
    /// What was covered, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<&'a CoverageReport>,
}

/// What came of a suite, what it covered, and what is wrong with the files that it and the rules were read from, each with the files that
/// it points into.
///
/// # Errors
/// Where `serde_json` can't write, which text and numbers give no cause for.
pub fn json(
    report: Option<&Report>,
    coverage: Option<&CoverageReport>,
    problems: &[(&Diagnostics, &SourceMap)],
) -> crate::json::Result<String> {
    let mut records: Vec<Value> = Vec::new();
    for (diagnostics, sources) in problems {
        records.extend(crate::json::from_str::<Vec<Value>>(&render::json(diagnostics, sources)?)?);
    }
    let count =
        |passed| report.map_or(0, |report| report.cases().filter(|case| case.passed == passed).count());
    crate::json::to_string_pretty(&Document {
        version: VERSION,
        revision: report.map(|report| report.revision.as_str()),
        passed: count(true),
        failed: count(false),
        problems: records,
        files: report.map_or(&[], |report| &report.files),
        coverage,
    })
}
