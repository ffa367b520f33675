//! The HTTP server for clients over streamable HTTP, both with a handshake and a session, and stateless (protocol versions since
//! 2026-07-28).

mod client_sessions;
mod notification_stream;
mod headers;
mod request_ids;
mod post_handler;
mod responses;
mod sse_response;
mod session_name;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use axum::routing::any;
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::client_sessions::ClientRegistry;
use self::responses::rejection;
use crate::gateway::Gateway;
use crate::http_headers;
use callgate_http::{
    AuthenticationError, Authenticator, Caller, ClientCertificate, Credentials, DEFAULT_MAX_CONVERSATIONS,
    HealthProbe, IdentityFile, JSON, OriginPolicy, ReloadableAuthenticator, Tls, WatchedFile,
    check_listen_address, empty, preflight, serve_connections, single_value, with_body,
};

pub use session_name::SessionNameSource;

/// The default maximum number of connected clients.
pub const DEFAULT_MAX_CLIENTS: usize = 100;
/// Connections per client: streams, and concurrent POST requests.
const CONNECTIONS_PER_CLIENT: usize = 8;
/// The minimum connection limit, so that each address gets a few.
const MIN_CONNECTIONS: usize = 48;
/// The path of the endpoint.
pub const PATH: &str = "/mcp";
/// How long requests may take to complete at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP server in front of a gateway.
pub struct HttpServer {
    gateway: Arc<Gateway>,
    identity: Option<ReloadableAuthenticator>,
    /// The file of the identities.
    watched_file: Option<WatchedFile>,
    tls: Option<Arc<Tls>>,
    origins: Vec<String>,
    session_from: Option<SessionNameSource>,
    max_clients: usize,
    max_connections: Option<usize>,
    max_conversations: usize,
    health: Option<HealthProbe>,
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").field("origins", &self.origins).finish_non_exhaustive()
    }
}

/// The shared state of all request handlers.
struct ServerState {
    identity: Option<Arc<ReloadableAuthenticator>>,
    origin_policy: OriginPolicy,
    clients: Arc<ClientRegistry>,
    session_from: Option<SessionNameSource>,
    /// Becomes true at shutdown.
    closing: watch::Receiver<bool>,
    max_message_size: usize,
    gateway: Arc<Gateway>,
}

impl HttpServer {
    /// An HTTP server for this gateway.
    pub fn new(gateway: Arc<Gateway>) -> Self {
        Self {
            gateway,
            identity: None,
            watched_file: None,
            tls: None,
            origins: Vec::new(),
            session_from: None,
            max_clients: DEFAULT_MAX_CLIENTS,
            max_connections: None,
            max_conversations: DEFAULT_MAX_CONVERSATIONS,
            health: None,
        }
    }

    /// Answers `/healthz` and `/readyz`, without authentication and without details.
    #[must_use]
    pub fn with_health_probe(mut self, health: HealthProbe) -> Self {
        self.health = Some(health);
        self
    }

    /// Requires authentication; policies see the authenticated caller.
    #[must_use]
    pub fn with_authenticator(mut self, identity: Authenticator) -> Self {
        self.identity = Some(ReloadableAuthenticator::fixed(identity));
        self
    }

    /// Requires authentication by an identity file, which is reloaded when it or a key file that it names changes: a removed token or key
    /// is rejected from then on, and open streams of its callers end.
    #[must_use]
    pub fn with_identity_file(mut self, file: IdentityFile) -> Self {
        let (identity, watched_file) = ReloadableAuthenticator::from_file(file);
        (self.identity, self.watched_file) = (Some(identity), Some(watched_file));
        self
    }

