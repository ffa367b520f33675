//! `--log`: where the events of calls, approvals and rules are recorded.

use std::path::{Path, PathBuf};

use super::exit::CommandError;
use super::output::print_warning;
use callgate::engine::EngineBuilder;
use callgate::seal::{Keys, SigningKey};
use callgate_log::{
    AuditLog, AuditLogOptions, Content, EventFormat, FileLog, FileLogOptions, OnFailure, OnFull, StderrLog,
};
use callgate_telemetry::{Metrics, OtlpExporter};

/// The prefix of the destination of an audit log.
const AUDIT_PREFIX: &str = "audit:";
/// The prefix of the destination of an OpenTelemetry collector.
const OTLP_PREFIX: &str = "otlp:";

/// The decision logs of a command.
#[derive(clap::Args)]
pub(super) struct LogArgs {
    /// Record every decision: a FILE of JSON Lines, `audit:FILE` for a tamper-evident audit log, `stderr` for people, or `otlp:URL`, traces
    /// and logs for the OpenTelemetry collector at URL, such as `otlp:http://127.0.0.1:4318`. Can be given several times
    #[arg(long = "log", value_name = "DESTINATION")]
    destinations: Vec<String>,
    /// What logs contain of arguments and results: keyed digests, or the values as policies redact them
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

/// An open log.
enum OpenLog {
    File(FileLog),
    Audit(AuditLog),
    Collector(OtlpExporter),
    Stderr,
}

impl OpenLog {
    fn observe(&self, engine: EngineBuilder) -> EngineBuilder {
        match self {
            Self::File(log) => engine.observer(log.clone()),
            Self::Audit(log) => engine.observer(log.clone()),
            Self::Collector(log) => engine.observer(log.clone()),
            Self::Stderr => engine.observer(StderrLog),
        }
    }

    /// Writes what is queued, and warns about what is missing.
    fn close(&self) {
        match self {
            Self::File(log) => {
                log.close();
                warn_about_losses(log.failure(), log.lost(), ("event", "missing in a log"));
            }
            Self::Audit(log) => {
                log.close();
                warn_about_losses(log.failure(), log.lost(), ("event", "missing in a log"));
            }
            Self::Collector(log) => {
                log.close();
                warn_about_losses(None, log.lost(), ("span or record", "not at the collector"));
            }
            Self::Stderr => {}
        }
    }
}

/// The open logs of a command. Dropping them writes what is queued.
pub(super) struct OpenLogs(Vec<OpenLog>);

impl LogArgs {
    /// Opens the logs. Without keys of the server, digests are comparable within this process only.
    pub(super) fn open(&self, keys: Option<&Keys>) -> Result<OpenLogs, CommandError> {
        let mut logs = OpenLogs(Vec::new());
        if self.destinations.is_empty() {
            return Ok(logs);
        }
        if self.audit_key.is_some() && !self.destinations.iter().any(|name| name.starts_with(AUDIT_PREFIX)) {
            return Err(CommandError::new("`--audit-key` needs an audit log; add `--log audit:FILE`"));
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
        for destination in &self.destinations {
            logs.0.push(self.open_destination(destination, EventFormat::new(content, keys.clone()))?);
        }
        Ok(logs)
    }

    fn open_destination(&self, destination: &str, format: EventFormat) -> Result<OpenLog, CommandError> {
        if destination == "stderr" {
            return Ok(OpenLog::Stderr);
        }
        if let Some(path) = destination.strip_prefix(AUDIT_PREFIX) {
            return self.open_audit_log(Path::new(path), format).map(OpenLog::Audit);
        }
        if let Some(url) = destination.strip_prefix(OTLP_PREFIX) {
            return OtlpExporter::new(url, format).map(OpenLog::Collector).map_err(command_error);
        }
        let options = FileLogOptions {
            on_failure: self.on_failure(OnFailure::Continue),
            on_full: match self.log_on_full {
                LogOnFull::Block => OnFull::Block,
                LogOnFull::Drop => OnFull::Drop,
            },
            ..FileLogOptions::default()
        };
        let path = Path::new(destination.strip_prefix("file:").unwrap_or(destination));
        FileLog::open(path, format, options).map(OpenLog::File).map_err(command_error)
    }

    fn open_audit_log(&self, path: &Path, format: EventFormat) -> Result<AuditLog, CommandError> {
        let key_path = self.audit_key.clone().unwrap_or_else(|| {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".key");
            PathBuf::from(beside)
        });
        let key = SigningKey::from_file_or_new(&key_path).map_err(command_error)?;
        let options =
            AuditLogOptions { on_failure: self.on_failure(OnFailure::Deny), ..AuditLogOptions::default() };
        AuditLog::open(path, format, key, options).map_err(command_error)
    }

    fn on_failure(&self, default: OnFailure) -> OnFailure {
        match self.log_on_failure {
            None => default,
            Some(LogOnFailure::Continue) => OnFailure::Continue,
            Some(LogOnFailure::Deny) => OnFailure::Deny,
        }
    }
}

impl OpenLogs {
    /// Adds the logs to an engine.
    pub(super) fn observe(&self, engine: EngineBuilder) -> EngineBuilder {
        self.0.iter().fold(engine, |engine, log| log.observe(engine))
    }

    /// Counts the events that the logs lose.
    pub(super) fn count_lost_events(&self, metrics: &Metrics) {
        for log in &self.0 {
            match log {
                OpenLog::File(log) => {
                    let log = log.clone();
                    metrics.add_lost_events(move || log.lost());
                }
                OpenLog::Audit(log) => {
                    let log = log.clone();
                    metrics.add_lost_events(move || log.lost());
                }
                OpenLog::Collector(log) => {
                    let log = log.clone();
                    metrics.add_lost_events(move || log.lost());
                }
                OpenLog::Stderr => {}
            }
        }
    }
}

impl Drop for OpenLogs {
    fn drop(&mut self) {
        self.0.iter().for_each(OpenLog::close);
    }
}

fn command_error(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(error.to_string())
}

fn warn_about_losses(failure: Option<String>, lost: u64, (what, how): (&str, &str)) {
    if let Some(failure) = failure {
        print_warning(failure);
    }
    match lost {
        0 => {}
        1 => print_warning(format!("1 {what} is {how}")),
        lost => print_warning(format!("{lost} {what}s are {how}")),
    }
}
