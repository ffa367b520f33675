//! Plots as HTML with inline SVG: calls over time by outcome, and bars for shares. The SVG holds shapes only and stretches with the
//! page; texts are HTML, so that they keep their size on narrow screens.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::log_summary::{LogSummary, NameCounts};
use super::text::group;

/// A group of outcomes in a plot.
pub(super) struct Series {
    pub(super) name: &'static str,
    /// The class of its colour.
    pub(super) class: &'static str,
    outcomes: &'static [&'static str],
}

/// The series, from the bottom.
const SERIES: [Series; 5] = [
    Series { name: "executed", class: "ok", outcomes: &["executed"] },
    Series { name: "answered without the tool", class: "ok2", outcomes: &["cached", "answered"] },
    Series { name: "pending approval", class: "ask", outcomes: &["suspended"] },
    Series { name: "stopped", class: "stop", outcomes: &["denied", "invalid", "halted", "aborted"] },
    Series { name: "failed", class: "fail", outcomes: &["failed", "recovered", "indeterminate"] },
];

/// The height of the plot in its own units.
const HEIGHT: f64 = 100.0;
/// The width of a column with the gap beside it, in its own units.
const COLUMN: f64 = 10.0;
const BAR: f64 = 8.0;
/// The number of columns of a plot.
const MIN_COLUMNS: i64 = 24;
const MAX_COLUMNS: i64 = 96;
/// Calls that are this far from all others do not stretch the plot: a clock was wrong.
const MAX_GAP_HOURS: i64 = 90 * 24;
/// The part of all calls that may be left out on each side: 1 of 100.
const LEFT_OUT: u64 = 100;

/// The class of the colour of an outcome.
pub(super) fn class_of(outcome: &str) -> &'static str {
    SERIES.iter().find(|series| series.outcomes.contains(&outcome)).map_or("stop", |series| series.class)
}

/// Calls over time, stacked by outcome. Empty if there are none.
pub(super) fn calls_over_time(summary: &LogSummary) -> String {
    let Some(hours) = ShownHours::new(summary) else { return String::new() };
    let columns = hours.columns(summary);
    let highest = columns.iter().map(|column| column.iter().sum::<u64>()).max().unwrap_or_default();
    let top = round_up(highest);
    let width = to_f64(columns.len() as u64) * COLUMN;
    let per = if hours.per_column == 1 { "hour".to_owned() } else { format!("{} hours", hours.per_column) };
    let mut page = format!(
        "<figure class=\"plot\" role=\"img\" aria-label=\"Calls per {per} by outcome, at most {}\">\n\
         <div class=\"area\"><div class=\"y\" aria-hidden=\"true\"><span>{}</span><span>{}</span><span>0</span></div>\
         <svg viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
        group(highest),
        group(top),
        half(top)
    );
    for (index, column) in columns.iter().enumerate() {
        page.push_str(&stack(column, top, to_f64(index as u64) * COLUMN, &hours.label(index)));
    }
    let (first, last) = (hours.label(0), hours.label(columns.len()));
    let _ = write!(
        page,
        "</svg></div>\n<div class=\"x\" aria-hidden=\"true\"><span>{first}</span><span>{last}</span></div>\n\
         <figcaption>calls per {per}, UTC"
    );
    for series in present_series(&columns) {
        let _ = write!(page, " <span class=\"key\"><i class=\"{}\"></i>{}</span>", series.class, series.name);
    }
    if hours.left_out > 0 {
        let _ = write!(
            page,
            " <span class=\"key\">{} calls at far other times are not shown</span>",
            group(hours.left_out)
        );
    }
    page.push_str("</figcaption></figure>");
    page
}

/// A bar for a share of a whole.
pub(super) fn bar(count: u64, of: u64, class: &str) -> String {
    let width = to_f64(count) / to_f64(of.max(1)) * 100.0;
    // What is there is visible.
    let width = if count > 0 { width.max(0.8) } else { 0.0 };
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"{class}\" \
         width=\"{width:.1}\" height=\"10\"/></svg>"
    )
}

/// The calls of a column by series.
type Column = [u64; SERIES.len()];

/// The hours that a plot shows.
struct ShownHours {
    first: i64,
    /// The number of hours.
    count: i64,
    per_column: i64,
    /// Calls at other times.
    left_out: u64,
}

