//! Events as log records: the body is the line of the decision log.

use std::time::SystemTime;

use callgate::EngineEvent;
use callgate_log::{EventFormat, EventSeverity, event_name, event_severity};
use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry::trace::SpanContext;
use opentelemetry_sdk::logs::{SdkLogRecord, SdkLogger, SdkLoggerProvider};

use super::scope::SCOPE;

/// Formats events as log records.
pub(super) struct LogRecords {
    format: EventFormat,
    logger: SdkLogger,
}

impl LogRecords {
    pub(super) fn new(format: EventFormat) -> Self {
        // Records are created by the SDK's logger, and sent by the exporter's own thread.
        Self { format, logger: SdkLoggerProvider::builder().build().logger(SCOPE) }
    }

    /// Whether an event is recorded.
    pub(super) fn records(&self, event: &EngineEvent<'_>) -> bool {
        self.format.records(event)
    }

    /// The record of an event, in the span of its call.
    pub(super) fn record(&self, event: &EngineEvent<'_>, span: Option<&SpanContext>) -> SdkLogRecord {
        let mut record = self.logger.create_log_record();
        record.set_event_name(event_name(&event.kind));
        record.set_timestamp(SystemTime::from(event.time));
        record.set_observed_timestamp(SystemTime::now());
        let (severity, text) = match event_severity(&event.kind) {
            EventSeverity::Info => (Severity::Info, "INFO"),
            EventSeverity::Warning => (Severity::Warn, "WARN"),
            EventSeverity::Error => (Severity::Error, "ERROR"),
        };
        record.set_severity_number(severity);
        record.set_severity_text(text);
        record.set_body(AnyValue::from(self.format.line(event)));
        if let Some(span) = span {
            record.set_trace_context(span.trace_id(), span.span_id(), Some(span.trace_flags()));
        }
        record
    }
}
