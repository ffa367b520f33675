//! `callgate audit`: verifies, searches and exports audit logs and decision logs.

mod event_export;
mod event_row;
mod event_source;
mod filter_args;
mod query;
mod verify;

use std::io::Write;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use crate::OutputFormat;
use crate::exit::{CommandError, ExitStatus};
use crate::output::Output;
use callgate::seal::SigningKey;
use callgate_log::ChainHead;
use filter_args::FilterArgs;

/// Verify, search and export audit logs and decision logs.
///
/// `--log audit:FILE` of `callgate run` and `callgate proxy` writes a tamper-evident audit log: each line has the digest of the line before
/// it, and checkpoints are signed. The rotated files of FILE (FILE.1, FILE.2) are read before it.
///
/// Exit status: 0 done, or the log is intact; 1 for `verify`: the log was altered; 2 usage error, or a file can't be read.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        callgate proxy --log audit:audit.jsonl --policies policies -- npx -y @modelcontextprotocol/server-filesystem ~/work\n  \
        callgate audit key audit.jsonl.key > audit.pub\n  \
        callgate audit verify --key audit.pub audit.jsonl\n  \
        callgate audit query --outcome denied --since 24h audit.jsonl\n  \
        callgate audit export --format csv --principal ann audit.jsonl > ann.csv"
)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Subcommand)]
enum AuditCommand {
    /// Verify that lines were neither changed, removed, inserted nor reordered, and the signatures of checkpoints
    Verify {
        /// Accept checkpoints of this public key: `ed25519:…`, or a file with one key a line; repeatable. Without it, the key that the log
        /// names first
        #[arg(long, value_name = "KEY|FILE")]
        key: Vec<String>,
        /// Require a line with this digest, as an earlier verification printed it; repeatable. It proves that no line up to it was cut,
        /// and lets a log begin after it
        #[arg(long, value_name = "SEQ:DIGEST")]
        expect: Vec<ChainHead>,
        /// Output format
        #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
        format: OutputFormat,
        /// The audit log, with its rotated files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Show the events that match all filters, of audit logs and decision logs
    Query {
        #[command(flatten)]
        filter: FilterArgs,
        /// Output format: a table without checkpoints, or the lines as they are
        #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
        format: OutputFormat,
        /// The logs, with their rotated files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Write the events that match all filters for other programs
    Export {
        #[command(flatten)]
        filter: FilterArgs,
        /// Output format
        #[arg(long, value_enum)]
        format: ExportFormat,
        /// The logs, with their rotated files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the public key of a signing key, which is created if missing
    Key {
        /// The secret key file, readable only by its owner
        #[arg(value_name = "KEY")]
        path: PathBuf,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum ExportFormat {
    /// A table with a header, in which no cell is a formula of a spreadsheet
    Csv,
    /// The lines as they are
    Jsonl,
}

pub(super) fn audit(arguments: &AuditArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    match &arguments.command {
        AuditCommand::Verify { key, expect, format, files } => {
            let report = verify::verify(files, verify::read_keys(key)?, expect.clone())?;
            match format {
                OutputFormat::Json => verify::write_json(&report, output)?,
                OutputFormat::Text => verify::write_text(&report, !key.is_empty(), output)?,
            }
            Ok(if report.is_intact() { ExitStatus::Success } else { ExitStatus::Failure })
        }
        AuditCommand::Query { filter, format: OutputFormat::Text, files } => {
            query::write_table(files, &filter.to_filter(), output)
        }
        AuditCommand::Query { filter, format: OutputFormat::Json, files }
        | AuditCommand::Export { filter, format: ExportFormat::Jsonl, files } => {
            event_export::write_lines(files, &filter.to_filter(), output)
        }
        AuditCommand::Export { filter, format: ExportFormat::Csv, files } => {
            event_export::write_csv(files, &filter.to_filter(), output)
        }
        AuditCommand::Key { path } => {
            let key =
                SigningKey::from_file_or_new(path).map_err(|error| CommandError::new(error.to_string()))?;
            writeln!(output, "{}", key.public_key())?;
            Ok(ExitStatus::Success)
        }
    }
}
