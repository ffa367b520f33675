//! `/healthz` and `/readyz`: whether the process runs, and whether calls can succeed. Answers name no server and no cause, so they
//! need no authentication.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use tokio::sync::Mutex;

use crate::responses;
use callgate::host::{RecordKey, StateStore, SystemClock, space, with_store_timeout};

/// How long the answer of the store is reused, so that probes put no load on it.
const STORE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

const HEALTH_PATH: &str = "/healthz";
const READINESS_PATH: &str = "/readyz";

/// Which servers answered when they were last used.
type ServerHealth = dyn Fn() -> Vec<bool> + Send + Sync;

/// Answers the health probes of a server. Clones share the last answer of the store.
#[derive(Clone)]
pub struct HealthProbe {
    shared: Arc<Shared>,
}

struct Shared {
    servers: Box<ServerHealth>,
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
    /// A probe of a store, and of the upstream servers: `servers` returns for each whether it answered when it was last used.
    pub fn new(store: Arc<dyn StateStore>, servers: impl Fn() -> Vec<bool> + Send + Sync + 'static) -> Self {
        Self { shared: Arc::new(Shared { servers: Box::new(servers), store, last_check: Mutex::default() }) }
    }

    /// The routes of the probes.
    pub fn routes(self) -> Router {
        Router::new().route(HEALTH_PATH, get(healthy)).route(READINESS_PATH, get(ready)).with_state(self)
    }

    /// Whether a path is that of a probe.
    pub fn has_path(path: &str) -> bool {
        path == HEALTH_PATH || path == READINESS_PATH
    }

    /// What keeps calls from succeeding, in one word. `None` if nothing does: the store answers, and so did one of the servers when it
    /// was last used.
    async fn obstacle(&self) -> Option<&'static str> {
        if !self.store_answers().await {
            return Some("store");
        }
        let servers = (self.shared.servers)();
        (!servers.is_empty() && !servers.contains(&true)).then_some("servers")
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
    responses::text(200, "ok\n")
}

async fn ready(State(probe): State<HealthProbe>) -> Response {
    match probe.obstacle().await {
        None => responses::text(200, "ready\n"),
        Some(obstacle) => responses::text(503, &format!("not ready: {obstacle}\n")),
    }
}
