//! Telemetry: metrics, who can read them, health probes, and what dashboards and alerts make of them.

mod collector;
mod metrics;
mod metrics_server;
mod monitoring_files;
mod otlp;
mod trace_propagation;

/// The value of a series in a text of metrics. `None` if it is missing.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}
