//! What a command that decides calls shows of them: its logs, its metrics and its candidate rules.

use super::candidate_args::OpenCandidate;
use super::exit::CommandError;
use super::log_args::OpenLogs;
use super::metrics_args::ServedMetrics;
use callgate::engine::EngineBuilder;
use callgate::reload::RulesWatcher;

/// The observers of the engines of a command. Dropping it writes what the logs have queued.
pub(super) struct Observability {
    /// Dropped first: its thread still writes to the logs.
    candidate: Option<OpenCandidate>,
    metrics: Option<ServedMetrics>,
    logs: OpenLogs,
}

impl Observability {
    /// These logs, metrics and candidate rules.
    pub(super) fn new(
        logs: OpenLogs,
        metrics: Option<ServedMetrics>,
        candidate: Option<OpenCandidate>,
    ) -> Self {
        if let Some(served) = &metrics {
            logs.count_lost_events(served.metrics());
        }
        Self { candidate, metrics, logs }
    }

    /// Adds logs, metrics and candidate rules to the engine that decides calls. `bundle`: the name of its rules in metrics.
    pub(super) fn observe(&self, engine: EngineBuilder, bundle: &str) -> EngineBuilder {
        let engine = self.observe_rules(engine, bundle);
        self.candidate.iter().fold(engine, |engine, candidate| candidate.observe(engine))
    }

    /// Adds logs and metrics to an engine that only holds further rules, such as those of one server.
    pub(super) fn observe_rules(&self, engine: EngineBuilder, bundle: &str) -> EngineBuilder {
        let engine = self.logs.observe(engine);
        self.metrics.iter().fold(engine, |engine, metrics| metrics.observe(engine, bundle))
    }

    /// The metrics, if they are served.
    pub(super) fn metrics(&self) -> Option<&ServedMetrics> {
        self.metrics.as_ref()
    }

    /// Starts to reload the candidate rules when their files change, until the returned value is dropped.
    pub(super) fn watch_candidate(&self) -> Result<Option<RulesWatcher>, CommandError> {
        self.candidate.as_ref().map(OpenCandidate::watch).transpose()
    }

    /// Waits until the candidate has evaluated every call, and reports the differences.
    pub(super) fn finish_candidate(&self) {
        self.candidate.iter().for_each(OpenCandidate::finish);
    }

    /// Waits until the candidate has evaluated the last calls, for a few seconds at most, and reports the differences.
    pub(super) fn shut_down_candidate(&self) {
        self.candidate.iter().for_each(OpenCandidate::shut_down);
    }
}
