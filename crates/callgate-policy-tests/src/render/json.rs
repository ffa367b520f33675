//! Renders a report as a stable JSON document.

use serde::Serialize;

use crate::coverage::CoverageReport;
use crate::report::{FileReport, SuiteReport};
use callgate::diagnostic::{Diagnostics, SourceMap, render};
use callgate::json::Value;

/// The version of the document.
const VERSION: u32 = 1;

/// The members and their order are a contract.
#[derive(Serialize)]
struct ReportDocument<'a> {
    version: u32,
    /// The revision of the tested rules; null if they have errors.
    revision: Option<&'a str>,
    passed: usize,
    failed: usize,
    /// The diagnostics of rules and test files. No case runs if there are errors.
    problems: Vec<Value>,
    files: &'a [FileReport],
    /// The coverage, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<&'a CoverageReport>,
}

/// Renders the result of a suite, its coverage, and the problems of tests and rules, each with the files that they point into.
///
/// # Errors
/// Returns an error if serialization fails, which strings and numbers do not cause.
pub fn json(
    report: Option<&SuiteReport>,
    coverage: Option<&CoverageReport>,
    problems: &[(&Diagnostics, &SourceMap)],
) -> callgate::json::Result<String> {
    let mut records: Vec<Value> = Vec::new();
    for (diagnostics, sources) in problems {
        records.extend(callgate::json::from_str::<Vec<Value>>(&render::json(diagnostics, sources)?)?);
    }
    let count =
        |passed| report.map_or(0, |report| report.cases().filter(|case| case.passed == passed).count());
    callgate::json::to_string_pretty(&ReportDocument {
        version: VERSION,
        revision: report.map(|report| report.revision.as_str()),
        passed: count(true),
        failed: count(false),
        problems: records,
        files: report.map_or(&[], |report| &report.files),
        coverage,
    })
}
