//! Metrics over OTLP: the text that Prometheus reads → the request that a collector reads. The names and labels are the same.

use std::collections::BTreeMap;
use std::time::SystemTime;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::scope::{SCOPE, SERVICE};

/// The times of data points, in nanoseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct PointTimes {
    start: u64,
    now: u64,
}

impl PointTimes {
    /// Counters began at the first time; the points are of the second.
    pub(super) fn new(start: SystemTime, now: SystemTime) -> Self {
        let nanoseconds = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        };
        Self { start: nanoseconds(start), now: nanoseconds(now) }
    }
}

/// Converts a text in the format OpenMetrics. Lines that are not in this format are left out.
pub(super) fn from_text(text: &str, times: PointTimes) -> ExportMetricsServiceRequest {
    let mut metrics = Vec::new();
    let mut family: Option<MetricFamily<'_>> = None;
    for line in text.lines() {
        match line.strip_prefix("# ").map(|rest| rest.splitn(3, ' ').collect::<Vec<_>>()).as_deref() {
            Some(["HELP", name, help]) => {
                metrics.extend(family.take().and_then(|family| family.finish(times)));
                family = Some(MetricFamily { name, help, kind: "", samples: Vec::new() });
            }
            Some(["TYPE", _, kind]) => family.iter_mut().for_each(|family| family.kind = kind),
            Some(_) => {}
            None => {
                if let (Some(family), Some(sample)) = (&mut family, Sample::parse(line)) {
                    family.samples.push(sample);
                }
            }
        }
    }
    metrics.extend(family.and_then(|family| family.finish(times)));
    let scope = InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let resource = Resource { attributes: vec![attribute("service.name", SERVICE)], ..Resource::default() };
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() }];
    let resource_metrics =
        ResourceMetrics { resource: Some(resource), scope_metrics, ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }
}

/// The samples below one `# HELP`.
struct MetricFamily<'t> {
    name: &'t str,
    help: &'t str,
    kind: &'t str,
    samples: Vec<Sample<'t>>,
}

struct Sample<'t> {
    name: &'t str,
    labels: Vec<(&'t str, String)>,
    value: f64,
}

impl<'t> Sample<'t> {
    /// Reads `name{label="value",…} number`.
    fn parse(line: &'t str) -> Option<Self> {
        let (name, rest) = line.split_at(line.find(['{', ' '])?);
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => read_labels(rest)?,
            None => (Vec::new(), rest),
        };
        Some(Self { name, labels, value: value.trim().parse().ok()? })
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let labels = self.labels.iter().filter(|(name, _)| *name != "le");
        labels.map(|(name, value)| attribute(name, value)).collect()
    }
}

