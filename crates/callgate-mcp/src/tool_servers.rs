//! The tools of MCP servers, for a host that runs calls itself after policies allowed them: [`ToolServers`] is one client of each server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::sync::{OnceCell, mpsc};

use super::call_problem::{CallProblem, find_call_problem};
use super::call_result;
use super::client_info::ClientContext;
use super::client_sender::ClientSender;
use super::connection::{ClientConnection, Upstream};
use super::gateway::Gateway;
use super::handshake::handshake;
use super::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use super::method;
use super::pins::PinStatus;
use super::tool_list;
use super::upstream_event::UpstreamError;
use callgate::call::ToolCall;
use callgate::engine::Engine;
use callgate::host::{ToolError, ToolExecutor, ToolResponse};
use callgate::json::{Value, json};
use callgate::tools::{ToolCatalog, ToolDescriptor, add_declared};

/// How long a server has to answer the handshake; its package may have to be installed first.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(300);

/// The tools of MCP servers, which a host lists and runs.
///
/// Each server has one connection, which all calls share: servers that keep state for each client belong behind a gateway. Servers are
/// started in the background; a call waits until its server has started, and starts it again if it has ended.
pub struct ToolServers {
    servers: Vec<ToolServer>,
    lists: Arc<ToolLists>,
}

/// A tool that may run.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTool {
    /// The name that calls without a server use: with the prefix of its server.
    pub name: String,
    /// The tool as its server describes it.
    pub descriptor: ToolDescriptor,
}

/// One server and the connection to it.
struct ToolServer {
    connection: Arc<ClientConnection>,
    /// A message in the server's protocol version.
    template: OnceCell<JsonRpcMessage>,
}

/// The tools of all servers, as they were last listed.
struct ToolLists {
    engine: Engine,
    by_server: Mutex<BTreeMap<String, Vec<ToolDescriptor>>>,
    catalog: RwLock<Arc<ToolCatalog>>,
}

impl std::fmt::Debug for ToolServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.upstreams().map(|(_, upstream)| upstream.name()).collect();
        f.debug_struct("ToolServers").field("servers", &names).finish_non_exhaustive()
    }
}

impl ToolServers {
    /// Connects to the servers of these gateways, which have one server each and the rules of `engine`.
    ///
    /// # Errors
    /// A server can't be started.
    pub fn connect(
        engine: &Engine,
        gateways: impl IntoIterator<Item = Gateway>,
    ) -> Result<Arc<Self>, UpstreamError> {
        let lists = Arc::new(ToolLists {
            engine: engine.clone(),
            by_server: Mutex::default(),
            catalog: RwLock::new(Arc::new(ToolCatalog::new(engine.session().tools().iter().cloned()))),
        });
        let servers: Result<_, UpstreamError> = gateways
            .into_iter()
            .map(|gateway| {
                let listed = Arc::clone(&lists);
                let gateway = gateway.with_tools_listener(move |server, tools| listed.replace(server, tools));
                let (sender, messages) = ClientSender::new();
                let connection =
                    ClientConnection::open(&Arc::new(gateway), &ClientContext::default(), sender)?;
                tokio::spawn(refuse_requests(Arc::downgrade(&connection), messages));
                Ok(ToolServer { connection, template: OnceCell::new() })
            })
            .collect();
        let servers = Arc::new(Self { servers: servers?, lists });
        for index in 0..servers.servers.len() {
            let servers = Arc::clone(&servers);
            tokio::spawn(async move {
                if let Some((server, upstream)) = servers.upstreams().nth(index)
                    && let Err(UpstreamError(why)) = server.ready(upstream).await
                {
                    upstream.log(&why);
                }
            });
        }
        Ok(servers)
    }

    fn upstreams(&self) -> impl Iterator<Item = (&ToolServer, &Upstream)> {
        self.servers.iter().flat_map(|server| {
            server.connection.upstreams.as_slice().iter().map(move |upstream| (server, upstream))
        })
    }

    fn find(&self, server: &str) -> Option<(&ToolServer, &Upstream)> {
        self.upstreams().find(|(_, upstream)| upstream.name() == server)
    }

