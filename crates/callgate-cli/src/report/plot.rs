//! Plots as inline SVG: calls over time by outcome, and bars of policies.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::log_summary::LogSummary;

/// The outcomes in a plot, from the bottom, with the class of their colour.
const SERIES: [(&str, &str); 5] =
    [("executed", "ok"), ("cached", "ok2"), ("suspended", "ask"), ("denied", "stop"), ("failed", "fail")];
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 160.0;
/// The number of columns of a plot at most.
const MAX_COLUMNS: i64 = 96;

/// Calls over time, stacked by outcome. Empty if there are none.
pub(super) fn calls_over_time(summary: &LogSummary) -> String {
    let (Some(first), Some(last)) = (summary.hours.keys().next(), summary.hours.keys().next_back()) else {
        return String::new();
    };
    let hours_per_column = (last - first + 1).div_euclid(MAX_COLUMNS) + 1;
    let columns = (last - first).div_euclid(hours_per_column) + 1;
    let mut counts = vec![[0u64; SERIES.len()]; usize::try_from(columns).unwrap_or_default()];
    for (hour, outcomes) in &summary.hours {
        let column = usize::try_from((hour - first).div_euclid(hours_per_column)).unwrap_or_default();
        let Some(column) = counts.get_mut(column) else { continue };
        for (outcome, count) in outcomes.ordered() {
            let series = match outcome {
                "invalid" | "halted" | "aborted" => "denied",
                "recovered" | "indeterminate" => "failed",
                "answered" => "cached",
                outcome => outcome,
            };
            if let Some((_, sum)) =
                SERIES.iter().zip(column.iter_mut()).find(|((name, _), _)| *name == series)
            {
                *sum += count;
            }
        }
    }
    let highest = counts.iter().map(|column| column.iter().sum::<u64>()).max().unwrap_or_default().max(1);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Calls over time by outcome, at most {highest} in {hours_per_column} h\">",
        HEIGHT + 20.0
    );
    let width = WIDTH / to_f64(counts.len() as u64);
    for (index, column) in counts.iter().enumerate() {
        let mut top = HEIGHT;
        for ((_, class), count) in SERIES.iter().zip(column) {
            let height = to_f64(*count) / to_f64(highest) * (HEIGHT - 10.0);
            if *count > 0 {
                top -= height;
                let x = to_f64(index as u64) * width;
                let bar = (width * 0.85).max(0.5);
                let _ = write!(
                    svg,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{bar:.1}\" height=\"{height:.1}\"/>"
                );
            }
        }
    }
    let label = |hour: i64| {
        Timestamp::from_second(hour * 3_600)
            .map_or_else(|_| String::new(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
    };
    let _ = write!(
        svg,
        "<text x=\"0\" y=\"{y}\">{}</text><text x=\"{WIDTH}\" y=\"{y}\" text-anchor=\"end\">{}</text></svg>",
        label(*first),
        label(last + 1),
        y = HEIGHT + 15.0
    );
    svg
}

/// A bar for a share of a whole.
pub(super) fn bar(count: u64, of: u64, class: &str) -> String {
    let width = to_f64(count) / to_f64(of.max(1)) * 120.0;
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 120 10\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"{width:.1}\" height=\"10\"/></svg>"
    )
}

#[expect(clippy::cast_precision_loss, reason = "a length in a plot")]
fn to_f64(count: u64) -> f64 {
    count as f64
}
