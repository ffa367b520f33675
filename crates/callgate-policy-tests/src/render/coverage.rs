//! Renders coverage as text and as GitHub annotations: the percentage of each rules file, and its missing branches.

use super::text::escape_invisible;
use crate::coverage::{CoverageReport, CoveredFile, CoveredPoint};
use callgate::diagnostic::{Location, render};

/// The maximum length of a coverage point's text, in characters.
const MAX_TEXT: usize = 60;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const BOLD: &str = "\u{1b}[1m";
const CYAN: &str = "\u{1b}[36m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Renders one line for each rules file, with the missing branches below it. `colour`: with ANSI escapes, which never come from a rules
/// file.
pub fn coverage(report: &CoverageReport, colour: bool) -> String {
    let page = CoverageWriter { colour };
    report.files.iter().map(|file| page.file(file)).collect()
}

/// The summary line: `covered: 92.3 % (24 of 26 branches, 5 of 6 policies in full)`.
pub fn coverage_summary(report: &CoverageReport) -> String {
    let policies = || report.files.iter().flat_map(|file| &file.policies);
    let in_full = policies().filter(|policy| policy.covered == policy.total).count();
    format!(
        "covered: {} ({} of {} branches, {in_full} of {} policies in full)",
        percent(report.percent),
        report.covered,
        report.total,
        policies().count()
    )
}

/// `92.3 %`
pub fn percent(percent: f64) -> String {
    format!("{percent} %")
}

/// One workflow command for each coverage point with a missing branch, which GitHub shows as an annotation in a pull request.
pub fn coverage_annotations(report: &CoverageReport) -> String {
    let command = |point: &CoveredPoint| {
        let missing = point.missing()?;
        Some(render::annotation(
            "warning",
            Some(&point.place),
            "not covered by tests",
            &format!("{}: {missing}", truncated(&point.text)),
        ))
    };
    report.points().filter_map(command).collect()
}

struct CoverageWriter {
    colour: bool,
}

impl CoverageWriter {
    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    fn file(&self, file: &CoveredFile) -> String {
        let is_complete = file.covered == file.total;
        let mark = if is_complete { self.paint(GREEN, "✓") } else { self.paint(RED, "✗") };
        let count = self.paint(DIM, &format!("{} of {} branches covered", file.covered, file.total));
        let mut text =
            format!("{mark} {}  {}  {count}\n", escape_invisible(&file.file), percent(file.percent));
        let defaults = self.missing_branches("defaults", &file.defaults);
        let policies = file.policies.iter().map(|policy| self.missing_branches(&policy.id, &policy.places));
        let definitions = self.missing_branches("definitions", &file.definitions);
        text.extend([defaults, definitions].into_iter().chain(policies));
        for policy in &file.not_counted {
            let line = format!("not counted: {} ({})", escape_invisible(&policy.id), policy.why.as_str());
            text.push_str(&format!("    {}\n", self.paint(DIM, &line)));
        }
        text
    }

    /// The coverage points with missing branches, below their owner; empty if there are none.
    fn missing_branches(&self, owner: &str, points: &[CoveredPoint]) -> String {
        let rows = points.iter().filter_map(|point| {
            let Location { file, line, column, .. } = &point.place;
            let open = match point.undecided {
                0 => String::new(),
                times => format!(" (undecided {times}×)"),
            };
            let missing = point.missing()?;
            Some([
                format!("{}:{line}:{column}", escape_invisible(file)),
                truncated(&point.text),
                missing,
                open,
            ])
        });
        let rows: Vec<[String; 4]> = rows.collect();
        let longest = |texts: &mut dyn Iterator<Item = &String>| {
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let at_width = longest(&mut rows.iter().map(|[at, ..]| at));
        let words_width = longest(&mut rows.iter().map(|[_, words, ..]| words));
        let lines = rows.iter().map(|[at, words, missing, open]| {
            let at = self.paint(CYAN, &format!("{at:at_width$}"));
            let (missing, open) = (self.paint(RED, missing), self.paint(DIM, open));
            format!("      {at}  {words:words_width$}  {missing}{open}\n")
        });
        let lines: String = lines.collect();
        if lines.is_empty() {
            lines
        } else {
            format!("    {}\n{lines}", self.paint(BOLD, &escape_invisible(owner)))
        }
    }
}

fn truncated(text: &str) -> String {
    let text = escape_invisible(text);
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
