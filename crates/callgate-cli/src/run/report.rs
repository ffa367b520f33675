//! Reports of outcomes as they arrive: JSON Lines, or a table.

use std::io::Write;

use super::outcome_row::{OutcomeRow, TableLayout};
use super::summary::RunSummary;
use crate::exit::CommandError;
use crate::output::Output;
use callgate::call::Outcome;
use callgate::policy::CompiledPolicies;

/// Maximum number of rows buffered to determine the widths of the columns.
const MAX_BUFFERED_ROWS: usize = 64;

/// A report in one of the two formats.
pub(super) enum RunReport {
    /// One outcome a line.
    Json,
    /// A table.
    Text(Box<OutcomeTable>),
}

/// A table that is written row by row.
pub(super) struct OutcomeTable {
    layout: Option<TableLayout>,
    buffered_rows: Vec<OutcomeRow>,
    longest_policy: usize,
    summary: RunSummary,
}

impl RunReport {
    pub(super) fn json() -> Self {
        Self::Json
    }

    /// A table. `state` is the state store with pending approvals, if there is one.
    pub(super) fn text(compiled: &CompiledPolicies, state: Option<String>) -> Self {
        let ids = compiled.policies().iter().map(|policy| policy.id.chars().count());
        Self::Text(Box::new(OutcomeTable {
            layout: None,
            buffered_rows: Vec::new(),
            longest_policy: ids.max().unwrap_or(0),
            summary: RunSummary::new(state),
        }))
    }

    /// Adds an outcome, which is written now or with [`flush`](Self::flush).
    pub(super) fn add(&mut self, outcome: &Outcome, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Json => {
                let line = callgate::json::to_string(outcome)
                    .map_err(|error| CommandError::new(error.to_string()))?;
                Ok(writeln!(output, "{line}")?)
            }
            Self::Text(table) => table.add(outcome, output),
        }
    }

    /// Writes all buffered outcomes.
    pub(super) fn flush(&mut self, output: &mut Output) -> Result<(), CommandError> {
        if let Self::Text(table) = self {
            table.flush(output)?;
        }
        Ok(output.flush()?)
    }

    /// Ends the report. `sessions` is the number of sessions.
    pub(super) fn finish(&mut self, sessions: usize, output: &mut Output) -> Result<(), CommandError> {
        self.flush(output)?;
        match self {
            Self::Json => Ok(()),
            Self::Text(table) => table.summary.write(sessions, output),
        }
    }
}

impl OutcomeTable {
    fn add(&mut self, outcome: &Outcome, output: &mut Output) -> Result<(), CommandError> {
        self.summary.add(outcome);
        let row = OutcomeRow::from_outcome(outcome);
        match &self.layout {
            Some(layout) if layout.can_show(&row) => Ok(layout.write(&row, output)?),
            // The first row of a second session: from here on, the table has a column for sessions.
            Some(_) => {
                self.layout = None;
                self.buffered_rows.push(row);
                Ok(())
            }
            None => {
                self.buffered_rows.push(row);
                if self.buffered_rows.len() >= MAX_BUFFERED_ROWS { self.flush(output) } else { Ok(()) }
            }
        }
    }

    fn flush(&mut self, output: &mut Output) -> Result<(), CommandError> {
        if self.buffered_rows.is_empty() {
            return Ok(());
        }
        let several = self.summary.has_several_sessions();
        let layout = TableLayout::from_rows(&self.buffered_rows, several, self.longest_policy, output.width);
        layout.write_head(output)?;
        for row in self.buffered_rows.drain(..) {
            layout.write(&row, output)?;
        }
        self.layout = Some(layout);
        Ok(())
    }
}
