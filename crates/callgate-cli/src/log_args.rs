//! `--log`: where the events of calls, approvals and rules are recorded.

use std::path::PathBuf;

use super::exit::CommandError;
use callgate_log::{Content, LogDestination, LogSettings, OnFailure, OnFull};

/// The decision logs of a command.
#[derive(clap::Args)]
pub(super) struct LogArgs {
    /// Record every decision: a FILE of JSON Lines, `audit:FILE` for a tamper-evident audit log, `stderr` for people, `journald`, `syslog`,
    /// `syslog:udp:HOST:PORT` or `syslog:tcp:HOST:PORT`, or `otlp:URL`, traces, metrics and logs for the OpenTelemetry collector at URL, such
    /// as `otlp:http://127.0.0.1:4318`. Can be given several times
    #[arg(long = "log", value_name = "DESTINATION")]
    destinations: Vec<String>,
    /// What logs contain of arguments and results: keyed digests, or the values as policies redact them
    #[arg(long, value_enum, default_value_t, requires = "destinations")]
    log_content: LogContent,
    /// What happens to calls while a log file or syslog can't be written. Without it they are denied for an audit log, and run for others
    #[arg(long, value_enum, requires = "destinations")]
    log_on_failure: Option<LogOnFailure>,
    /// The secret key that signs checkpoints of audit logs, created if missing. Without it `FILE.key` beside the audit log
    #[arg(long, value_name = "KEY", requires = "destinations")]
    audit_key: Option<PathBuf>,
    /// What happens while a log file or syslog is written more slowly than calls arrive. Calls always wait for an audit log
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

impl LogArgs {
    /// The logs that are to be opened.
    ///
    /// # Errors
    /// A destination is invalid, or an option concerns none of them.
    pub(super) fn settings(&self) -> Result<Vec<LogSettings>, CommandError> {
        let destinations = self.destinations.iter().map(|text| LogDestination::parse(text));
        let destinations: Vec<LogDestination> =
            destinations.collect::<Result<_, _>>().map_err(|error| CommandError::new(error.to_string()))?;
        let is_audit = |destination: &LogDestination| matches!(destination, LogDestination::Audit(_));
        if self.audit_key.is_some() && !destinations.iter().any(is_audit) {
            return Err(CommandError::new("`--audit-key` needs an audit log; add `--log audit:FILE`"));
        }
        let denies = matches!(self.log_on_failure, Some(LogOnFailure::Deny));
        if denies && !destinations.iter().any(LogDestination::can_deny) {
            return Err(CommandError::new(
                "`--log-on-failure deny` needs a log that calls can depend on; add `--log FILE` or `--log audit:FILE`",
            ));
        }
        let settings = |destination: LogDestination| LogSettings {
            content: match self.log_content {
                LogContent::Digests => Content::Digests,
                LogContent::Redacted => Content::Redacted,
            },
            on_failure: self.log_on_failure.filter(|_| destination.can_deny()).map(|choice| match choice {
                LogOnFailure::Continue => OnFailure::Continue,
                LogOnFailure::Deny => OnFailure::Deny,
            }),
            on_full: match self.log_on_full {
                LogOnFull::Block => OnFull::Block,
                LogOnFull::Drop => OnFull::Drop,
            },
            key: self.audit_key.clone(),
            destination,
        };
        Ok(destinations.into_iter().map(settings).collect())
    }
}