    /// The tools that calls are checked against: those of the engine, and those that servers have listed.
    pub fn catalog(&self) -> Arc<ToolCatalog> {
        Arc::clone(&self.lists.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether each server answers, by name: it has not failed within the last 30 seconds, or has answered since.
    pub fn servers_up(&self) -> impl Iterator<Item = (&str, bool)> {
        self.servers.iter().flat_map(|server| server.connection.gateway.servers_up())
    }

    /// Gives a call of one of these servers a span of its own, below its parent, if spans are exported.
    pub fn name_span(&self, call: &mut ToolCall) {
        if let Some((server, _)) = call.server.as_deref().and_then(|name| self.find(name)) {
            server.connection.gateway.name_span(call);
        }
    }

    /// Whether a server has this name.
    pub fn has_server(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether a call belongs to one of these servers.
    pub fn has_server_of(&self, call: &ToolCall) -> bool {
        call.server.as_deref().is_some_and(|server| self.has_server(server))
    }

    /// Resolves the prefixed name of a call without a server, such as `files__read`, to a tool of its server.
    pub fn resolve(&self, call: &mut ToolCall) {
        if call.server.is_none()
            && let Some((server, tool)) = self.upstreams().find_map(|(_, upstream)| {
                Some((upstream.name(), upstream.prefix().and_then(|prefix| call.tool.strip_prefix(prefix))?))
            })
        {
            (call.server, call.tool) = (Some(server.to_owned()), tool.to_owned());
        }
    }

    /// Loads the tools of all servers that have not listed them or have changed them since, and returns the tools that may run.
    /// Servers that can't be reached are logged and left out.
    pub async fn list_tools(&self) -> Vec<ListedTool> {
        let mut listed = Vec::new();
        for (server, upstream) in self.upstreams() {
            if let Err(UpstreamError(why)) = server.ready(upstream).await {
                upstream.log(&why);
                continue;
            }
            let connection = &server.connection;
            for descriptor in upstream.tools().descriptors(upstream.name()) {
                let described = upstream.tools().get(&descriptor.name).unwrap_or_default();
                let status = connection.gateway.pin_status(upstream.name(), &descriptor.name, &described);
                let is_hidden = connection.session.never_runs(upstream.name(), &descriptor.name);
                if status == PinStatus::Accepted && !is_hidden {
                    let name = format!("{}{}", upstream.prefix().unwrap_or_default(), descriptor.name);
                    listed.push(ListedTool { name, descriptor });
                }
            }
        }
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        listed
    }

    /// Checks a call of one of these servers before policies evaluate it.
    ///
    /// # Errors
    /// The server can't be reached, the tool is not reviewed, or a server could read the call as another one than policies do: the reason,
    /// for the caller.
    pub async fn check(&self, call: &ToolCall) -> Result<(), ToolError> {
        let Some((server, upstream)) = call.server.as_deref().and_then(|server| self.find(server)) else {
            return Ok(());
        };
        let ready = server.ready(upstream).await;
        ready.map_err(|UpstreamError(why)| ToolError::new(why).with_kind("unavailable"))?;
        match find_call_problem(&server.connection, upstream, (&call.tool, &call.tool), &call.input) {
            None => Ok(()),
            Some(CallProblem::Ambiguous(why)) => Err(ToolError::new(why).with_kind("ambiguous")),
            Some(CallProblem::Quarantined(why)) => {
                Err(ToolError::new(why).with_kind(call_result::QUARANTINED))
            }
        }
    }
}

impl ToolExecutor for ToolServers {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        // What was asked about or waited for may have changed since the call was checked.
        self.check(call).await?;
        let Some((server, upstream)) = call.server.as_deref().and_then(|server| self.find(server)) else {
            return Err(ToolError::new("the call names no server that Callgate runs"));
        };
        let unavailable = |UpstreamError(why): UpstreamError| ToolError::new(why).with_kind("unavailable");
        let template = server.ready(upstream).await.map_err(unavailable)?;
        let id = server.connection.requests.new_id();
        let mut message = JsonRpcMessage::request(
            &id,
            method::TOOLS_CALL,
            template.params().cloned().unwrap_or_default().into(),
        );
        message.set_param("name", call.tool.as_str().into());
        message.set_param("arguments", call.input.clone());
        message.set_trace_from(call);
        let response = upstream.start_request_for_client(message, &id).await.map_err(unavailable)?;
        let _cancellation = CancelOnDrop { connection: &server.connection, server: upstream.name(), id };
        let lost = "the connection to the server was lost; the tool may have taken effect";
        let response = response.await.map_err(|_| ToolError::new(lost).with_kind("unavailable"))?;
        tool_response(response)
    }
}

impl ToolServer {
    /// Waits until the server has answered the handshake and listed its tools.
    async fn ready(&self, upstream: &Upstream) -> Result<&JsonRpcMessage, UpstreamError> {
        let name = upstream.name();
        let handshake = async {
            let answered =
                tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(&self.connection, upstream)).await;
            answered.unwrap_or_else(|_| Err(UpstreamError("it does not respond".to_owned())))
        };
        let template = self.template.get_or_try_init(|| handshake).await;
        let template = template.map_err(|UpstreamError(why)| {
            UpstreamError(format!("the server `{name}` is unavailable: {why}"))
        })?;
        tool_list::load_tools(&self.connection.session, upstream, template).await;
        Ok(template)
    }
}

impl ToolLists {
    /// Replaces the tools of a server.
    fn replace(&self, server: &str, tools: &[ToolDescriptor]) {
        let rules = self.engine.rules();
        let mut tools = tools.to_vec();
        add_declared(&mut tools, rules.tools(), server);
        let mut by_server = self.by_server.lock().unwrap_or_else(PoisonError::into_inner);
        by_server.insert(server.to_owned(), tools);
        let all =
            self.engine.session().tools().to_vec().into_iter().chain(by_server.values().flatten().cloned());
        let catalog = Arc::new(ToolCatalog::new(all));
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = catalog;
    }
}

/// Cancels a request that nobody waits for any more, such as after the timeout of a policy.
struct CancelOnDrop<'c> {
    connection: &'c Arc<ClientConnection>,
    server: &'c str,
    id: RequestId,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let (connection, server) = (Arc::downgrade(self.connection), self.server.to_owned());
        let id = self.id.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let Some(connection) = connection.upgrade() else { return };
            let mut upstreams = connection.upstreams.as_slice().iter();
            if let Some(upstream) = upstreams.find(|upstream| upstream.name() == server) {
                upstream.cancel(&id, "nobody waits for the result").await;
            }
        });
    }
}

