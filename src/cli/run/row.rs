//! One line a call, in columns whose widths are set by the first rows and the terminal.

use std::io::{self, Write};

use clap::builder::styling::{Effects, Style};

use super::summary::{SETTLED_BEFORE, is_call, was_settled_before};
use crate::call::{Outcome, OutcomeKind};
use crate::cli::output::{BOLD, CYAN, DIM, GREEN, Output, RED, YELLOW, columns, cut, one_line, wrap};

/// A reason gets a column of its own if there is so much room for it, and else lines of its own below.
const MIN_REASON: usize = 36;
/// Of a longer reason a terminal gets as many lines.
const MAX_REASON_LINES: usize = 6;
/// No column but that of the reason gets wider, whatever its cells hold.
const MAX_CELL: usize = 40;
/// Nor narrower, to fit all in.
const MIN_CELL: usize = 8;
const GAP: &str = "  ";
/// A mark and the longest usual word.
const OUTCOME: usize = 11;
const TIME: usize = 7;

/// What a row says.
pub(super) struct Row {
    kind: OutcomeKind,
    /// The empty name for the one without a name; `None` for a line that is no call.
    session: Option<String>,
    id: String,
    tool: String,
    policy: String,
    time: String,
    reason: String,
}

impl Row {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let text = |text: &str| one_line(text).into_owned();
        // Of a call that went through there is nothing to say but the policy.
        let reason = match outcome.outcome {
            OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered => "",
            _ => &outcome.reason.message,
        };
        let reason = match (was_settled_before(outcome), reason) {
            (false, reason) => reason.to_owned(),
            (true, "") => SETTLED_BEFORE.to_owned(),
            (true, reason) => format!("{SETTLED_BEFORE}: {reason}"),
        };
        Self {
            kind: outcome.outcome,
            session: is_call(outcome).then(|| outcome.session.as_deref().map(text).unwrap_or_default()),
            id: text(&outcome.id),
            tool: text(&outcome.tool),
            policy: outcome.reason.policy.as_deref().map(text).unwrap_or_default(),
            time: if outcome.replayed { String::new() } else { duration(outcome.duration_us) },
            reason: text(&reason),
        }
    }

    fn session(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }
}

/// The widths of the columns.
pub(super) struct Layout {
    /// `None`: all rows are of this session.
    session: Option<usize>,
    only_session: Option<String>,
    id: usize,
    tool: usize,
    policy: usize,
    /// Of the terminal; without one nothing is cut or wrapped.
    width: Option<usize>,
}

impl Layout {
    /// Widths for these rows, in a bundle whose longest policy id is this long.
    pub(super) fn of(
        rows: &[Row],
        several_sessions: bool,
        longest_policy: usize,
        width: Option<usize>,
    ) -> Self {
        // One or two rows of a pipe that stays open say little about those to come.
        let first_of_many = rows.len() <= 2;
        let longest = |usual: usize, head: &str, cell: fn(&Row) -> &str| {
            let least = if first_of_many { usual } else { columns(head) };
            rows.iter().map(|row| columns(cell(row))).fold(least, usize::max).min(MAX_CELL)
        };
        let mut layout = Self {
            session: several_sessions.then(|| longest(12, "SESSION", Row::session)),
            only_session: rows.iter().find_map(|row| row.session.clone()),
            id: longest(12, "CALL", |row| &row.id),
            tool: longest(20, "TOOL", |row| &row.tool),
            policy: longest_policy.clamp(columns("POLICY"), MAX_CELL),
            width,
        };
        layout.shrink();
        layout
    }

    /// Takes from the widest column until all fit.
    fn shrink(&mut self) {
        while self.width.is_some_and(|width| self.taken() > width) {
            let flexible =
                [Some(&mut self.id), Some(&mut self.tool), Some(&mut self.policy), self.session.as_mut()];
            let widest = flexible.into_iter().flatten().max_by_key(|width| **width);
            match widest {
                Some(width) if *width > MIN_CELL => *width -= 1,
                _ => return,
            }
        }
    }

    /// Columns that are taken by all but the reason.
    fn taken(&self) -> usize {
        let session = self.session.map_or(0, |width| width + GAP.len());
        session + OUTCOME + self.id + self.tool + self.policy + TIME + 4 * GAP.len()
    }

