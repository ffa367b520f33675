//! The events of log files that match a filter, in the order of the files.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::exit::CommandError;
use crate::output::{print_warning, quote_name};
use callgate_log::{LineReader, LogEntry, LogFilter, LogLine, with_rotated_files};

/// The number of unreadable lines that are reported one by one.
const REPORTED_LINES: u64 = 10;

/// Calls a function with each event that matches, and its line. Lines that are no events are reported and left out.
pub(super) fn for_each_event(
    files: &[PathBuf],
    filter: &LogFilter,
    mut handle: impl FnMut(&LogEntry, &str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut unreadable = 0;
    for path in with_rotated_files(files) {
        let failed = |error| CommandError::new(unreadable_file(&path, &error));
        let mut lines = LineReader::new(open(&path).map_err(failed)?);
        while let Some(line) = lines.next_line().map_err(failed)? {
            match parse(line) {
                Ok((entry, text)) if filter.matches(&entry) => handle(&entry, text)?,
                Ok(_) => {}
                Err(problem) => {
                    unreadable += 1;
                    if unreadable <= REPORTED_LINES {
                        print_warning(format!("{}:{}: {problem}", path.display(), line.number));
                    }
                }
            }
        }
    }
    if unreadable > REPORTED_LINES {
        print_warning(format!("{unreadable} lines are not events, and are left out"));
    }
    Ok(())
}

/// Opens a file of a log.
pub(super) fn open(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(std::io::Error::other("it is a directory"));
    }
    Ok(file)
}

/// The message for a file that can't be read.
pub(super) fn unreadable_file(path: &Path, error: &std::io::Error) -> String {
    format!("{} can't be read: {error}", quote_name(&path.display().to_string()))
}

fn parse(line: LogLine<'_>) -> Result<(LogEntry, &str), String> {
    if line.is_too_long {
        return Err("the line is too long to be an event".to_owned());
    }
    let text = std::str::from_utf8(line.bytes).map_err(|error| format!("invalid UTF-8: {error}"))?;
    let entry = LogEntry::parse(text).map_err(|error| error.to_string())?;
    Ok((entry, text))
}
