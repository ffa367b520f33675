//! Renders failures as GitHub workflow commands, which appear as annotations in a pull request.

use super::junit::failure_summary;
use super::text::case_text;
use crate::report::SuiteReport;
use callgate::diagnostic::{Diagnostics, SourceMap, render};

/// Renders one workflow command for each failed case, at its first failure, and one for each problem of rules and tests.
pub fn github(report: Option<&SuiteReport>, problems: &[(&Diagnostics, &SourceMap)]) -> String {
    let mut commands = String::new();
    for (diagnostics, sources) in problems {
        commands.push_str(&render::github(diagnostics, sources));
    }
    for case in report.into_iter().flat_map(SuiteReport::cases) {
        let Some(first) = case.failures.first() else { continue };
        let text = format!("{}\n\n{}", failure_summary(first), case_text(case));
        commands.push_str(&render::annotation("error", Some(&first.place), &case.full_name(), &text));
    }
    commands
}
