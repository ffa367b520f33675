//! Report of the changes, one row a server.

use std::io::Write;
use std::path::Path;

use super::clients::ClientProperties;
use super::config_file::ConfigFile;
use super::server_entry::ServerEntry;
use crate::check_fix::write_diff;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{BOLD, DIM, Output, YELLOW, display_width, escape_line, print_note, print_warning};

/// The result for one server.
pub(super) struct ServerRow {
    pub(super) path: Vec<String>,
    title: String,
    message: String,
    /// A second line.
    detail: Option<String>,
    status: RowStatus,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowStatus {
    Done,
    Unchanged,
    Failed,
}

impl ServerRow {
    fn new(entry: &ServerEntry, message: impl Into<String>, status: RowStatus) -> Self {
        Self { path: entry.path.clone(), title: entry.title(), message: message.into(), detail: None, status }
    }

    pub(super) fn with_detail(mut self, detail: String) -> Self {
        self.detail = Some(detail);
        self
    }

    pub(super) fn is_failed(&self) -> bool {
        self.status == RowStatus::Failed
    }

    pub(super) fn done(entry: &ServerEntry, message: impl Into<String>) -> Self {
        Self::new(entry, message, RowStatus::Done)
    }

    pub(super) fn unchanged(entry: &ServerEntry, message: impl Into<String>) -> Self {
        Self::new(entry, message, RowStatus::Unchanged)
    }

    pub(super) fn failed(entry: &ServerEntry, why: impl Into<String>) -> Self {
        Self::new(entry, format!("not changed: {}", why.into()), RowStatus::Failed)
    }
}

pub(super) struct InstallReport<'f> {
    pub(super) file: &'f ConfigFile,
    pub(super) facts: &'f ClientProperties,
    pub(super) rows: Vec<ServerRow>,
    pub(super) dry_run: bool,
}

impl InstallReport<'_> {
    /// Prints the rows, or with `--dry-run` the diff to the text that would be written.
    pub(super) fn write_rows(&self, text: &str, output: &mut Output) -> Result<(), CommandError> {
        let name = self.file.file.display_path.display().to_string();
        if self.dry_run {
            write_diff(&name, &self.file.file.text, text, output)?;
            output.flush()?;
            for row in self.rows.iter().filter(|row| row.status == RowStatus::Failed) {
                print_warning(format!("{}: {}", row.title, row.message));
            }
            for row in &self.rows {
                if let Some(detail) = &row.detail {
                    print_note(format!("{}: {detail}", row.title));
                }
            }
            return Ok(());
        }
        writeln!(output, "{}", output.paint(BOLD, &escape_line(&name)).into_owned())?;
        if self.rows.is_empty() {
            writeln!(output, "  nothing to do")?;
        }
        let titles: Vec<_> = self.rows.iter().map(|row| escape_line(&row.title)).collect();
        let longest = titles.iter().map(|title| display_width(title)).max().unwrap_or(0);
        for (row, title) in self.rows.iter().zip(&titles) {
            let space = " ".repeat(longest - display_width(title));
            let message = escape_line(&row.message);
            let message = match row.status {
                RowStatus::Done => message,
                RowStatus::Unchanged => output.paint(DIM, &message).into_owned().into(),
                RowStatus::Failed => output.paint(YELLOW, &message).into_owned().into(),
            };
            writeln!(output, "  {title}{space}  {message}")?;
            if let Some(detail) = &row.detail {
                writeln!(output, "  {:longest$}  {}", "", escape_line(detail))?;
            }
        }
        Ok(())
    }

    /// Prints the path of the backup, and how to make the client load the changed file.
    pub(super) fn write_next_steps(
        &self,
        backup: Option<&Path>,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        if let Some(backup) = backup {
            writeln!(output, "\nBackup without Callgate: {}", escape_line(&backup.display().to_string()))?;
        } else {
            writeln!(output)?;
        }
        writeln!(output, "{}.", self.facts.restart_hint)?;
        Ok(())
    }

    /// The exit status. With `some`, a file without servers is a failure.
    pub(super) fn exit(&self, some: bool) -> ExitStatus {
        if some && self.rows.is_empty() {
            print_warning(format!("`{}` has no servers", self.file.file.display_path.display()));
            return ExitStatus::Failure;
        }
        match self.rows.iter().any(|row| row.status == RowStatus::Failed) {
            true => ExitStatus::Failure,
            false => ExitStatus::Success,
        }
    }
}
