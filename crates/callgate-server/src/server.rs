//! The decision server: an engine with its store and identities → HTTP, or lines of JSON.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use callgate::engine::{Engine, EngineBuilder};
use callgate::host::{BoxFuture, StateStore};
use callgate::json::{Map, json};
use callgate_bundle::FollowedBundle;
use callgate_http::{
    Access, AccessSet, Authenticator, HealthProbe, IdentityFile, OriginPolicy, ReloadableAuthenticator,
    RequestHandler, Tls, check_listen_address, serve_connections,
};
use callgate_mcp::ToolServers;
use hyper::body::Incoming;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::activity::{Activity, ActivityObserver};
use crate::api::{Api, ApiSettings, REPORT_TIMEOUT};
use crate::browser_sessions::BrowserSessions;
use crate::http_server::{HttpState, handle};
use crate::notifications::ChannelAnswers;
use crate::{line_protocol, random_id};

/// The default maximum number of connections.
const MAX_CONNECTIONS: usize = 12_000;
/// How long operations in progress may take to complete at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// What happened lately, for the approvals page: an observer of the engine that a [`DecisionServer`] serves.
#[derive(Clone)]
pub struct ActivityLog(Arc<Activity>);

impl std::fmt::Debug for ActivityLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActivityLog").finish_non_exhaustive()
    }
}

impl Default for ActivityLog {
    fn default() -> Self {
        Self(Activity::new())
    }
}

impl ActivityLog {
    /// Adds it to an engine.
    #[must_use]
    pub fn observe(&self, engine: EngineBuilder) -> EngineBuilder {
        engine.observer(ActivityObserver(Arc::clone(&self.0)))
    }
}

/// Serves decisions, approvals and rules of an engine.
pub struct DecisionServer {
    engine: Engine,
    store: Arc<dyn StateStore>,
    activity: ActivityLog,
    identity: Option<IdentityFile>,
    tls: Option<Arc<Tls>>,
    local_approver: Option<LocalApprover>,
    origins: Vec<String>,
    context: Map,
    tool_servers: Option<Arc<ToolServers>>,
    channel_answers: Option<ChannelAnswers>,
    followed: Option<FollowedBundle>,
    report_timeout: Duration,
    max_connections: usize,
    log: Box<dyn Fn(&str) + Send + Sync>,
}

/// The approver of a server without an identity file.
struct LocalApprover {
    token: String,
    name: String,
}

