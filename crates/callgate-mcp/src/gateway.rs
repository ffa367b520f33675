//! The state that all connections of a gateway share: the rules, the servers, the reviewed tools and the operator's log.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

use super::client_info::ClientContext;
use super::gateway_server::{GatewayServer, ServerList};
use super::pins::{LockFileError, PinStatus, PinnedTools, Signers};
use super::task_source::TaskSource;
use super::tool_change_notifier::ToolChangeNotifier;
use super::upstream_server::{ServerSpec, Transport};
use callgate::call::{ToolCall, TraceParent};
use callgate::engine::Engine;
use callgate::json::Value;
use callgate::policy::CompiledPolicies;
use callgate::safe_text::escape_controls;
use callgate::session::ConcurrentSession;
use callgate::tools::ToolDescriptor;

/// The default maximum size of a message, in bytes.
pub const DEFAULT_MAX_MESSAGE_SIZE: usize = 64 << 20;

type ToolsListed = dyn Fn(&str, &[ToolDescriptor]) + Send + Sync;

/// An MCP gateway: policies between clients and the servers behind it.
pub struct Gateway {
    pub(super) engine: Engine,
    servers: watch::Sender<ServerList>,
    /// The context of every call, vouched for by the operator.
    pub(super) context: Value,
    /// The session of the single stdio client, if it outlives the connection.
    pub(super) session: Option<String>,
    /// The maximum size of a message, in bytes.
    pub(super) max_message_size: usize,
    /// The state in which people answer approval requests that clients can't show.
    pub(super) approval_state: Option<String>,
    /// Whether calls have spans that servers continue.
    names_spans: bool,
    /// The reviewed tools, if only those may be used.
    pub(super) pins: Option<PinnedTools>,
    /// Where the host writes what the user asked for.
    pub(super) task: Option<TaskSource>,
    /// The rules can be reloaded while it runs.
    rules_can_change: bool,
    log: Box<dyn Fn(&str) + Send + Sync>,
    tools_listed: Vec<Box<ToolsListed>>,
    /// Those of the connected clients.
    notifiers: Mutex<Vec<Weak<ToolChangeNotifier>>>,
    /// Tools already logged as not reviewed.
    logged_tools: Mutex<BTreeSet<String>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers = self.servers.borrow();
        let specs: Vec<&ServerSpec> = servers.iter().map(|server| &*server.spec).collect();
        f.debug_struct("Gateway").field("servers", &specs).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway in front of these servers.
    pub fn new(engine: Engine, servers: impl IntoIterator<Item = ServerSpec>) -> Self {
        let servers = servers.into_iter().map(|spec| Arc::new(GatewayServer::new(spec))).collect();
        Self {
            engine,
            servers: watch::Sender::new(servers),
            context: Value::Null,
            session: None,
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
            approval_state: None,
            names_spans: false,
            pins: None,
            task: None,
            rules_can_change: false,
            log: Box::new(|_| {}),
            tools_listed: Vec::new(),
            notifiers: Mutex::new(Vec::new()),
            logged_tools: Mutex::default(),
        }
    }

    /// Sets the context of every call, vouched for by the operator: principal, roles, anything.
    #[must_use]
    pub fn with_context(mut self, context: Value) -> Self {
        self.context = context;
        self
    }

    /// Sets the session of the client that [`serve_lines`](Self::serve_stdio) serves: with a shared store, the session continues when the
    /// client reconnects.
    #[must_use]
    pub fn with_session(mut self, name: impl Into<String>) -> Self {
        self.session = Some(name.into());
        self
    }

    /// Sets the state in which people answer approval requests that clients can't show, as written in a command: its URL, quoted if
    /// necessary. The log names it; agents never see it.
    #[must_use]
    pub fn with_approval_state(mut self, state: impl Into<String>) -> Self {
        self.approval_state = Some(state.into());
        self
    }

    /// Names the span of each call to its server, in `_meta`. For gateways whose engine has an observer that exports these spans: without
    /// one, a server's spans would be children of a span that nobody exports.
    #[must_use]
    pub fn with_trace_propagation(mut self) -> Self {
        self.names_spans = true;
        self
    }

    /// Gives a call a span of its own, below its parent.
    pub(super) fn name_span(&self, call: &mut ToolCall) {
        if self.names_spans {
            let parent = call.trace_parent.as_deref().and_then(TraceParent::parse);
            let span = parent.map_or_else(TraceParent::new_root, |parent| parent.new_child());
            call.trace.get_or_insert_default().span = span.map(|span| span.to_string());
        }
    }

    /// Lists and runs only tools that match this lock file; with `signers`, only if one of them signed it. A missing file accepts no tool.
    ///
    /// # Errors
    /// The file can't be read, was edited, or lacks a valid signature.
    pub fn with_pins(mut self, lock_file: PathBuf, signers: Option<Signers>) -> Result<Self, LockFileError> {
        self.pins = Some(PinnedTools::from_file(lock_file, signers)?);
        Ok(self)
    }

    /// Reads what the user asked for from here, for each call of every client: policies read it as `$.task`. For clients over stdio; over
    /// HTTP, a sealed header tells it for each request.
    #[must_use]
    pub fn with_task(mut self, source: TaskSource) -> Self {
        self.task = Some(source);
        self
    }

    /// Declares that the rules or the servers can change while the gateway runs: the handshake announces notifications of changed tools, which
    /// [`notify_tools_changed`](Self::notify_tools_changed) sends.
    #[must_use]
    pub fn with_rule_reload(mut self) -> Self {
        self.rules_can_change = true;
        self
    }

