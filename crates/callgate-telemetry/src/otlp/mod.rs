//! Traces, metrics and logs over OTLP: events → spans and log records, sent by a thread of its own, and the metrics of `Metrics`. A collector that can't be reached delays no
//! call; what it misses is counted.

mod exporter_thread;
mod log_records;
mod metric_request;
mod metric_sender;
mod scope;
mod span_shards;
mod tool_spans;

use std::sync::Arc;

use callgate::{EngineEvent, Observer};
use callgate_log::EventFormat;

use self::exporter_thread::{ExporterThread, Telemetry};
use self::log_records::LogRecords;
use self::span_shards::SpanShards;

pub use exporter_thread::OtlpError;

/// Sends a span for each call, each event as a log record, and metrics to an OpenTelemetry collector. Clones share the connection.
#[derive(Clone)]
pub struct OtlpExporter {
    shared: Arc<Shared>,
}

struct Shared {
    logs: LogRecords,
    spans: SpanShards,
    thread: ExporterThread,
}

impl std::fmt::Debug for OtlpExporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpExporter").finish_non_exhaustive()
    }
}

impl OtlpExporter {
    /// Exports to a collector at this URL, such as `http://127.0.0.1:4318`, by HTTP with protobuf: spans to `/v1/traces` below it, metrics
    /// to `/v1/metrics`, logs to `/v1/logs`. The format says what both contain of arguments and results. Headers for authentication are read from the environment
    /// variable `OTEL_EXPORTER_OTLP_HEADERS`.
    ///
    /// # Errors
    /// The URL is invalid, or the thread can't be started. Whether the collector answers is not checked.
    pub fn new(url: &str, format: EventFormat) -> Result<Self, OtlpError> {
        let thread = ExporterThread::start(url)?;
        let spans = SpanShards::new(format.content());
        Ok(Self { shared: Arc::new(Shared { logs: LogRecords::new(format), spans, thread }) })
    }

    /// Sends metrics, too: what this returns, a text in the format OpenMetrics such as that of [`Metrics::render`](crate::Metrics::render).
    /// They are sent every 60 seconds, or as often as the environment variable `OTEL_METRIC_EXPORT_INTERVAL` says, in milliseconds, and
    /// when the exporter is closed.
    pub fn send_metrics(&self, source: impl Fn() -> String + Send + Sync + 'static) {
        self.shared.thread.set_metric_source(Box::new(source));
    }

    /// Sends what is queued, for a few seconds at most, and ends the thread. Later events are lost.
    pub fn close(&self) {
        self.shared.thread.close();
    }

    /// The number of spans and log records that are lost: the queue was full, or the collector did not accept them.
    pub fn lost(&self) -> u64 {
        self.shared.thread.lost()
    }
}

impl Observer for OtlpExporter {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let Shared { logs, spans, thread } = &*self.shared;
        if !logs.records(event) {
            return;
        }
        let (context, span) = spans.record(event);
        thread.send(Telemetry::Log(Box::new(logs.record(event, context.as_ref()))));
        if let Some(span) = span {
            thread.send(Telemetry::Span(Box::new(span)));
        }
    }
}