/// Answers the requests of servers: nobody is there who could be asked.
async fn refuse_requests(connection: Weak<ClientConnection>, mut messages: mpsc::Receiver<JsonRpcMessage>) {
    while let Some(message) = messages.recv().await {
        let MessageKind::Request(id) = message.kind() else { continue };
        let response = match message.method() {
            method::PING => JsonRpcMessage::response(id, json!({})),
            _ => {
                let why = "the client has no such capability";
                JsonRpcMessage::error_response(Some(id), code::METHOD_NOT_FOUND, why, None)
            }
        };
        let Some(connection) = connection.upgrade() else { return };
        let (sender, _) = ClientSender::lossy();
        connection.handle_client_message(response, &sender).await;
    }
}

/// Converts the response of a server.
fn tool_response(mut message: JsonRpcMessage) -> Result<ToolResponse, ToolError> {
    if let Some(error) = message.take_payload("error") {
        let text = error.get("message").and_then(Value::as_str).unwrap_or("the tool failed").to_owned();
        let kind = error.get("code").map(|code| format!("rpc{code}"));
        return Err(ToolError { message: text, kind });
    }
    let result = message.take_payload("result").unwrap_or_default();
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(ToolError::new(call_result::text_content(&result)).with_kind("tool_error"));
    }
    if call_result::is_interim(&result) {
        let why = "the server asks for input or starts a task, which needs a client behind a gateway";
        return Err(ToolError::new(why).with_kind("unsupported"));
    }
    Ok(result.into())
}