    /// Whether the row can be told from the others in this layout.
    pub(super) fn has_room_for(&self, row: &Row) -> bool {
        self.session.is_some() || row.session.is_none() || row.session == self.only_session
    }

    /// Writes the names of the columns.
    pub(super) fn write_head(&self, output: &mut Output) -> io::Result<()> {
        let mut head = format!("{:OUTCOME$}{GAP}", "OUTCOME");
        if let Some(width) = self.session {
            head.push_str(&self.cell("SESSION", width));
        }
        head.push_str(&self.cell("CALL", self.id));
        head.push_str(&self.cell("TOOL", self.tool));
        head.push_str(&self.cell("POLICY", self.policy));
        head.push_str(&format!("{:>TIME$}", "TIME"));
        if self.reason_column().is_some() {
            head.push_str("  REASON");
        }
        let head = output.paint(DIM, &head).into_owned();
        writeln!(output, "{head}")
    }

    /// Writes a row, and what it takes of lines for its reason.
    pub(super) fn write(&self, row: &Row, output: &mut Output) -> io::Result<()> {
        let (mark, style) = appearance(row.kind);
        let outcome = format!("{:OUTCOME$}", format!("{mark} {}", row.kind.name()));
        let session = self.session.map(|width| self.cell(row.session(), width)).unwrap_or_default();
        let line = [
            &*output.paint(style, &outcome),
            GAP,
            &*output.paint(DIM, &session),
            &self.cell(&row.id, self.id),
            &*output.paint(BOLD, &self.cell(&row.tool, self.tool)),
            &*output.paint(CYAN, &self.cell(&row.policy, self.policy)),
            &*output.paint(DIM, &format!("{:>TIME$}", row.time)),
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
                let indent = " ".repeat(self.taken() + GAP.len());
                reason.try_for_each(|reason| writeln!(output, "{indent}{reason}"))
            }
            (Some(width), None) => {
                writeln!(output, "{line}")?;
                let indent = " ".repeat(OUTCOME + GAP.len());
                let lines = self.reason_lines(row, width - indent.len());
                lines.into_iter().try_for_each(|reason| writeln!(output, "{indent}{reason}"))
            }
        }
    }

    /// How wide the column of the reason is, where it has one.
    fn reason_column(&self) -> Option<usize> {
        let room = self.width.unwrap_or(usize::MAX).checked_sub(self.taken() + GAP.len())?;
        (room >= MIN_REASON).then_some(room)
    }

    fn reason_lines(&self, row: &Row, width: usize) -> Vec<String> {
        let mut lines = wrap(&row.reason, width);
        if lines.len() > MAX_REASON_LINES {
            lines.truncate(MAX_REASON_LINES);
            if let Some(last) = lines.last_mut() {
                *last = cut(&format!("{last} …"), width).into_owned();
            }
        }
        lines
    }

    /// A text in its column, with the gap to the next.
    fn cell(&self, text: &str, width: usize) -> String {
        let text = if self.width.is_some() { cut(text, width) } else { text.into() };
        let padding = width.saturating_sub(columns(&text)) + GAP.len();
        format!("{text}{}", " ".repeat(padding))
    }
}

/// How an outcome looks: a mark that tells it without colour, and a colour.
pub(super) fn appearance(kind: OutcomeKind) -> (&'static str, Style) {
    match kind {
        OutcomeKind::Executed => ("✓", GREEN),
        OutcomeKind::Cached | OutcomeKind::Answered => ("✓", CYAN),
        OutcomeKind::Suspended => ("?", YELLOW),
        OutcomeKind::Invalid => ("✗", YELLOW),
        OutcomeKind::Denied => ("✗", RED),
        OutcomeKind::Halted => ("■", RED.effects(Effects::BOLD)),
        OutcomeKind::Recovered => ("!", YELLOW),
        OutcomeKind::Failed | OutcomeKind::Aborted | OutcomeKind::Indeterminate => ("!", RED),
    }
}

/// A time in the unit that suits it: `41 µs`, `1.2 ms`, `3.4 s`.
pub(super) fn duration(microseconds: u64) -> String {
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
    fn times_are_short() {
        let texts = [0, 999, 1200, 41_000, 999_999, 3_400_000].map(duration);
        assert_eq!(texts, ["0 µs", "999 µs", "1.2 ms", "41 ms", "1000 ms", "3.4 s"]);
    }
}
