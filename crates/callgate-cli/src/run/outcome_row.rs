//! Table rows, one line a call, in columns whose widths depend on the first rows and the terminal.

use std::io::{self, Write};

use clap::builder::styling::{Effects, Style};

use crate::output::{
    BOLD, CYAN, DIM, GREEN, Output, RED, YELLOW, display_width, escape_line, truncate, wrap,
};
use callgate::call::{Outcome, OutcomeKind, reason_code};

/// Label of calls that an earlier run completed, and whose outcome is replayed.
pub(super) const REPLAYED_LABEL: &str = "replayed";
/// Minimum width of a column for the reason; with less room, the reason is on separate lines below.
const MIN_REASON_WIDTH: usize = 36;
/// Maximum number of lines of a reason on a terminal.
const MAX_REASON_LINES: usize = 6;
/// Maximum width of a column, except for the reason.
const MAX_CELL_WIDTH: usize = 40;
/// Minimum width to which a column is shrunk.
const MIN_CELL_WIDTH: usize = 8;
const GAP: &str = "  ";
/// Width of a mark and the longest usual outcome.
const OUTCOME_WIDTH: usize = 11;
const TIME_WIDTH: usize = 7;

/// The cells of a row.
pub(super) struct OutcomeRow {
    kind: OutcomeKind,
    /// Empty for the session without a name; `None` for an invalid line.
    session: Option<String>,
    id: String,
    tool: String,
    policy: String,
    time: String,
    reason: String,
}

impl OutcomeRow {
    pub(super) fn from_outcome(outcome: &Outcome) -> Self {
        let text = |text: &str| escape_line(text).into_owned();
        // A successful call needs no reason but the policy.
        let reason = match outcome.outcome {
            OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered => "",
            _ => &outcome.reason.message,
        };
        let reason = match (is_replayed(outcome), reason) {
            (false, reason) => reason.to_owned(),
            (true, "") => REPLAYED_LABEL.to_owned(),
            (true, reason) => format!("{REPLAYED_LABEL}: {reason}"),
        };
        Self {
            kind: outcome.outcome,
            session: is_call(outcome).then(|| outcome.session.as_deref().map(text).unwrap_or_default()),
            id: text(&outcome.id),
            tool: text(&outcome.tool),
            policy: outcome.reason.policy.as_deref().map(text).unwrap_or_default(),
            time: if outcome.replayed { String::new() } else { format_duration(outcome.duration_us) },
            reason: text(&reason),
        }
    }

    fn session(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }
}

/// The widths of the columns.
pub(super) struct TableLayout {
    /// `None` if all rows are of `only_session`.
    session: Option<usize>,
    only_session: Option<String>,
    id: usize,
    tool: usize,
    policy: usize,
    /// Width of the terminal; without one, nothing is truncated or wrapped.
    width: Option<usize>,
}

impl TableLayout {
    /// Computes the widths for these rows and the length of the longest policy id.
    pub(super) fn from_rows(
        rows: &[OutcomeRow],
        several_sessions: bool,
        longest_policy: usize,
        width: Option<usize>,
    ) -> Self {
        // One or two rows, as from an open pipe, say little about later ones.
        let first_of_many = rows.len() <= 2;
        let longest = |usual: usize, head: &str, cell: fn(&OutcomeRow) -> &str| {
            let least = if first_of_many { usual } else { display_width(head) };
            rows.iter().map(|row| display_width(cell(row))).fold(least, usize::max).min(MAX_CELL_WIDTH)
        };
        let mut layout = Self {
            session: several_sessions.then(|| longest(12, "SESSION", OutcomeRow::session)),
            only_session: rows.iter().find_map(|row| row.session.clone()),
            id: longest(12, "CALL", |row| &row.id),
            tool: longest(20, "TOOL", |row| &row.tool),
            policy: longest_policy.clamp(display_width("POLICY"), MAX_CELL_WIDTH),
            width,
        };
        layout.shrink();
        layout
    }

    /// Shrinks the widest column until all columns fit.
    fn shrink(&mut self) {
        while self.width.is_some_and(|width| self.fixed_width() > width) {
            let flexible =
                [Some(&mut self.id), Some(&mut self.tool), Some(&mut self.policy), self.session.as_mut()];
            let widest = flexible.into_iter().flatten().max_by_key(|width| **width);
            match widest {
                Some(width) if *width > MIN_CELL_WIDTH => *width -= 1,
                _ => return,
            }
        }
    }

    /// The width of all columns but the reason.
    fn fixed_width(&self) -> usize {
        let session = self.session.map_or(0, |width| width + GAP.len());
        session + OUTCOME_WIDTH + self.id + self.tool + self.policy + TIME_WIDTH + 4 * GAP.len()
    }

    /// Whether the layout can show the session of this row.
    pub(super) fn can_show(&self, row: &OutcomeRow) -> bool {
        self.session.is_some() || row.session.is_none() || row.session == self.only_session
    }

