//! `callgate test --coverage`: branch coverage of rules by policy tests, and the minimum percentage.

use std::io::Write;

use super::{TestArgs, TestFormat};
use crate::exit::CommandError;
use crate::output::{GREEN, Output, YELLOW, print_error};
use callgate_policy_tests::{CoverageReport, SuiteReport};

impl TestArgs {
    /// Whether the options need coverage.
    pub(super) fn needs_coverage(&self) -> bool {
        self.coverage || self.coverage_min.is_some() || self.format == TestFormat::Lcov
    }
}

/// Parses the minimum percentage.
pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "must be a percentage from 0 to 100, such as `95`".to_owned())
}

/// Writes the coverage, if the format supports it. Returns whether it reaches the minimum.
pub(super) fn write_coverage(
    covered: &CoverageReport,
    arguments: &TestArgs,
    output: &mut Output,
) -> Result<bool, CommandError> {
    match arguments.format {
        TestFormat::Text => {
            let style = if covered.covered == covered.total { GREEN } else { YELLOW };
            let summary =
                output.paint(style, &callgate_policy_tests::render::coverage_summary(covered)).into_owned();
            writeln!(
                output,
                "\n{}{summary}",
                callgate_policy_tests::render::coverage(covered, output.colour)
            )?;
        }
        TestFormat::Lcov => write!(output, "{}", callgate_policy_tests::render::lcov(covered))?,
        TestFormat::Github => {
            write!(output, "{}", callgate_policy_tests::render::coverage_annotations(covered))?
        }
        // Already part of the document, or not supported by the format.
        TestFormat::Json | TestFormat::Junit => {}
    }
    let Some(least) = arguments.coverage_min.filter(|least| !covered.reaches(*least)) else {
        return Ok(true);
    };
    output.flush()?;
    let is = callgate_policy_tests::render::percent(covered.percent);
    let least = callgate_policy_tests::render::percent(least);
    print_error(format!("{is} of the branches are covered, but --coverage-min requires {least}"));
    Ok(false)
}

/// Prints the test results to stderr, as stdout has only the coverage.
pub(super) fn print_results(report: &SuiteReport) {
    // The stream removes the colours where they are not supported. A closed stderr does not stop the command.
    let text = callgate_policy_tests::render::text(report, true);
    let _ = writeln!(anstream::stderr(), "{text}{}", callgate_policy_tests::render::summary(report));
}
