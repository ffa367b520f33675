//! Report of the changes, one row a server.

use std::io::Write;
use std::path::Path;

use super::clients::Facts;
use super::config_file::ConfigFile;
use super::server_entry::Entry;
use crate::cli::check_fix::write_diff;
use crate::cli::exit::{ExitStatus, Stop};
use crate::cli::output::{BOLD, DIM, Output, YELLOW, columns, one_line, warn};

/// The result for one server.
pub(super) struct Row {
    pub(super) place: Vec<String>,
    title: String,
    what: String,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Unchanged,
    Failed,
}

impl Row {
    fn new(entry: &Entry, what: impl Into<String>, end: End) -> Self {
        Self { place: entry.place.clone(), title: entry.title(), what: what.into(), end }
    }

    pub(super) fn done(entry: &Entry, what: impl Into<String>) -> Self {
        Self::new(entry, what, End::Done)
    }

    pub(super) fn unchanged(entry: &Entry, what: impl Into<String>) -> Self {
        Self::new(entry, what, End::Unchanged)
    }

    pub(super) fn failed(entry: &Entry, why: impl Into<String>) -> Self {
        Self::new(entry, format!("not changed: {}", why.into()), End::Failed)
    }
}

pub(super) struct Report<'f> {
    pub(super) file: &'f ConfigFile,
    pub(super) facts: &'f Facts,
    pub(super) rows: Vec<Row>,
    pub(super) dry_run: bool,
}

impl Report<'_> {
    /// Prints the rows, or with `--dry-run` the diff to the text that would be written.
    pub(super) fn show(&self, text: &str, output: &mut Output) -> Result<(), Stop> {
        let name = self.file.shown.display().to_string();
        if self.dry_run {
            write_diff(&name, &self.file.text, text, output)?;
            output.flush()?;
            for row in self.rows.iter().filter(|row| row.end == End::Failed) {
                warn(format!("{}: {}", row.title, row.what));
            }
            return Ok(());
        }
        writeln!(output, "{}", output.paint(BOLD, &one_line(&name)).into_owned())?;
        if self.rows.is_empty() {
            writeln!(output, "  nothing to do")?;
        }
        let titles: Vec<_> = self.rows.iter().map(|row| one_line(&row.title)).collect();
        let longest = titles.iter().map(|title| columns(title)).max().unwrap_or(0);
        for (row, title) in self.rows.iter().zip(&titles) {
            let space = " ".repeat(longest - columns(title));
            let what = one_line(&row.what);
            let what = match row.end {
                End::Done => what,
                End::Unchanged => output.paint(DIM, &what).into_owned().into(),
                End::Failed => output.paint(YELLOW, &what).into_owned().into(),
            };
            writeln!(output, "  {title}{space}  {what}")?;
        }
        Ok(())
    }

    /// Prints the path of the backup, and how to make the client load the changed file.
    pub(super) fn changed(&self, backup: Option<&Path>, output: &mut Output) -> Result<(), Stop> {
        if let Some(backup) = backup {
            writeln!(output, "\nBackup without Callgate: {}", one_line(&backup.display().to_string()))?;
        } else {
            writeln!(output)?;
        }
        writeln!(output, "{}.", self.facts.restart_hint)?;
        Ok(())
    }

    /// The exit status. With `some`, a file without servers is a failure.
    pub(super) fn exit(&self, some: bool) -> ExitStatus {
        if some && self.rows.is_empty() {
            warn(format!("`{}` has no servers", self.file.shown.display()));
            return ExitStatus::Fails;
        }
        match self.rows.iter().any(|row| row.end == End::Failed) {
            true => ExitStatus::Fails,
            false => ExitStatus::Done,
        }
    }
}
