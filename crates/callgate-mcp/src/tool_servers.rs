//! The tools of MCP servers, for a host that runs calls itself after policies allowed them: [`ToolServers`] is one client of each server.

use std::sync::{Arc, PoisonError, RwLock, Weak};
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
use super::server_tool_lists::ServerToolLists;
use super::tool_list;
use super::upstream_event::UpstreamError;
use callgate::call::ToolCall;
use callgate::engine::Engine;
use callgate::host::{ToolError, ToolExecutor, ToolResponse};
use callgate::json::{Value, json};
use callgate::tools::{ToolCatalog, ToolDescriptor};

/// How long a server has to answer the handshake; its package may have to be installed first.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(300);

/// The tools of MCP servers, which a host lists and runs.
///
/// Each server has one connection, which all calls share: servers that keep state for each client belong behind a gateway. Servers are
/// started in the background; a call waits until its server has started, and starts it again if it has ended.
pub struct ToolServers {
    present: RwLock<Arc<[Arc<ToolServer>]>>,
    lists: Arc<ServerToolLists>,
}

/// A tool that may run.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTool {
    /// The name that calls without a server use: with the prefix of its server.
    pub name: String,
    /// The tool as its server describes it.
    pub descriptor: ToolDescriptor,
}

/// One server and the connection to it, which is closed when the last call has ended after the server was removed.
struct ToolServer {
    name: String,
    /// Distinguishes it from a removed server with the same name.
    number: u64,
    connection: Arc<ClientConnection>,
    /// A message in the server's protocol version.
    template: OnceCell<JsonRpcMessage>,
}

impl std::fmt::Debug for ToolServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<String> = self.servers().iter().map(|server| server.name.clone()).collect();
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
        let lists = Arc::new(ServerToolLists::new(engine));
        let servers = Self { present: RwLock::new(Arc::new([])), lists };
        servers.replace(|_| false, gateways)?;
        Ok(Arc::new(servers))
    }

    /// Replaces the servers: those that are kept by name stay connected, and `added` are connected. Calls in progress at the others
    /// complete; new ones do not reach them.
    ///
    /// # Errors
    /// An added server can't be started. Then nothing changes.
    pub fn replace(
        &self,
        is_kept: impl Fn(&str) -> bool,
        added: impl IntoIterator<Item = Gateway>,
    ) -> Result<(), UpstreamError> {
        let added: Vec<Arc<ToolServer>> =
            added.into_iter().map(|gateway| self.connect_server(gateway)).collect::<Result<_, _>>()?;
        let kept: Vec<Arc<ToolServer>> =
            self.servers().iter().filter(|server| is_kept(&server.name)).cloned().collect();
        let all: Arc<[Arc<ToolServer>]> = kept.into_iter().chain(added.iter().cloned()).collect();
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&all);
        self.lists.set_servers(all.iter().map(|server| (server.name.as_str(), server.number)));
        for server in added {
            tokio::spawn(async move {
                if let Some(upstream) = server.upstream()
                    && let Err(UpstreamError(why)) = server.ready(&upstream).await
                {
                    upstream.log(&why);
                }
            });
        }
        Ok(())
    }

    fn connect_server(&self, gateway: Gateway) -> Result<Arc<ToolServer>, UpstreamError> {
        let lists = Arc::clone(&self.lists);
        let name = gateway.servers_up().into_iter().map(|(name, _)| name).next().unwrap_or_default();
        let number = self.lists.new_server_number();
        let gateway = gateway.with_tools_listener(move |server, tools| lists.replace(server, number, tools));
        let (sender, messages) = ClientSender::new();
        let connection = ClientConnection::open(&Arc::new(gateway), &ClientContext::default(), sender)?;
        tokio::spawn(refuse_requests(Arc::downgrade(&connection), messages));
        Ok(Arc::new(ToolServer { name, number, connection, template: OnceCell::new() }))
    }

    fn servers(&self) -> Arc<[Arc<ToolServer>]> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn upstreams(&self) -> Vec<(Arc<ToolServer>, Arc<Upstream>)> {
        let servers = self.servers();
        servers.iter().filter_map(|server| Some((Arc::clone(server), server.upstream()?))).collect()
    }

    fn find(&self, name: &str) -> Option<(Arc<ToolServer>, Arc<Upstream>)> {
        let servers = self.servers();
        let server = servers.iter().find(|server| server.name == name)?;
        Some((Arc::clone(server), server.upstream()?))
    }

    /// The tools that calls are checked against: those of the engine, and those that servers have listed.
    pub fn catalog(&self) -> Arc<ToolCatalog> {
        self.lists.catalog()
    }

    /// Whether each server answers, by name: it has not failed within the last 30 seconds, or has answered since.
    pub fn servers_up(&self) -> Vec<(String, bool)> {
        self.servers().iter().flat_map(|server| server.connection.gateway.servers_up()).collect()
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
            && let Some((server, tool)) = self.upstreams().iter().find_map(|(_, upstream)| {
                let tool = upstream.prefix().and_then(|prefix| call.tool.strip_prefix(prefix))?;
                Some((upstream.name().to_owned(), tool.to_owned()))
            })
        {
            (call.server, call.tool) = (Some(server), tool);
        }
    }

    /// Loads the tools of all servers that have not listed them or have changed them since, and returns the tools that may run.
    /// Servers that can't be reached are logged and left out.
    pub async fn list_tools(&self) -> Vec<ListedTool> {
        let mut listed = Vec::new();
        for (server, upstream) in self.upstreams() {
            if let Err(UpstreamError(why)) = server.ready(&upstream).await {
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
        let ready = server.ready(&upstream).await;
        ready.map_err(|UpstreamError(why)| ToolError::new(why).with_kind("unavailable"))?;
        match find_call_problem(&server.connection, &upstream, (&call.tool, &call.tool), &call.input) {
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
        let template = server.ready(&upstream).await.map_err(unavailable)?;
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
    /// The server itself: the gateway of the connection has one.
    fn upstream(&self) -> Option<Arc<Upstream>> {
        self.connection.upstreams.all().first().cloned()
    }

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

impl Drop for ToolServer {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let connection = Arc::clone(&self.connection);
        runtime.spawn(async move { connection.close().await });
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
            let upstreams = connection.upstreams.all();
            if let Some(upstream) = upstreams.iter().find(|upstream| upstream.name() == server) {
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