impl ShownHours {
    fn new(summary: &LogSummary) -> Option<Self> {
        let hours: Vec<(i64, u64)> =
            summary.hours.iter().map(|(hour, outcomes)| (*hour, total(outcomes))).collect();
        let all: u64 = hours.iter().map(|(_, calls)| calls).sum();
        let is_far = |one: i64, other: i64| other.saturating_sub(one) > MAX_GAP_HOURS;
        let mut shown = hours.as_slice();
        let mut left_out = 0;
        // From both ends: the calls before, or behind, a large gap, if they are few.
        let mut before = 0;
        for (index, pair) in hours.windows(2).enumerate() {
            let [(hour, calls), (next, _)] = pair else { continue };
            before += calls;
            if is_far(*hour, *next) && before * LEFT_OUT <= all {
                shown = hours.get(index + 1..)?;
                left_out = before;
            }
        }
        let mut behind = 0;
        let start = hours.len() - shown.len();
        for (index, pair) in hours.windows(2).enumerate().rev() {
            let [(hour, _), (next, calls)] = pair else { continue };
            behind += calls;
            if index >= start && is_far(*hour, *next) && behind * LEFT_OUT <= all {
                shown = hours.get(start..=index)?;
                left_out += behind;
                behind = 0;
            }
        }
        let (first, last) = (shown.first()?.0, shown.last()?.0);
        let count = last - first + 1;
        let per_column = (count - 1).div_euclid(MAX_COLUMNS) + 1;
        // A few hours are shown with empty ones around them.
        let missing = (MIN_COLUMNS - count).max(0);
        Some(Self { first: first - missing / 2, count: count + missing, per_column, left_out })
    }

    fn columns(&self, summary: &LogSummary) -> Vec<Column> {
        let number = (self.count - 1).div_euclid(self.per_column) + 1;
        let mut columns = vec![Column::default(); usize::try_from(number).unwrap_or_default()];
        for (hour, outcomes) in &summary.hours {
            let column = usize::try_from((hour - self.first).div_euclid(self.per_column));
            let Some(column) = column.ok().and_then(|column| columns.get_mut(column)) else { continue };
            for (outcome, count) in outcomes.ordered() {
                let series = SERIES.iter().position(|series| series.outcomes.contains(&outcome));
                if let Some(sum) = series.and_then(|series| column.get_mut(series)) {
                    *sum += count;
                }
            }
        }
        columns
    }

    /// The time at which a column begins.
    fn label(&self, column: usize) -> String {
        let hour = self.first + i64::try_from(column).unwrap_or_default() * self.per_column;
        Timestamp::from_second(hour.saturating_mul(3_600))
            .map_or_else(|_| String::new(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
    }
}

/// The bars of a column, from the bottom, with their numbers as a tooltip.
fn stack(column: &Column, top: u64, x: f64, label: &str) -> String {
    if column.iter().all(|count| *count == 0) {
        return String::new();
    }
    let mut bars = format!("<g><title>{label}");
    for (series, count) in SERIES.iter().zip(column).filter(|(_, count)| **count > 0) {
        let _ = write!(bars, "\n{} {}", group(*count), series.name);
    }
    bars.push_str("</title>");
    let mut y = HEIGHT;
    for (series, count) in SERIES.iter().zip(column).filter(|(_, count)| **count > 0) {
        let height = to_f64(*count) / to_f64(top.max(1)) * HEIGHT;
        y -= height;
        let _ = write!(
            bars,
            "<rect class=\"{}\" x=\"{x:.0}\" y=\"{y:.2}\" width=\"{BAR}\" height=\"{height:.2}\"/>",
            series.class
        );
    }
    bars.push_str("</g>");
    bars
}

fn present_series(columns: &[Column]) -> impl Iterator<Item = &'static Series> {
    SERIES.iter().enumerate().filter_map(|(index, series)| {
        columns.iter().any(|column| column.get(index).is_some_and(|count| *count > 0)).then_some(series)
    })
}

fn total(outcomes: &NameCounts) -> u64 {
    outcomes.ordered().iter().map(|(_, count)| count).sum()
}

/// The next of 2, 4, 10, 20, 40, 100, … so that the half is a whole number, too.
fn round_up(count: u64) -> u64 {
    let mut scale: u64 = 1;
    loop {
        for step in [2, 4, 10] {
            let candidate = scale.saturating_mul(step);
            if candidate >= count {
                return candidate;
            }
        }
        scale = scale.saturating_mul(10);
    }
}

fn half(top: u64) -> String {
    group(top / 2)
}

#[expect(clippy::cast_precision_loss, reason = "a length in a plot")]
fn to_f64(count: u64) -> f64 {
    count as f64
}
