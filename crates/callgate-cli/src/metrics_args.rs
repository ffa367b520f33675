//! `--metrics`: serves metrics for Prometheus, and health probes.

use std::net::SocketAddr;
use std::path::PathBuf;

use jiff::Timestamp;
use tokio::net::TcpListener;

use super::exit::CommandError;
use super::output::print_note;
use super::proxy_http::parse_address;
use callgate::engine::EngineBuilder;
use callgate_http::{BearerSecret, HealthProbe, MetricsServer};
use callgate_mcp::Gateway;
use callgate_telemetry::{CONTENT_TYPE, Metrics};

/// Where metrics are served.
#[derive(clap::Args)]
pub(super) struct MetricsArgs {
    /// Serve metrics for Prometheus at `/metrics` of this address, such as `127.0.0.1:9464` or just `9464`, with the health probes
    /// `/healthz` and `/readyz`
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// Require the bearer token in FILE for `/metrics`. Required if other machines can reach the address
    #[arg(long, value_name = "FILE", requires = "metrics")]
    metrics_token: Option<PathBuf>,
}

/// The metrics of a gateway that are to be served.
pub(super) struct ServedMetrics {
    address: SocketAddr,
    secret: Option<BearerSecret>,
    metrics: Metrics,
}

impl MetricsArgs {
    /// The metrics, if they are to be served.
    pub(super) fn open(&self) -> Result<Option<ServedMetrics>, CommandError> {
        let Some(text) = &self.metrics else { return Ok(None) };
        let address = match text.parse::<u16>() {
            Ok(port) => SocketAddr::from(([127, 0, 0, 1], port)),
            Err(_) => parse_address(text)?,
        };
        let secret = self.metrics_token.as_ref().map(|path| {
            let invalid = |why: String| CommandError::new(format!("`{}`: {why}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| invalid(error.to_string()))?;
            BearerSecret::new(&text).map_err(invalid)
        });
        Ok(Some(ServedMetrics { address, secret: secret.transpose()?, metrics: Metrics::new() }))
    }
}

impl ServedMetrics {
    /// The metrics.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Adds the metrics to an engine with these rules: those of the gateway, or those of a server.
    pub(super) fn observe(&self, engine: EngineBuilder, bundle: &str) -> EngineBuilder {
        engine.observer(self.metrics.for_bundle(bundle))
    }

    /// Reports the tools of servers to the metrics.
    pub(super) fn observe_tools(&self, gateway: Gateway) -> Gateway {
        let metrics = self.metrics.clone();
        gateway.with_tools_listener(move |server, tools| {
            metrics.add_tools(server, tools.iter().map(|tool| tool.name.as_str()));
        })
    }

    /// Starts to serve, in the background. `refresh` brings metrics up to date that no event changes.
    pub(super) async fn serve(
        &self,
        health: HealthProbe,
        refresh: impl Fn(&Metrics) + Send + Sync + 'static,
    ) -> Result<(), CommandError> {
        let (address, metrics) = (self.address, self.metrics.clone());
        let source = move || {
            refresh(&metrics);
            metrics.render(Timestamp::now())
        };
        let mut server = MetricsServer::new(source, CONTENT_TYPE, health);
        if let Some(secret) = &self.secret {
            server = server.with_secret(secret.clone());
        }
        server.check_address(address).map_err(CommandError::Message)?;
        let failed = |error| CommandError::new(format!("can't listen on `{address}`: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        print_note(format!("metrics on http://{}/metrics", listener.local_addr().map_err(failed)?));
        tokio::spawn(server.serve(listener));
        Ok(())
    }
}
