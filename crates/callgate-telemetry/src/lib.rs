//! Metrics of [Callgate](https://docs.rs/callgate) for Prometheus: calls by outcome, tool and policy, decision latency, approvals,
//! limits, caches, stores and the state of the rules.
//!
//! With the feature `otel`, `OtlpExporter` sends a span for each call, and the events of the decision log, to an OpenTelemetry collector.
//!
//! [`Metrics`] is an [`Observer`](callgate::Observer) of the engine. The number of series is bounded, whatever tools a model invents:
//! see [`Metrics::add_tools`].
//!
//! ```
//! use callgate::{Engine, ToolCall, ToolError, json::json, load_text};
//! use callgate_telemetry::Metrics;
//!
//! let metrics = Metrics::new();
//! metrics.add_tools("files", ["rm"]);
//! let rules = load_text("policies: [ { id: no-rm, match: rm, deny: {} } ]")?;
//! let engine = Engine::builder(rules).observer(metrics.clone()).build();
//! # struct Tools;
//! # impl callgate::ToolExecutor for Tools {
//! #     async fn execute(&self, call: &ToolCall) -> Result<callgate::ToolResponse, ToolError> { Ok(call.input.clone().into()) }
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! let call = ToolCall::new("c1", "rm", json!({ "path": "/" })).with_server("files");
//! runtime.block_on(engine.session().execute(call, &Tools));
//! let text = metrics.render(jiff::Timestamp::now());
//! assert!(text.contains(r#"callgate_calls_total{server="files",tool="rm",outcome="denied"} 1"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bounded_labels;
mod metric_families;
mod metrics;
mod pending_approvals;
#[cfg(feature = "otel")]
mod otlp;

pub use metrics::{CONTENT_TYPE, Metrics, PublishedVersions};
#[cfg(feature = "otel")]
pub use otlp::{OtlpError, OtlpExporter};
