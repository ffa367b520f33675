//! HTTP options of `callgate proxy`: `--listen` and related arguments → a ready [`HttpServer`].

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::exit::CommandError;
use super::file_limit;
use super::output::{print_diagnostics, print_note};
use super::shutdown_signal::wait_for_shutdown;
use super::tls_args::TlsArgs;
use callgate_http::{DEFAULT_MAX_CONVERSATIONS, HealthProbe, IdentityFile};
use callgate_mcp::{DEFAULT_MAX_CLIENTS, Gateway, HttpServer, SessionNameSource};

/// HTTP server options: the address, authentication and limits.
#[derive(clap::Args)]
pub(super) struct HttpArgs {
    /// Serve clients over streamable HTTP at this address, such as `127.0.0.1:8080`, instead of stdin; the path is `/mcp`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Authenticate callers with this file: static tokens and JWT issuers, and their principals in policies; see docs/gateway-http.md.
    /// Required if other machines can reach the address
    #[arg(long, value_name = "FILE", requires = "listen")]
    auth: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Accept requests of web pages from this origin, in addition to local ones
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    allow_origin: Vec<String>,
    /// The part of a request without a handshake that names its session: `header:NAME` or `meta:KEY` [default: one session for each
    /// caller]
    #[arg(long, value_name = "PLACE", requires = "listen")]
    session_from: Option<SessionNameSource>,
    /// Maximum number of connected clients; beyond it, the client idle for longest is disconnected
    #[arg(long, value_name = "NUMBER", requires = "listen", default_value_t = DEFAULT_MAX_CLIENTS)]
    most_clients: usize,
    /// Maximum number of connections, of which one address may have a third and one network half. Raise it behind a reverse proxy, as
    /// all connections come from its address [default: eight times --most-clients]
    #[arg(long, value_name = "NUMBER", requires = "listen")]
    most_connections: Option<usize>,
    /// Maximum number of conversations remembered for each caller; beyond it, the least recently used one is evicted
    #[arg(long, value_name = "NUMBER", requires = "listen", default_value_t = DEFAULT_MAX_CONVERSATIONS)]
    most_conversations: usize,
}

/// An HTTP server that is ready to serve, with its address.
pub(super) struct ReadyHttpServer {
    address: SocketAddr,
    scheme: &'static str,
    server: HttpServer,
}

/// The HTTP server that the options ask for.
pub(super) enum HttpServerSetup {
    /// None: `--listen` is not set.
    Disabled,
    /// A server.
    Ready(Box<ReadyHttpServer>),
    /// The identity file has errors, which have been reported.
    Invalid,
}

impl HttpArgs {
    /// Whether `--listen` is set.
    pub(super) fn is_enabled(&self) -> bool {
        self.listen.is_some()
    }

    /// Whether clients over HTTP are authenticated.
    pub(super) fn authenticates(&self) -> bool {
        self.listen.is_some() && self.auth.is_some()
    }

    /// Prepares the HTTP server of a gateway, if `--listen` is set.
    pub(super) fn prepare_server(
        &self,
        gateway: &Arc<Gateway>,
        health: &HealthProbe,
    ) -> Result<HttpServerSetup, CommandError> {
        let Some(listen) = &self.listen else { return Ok(HttpServerSetup::Disabled) };
        let address = parse_address(listen)?;
        let mut server = HttpServer::new(Arc::clone(gateway)).with_max_clients(self.most_clients);
        server = server.with_max_conversations(self.most_conversations).with_health_probe(health.clone());
        if let Some(most) = self.most_connections {
            server = server.with_max_connections(most);
        }
        if let Some(file) = &self.auth {
            match IdentityFile::open(file) {
                Ok(file) => server = server.with_identity_file(file),
                Err(error) => {
                    print_diagnostics(&error.diagnostics, &error.sources);
                    return Ok(HttpServerSetup::Invalid);
                }
            }
        }
        for origin in &self.allow_origin {
            server = server.with_allowed_origin(origin);
        }
        if let Some(from) = &self.session_from {
            server = server.with_session_name_source(from.clone());
        }
        if let Some(tls) = self.tls.open()? {
            server = server.with_tls(tls);
        }
        server.check_address(address).map_err(CommandError::Message)?;
        Ok(HttpServerSetup::Ready(Box::new(ReadyHttpServer { address, scheme: self.tls.scheme(), server })))
    }
}

impl ReadyHttpServer {
    /// Serves clients until the process receives a shutdown signal.
    pub(super) async fn serve(self) -> Result<(), String> {
        file_limit::raise();
        let listener = TcpListener::bind(self.address).await;
        let listener = listener.map_err(|error| format!("can't listen on `{}`: {error}", self.address))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        print_note(format!("listening on {}://{address}/mcp", self.scheme));
        self.server.serve(listener, wait_for_shutdown()).await
    }
}

/// Parses an address, or looks up its host name.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, CommandError> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        CommandError::new(format!("`{text}` is not an address; write for example `127.0.0.1:8080`"))
    })
}
