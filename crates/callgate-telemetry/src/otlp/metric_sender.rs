//! Sends metrics to a collector, at intervals.

use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use percent_encoding::percent_decode_str;
use prost::Message as _;
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::metric_request::{PointTimes, from_text};

/// Returns metrics, in the format OpenMetrics.
pub(super) type MetricSource = Box<dyn Fn() -> String + Send + Sync>;

/// How often metrics are sent.
const INTERVAL: Duration = Duration::from_secs(60);
/// The environment variable for another interval, in milliseconds.
const INTERVAL_VARIABLE: &str = "OTEL_METRIC_EXPORT_INTERVAL";
/// The environment variable with headers, such as `authorization=Bearer%20…`.
const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Sends metrics. A collector that misses some gets the next ones: counters are cumulative.
pub(super) struct MetricSender {
    client: Client,
    url: reqwest::Url,
    headers: HeaderMap,
    source: Arc<Mutex<Option<MetricSource>>>,
    started: SystemTime,
}

impl MetricSender {
    pub(super) fn new(
        client: Client,
        url: &str,
        source: Arc<Mutex<Option<MetricSource>>>,
    ) -> Result<Self, String> {
        let url = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
        let headers = env::var(HEADERS_VARIABLE).map(|text| parse_headers(&text)).unwrap_or_default();
        Ok(Self { client, url, headers, source, started: SystemTime::now() })
    }

    /// When metrics are due.
    pub(super) fn interval(&self) -> Interval {
        let milliseconds = env::var(INTERVAL_VARIABLE).ok().and_then(|text| text.parse::<u64>().ok());
        let period = milliseconds.filter(|count| *count > 0).map_or(INTERVAL, Duration::from_millis);
        let mut interval = interval_at(Instant::now() + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    }

    pub(super) async fn send(&self) {
        let text = self.source.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|source| source());
        let Some(text) = text else { return };
        let request = from_text(&text, PointTimes::new(self.started, SystemTime::now()));
        let sending = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"))
            .body(request.encode_to_vec());
        drop(sending.send().await);
    }
}

/// Reads `name=value,name=value`, with percent-encoded values. What is no header is left out, as for spans and log records.
fn parse_headers(text: &str) -> HeaderMap {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let header = |(name, value): (&str, &str)| {
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, HeaderValue::from_str(&value).ok()?))
    };
    pairs.filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_from_one_text() {
        let headers = parse_headers("authorization=Bearer%20abc, x-tenant = a ,broken,b\u{e9}d=1");
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["authorization"], "Bearer abc");
        assert_eq!(headers["x-tenant"], "a");
    }
}
