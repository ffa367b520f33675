//! The open logs of a command: [`LogSettings`] → observers of its engines.

use std::path::{Path, PathBuf};

use super::exit::CommandError;
use super::output::print_warning;
use callgate::engine::EngineBuilder;
use callgate::seal::{Keys, SigningKey};
use callgate_log::{
    AuditLogOptions, DecisionLog, EventFormat, LogDestination, LogOptions, LogSettings, OnFailure, Rotation,
};
use callgate_telemetry::{Metrics, OtlpExporter};
use jiff::Timestamp;

/// An open log. Clones share it.
#[derive(Clone)]
enum OpenLog {
    Written(DecisionLog),
    /// For people, on stderr.
    Printed(DecisionLog),
    Collector(OtlpExporter),
}

/// The open logs of a command. Dropping them writes what is queued.
pub(super) struct OpenLogs(Vec<OpenLog>);

impl OpenLogs {
    /// Opens logs. Without keys of the server, digests are comparable within this process only.
    pub(super) fn open(settings: &[LogSettings], keys: Option<&Keys>) -> Result<Self, CommandError> {
        let mut logs = Self(Vec::new());
        if settings.is_empty() {
            return Ok(logs);
        }
        let keys = match keys {
            Some(keys) => keys.clone(),
            None => Keys::random()
                .map_err(|error| CommandError::new(format!("no random key for digests: {error}")))?,
        };
        for settings in settings {
            let format = EventFormat::new(settings.content, keys.clone());
            let log = OpenLog::open(settings, format);
            logs.0.push(log.map_err(|error| CommandError::new(error.to_string()))?);
        }
        Ok(logs)
    }

    /// Adds the logs to an engine.
    pub(super) fn observe(&self, engine: EngineBuilder) -> EngineBuilder {
        self.0.iter().fold(engine, |engine, log| log.observe(engine))
    }

    /// Whether there are no logs.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a collector gets spans and metrics.
    pub(super) fn has_collector(&self) -> bool {
        self.0.iter().any(|log| matches!(log, OpenLog::Collector(_)))
    }

    /// Sends metrics to collectors. `refresh` brings metrics up to date that no event changes.
    pub(super) fn send_metrics(
        &self,
        metrics: &Metrics,
        refresh: impl Fn(&Metrics) + Clone + Send + Sync + 'static,
    ) {
        for log in &self.0 {
            if let OpenLog::Collector(collector) = log {
                let (metrics, refresh) = (metrics.clone(), refresh.clone());
                collector.send_metrics(move || {
                    refresh(&metrics);
                    metrics.render(Timestamp::now())
                });
            }
        }
    }

    /// Counts the events that the logs lose.
    pub(super) fn count_lost_events(&self, metrics: &Metrics) {
        for log in &self.0 {
            let log = log.clone();
            metrics.add_lost_events(move || log.lost());
        }
    }
}

impl Drop for OpenLogs {
    fn drop(&mut self) {
        self.0.iter().for_each(OpenLog::close);
    }
}

impl OpenLog {
    fn open(settings: &LogSettings, format: EventFormat) -> Result<Self, Box<dyn std::error::Error>> {
        let on_failure = settings.on_failure.unwrap_or_default();
        let options = LogOptions { on_full: settings.on_full, on_failure };
        Ok(match &settings.destination {
            LogDestination::File(path) => {
                Self::Written(DecisionLog::open_file(path, format, Rotation::default(), options)?)
            }
            LogDestination::Audit(path) => Self::Written(open_audit_log(path, format, settings)?),
            LogDestination::Syslog(address) => {
                Self::Written(DecisionLog::open_syslog(address.clone(), format, options)?)
            }
            LogDestination::Otlp(url) => Self::Collector(OtlpExporter::new(url, format)?),
            LogDestination::Stderr => Self::Printed(DecisionLog::open_stderr()?),
            other => return Err(format!("the destination {other:?} is not supported here").into()),
        })
    }

    fn observe(&self, engine: EngineBuilder) -> EngineBuilder {
        match self {
            Self::Written(log) | Self::Printed(log) => engine.observer(log.clone()),
            Self::Collector(log) => engine.observer(log.clone()),
        }
    }

    fn lost(&self) -> u64 {
        match self {
            Self::Written(log) | Self::Printed(log) => log.lost(),
            Self::Collector(log) => log.lost(),
        }
    }

    /// Writes what is queued, and warns about what is missing.
    fn close(&self) {
        match self {
            Self::Written(log) => {
                log.close();
                if let Some(failure) = log.failure() {
                    print_warning(failure);
                }
                warn_about_losses(log.lost(), "event", "missing in a log");
            }
            // A warning on a stderr that nobody reads would never end.
            Self::Printed(log) => log.close(),
            Self::Collector(log) => {
                log.close();
                warn_about_losses(log.lost(), "span or record", "not at the collector");
            }
        }
    }
}

fn open_audit_log(
    path: &Path,
    format: EventFormat,
    settings: &LogSettings,
) -> Result<DecisionLog, Box<dyn std::error::Error>> {
    let key_path = settings.key.clone().unwrap_or_else(|| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".key");
        PathBuf::from(beside)
    });
    let key = SigningKey::from_file_or_new(&key_path)?;
    let on_failure = settings.on_failure.unwrap_or(OnFailure::Deny);
    let options = AuditLogOptions { on_failure, ..AuditLogOptions::default() };
    Ok(DecisionLog::open_audit_file(path, format, key, options)?)
}

fn warn_about_losses(lost: u64, what: &str, how: &str) {
    match lost {
        0 => {}
        1 => print_warning(format!("1 {what} is {how}")),
        lost => print_warning(format!("{lost} {what}s are {how}")),
    }
}
