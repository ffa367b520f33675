//! `--log`: where the events of calls, approvals and rules are recorded.

use std::path::Path;

use super::exit::CommandError;
use super::output::print_warning;
use callgate::engine::EngineBuilder;
use callgate::seal::Keys;
use callgate_log::{Content, EventFormat, FileLog, FileLogOptions, OnFailure, OnFull, StderrLog};

/// The decision logs of a command.
#[derive(clap::Args)]
pub(super) struct LogArgs {
    /// Record every decision: a FILE of JSON Lines, or `stderr` for people. Can be given several times
    #[arg(long = "log", value_name = "DESTINATION")]
    destinations: Vec<String>,
    /// What log files contain of arguments and results: keyed digests, or the values as policies redact them
    #[arg(long, value_enum, default_value_t, requires = "destinations")]
    log_content: LogContent,
    /// What happens to calls while a log file can't be written
    #[arg(long, value_enum, default_value_t, requires = "destinations")]
    log_on_failure: LogOnFailure,
    /// What happens while a log file is written more slowly than calls arrive
    #[arg(long, value_enum, default_value_t, requires = "destinations")]
    log_on_full: LogOnFull,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum LogContent {
    #[default]
    Digests,
    Redacted,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum LogOnFailure {
    /// They run; the log says how many events are lost
    #[default]
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
    to_stderr: bool,
}

impl LogArgs {
    /// Opens the logs. Without keys of the server, digests are comparable within this process only.
    pub(super) fn open(&self, keys: Option<&Keys>) -> Result<OpenLogs, CommandError> {
        let mut logs = OpenLogs { files: Vec::new(), to_stderr: false };
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
        let options = FileLogOptions {
            on_failure: match self.log_on_failure {
                LogOnFailure::Continue => OnFailure::Continue,
                LogOnFailure::Deny => OnFailure::Deny,
            },
            on_full: match self.log_on_full {
                LogOnFull::Block => OnFull::Block,
                LogOnFull::Drop => OnFull::Drop,
            },
            ..FileLogOptions::default()
        };
        for destination in &self.destinations {
            if destination == "stderr" {
                logs.to_stderr = true;
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
}

impl OpenLogs {
    /// Adds the logs to an engine.
    pub(super) fn observe(&self, mut engine: EngineBuilder) -> EngineBuilder {
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
            if let Some(failure) = file.failure() {
                print_warning(failure);
            }
            match file.lost() {
                0 => {}
                1 => print_warning("1 event is missing in a log"),
                lost => print_warning(format!("{lost} events are missing in a log")),
            }
        }
    }
}