impl std::fmt::Debug for DecisionServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecisionServer").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl DecisionServer {
    /// A server of an engine, which was built with this store and observes `activity`. The store must be one that outlives the
    /// process, such as a file: it has the sessions, the calls and the approvals.
    pub fn new(engine: Engine, store: Arc<dyn StateStore>, activity: ActivityLog) -> Self {
        Self {
            engine,
            store,
            activity,
            identity: None,
            tls: None,
            local_approver: None,
            origins: Vec::new(),
            context: Map::new(),
            tool_servers: None,
            channel_answers: None,
            followed: None,
            report_timeout: REPORT_TIMEOUT,
            max_connections: MAX_CONNECTIONS,
            log: Box::new(|_| {}),
        }
    }

    /// Requires authentication by an identity file, which is reloaded when it changes.
    #[must_use]
    pub fn with_identity_file(mut self, file: IdentityFile) -> Self {
        self.identity = Some(file);
        self
    }

    /// Serves HTTPS, with a certificate that is reloaded when its files change.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(Arc::new(tls));
        self
    }

    /// Without an identity file: lets the person of this name approve, who has the token that is returned. Agents on the same machine may
    /// send calls without a credential, so approving needs one that they do not have.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub fn with_local_approver(mut self, name: impl Into<String>) -> Result<(Self, String), String> {
        let token = random_id::new("").map_err(|problem| problem.detail)?;
        self.local_approver = Some(LocalApprover { token: token.clone(), name: name.into() });
        Ok((self, token))
    }

    /// Adds a context to every call; hosts and credentials override it.
    #[must_use]
    pub fn with_context(mut self, context: Map) -> Self {
        self.context = context;
        self
    }

    /// Records the answers that people give in these channels.
    #[must_use]
    pub fn with_channel_answers(mut self, answers: ChannelAnswers) -> Self {
        self.channel_answers = Some(answers);
        self
    }

    /// Shows the status of the published bundle that the rules come from, and of the other instances that follow it.
    #[must_use]
    pub fn with_followed_bundle(mut self, followed: FollowedBundle) -> Self {
        self.followed = Some(followed);
        self
    }

    /// Runs the calls of these servers' tools here. Hosts execute all other calls.
    #[must_use]
    pub fn with_tool_servers(mut self, servers: Arc<ToolServers>) -> Self {
        self.tool_servers = Some(servers);
        self
    }

    /// Allows requests of web pages of this origin, in addition to those of localhost.
    #[must_use]
    pub fn with_allowed_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets how long a host may take to report the result of a call. Then the call has failed, and its tool may have taken effect.
    #[must_use]
    pub fn with_report_timeout(mut self, timeout: Duration) -> Self {
        self.report_timeout = timeout;
        self
    }

    /// Sets the maximum number of connections. Each address may hold a third of them and each network a half.
    #[must_use]
    pub fn with_max_connections(mut self, most: usize) -> Self {
        self.max_connections = most.max(1);
        self
    }

    /// Sets where notes for the operator go, such as failed authentications.
    #[must_use]
    pub fn with_log(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.log = Box::new(log);
        self
    }

    /// Checks that it may listen on an address.
    ///
    /// # Errors
    /// The address is reachable from other machines, and callers are not authenticated.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), String> {
        let why = "callers are not authenticated";
        check_listen_address(address, self.identity.is_some(), why, "configure an identity file")
    }

    /// Serves HTTP until `end` completes; then operations in progress have some seconds to complete.
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
        let (close, closing) = watch::channel(false);
        let trusts_anonymous = self.identity.is_none();
        let (identity, watched_file) = match self.identity {
            Some(file) => {
                let (identity, watched) = ReloadableAuthenticator::from_file(file);
                (identity, Some(watched))
            }
            None => (ReloadableAuthenticator::fixed(local_identity(self.local_approver)?), None),
        };
        let identity = Arc::new(identity);
        let upstreams = self.tool_servers.clone();
        let health = HealthProbe::new(Arc::clone(&self.store), move || {
            let servers = upstreams.as_ref().map(|servers| servers.servers_up()).unwrap_or_default();
            servers.into_iter().map(|(_, is_up)| is_up).collect()
        });
        let settings = ApiSettings {
            context: self.context,
            report_timeout: self.report_timeout,
            tool_servers: self.tool_servers,
            followed: self.followed,
            closing: closing.clone(),
        };
        let is_shared = self.store.is_shared();
        let api = Arc::new(Api::new(self.engine, self.store, self.activity.0, settings));
        let state = Arc::new(HttpState {
            api: Arc::clone(&api),
            identity: Arc::clone(&identity),
            trusts_anonymous,
            origin_policy: OriginPolicy::new(address.ip().is_loopback(), self.origins),
            is_secure: self.tls.is_some(),
            browser_sessions: BrowserSessions::default(),
            channel_answers: self.channel_answers,
            closing: closing.clone(),
            log: self.log,
        });
        let watching = Arc::clone(&state);
        let tls = self.tls;
        let watched_tls = tls.clone();
        let watcher = tokio::spawn(async move {
            let log = |text: &str| (watching.log)(text);
            let certificates = async {
                if let Some(tls) = watched_tls {
                    tls.watch(log).await;
                }
            };
            let approvals = async {
                // Nobody else has the state otherwise.
                if is_shared {
                    watching.api.watch_approvals().await;
                }
            };
            tokio::join!(identity.watch(watched_file, log), certificates, approvals);
        });
        let handler = ServerHandler { state, probes: health.routes() };
        let drained = Arc::clone(&api);
        let stop = async move {
            end.await;
            // New operations are refused, and hosts still report the results of those in progress.
            let _ = close.send(true);
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, drained.operations.drained()).await;
        };
        let mut closed = closing;
        let timeout = async {
            let _ = closed.wait_for(|closing| *closing).await;
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        };
        tokio::select! {
            () = serve_connections(listener, tls, handler, self.max_connections, stop) => {}
            () = timeout => {}
        }
        watcher.abort();
        Ok(())
    }

    /// Serves the same API over lines of JSON, until the input ends. The process at the other end is trusted as a host.
    ///
    /// # Errors
    /// The input or the output fails.
    pub async fn serve_lines(
        self,
        input: impl AsyncBufRead + Unpin,
        output: impl AsyncWrite + Unpin,
    ) -> std::io::Result<()> {
        let (_close, closing) = watch::channel(false);
        let settings = ApiSettings {
            context: self.context,
            report_timeout: self.report_timeout,
            tool_servers: self.tool_servers,
            followed: self.followed,
            closing,
        };
        let api = Api::new(self.engine, self.store, self.activity.0, settings);
        line_protocol::serve(Arc::new(api), input, output).await
    }
}

/// Answers the requests of a server: all but health probes without a router in between.
#[derive(Clone)]
struct ServerHandler {
    state: Arc<HttpState>,
    probes: Router,
}

impl RequestHandler for ServerHandler {
    fn answer(&self, request: Request<Incoming>) -> BoxFuture<'static, Response> {
        match HealthProbe::has_path(request.uri().path()) {
            true => self.probes.answer(request),
            false => Box::pin(handle(Arc::clone(&self.state), request)),
        }
    }
}

/// The identities of a server without an identity file: nobody, or the local approver.
fn local_identity(approver: Option<LocalApprover>) -> Result<Authenticator, String> {
    let (token, name) = match approver {
        Some(LocalApprover { token, name }) => (token, name),
        // Nobody knows this token.
        None => (random_id::new("").map_err(|problem| problem.detail)?, String::new()),
    };
    let context = Map::from_iter([("principal".to_owned(), json!(name))]);
    let access = AccessSet::from_iter([Access::Host, Access::Approver, Access::Admin]);
    Authenticator::from_token(&token, context, access)
}