/// Reads labels up to the closing brace. Returns them with the rest of the line.
fn read_labels(text: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
        let (mut value, mut characters) = (String::new(), quoted.char_indices());
        let end = loop {
            match characters.next()? {
                (index, '"') => break index,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((name, value));
        rest = quoted.get(end + 1..)?;
    }
}

impl MetricFamily<'_> {
    fn finish(self, times: PointTimes) -> Option<Metric> {
        let data = match self.kind {
            "counter" => metric::Data::Sum(Sum {
                data_points: self.points(times),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
                is_monotonic: true,
            }),
            "gauge" | "info" => metric::Data::Gauge(Gauge { data_points: self.points(times) }),
            "histogram" => metric::Data::Histogram(Histogram {
                data_points: self.histograms(times),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
            }),
            _ => return None,
        };
        let name = match self.kind {
            "info" => format!("{}_info", self.name),
            _ => self.name.to_owned(),
        };
        let unit = if self.name.ends_with("_seconds") { "s" } else { "" }.to_owned();
        let description = self.help.to_owned();
        Some(Metric { name, description, unit, data: Some(data), ..Metric::default() })
    }

    fn points(&self, times: PointTimes) -> Vec<NumberDataPoint> {
        let point = |sample: &Sample<'_>| NumberDataPoint {
            attributes: sample.attributes(),
            start_time_unix_nano: times.start,
            time_unix_nano: times.now,
            value: Some(number_data_point::Value::AsDouble(sample.value)),
            ..NumberDataPoint::default()
        };
        self.samples.iter().map(point).collect()
    }

    /// One point for the buckets, the sum and the count of equal labels.
    fn histograms(&self, times: PointTimes) -> Vec<HistogramDataPoint> {
        let mut points: BTreeMap<Vec<(&str, &str)>, HistogramDataPoint> = BTreeMap::new();
        for sample in &self.samples {
            let labels = sample.labels.iter().filter(|(name, _)| *name != "le");
            let key = labels.map(|(name, value)| (*name, value.as_str())).collect();
            let point = points.entry(key).or_insert_with(|| HistogramDataPoint {
                attributes: sample.attributes(),
                start_time_unix_nano: times.start,
                time_unix_nano: times.now,
                ..HistogramDataPoint::default()
            });
            // Counts of calls are far below 2^53.
            let count = sample.value as u64;
            match sample.name.strip_prefix(self.name) {
                Some("_sum") => point.sum = Some(sample.value),
                Some("_count") => point.count = count,
                Some("_bucket") => {
                    let bound = sample.labels.iter().find(|(name, _)| *name == "le");
                    let bound = bound.and_then(|(_, bound)| bound.parse().ok()).unwrap_or(f64::INFINITY);
                    if bound.is_finite() {
                        point.explicit_bounds.push(bound);
                    }
                    // Those of Prometheus contain the smaller ones.
                    let smaller: u64 = point.bucket_counts.iter().sum();
                    point.bucket_counts.push(count.saturating_sub(smaller));
                }
                _ => {}
            }
        }
        points.into_values().collect()
    }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Metrics;

    fn metrics_of(text: &str) -> Vec<Metric> {
        let times = PointTimes::new(SystemTime::UNIX_EPOCH, SystemTime::now());
        let mut request = from_text(text, times);
        request.resource_metrics.remove(0).scope_metrics.remove(0).metrics
    }

    #[test]
    fn every_metric_of_the_text_is_sent_with_all_its_series() {
        let text = Metrics::example_text();
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let expected: BTreeSet<String> = types
            .map(|rest| {
                let (name, kind) = rest.split_once(' ').unwrap();
                if kind == "info" { format!("{name}_info") } else { name.to_owned() }
            })
            .collect();
        let metrics = metrics_of(&text);
        assert_eq!(metrics.iter().map(|metric| metric.name.clone()).collect::<BTreeSet<_>>(), expected);
        for metric in metrics {
            let points = match metric.data.as_ref().unwrap() {
                metric::Data::Sum(sum) => sum.data_points.len(),
                metric::Data::Gauge(gauge) => gauge.data_points.len(),
                metric::Data::Histogram(histogram) => histogram.data_points.len(),
                other => panic!("{other:?}"),
            };
            assert_eq!((points, metric.description.is_empty()), (1, false), "{}", metric.name);
        }
    }

    #[test]
    fn labels_are_unescaped_and_buckets_count_their_own_values() {
        let text = "# HELP t_seconds Time.\n# TYPE t_seconds histogram\n\
            t_seconds_sum{tool=\"a\\\"b\\\\c\\nd},\"} 1.5\nt_seconds_count{tool=\"a\\\"b\\\\c\\nd},\"} 3\n\
            t_seconds_bucket{le=\"0.1\",tool=\"a\\\"b\\\\c\\nd},\"} 1\nt_seconds_bucket{le=\"1.0\",tool=\"a\\\"b\\\\c\\nd},\"} 3\n\
            t_seconds_bucket{le=\"+Inf\",tool=\"a\\\"b\\\\c\\nd},\"} 3\nnot a sample\nt_seconds_sum{x=\"\n# EOF\n";
        let [metric] = &metrics_of(text)[..] else { panic!() };
        let Some(metric::Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?}") };
        let [point] = &histogram.data_points[..] else { panic!("{histogram:?}") };
        assert_eq!(point.attributes, [attribute("tool", "a\"b\\c\nd},")]);
        assert_eq!((point.count, point.sum), (3, Some(1.5)));
        assert_eq!((&point.explicit_bounds[..], &point.bucket_counts[..]), (&[0.1, 1.0][..], &[1, 2, 0][..]));
        assert_eq!(metric.unit, "s");
    }
}
