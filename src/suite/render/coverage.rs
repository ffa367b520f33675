//! Coverage as a person reads it: how much of each rules file, and below it what is missing, each with its place.

use super::text::visible;
use crate::diagnostic::render;
use crate::suite::{CoverageReport, CoveredFile, CoveredPlace};

/// Characters of a place's words that are shown.
const MAX_SHOWN: usize = 60;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const CYAN: &str = "\u{1b}[36m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// One line for each rules file, and below it the branches that no case came to. `colour`: with ANSI escapes, which never come from a
/// rules file.
pub fn coverage(report: &CoverageReport, colour: bool) -> String {
    let page = Page { colour };
    report.files.iter().map(|file| page.file(file)).collect()
}

/// How much there is: `covered: 92.3 % (24 of 26 branches, 5 of 6 policies in full)`.
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

/// One workflow command for each place that lacks a branch, as GitHub shows them beside the lines of a pull request.
pub fn coverage_annotations(report: &CoverageReport) -> String {
    let command = |place: &CoveredPlace| {
        let missing = place.missing()?;
        Some(render::annotation(
            "warning",
            Some(&place.place),
            "not covered by tests",
            &format!("{}: {missing}", shown(&place.text)),
        ))
    };
    report.places().filter_map(command).collect()
}

struct Page {
    colour: bool,
}

impl Page {
    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    fn file(&self, file: &CoveredFile) -> String {
        let is_whole = file.covered == file.total;
        let mark = if is_whole { self.paint(GREEN, "✓") } else { self.paint(RED, "✗") };
        let count = self.paint(DIM, &format!("{} of {} branches covered", file.covered, file.total));
        let mut text = format!("{mark} {}  {}  {count}\n", visible(&file.file), percent(file.percent));
        let missing: Vec<[String; 3]> = file
            .places()
            .filter_map(|place| {
                let at = format!("{}:{}:{}", visible(&file.file), place.place.line, place.place.column);
                Some([at, shown(&place.text), place.missing()?])
            })
            .collect();
        let width = |column: usize| {
            let widths = missing.iter().filter_map(|row| row.get(column));
            widths.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let (places, words) = (width(0), width(1));
        for [at, word, missing] in &missing {
            let at = self.paint(CYAN, &format!("{at:places$}"));
            text.push_str(&format!("    {at}  {word:words$}  {}\n", self.paint(RED, missing)));
        }
        for policy in &file.not_counted {
            let line = format!("not counted: {} ({})", visible(&policy.id), policy.why.words());
            text.push_str(&format!("    {}\n", self.paint(DIM, &line)));
        }
        text
    }
}

fn shown(text: &str) -> String {
    let text = visible(text);
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
