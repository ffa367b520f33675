//! An OpenTelemetry collector that keeps what it receives.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// A collector: decodes what it receives.
#[derive(Clone, Default)]
pub struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
    records: Arc<Mutex<Vec<LogRecord>>>,
    /// Of the last request.
    metrics: Arc<Mutex<Vec<Metric>>>,
}

impl Collector {
    /// Starts it; returns its URL.
    pub fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let collector = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let collector = collector.clone();
                std::thread::spawn(move || collector.serve(stream.unwrap()));
            }
        });
        url
    }

    fn serve(&self, mut stream: TcpStream) {
        while let Some((path, body)) = read_request(&mut stream) {
            match path.as_str() {
                "/v1/traces" => {
                    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
                    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
                    self.spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
                }
                "/v1/logs" => {
                    let request = ExportLogsServiceRequest::decode(body.as_slice()).unwrap();
                    let scopes = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
                    self.records.lock().unwrap().extend(scopes.flat_map(|scope| scope.log_records));
                }
                "/v1/metrics" => {
                    let request = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
                    let scopes =
                        request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
                    *self.metrics.lock().unwrap() = scopes.flat_map(|scope| scope.metrics).collect();
                }
                other => panic!("a request for {other}"),
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    }

    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }

    pub fn records(&self) -> Vec<LogRecord> {
        self.records.lock().unwrap().clone()
    }

    /// A metric of the last request.
    pub fn metric(&self, name: &str) -> Metric {
        let metrics = self.metrics.lock().unwrap();
        metrics
            .iter()
            .find(|metric| metric.name == name)
            .unwrap_or_else(|| panic!("no {name}: {metrics:?}"))
            .clone()
    }
}

/// The path and the body of the next request. `None` at the end of the connection.
fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).ok()?;
    Some((head.split(' ').nth(1).unwrap().to_owned(), body))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn text(value: &Option<AnyValue>) -> Option<&str> {
    match value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

pub fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    attributes.iter().find(|attribute| attribute.key == key).and_then(|attribute| text(&attribute.value))
}