    /// Writes the table header.
    pub(super) fn write_head(&self, output: &mut Output) -> io::Result<()> {
        let mut head = format!("{:OUTCOME_WIDTH$}{GAP}", "OUTCOME");
        if let Some(width) = self.session {
            head.push_str(&self.format_cell("SESSION", width));
        }
        head.push_str(&self.format_cell("CALL", self.id));
        head.push_str(&self.format_cell("TOOL", self.tool));
        head.push_str(&self.format_cell("POLICY", self.policy));
        head.push_str(&format!("{:>TIME_WIDTH$}", "TIME"));
        if self.reason_column().is_some() {
            head.push_str("  REASON");
        }
        let head = output.paint(DIM, &head).into_owned();
        writeln!(output, "{head}")
    }

    /// Writes a row, with further lines for a long reason.
    pub(super) fn write(&self, row: &OutcomeRow, output: &mut Output) -> io::Result<()> {
        let (mark, style) = mark_and_style(row.kind);
        let outcome = format!("{:OUTCOME_WIDTH$}", format!("{mark} {}", row.kind.name()));
        let session = self.session.map(|width| self.format_cell(row.session(), width)).unwrap_or_default();
        let line = [
            &*output.paint(style, &outcome),
            GAP,
            &*output.paint(DIM, &session),
            &self.format_cell(&row.id, self.id),
            &*output.paint(BOLD, &self.format_cell(&row.tool, self.tool)),
            &*output.paint(CYAN, &self.format_cell(&row.policy, self.policy)),
            &*output.paint(DIM, &format!("{:>TIME_WIDTH$}", row.time)),
        ]
        .concat();
        if row.reason.is_empty() {
            return writeln!(output, "{line}");
        }
        match (self.width, self.reason_column()) {
            (None, _) => writeln!(output, "{line}{GAP}{}", row.reason),
            (Some(_), Some(room)) => {
                let mut reason = self.reason_lines(row, room).into_iter();
                writeln!(output, "{line}{GAP}{}", reason.next().unwrap_or_default())?;
                let indent = " ".repeat(self.fixed_width() + GAP.len());
                reason.try_for_each(|reason| writeln!(output, "{indent}{reason}"))
            }
            (Some(width), None) => {
                writeln!(output, "{line}")?;
                let indent = " ".repeat(OUTCOME_WIDTH + GAP.len());
                let lines = self.reason_lines(row, width - indent.len());
                lines.into_iter().try_for_each(|reason| writeln!(output, "{indent}{reason}"))
            }
        }
    }

    /// The width of the reason column; `None` if there is no room for it.
    fn reason_column(&self) -> Option<usize> {
        let room = self.width.unwrap_or(usize::MAX).checked_sub(self.fixed_width() + GAP.len())?;
        (room >= MIN_REASON_WIDTH).then_some(room)
    }

    fn reason_lines(&self, row: &OutcomeRow, width: usize) -> Vec<String> {
        let mut lines = wrap(&row.reason, width);
        if lines.len() > MAX_REASON_LINES {
            lines.truncate(MAX_REASON_LINES);
            if let Some(last) = lines.last_mut() {
                *last = truncate(&format!("{last} …"), width).into_owned();
            }
        }
        lines
    }

    /// Pads or truncates a text to its column, followed by the gap.
    fn format_cell(&self, text: &str, width: usize) -> String {
        let text = if self.width.is_some() { truncate(text, width) } else { text.into() };
        let padding = width.saturating_sub(display_width(&text)) + GAP.len();
        format!("{text}{}", " ".repeat(padding))
    }
}

/// Whether the outcome is that of a call, and not of an invalid line, which belongs to no session.
pub(super) fn is_call(outcome: &Outcome) -> bool {
    outcome.reason.policy.is_some() || outcome.reason.code != reason_code::INVALID_CALL
}

/// Whether the outcome is that of an earlier run. A pending call has no final outcome yet.
pub(super) fn is_replayed(outcome: &Outcome) -> bool {
    outcome.replayed && outcome.outcome != OutcomeKind::Suspended
}

/// The mark and the colour of an outcome; the mark identifies it without colour, too.
pub(crate) fn mark_and_style(kind: OutcomeKind) -> (&'static str, Style) {
    match kind {
        OutcomeKind::Executed => ("✓", GREEN),
        OutcomeKind::Cached | OutcomeKind::Answered => ("✓", CYAN),
        OutcomeKind::Suspended => ("?", YELLOW),
        OutcomeKind::Invalid => ("✗", YELLOW),
        OutcomeKind::Denied => ("✗", RED),
        OutcomeKind::Halted => ("■", RED.effects(Effects::BOLD)),
        OutcomeKind::Recovered => ("!", YELLOW),
        // Failed, aborted and indeterminate: a person has to look.
        _ => ("!", RED),
    }
}

/// Formats a duration in a fitting unit: `41 µs`, `1.2 ms`, `3.4 s`.
pub(crate) fn format_duration(microseconds: u64) -> String {
    let (amount, unit) = match microseconds {
        0..1000 => return format!("{microseconds} µs"),
        1000..1_000_000 => (microseconds as f64 / 1e3, "ms"),
        _ => (microseconds as f64 / 1e6, "s"),
    };
    if amount < 10.0 { format!("{amount:.1} {unit}") } else { format!("{amount:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_fitting_unit() {
        let texts = [0, 999, 1200, 41_000, 999_999, 3_400_000].map(format_duration);
        assert_eq!(texts, ["0 µs", "999 µs", "1.2 ms", "41 ms", "1000 ms", "3.4 s"]);
    }
}
