//! Renders coverage as an lcov tracefile, for editors, `genhtml` and coverage services.
//!
//! A policy is a function, a line with branches is a line, and each side of each coverage point is a branch.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::coverage::{CoverageReport, CoveredFile, CoveredPoint};

/// Renders the tracefile: one record for each rules file with coverage points.
pub fn lcov(report: &CoverageReport) -> String {
    let mut text = String::new();
    for file in report.files.iter().filter(|file| file.total > 0) {
        // Writing into a string does not fail.
        let _ = write_record(file, &mut text);
    }
    text
}

fn write_record(file: &CoveredFile, text: &mut String) -> std::fmt::Result {
    // The name extends to the end of its line.
    writeln!(text, "TN:\nSF:{}", file.file.replace(['\n', '\r'], " "))?;
    let functions: Vec<(usize, &str, u64)> = file
        .policies
        .iter()
        .filter_map(|policy| {
            let whole = policy.places.first()?;
            Some((whole.place.line, policy.id.as_str(), whole.sides.first()?.times))
        })
        .collect();
    for (line, id, _) in &functions {
        writeln!(text, "FN:{line},{id}")?;
    }
    for (_, id, times) in &functions {
        writeln!(text, "FNDA:{times},{id}")?;
    }
    let hit = functions.iter().filter(|(.., times)| *times > 0).count();
    writeln!(text, "FNF:{}\nFNH:{hit}", functions.len())?;
    let mut lines: BTreeMap<usize, Vec<&CoveredPoint>> = BTreeMap::new();
    for point in file.points() {
        lines.entry(point.place.line).or_default().push(point);
    }
    for (line, points) in &lines {
        let is_reached = times(points) > 0;
        for (block, point) in points.iter().enumerate() {
            for (branch, side) in point.sides.iter().enumerate() {
                // A dash: nothing on the line was evaluated.
                let taken = if is_reached { side.times.to_string() } else { "-".to_owned() };
                writeln!(text, "BRDA:{line},{block},{branch},{taken}")?;
            }
        }
    }
    writeln!(text, "BRF:{}\nBRH:{}", file.total, file.covered)?;
    for (line, points) in &lines {
        writeln!(text, "DA:{line},{}", times(points))?;
    }
    let hit = lines.values().filter(|points| times(points) > 0).count();
    writeln!(text, "LF:{}\nLH:{hit}\nend_of_record", lines.len())
}

/// How often the most frequent point of a line was evaluated.
fn times(points: &[&CoveredPoint]) -> u64 {
    let of = |point: &CoveredPoint| point.sides.iter().fold(0u64, |sum, side| sum.saturating_add(side.times));
    points.iter().map(|point| of(point)).max().unwrap_or(0)
}
