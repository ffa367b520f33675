//! `--metrics`: serves metrics for Prometheus, and health probes.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::net::TcpListener;

use super::exit::CommandError;
use super::output::print_note;
use super::proxy_http::parse_address;
use callgate_http::{BearerSecret, HealthProbe, MetricsServer};
use callgate_telemetry::CONTENT_TYPE;

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

/// Where metrics are to be served.
pub(super) struct MetricsEndpoint {
    address: SocketAddr,
    secret: Option<BearerSecret>,
}

impl MetricsArgs {
    /// Where metrics are to be served, if they are.
    pub(super) fn open(&self) -> Result<Option<MetricsEndpoint>, CommandError> {
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
        Ok(Some(MetricsEndpoint { address, secret: secret.transpose()? }))
    }
}

impl MetricsEndpoint {
    /// Starts to serve what the source returns, in the background.
    pub(super) async fn serve(
        &self,
        source: impl Fn() -> String + Send + Sync + 'static,
        health: HealthProbe,
    ) -> Result<(), CommandError> {
        let address = self.address;
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
