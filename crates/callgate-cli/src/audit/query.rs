//! `callgate audit query`: events as a table.

use std::path::PathBuf;

use super::event_row::{EventRow, EventTable};
use super::event_source::for_each_event;
use crate::exit::{CommandError, ExitStatus};
use crate::output::Output;
use callgate_log::LogFilter;

/// The event that is shown only if it is asked for: it says nothing about calls.
const CHECKPOINT: &str = "audit_checkpoint";

/// Writes events as a table.
pub(super) fn write_table(
    files: &[PathBuf],
    filter: &LogFilter,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let mut table = EventTable::default();
    let shows_checkpoints = filter.events.iter().any(|event| event == CHECKPOINT);
    for_each_event(files, filter, |entry, _| {
        if entry.event == CHECKPOINT && !shows_checkpoints {
            return Ok(());
        }
        Ok(table.add(EventRow::from_entry(entry), output)?)
    })?;
    table.finish(output)?;
    Ok(ExitStatus::Success)
}
