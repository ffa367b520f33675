//! `/healthz` and `/readyz`: whether the process runs, and whether calls can succeed. Answers name no server and no cause, so they
//! need no authentication.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::get;
use tokio::sync::Mutex;

use super::responses;
use crate::gateway::Gateway;
use callgate::host::{RecordKey, StateStore, SystemClock, space, with_store_timeout};

/// How long the answer of the store is reused, so that probes put no load on it.
const STORE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Answers the health probes of a gateway. Clones share the last answer of the store.
#[derive(Clone)]
pub struct HealthProbe {
    shared: Arc<Shared>,
}

struct Shared {
    gateway: Arc<Gateway>,
    store: Arc<dyn StateStore>,
    /// When the store was last asked, and whether it answered.
    last_check: Mutex<Option<(Instant, bool)>>,
}

impl std::fmt::Debug for HealthProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HealthProbe").finish_non_exhaustive()
    }
}

impl HealthProbe {
    /// A probe of a gateway and its store.
    pub fn new(gateway: Arc<Gateway>, store: Arc<dyn StateStore>) -> Self {
        Self { shared: Arc::new(Shared { gateway, store, last_check: Mutex::default() }) }
    }

    /// The routes of the probes.
    pub(super) fn routes(self) -> Router {
        Router::new().route("/healthz", get(healthy)).route("/readyz", get(ready)).with_state(self)
    }

    /// What keeps calls from succeeding, in one word. `None` if nothing does: the store answers, and so did one of the servers when it
    /// was last used.
    async fn obstacle(&self) -> Option<&'static str> {
        if !self.store_answers().await {
            return Some("store");
        }
        let mut servers = self.shared.gateway.servers_up().map(|(_, is_up)| is_up).peekable();
        (servers.peek().is_some() && !servers.any(|is_up| is_up)).then_some("servers")
    }

    async fn store_answers(&self) -> bool {
        // Concurrent probes wait for one check.
        let mut last_check = self.shared.last_check.lock().await;
        if let Some((at, answers)) = *last_check
            && at.elapsed() < STORE_CHECK_INTERVAL
        {
            return answers;
        }
        let key = RecordKey { space: space::CALLS, key: "readiness" };
        let record = with_store_timeout(&SystemClock, || self.shared.store.record(key)).await;
        *last_check = Some((Instant::now(), record.is_ok()));
        record.is_ok()
    }
}

async fn healthy() -> Response {
    text_response(200, "ok\n")
}

async fn ready(State(probe): State<HealthProbe>) -> Response {
    match probe.obstacle().await {
        None => text_response(200, "ready\n"),
        Some(obstacle) => text_response(503, &format!("not ready: {obstacle}\n")),
    }
}

fn text_response(status: u16, text: &str) -> Response {
    let mut response = responses::empty(status);
    *response.body_mut() = Body::from(text.to_owned());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
