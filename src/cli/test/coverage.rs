//! `callgate test --coverage`: what the cases came to of the rules, and whether it is enough.

use std::io::Write;

use super::{Form, Test};
use crate::cli::exit::Stop;
use crate::cli::output::{GREEN, Output, YELLOW, complain};
use crate::suite::{self, CoverageReport, Report};

impl Test {
    /// Whether anything that was asked for needs coverage.
    pub(super) fn asks_for_coverage(&self) -> bool {
        self.coverage || self.coverage_min.is_some() || self.format == Form::Lcov
    }
}

/// Reads the least percentage.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a percentage is a number from 0 to 100, such as `95`".to_owned())
}

/// Writes what was covered, where the format has a place for it, and says whether it is enough.
pub(super) fn write(covered: &CoverageReport, arguments: &Test, output: &mut Output) -> Result<bool, Stop> {
    match arguments.format {
        Form::Text => {
            let style = if covered.covered == covered.total { GREEN } else { YELLOW };
            let summary = output.paint(style, &suite::render::coverage_summary(covered)).into_owned();
            writeln!(output, "\n{}{summary}", suite::render::coverage(covered, output.colour))?;
        }
        Form::Lcov => write!(output, "{}", suite::render::lcov(covered))?,
        Form::Github => write!(output, "{}", suite::render::coverage_annotations(covered))?,
        // Part of the document, or without a place in it.
        Form::Json | Form::Junit => {}
    }
    let Some(least) = arguments.coverage_min.filter(|least| !covered.reaches(*least)) else {
        return Ok(true);
    };
    output.flush()?;
    let is = suite::render::percent(covered.percent);
    let least = suite::render::percent(least);
    complain(format!("{is} of the branches are covered, and --coverage-min asks for {least}"));
    Ok(false)
}

/// Shows on stderr what came of the cases, where stdout is for the coverage alone.
pub(super) fn tell_results(report: &Report) {
    // The stream itself takes the colours out where they are not to be. That nobody reads it is no reason to stop.
    let text = suite::render::text(report, true);
    let _ = writeln!(anstream::stderr(), "{text}{}", suite::render::summary(report));
}
