//! `--log`: where the events of calls, approvals and rules are recorded.

use std::path::{Path, PathBuf};

use super::exit::CommandError;
use super::output::print_warning;
use callgate::engine::EngineBuilder;
use callgate::seal::{Keys, SigningKey};
use callgate_log::{
    AuditLog, AuditLogOptions, Content, EventFormat, FileLog, FileLogOptions, OnFailure, OnFull, StderrLog,
};

/// The prefix of the destination of an audit log.
const AUDIT_PREFIX: &str = "audit:";

/// The decision logs of a command.
#[derive(clap::Args)]
pub(super) struct LogArgs {
    /// Record every decision: a FILE of JSON Lines, `audit:FILE` for a tamper-evident audit log, or `stderr` for people. Can be given
    /// several times
    #[arg(long = "log", value_name = "DESTINATION")]
    destinations: Vec<String>,
    /// What log files contain of arguments and results: keyed digests, or the values as policies redact them
    #[arg(long, value_enum, default_value_t, requires = "destinations")]
    log_content: LogContent,
    /// What happens to calls while a log file can't be written. Without it they are denied for an audit log, and run for others
    #[arg(long, value_enum, requires = "destinations")]
    log_on_failure: Option<LogOnFailure>,
    /// The secret key that signs checkpoints of audit logs, created if missing. Without it `FILE.key` beside the audit log
    #[arg(long, value_name = "KEY", requires = "destinations")]
    audit_key: Option<PathBuf>,
    /// What happens while a log file is written more slowly than calls arrive. Calls always wait for an audit log
    #[arg(long, value_enum, default_value_t, requires = "destinations")]
    log_on_full: LogOnFull,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum LogContent {
    #[default]
    Digests,
    Redacted,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LogOnFailure {
    /// They run; the log says how many events are lost
    Continue,
    /// They are denied, with the code `log_unavailable`
    Deny,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum LogOnFull {
    /// The call waits
    #[default]
    Block,
    /// The event is dropped; the log says how many are lost
    Drop,
}

/// The open logs of a command. Dropping them writes what is queued.
pub(super) struct OpenLogs {
    files: Vec<FileLog>,
    audits: Vec<AuditLog>,
    to_stderr: bool,
}

impl LogArgs {
    /// Opens the logs. Without keys of the server, digests are comparable within this process only.
    pub(super) fn open(&self, keys: Option<&Keys>) -> Result<OpenLogs, CommandError> {
        let mut logs = OpenLogs { files: Vec::new(), audits: Vec::new(), to_stderr: false };
        if self.destinations.is_empty() {
            return Ok(logs);
        }
        let keys = match keys {
            Some(keys) => keys.clone(),
            None => Keys::random()
                .map_err(|error| CommandError::new(format!("no random key for digests: {error}")))?,
        };
        let content = match self.log_content {
            LogContent::Digests => Content::Digests,
            LogContent::Redacted => Content::Redacted,
        };
        let on_failure = |default| match self.log_on_failure {
            None => default,
            Some(LogOnFailure::Continue) => OnFailure::Continue,
            Some(LogOnFailure::Deny) => OnFailure::Deny,
        };
        let options = FileLogOptions {
            on_failure: on_failure(OnFailure::Continue),
            on_full: match self.log_on_full {
                LogOnFull::Block => OnFull::Block,
                LogOnFull::Drop => OnFull::Drop,
            },
            ..FileLogOptions::default()
        };
        let audit_options =
            AuditLogOptions { on_failure: on_failure(OnFailure::Deny), ..AuditLogOptions::default() };
        if self.audit_key.is_some() && !self.destinations.iter().any(|name| name.starts_with(AUDIT_PREFIX)) {
            return Err(CommandError::new("`--audit-key` needs an audit log; add `--log audit:FILE`"));
        }
        for destination in &self.destinations {
            if destination == "stderr" {
                logs.to_stderr = true;
                continue;
            }
            if let Some(path) = destination.strip_prefix(AUDIT_PREFIX) {
                let format = EventFormat::new(content, keys.clone());
                logs.audits.push(self.open_audit_log(Path::new(path), format, audit_options)?);
                continue;
            }
            let path = Path::new(destination.strip_prefix("file:").unwrap_or(destination));
            let format = EventFormat::new(content, keys.clone());
            let log =
                FileLog::open(path, format, options).map_err(|error| CommandError::new(error.to_string()))?;
            logs.files.push(log);
        }
        Ok(logs)
    }

    fn open_audit_log(
        &self,
        path: &Path,
        format: EventFormat,
        options: AuditLogOptions,
    ) -> Result<AuditLog, CommandError> {
        let key_path = self.audit_key.clone().unwrap_or_else(|| {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".key");
            PathBuf::from(beside)
        });
        let key =
            SigningKey::from_file_or_new(&key_path).map_err(|error| CommandError::new(error.to_string()))?;
        AuditLog::open(path, format, key, options).map_err(|error| CommandError::new(error.to_string()))
    }
}

impl OpenLogs {
    /// Adds the logs to an engine.
    pub(super) fn observe(&self, mut engine: EngineBuilder) -> EngineBuilder {
        for audit in &self.audits {
            engine = engine.observer(audit.clone());
        }
        for file in &self.files {
            engine = engine.observer(file.clone());
        }
        if self.to_stderr { engine.observer(StderrLog) } else { engine }
    }
}

impl Drop for OpenLogs {
    fn drop(&mut self) {
        for file in &self.files {
            file.close();
            warn_about_losses(file.failure(), file.lost());
        }
        for audit in &self.audits {
            audit.close();
            warn_about_losses(audit.failure(), audit.lost());
        }
    }
}

fn warn_about_losses(failure: Option<String>, lost: u64) {
    if let Some(failure) = failure {
        print_warning(failure);
    }
    match lost {
        0 => {}
        1 => print_warning("1 event is missing in a log"),
        lost => print_warning(format!("{lost} events are missing in a log")),
    }
}
