//! Events for other programs: the lines as they are, or CSV.

use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;

use super::event_source::for_each_event;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{Output, escape_line};
use callgate::json::Value;
use callgate_log::{LogEntry, LogFilter};

/// The columns of CSV. Each is a member of events, or the same member of `reason`.
const COLUMNS: [&str; 20] = [
    "seq",
    "time",
    "event",
    "session",
    "run",
    "id",
    "server",
    "tool",
    "principal",
    "tenant",
    "outcome",
    "effect",
    "policy",
    "code",
    "message",
    "by",
    "approval_id",
    "count",
    "duration_us",
    "revision",
];

/// Writes the lines of events.
pub(super) fn write_lines(
    files: &[PathBuf],
    filter: &LogFilter,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    for_each_event(files, filter, |_, line| Ok(writeln!(output, "{line}")?))?;
    Ok(ExitStatus::Success)
}

/// Writes events as CSV with a header.
pub(super) fn write_csv(
    files: &[PathBuf],
    filter: &LogFilter,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let mut rows = csv::Writer::from_writer(output);
    rows.write_record(COLUMNS).map_err(std::io::Error::from)?;
    for_each_event(files, filter, |entry, _| {
        rows.write_record(COLUMNS.map(|column| cell(entry, column))).map_err(std::io::Error::from)?;
        Ok(())
    })?;
    rows.flush()?;
    Ok(ExitStatus::Success)
}

fn cell(entry: &LogEntry, column: &str) -> String {
    let member = entry.members.get(column).or_else(|| entry.members.get("reason")?.get(column));
    let text = match member {
        None => return String::new(),
        Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
        Some(Value::Array(items)) => {
            let items: Vec<_> = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect();
            Cow::Owned(items.join(", "))
        }
        Some(other) => Cow::Owned(other.to_string()),
    };
    inert_cell(&text)
}

/// A cell that spreadsheets show as text. They evaluate a cell that begins like a formula (CSV injection).
fn inert_cell(text: &str) -> String {
    let safe = escape_line(text);
    match safe.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        true => format!("'{safe}"),
        false => safe.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_or_controls_a_terminal() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r\n=1", "＝1"] {
            assert!(inert_cell(formula).starts_with('\''), "{formula:?}");
        }
        assert_eq!(inert_cell("a=1"), "a=1");
        assert_eq!(inert_cell("a\u{1b}[2J"), "a\\u{1b}[2J");
    }
}