    /// Whether the gateway itself notifies clients of changed tools: after a reload, or when an HTTP server has lost its session.
    pub(super) fn notifies_tool_changes(&self) -> bool {
        let is_http = |server: &Arc<GatewayServer>| matches!(server.spec.reach, Transport::Http(_));
        self.rules_can_change || self.servers.borrow().iter().any(is_http)
    }

    /// Sets the operator's log: it receives each problem that can't be reported to a client, as one line without a line end.
    #[must_use]
    pub fn with_log(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.log = Box::new(log);
        self
    }

    /// Adds a listener that receives the name and the tools of a server each time a client has loaded them.
    #[must_use]
    pub fn with_tools_listener(
        mut self,
        listener: impl Fn(&str, &[ToolDescriptor]) + Send + Sync + 'static,
    ) -> Self {
        self.tools_listed.push(Box::new(listener));
        self
    }

    /// Whether each server answers, by name: it has not failed within the last 30 seconds, or has answered since.
    pub fn servers_up(&self) -> Vec<(String, bool)> {
        let servers = self.servers.borrow();
        servers.iter().map(|server| (server.spec.name.clone(), server.health.is_up())).collect()
    }

    /// Replaces the servers while the gateway runs. Connections to servers whose configuration is unchanged stay; connected clients are
    /// connected to new ones, and notified that the tools have changed. Calls in progress at a removed server have 30 seconds to complete.
    ///
    /// A server with rules is unchanged if these are the same [`Engine`].
    pub fn set_servers(&self, servers: impl IntoIterator<Item = ServerSpec>) {
        let servers: Vec<ServerSpec> = servers.into_iter().collect();
        self.servers.send_modify(|present| {
            let kept = |spec: &ServerSpec| present.iter().find(|server| server.is_unchanged(spec)).cloned();
            let next = servers.into_iter();
            *present =
                next.map(|spec| kept(&spec).unwrap_or_else(|| Arc::new(GatewayServer::new(spec)))).collect();
        });
    }

    /// The servers, and later changes of them.
    pub(super) fn watch_servers(&self) -> watch::Receiver<ServerList> {
        self.servers.subscribe()
    }

    /// Closes the connections that clients share; returns when these servers have ended.
    pub(super) async fn close_shared_servers(&self) {
        let servers = Arc::clone(&*self.servers.borrow());
        for server in servers.iter() {
            server.close_shared().await;
        }
    }

    /// Sets the maximum size of a message, in bytes.
    #[must_use]
    pub fn with_max_message_size(mut self, bytes: usize) -> Self {
        self.max_message_size = bytes;
        self
    }

    /// Writes to the operator's log. Text from servers and clients must be escaped.
    pub(super) fn log(&self, message: &str) {
        (self.log)(message);
    }

    pub(super) fn report_tools(&self, server: &str, tools: &[ToolDescriptor]) {
        self.tools_listed.iter().for_each(|listener| listener(server, tools));
    }

    /// The review status of a tool. Without a lock file, every tool is accepted.
    pub(super) fn pin_status(&self, server: &str, name: &str, tool: &Value) -> PinStatus {
        self.pins.as_ref().map_or(PinStatus::Accepted, |pins| pins.status(server, name, tool))
    }

    /// Logs, once for each tool, that it is hidden until someone has reviewed it.
    pub(super) fn log_quarantine(&self, server: &str, names: &[String]) {
        let mut logged = self.logged_tools.lock().unwrap_or_else(PoisonError::into_inner);
        let new = names.iter().filter(|name| logged.insert(format!("{server}/{name}")));
        let new: Vec<String> = new.map(|name| format!("`{}`", escape_controls(name))).collect();
        drop(logged);
        if !new.is_empty() {
            let (tools, are) = if new.len() == 1 { ("tool", "is") } else { ("tools", "are") };
            self.log(&format!(
                "the server `{server}` has {tools} that {are} new or changed since the review, and hidden from clients: {}; review with \
                 `callgate pins review`",
                new.join(", ")
            ));
        }
    }

    /// The session of a client's calls. `is_unknown`: it may have been evicted, so its labels and facts are unknown unless stored.
    pub(super) fn open_session(&self, client: &ClientContext, is_unknown: bool) -> ConcurrentSession {
        let name = client.session.clone().unwrap_or_else(|| format!("callgate-{:016x}", fastrand::u64(..)));
        let mut session = self.engine.session().with_name(&name).with_context(client.context.clone());
        if is_unknown {
            session = session.with_unknown_past();
        }
        session.state_mut().set_run_info("conversationId", name.into());
        session.concurrent_for(client.requester.clone(), rules_lookup(self))
    }

    /// Adds a client to notify of changed tools, as long as it is connected.
    pub(super) fn add_notifier(&self, notifier: &Arc<ToolChangeNotifier>) {
        let mut notifiers = self.notifiers.lock().unwrap_or_else(PoisonError::into_inner);
        notifiers.retain(|notifier| notifier.strong_count() > 0);
        notifiers.push(Arc::downgrade(notifier));
    }

    /// Notifies every client that its tool list may have changed.
    pub async fn notify_tools_changed(&self) {
        let notifiers: Vec<Arc<ToolChangeNotifier>> = {
            let notifiers = self.notifiers.lock().unwrap_or_else(PoisonError::into_inner);
            notifiers.iter().filter_map(Weak::upgrade).collect()
        };
        for notifier in notifiers {
            notifier.notify_tools_changed().await;
        }
    }
}

/// Looks up a server's own rules, at the time of each call.
fn rules_lookup(gateway: &Gateway) -> impl Fn(&str) -> Option<Arc<CompiledPolicies>> + Send + Sync + 'static {
    let servers = gateway.watch_servers();
    move |name| {
        let servers = servers.borrow();
        servers.iter().find(|server| server.spec.name == name)?.spec.rules.as_ref().map(Engine::rules)
    }
}
