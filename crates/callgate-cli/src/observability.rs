//! What a command that decides calls shows of them: its logs, its metrics and its candidate rules.

use super::candidate_args::OpenCandidate;
use super::exit::CommandError;
use super::metrics_args::MetricsEndpoint;
use super::open_logs::OpenLogs;
use super::output::print_warning;
use callgate::engine::EngineBuilder;
use callgate::middleware::PolicyKind;
use callgate::policy::{CompiledPolicies, Mode, Policy};
use callgate::reload::RulesWatcher;
use callgate_http::HealthProbe;
use callgate_mcp::Gateway;
use callgate_telemetry::Metrics;
use jiff::Timestamp;

/// The observers of the engines of a command. Dropping it writes what the logs have queued.
pub(super) struct Observability {
    /// Dropped first: its thread still writes to the logs.
    candidate: Option<OpenCandidate>,
    /// If they are served or sent to a collector.
    metrics: Option<Metrics>,
    endpoint: Option<MetricsEndpoint>,
    logs: OpenLogs,
}

impl Observability {
    /// These logs and candidate rules, and metrics at this endpoint.
    pub(super) fn new(
        logs: OpenLogs,
        endpoint: Option<MetricsEndpoint>,
        candidate: Option<OpenCandidate>,
    ) -> Self {
        let metrics = (endpoint.is_some() || logs.has_collector()).then(Metrics::new);
        if let Some(metrics) = &metrics {
            logs.count_lost_events(metrics);
            logs.send_metrics(metrics, |_| {});
        }
        Self { candidate, metrics, endpoint, logs }
    }

    /// Adds logs, metrics and candidate rules to the engine that decides calls. `bundle`: the name of its rules in metrics.
    pub(super) fn observe(&self, engine: EngineBuilder, bundle: &str) -> EngineBuilder {
        let engine = self.observe_rules(engine, bundle);
        self.candidate.iter().fold(engine, |engine, candidate| candidate.observe(engine))
    }

    /// Warns of policies whose effect nobody sees, because nothing records it: those that record calls, and those in shadow mode.
    pub(super) fn warn_of_unrecorded(&self, rules: &CompiledPolicies) {
        if !self.logs.is_empty() || self.metrics.is_some() {
            return;
        }
        let is_record =
            |policy: &Policy| policy.mode == Mode::Shadow || matches!(policy.kind, PolicyKind::Audit(_));
        let records: Vec<&str> = rules
            .policies()
            .iter()
            .filter(|policy| is_record(policy))
            .map(|policy| policy.id.as_str())
            .collect();
        if let [first, more @ ..] = records.as_slice() {
            let others = match more.len() {
                0 => String::new(),
                1 => " and 1 other policy".to_owned(),
                count => format!(" and {count} other policies"),
            };
            print_warning(format!(
                "nothing records what `{first}`{others} in shadow mode or of the kind `audit` would show: add `--log FILE`"
            ));
        }
    }

    /// Adds logs and metrics to an engine that only holds further rules, such as those of one server.
    pub(super) fn observe_rules(&self, engine: EngineBuilder, bundle: &str) -> EngineBuilder {
        let engine = self.logs.observe(engine);
        self.metrics.iter().fold(engine, |engine, metrics| engine.observer(metrics.for_bundle(bundle)))
    }

    /// Reports the tools of a gateway's servers to the metrics, and its calls' spans to servers if a collector gets these spans.
    pub(super) fn observe_gateway(&self, gateway: Gateway) -> Gateway {
        let gateway = match self.logs.has_collector() {
            true => gateway.with_trace_propagation(),
            false => gateway,
        };
        match self.metrics.clone() {
            Some(metrics) => gateway.with_tools_listener(move |server, tools| {
                metrics.add_tools(server, tools.iter().map(|tool| tool.name.as_str()));
            }),
            None => gateway,
        }
    }

    /// Starts to serve metrics, in the background, if they are to be served. `refresh` brings metrics up to date that no event changes.
    pub(super) async fn serve_metrics(
        &self,
        health: HealthProbe,
        refresh: impl Fn(&Metrics) + Clone + Send + Sync + 'static,
    ) -> Result<(), CommandError> {
        let Some(metrics) = &self.metrics else { return Ok(()) };
        self.logs.send_metrics(metrics, refresh.clone());
        let Some(endpoint) = &self.endpoint else { return Ok(()) };
        let metrics = metrics.clone();
        let source = move || {
            refresh(&metrics);
            metrics.render(Timestamp::now())
        };
        endpoint.serve(source, health).await
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
