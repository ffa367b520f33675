//! The thread that sends spans and log records: a bounded queue → batches → the collector.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry_otlp::{LogExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{LogBatch, LogExporter as _, SdkLogRecord};
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::{mpsc, watch};

use super::metric_sender::{MetricSender, MetricSource};
use super::scope::{SERVICE, scope};

/// The number of spans and records that wait to be sent.
const QUEUE_LENGTH: usize = 8_192;
/// The number that is sent at once.
const BATCH_LENGTH: usize = 512;
/// How long a batch is filled.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// Timeout of a request to the collector.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the rest of the queue is sent at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why an exporter can't be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The URL is invalid.
    #[error("`{url}` is not the URL of a collector: {why}; write for example `http://127.0.0.1:4318`")]
    Url {
        /// The URL.
        url: String,
        /// The problem.
        why: String,
    },
    /// The thread or its HTTP client can't be started.
    #[error("the OTLP exporter can't be started: {0}")]
    Start(String),
}

/// What is sent.
pub(super) enum Telemetry {
    Span(Box<SpanData>),
    Log(Box<SdkLogRecord>),
}

/// The thread, its queue, and what it lost.
pub(super) struct ExporterThread {
    queue: mpsc::Sender<Telemetry>,
    closing: watch::Sender<bool>,
    lost: Arc<AtomicU64>,
    metrics: Arc<Mutex<Option<MetricSource>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl ExporterThread {
    pub(super) fn start(url: &str) -> Result<Self, OtlpError> {
        let (queue, messages) = mpsc::channel(QUEUE_LENGTH);
        let (closing, closed) = watch::channel(false);
        let lost = Arc::new(AtomicU64::new(0));
        let metrics = Arc::default();
        let sender = BatchSender::new(url, Arc::clone(&lost), Arc::clone(&metrics))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| OtlpError::Start(error.to_string()))?;
        let thread = Builder::new()
            .name("callgate-otlp".to_owned())
            .spawn(move || runtime.block_on(sender.run(messages, closed)))
            .map_err(|error| OtlpError::Start(error.to_string()))?;
        Ok(Self { queue, closing, lost, metrics, thread: Mutex::new(Some(thread)) })
    }

    /// Queues a span or a record, without waiting.
    pub(super) fn send(&self, telemetry: Telemetry) {
        if self.queue.try_send(telemetry).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sets what returns the metrics.
    pub(super) fn set_metric_source(&self, source: MetricSource) {
        *self.metrics.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = self.closing.send(true);
            let _ = thread.join();
        }
    }
}

/// Sends batches to the collector.
struct BatchSender {
    spans: SpanExporter,
    logs: LogExporter,
    metrics: MetricSender,
    lost: Arc<AtomicU64>,
    /// The number of spans and records whose request has not completed.
    in_flight: AtomicUsize,
}

impl BatchSender {
    fn new(
        url: &str,
        lost: Arc<AtomicU64>,
        metrics: Arc<Mutex<Option<MetricSource>>>,
    ) -> Result<Self, OtlpError> {
        let invalid = |why: String| OtlpError::Url { url: url.to_owned(), why };
        let parsed = reqwest::Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
            return Err(invalid("it must begin with `http://` or `https://`".to_owned()));
        }
        let client = callgate_http::https_client(&parsed).timeout(REQUEST_TIMEOUT).build();
        let client = client.map_err(|error| OtlpError::Start(error.to_string()))?;
        let base = url.trim_end_matches('/');
        let mut spans = SpanExporter::builder()
            .with_http()
            .with_http_client(client.clone())
            .with_endpoint(format!("{base}/v1/traces"))
            .with_timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        let mut logs = LogExporter::builder()
            .with_http()
            .with_http_client(client.clone())
            .with_endpoint(format!("{base}/v1/logs"))
            .with_timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        let metrics = MetricSender::new(client, &format!("{base}/v1/metrics"), metrics).map_err(invalid)?;
        let resource = Resource::builder().with_service_name(SERVICE).build();
        spans.set_resource(&resource);
        logs.set_resource(&resource);
        Ok(Self { spans, logs, metrics, lost, in_flight: AtomicUsize::new(0) })
    }

    async fn run(self, mut messages: mpsc::Receiver<Telemetry>, mut closed: watch::Receiver<bool>) {
        let mut batch = Vec::with_capacity(BATCH_LENGTH);
        let mut metrics_due = self.metrics.interval();
        while !*closed.borrow() {
            let filled = async {
                let received = messages.recv_many(&mut batch, BATCH_LENGTH).await;
                let more = async {
                    while batch.len() < BATCH_LENGTH {
                        let room = BATCH_LENGTH - batch.len();
                        if messages.recv_many(&mut batch, room).await == 0 {
                            return;
                        }
                    }
                };
                let _ = tokio::time::timeout(BATCH_TIME, more).await;
                received > 0
            };
            tokio::select! {
                is_open = filled => if !is_open { break },
                _ = closed.wait_for(|closed| *closed) => {}
                _ = metrics_due.tick() => self.metrics.send().await,
            }
            self.send(&mut batch).await;
        }
        messages.close();
        let rest = async {
            self.send(&mut batch).await;
            while messages.recv_many(&mut batch, BATCH_LENGTH).await > 0 {
                self.send(&mut batch).await;
            }
            self.metrics.send().await;
        };
        let is_sent = tokio::time::timeout(CLOSE_TIMEOUT, rest).await.is_ok();
        if !is_sent {
            self.count_lost(self.in_flight.load(Ordering::Relaxed) + batch.len() + messages.len());
        }
    }

    /// Sends a batch, which is empty afterwards.
    async fn send(&self, batch: &mut Vec<Telemetry>) {
        self.in_flight.store(batch.len(), Ordering::Relaxed);
        let (mut spans, mut records) = (Vec::new(), Vec::new());
        for telemetry in batch.drain(..) {
            match telemetry {
                Telemetry::Span(span) => spans.push(*span),
                Telemetry::Log(record) => records.push(record),
            }
        }
        let number = spans.len();
        if number > 0 && self.spans.export(spans).await.is_err() {
            self.count_lost(number);
        }
        self.in_flight.store(records.len(), Ordering::Relaxed);
        let scope = scope();
        let batch: Vec<(&SdkLogRecord, &InstrumentationScope)> =
            records.iter().map(|record| (&**record, &scope)).collect();
        if !batch.is_empty() && self.logs.export(LogBatch::new(&batch)).await.is_err() {
            self.count_lost(records.len());
        }
        self.in_flight.store(0, Ordering::Relaxed);
    }

    fn count_lost(&self, number: usize) {
        self.lost.fetch_add(u64::try_from(number).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
