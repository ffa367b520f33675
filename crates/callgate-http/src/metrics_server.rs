//! `/metrics` and the health probes at an address of their own, which clients of the gateway have no part in.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use ring::{digest, hmac, rand};
use tokio::net::TcpListener;

use crate::health_probe::HealthProbe;
use crate::origin_policy::OriginPolicy;
use crate::{check_listen_address, connection_limits, headers, responses};

/// The maximum number of connections: Prometheus and probes need a few.
const MAX_CONNECTIONS: usize = 48;
/// The shortest token, so that none can be guessed.
const MIN_TOKEN_LENGTH: usize = 16;

/// A token that a request must carry, compared in constant time.
#[derive(Clone)]
pub struct BearerSecret {
    comparison_key: hmac::Key,
    tag: hmac::Tag,
}

impl std::fmt::Debug for BearerSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BearerSecret").finish_non_exhaustive()
    }
}

impl BearerSecret {
    /// A secret from the text of a token file; white space around the token is ignored.
    ///
    /// # Errors
    /// The token is too short, or the system provides no random bytes.
    pub fn new(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < MIN_TOKEN_LENGTH {
            return Err(format!("the token is shorter than {MIN_TOKEN_LENGTH} characters"));
        }
        let comparison_key = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new())
            .map_err(|_| "the system provides no random bytes".to_owned())?;
        let tag = hmac::sign(&comparison_key, digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
        Ok(Self { comparison_key, tag })
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Ok(Some(authorization)) = headers::single_value(headers, &header::AUTHORIZATION) else {
            return false;
        };
        let Some((scheme, token)) = authorization.split_once(' ') else { return false };
        let digest = digest::digest(&digest::SHA256, token.trim().as_bytes());
        scheme.eq_ignore_ascii_case("bearer")
            && hmac::verify(&self.comparison_key, digest.as_ref(), self.tag.as_ref()).is_ok()
    }
}

type MetricsSource = dyn Fn() -> String + Send + Sync;

/// Serves metrics and health probes.
pub struct MetricsServer {
    source: Arc<MetricsSource>,
    content_type: &'static str,
    health: HealthProbe,
    secret: Option<BearerSecret>,
}

impl std::fmt::Debug for MetricsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricsServer").field("secret", &self.secret).finish_non_exhaustive()
    }
}

/// The shared state of request handlers.
struct ServerState {
    server: MetricsServer,
    origin_policy: OriginPolicy,
}

impl MetricsServer {
    /// A server of the text that `source` returns, of this media type.
    pub fn new(
        source: impl Fn() -> String + Send + Sync + 'static,
        content_type: &'static str,
        health: HealthProbe,
    ) -> Self {
        Self { source: Arc::new(source), content_type, health, secret: None }
    }

    /// Requires a token for `/metrics`.
    #[must_use]
    pub fn with_secret(mut self, secret: BearerSecret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Checks that it may listen on an address.
    ///
    /// # Errors
    /// The address is reachable from other machines, and no token is required.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), String> {
        let why = "the metrics can be read without a token";
        check_listen_address(address, self.secret.is_some(), why, "configure one")
    }

    /// Serves requests until its future is dropped.
    ///
    /// # Errors
    /// The address is not allowed, or the socket fails.
    pub async fn serve(self, listener: TcpListener) -> Result<(), String> {
        let address = listener.local_addr().map_err(|error| format!("the socket fails: {error}"))?;
        self.check_address(address)?;
        let probes = self.health.clone().routes();
        let origin_policy = OriginPolicy::new(address.ip().is_loopback(), Vec::new());
        let state = Arc::new(ServerState { server: self, origin_policy });
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .with_state(Arc::clone(&state))
            .merge(probes)
            .layer(from_fn_with_state(state, check_origin));
        connection_limits::serve(listener, None, routes, MAX_CONNECTIONS, std::future::pending()).await;
        Ok(())
    }
}

/// DNS rebinding protection: web pages can't read metrics merely because they run on the same machine.
async fn check_origin(State(state): State<Arc<ServerState>>, request: Request<Body>, next: Next) -> Response {
    match state.origin_policy.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => responses::text(403, &error.to_string()),
    }
}

async fn metrics(State(state): State<Arc<ServerState>>, headers: HeaderMap) -> Response {
    let server = &state.server;
    if server.secret.as_ref().is_some_and(|secret| !secret.admits(&headers)) {
        let mut response = responses::text(401, "authentication required: send the bearer token");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    responses::with_body(200, server.content_type, (server.source)())
}