    /// Serves HTTPS, with a certificate that is reloaded when its files change.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(Arc::new(tls));
        self
    }

    /// Allows requests from web pages of this origin (`https://app.example.com`), in addition to those of localhost.
    #[must_use]
    pub fn with_allowed_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets where requests name the caller's session, for clients without a handshake. Without it each caller has one session.
    #[must_use]
    pub fn with_session_name_source(mut self, from: SessionNameSource) -> Self {
        self.session_from = Some(from);
        self
    }

    /// Sets how many conversations of one caller are kept. Beyond it the least recently used one is evicted; when it resumes, its labels
    /// and facts are unknown, and conditions that read them are undecided.
    #[must_use]
    pub fn with_max_conversations(mut self, most: usize) -> Self {
        self.max_conversations = most.max(1);
        self
    }

    /// Sets the maximum number of connected clients. Beyond it an idle one is closed: the longest idle one of the caller with the most
    /// clients, but none of a caller with fewer clients than the new one's.
    #[must_use]
    pub fn with_max_clients(mut self, most: usize) -> Self {
        self.max_clients = most.max(1);
        self
    }

    /// Sets the maximum number of connections. Default: eight per connected client, and at least 48. Each address may hold a third of them
    /// and each network a half, at most half of these before their first request has arrived. Further connections are closed at once.
    /// Behind a reverse proxy all connections come from its address.
    #[must_use]
    pub fn with_max_connections(mut self, most: usize) -> Self {
        self.max_connections = Some(most);
        self
    }

    /// Checks that it may listen on an address.
    ///
    /// # Errors
    /// The address is reachable from other machines, and no identities are configured.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), String> {
        let why = "clients are not authenticated";
        check_listen_address(address, self.identity.is_some(), why, "configure an identity file")
    }

    /// Serves clients until `end` completes; then pending requests have some seconds to complete. All servers have ended when this returns.
    ///
    /// # Errors
    /// The address is not allowed, or the socket fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), String> {
        let address = listener.local_addr().map_err(|error| format!("the socket fails: {error}"))?;
        self.check_address(address)?;
        let clients = ClientRegistry::new(&self.gateway, self.max_clients, self.max_conversations);
        let identity = self.identity.map(Arc::new);
        let served = Arc::clone(&self.gateway);
        let (tls, watched_tls) = (self.tls.clone(), self.tls);
        let (gateway, watched_identity) = (Arc::clone(&self.gateway), identity.clone());
        let watcher = tokio::spawn(async move {
            let log = |text: &str| gateway.log(text);
            let identities = async {
                if let Some(identity) = watched_identity {
                    identity.watch(self.watched_file, log).await;
                }
            };
            let certificates = async {
                if let Some(tls) = watched_tls {
                    tls.watch(log).await;
                }
            };
            tokio::join!(identities, certificates);
        });
        let (close, closing) = watch::channel(false);
        let state = Arc::new(ServerState {
            origin_policy: OriginPolicy::new(address.ip().is_loopback(), self.origins),
            identity,
            clients: Arc::clone(&clients),
            session_from: self.session_from,
            closing: closing.clone(),
            max_message_size: self.gateway.max_message_size,
            gateway: self.gateway,
        });
        let idle_check = tokio::spawn(Arc::clone(&clients).close_idle());
        let mut routes =
            Router::new().route(PATH, any(handle_request)).fallback(handle_other).with_state(state);
        if let Some(health) = self.health {
            routes = routes.merge(health.routes());
        }
        let mut closed = closing;
        let shutdown = async move {
            end.await;
            let _ = close.send(true);
        };
        let most = self.max_clients.saturating_mul(CONNECTIONS_PER_CLIENT).max(MIN_CONNECTIONS);
        let most = self.max_connections.unwrap_or(most);
        let serving = serve_connections(listener, tls, routes, most, shutdown);
        let timeout = async {
            let _ = closed.wait_for(|closing| *closing).await;
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        };
        tokio::select! {
            () = serving => {}
            () = timeout => {}
        }
        idle_check.abort();
        watcher.abort();
        clients.close_all().await;
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, served.close_shared_servers()).await;
        Ok(())
    }
}

/// The entry point of every request: checks its origin and adds CORS headers.
async fn handle_request(State(state): State<Arc<ServerState>>, request: Request<Body>) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut response = match state.origin_policy.check(request.headers()) {
        Ok(()) => Arc::clone(&state).serve(request).await,
        Err(error) => return rejection(403, &error.to_string()),
    };
    // Allowed pages may also read the response.
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("mcp-session-id, www-authenticate"),
        );
    }
    response
}

/// Serves the metadata by which clients find out where to get a token. It is public, also for web pages: RFC 9728 needs no credentials.
async fn handle_other(State(state): State<Arc<ServerState>>, request: Request<Body>) -> Response {
    let metadata =
        state.identity.as_ref().and_then(|identity| identity.resource_metadata(request.uri().path()));
    match metadata {
        Some(metadata) if request.method() == Method::GET => {
            let mut response = with_body(200, JSON, metadata.to_string());
            let any = HeaderValue::from_static("*");
            response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
            response
        }
        _ => empty(404),
    }
}

impl ServerState {
    async fn serve(self: Arc<Self>, request: Request<Body>) -> Response {
        // A CORS preflight request carries no credentials.
        if request.method() == Method::OPTIONS {
            return preflight(request.headers());
        }
        let caller = match self.authenticate(request.headers(), request.extensions().get()).await {
            Ok(caller) => caller,
            Err(response) => return *response,
        };
        let is_modern = single_value(request.headers(), http_headers::VERSION)
            .is_ok_and(|version| version.is_some_and(http_headers::is_stateless_version));
        match *request.method() {
            Method::POST => self.handle_post(request, caller).await,
            Method::GET if !is_modern => self.open_stream(request.headers(), &caller),
            Method::DELETE if !is_modern => self.end_session(request.headers(), &caller).await,
            _ => {
                let mut response = rejection(405, "send messages by POST");
                let allowed = if is_modern { "POST" } else { "POST, GET, DELETE" };
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
                response
            }
        }
    }

    /// Becomes true when a caller's credential is revoked.
    fn watch_revocation(&self, caller: &Caller) -> watch::Receiver<bool> {
        match &self.identity {
            Some(identity) => identity.watch_revocation(caller),
            // Never: the sender is gone.
            None => watch::channel(false).1,
        }
    }

    /// Authenticates the caller.
    async fn authenticate(
        &self,
        headers: &HeaderMap,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Caller, Box<Response>> {
        let Some(identity) = &self.identity else { return Ok(Caller::anonymous()) };
        // Of two headers, parsers could choose different ones.
        let authorization = single_value(headers, &header::AUTHORIZATION);
        let result = match authorization {
            Ok(authorization) => identity.authenticate(Credentials { authorization, certificate }).await,
            Err(error) => Err(AuthenticationError::Rejected(error.to_string())),
        };
        result.map_err(|error| {
            if let AuthenticationError::Rejected(why) = &error {
                let why = callgate::safe_text::escape_controls(why);
                self.gateway.log(&format!("authentication failed: {why}"));
            }
            let mut response = rejection(401, "authentication required: send a valid bearer token");
            if let Ok(challenge) = HeaderValue::from_str(&identity.challenge(&error)) {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            }
            Box::new(response)
        })
    }
}
