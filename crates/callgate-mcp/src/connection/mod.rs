//! One client's connection: routes messages between the client and its servers, and runs tool calls through the policies.

mod client_messages;
mod request_table;
mod server_messages;
mod upstream;
mod upstreams;

use std::sync::Arc;

use tokio::sync::mpsc;

use self::upstream::UpstreamContext;
use self::upstreams::Upstreams;
use super::client_info::{ClientContext, ClientInfo};
use super::client_sender::ClientSender;
use super::continuations::PendingContinuations;
use super::gateway::Gateway;
use super::gateway_server::ServerList;
use super::jsonrpc::JsonRpcMessage;
use super::tasks::TaskRegistry;
use super::tool_change_notifier::ToolChangeNotifier;
use super::upstream_event::UpstreamError;
use callgate::json::Value;
use callgate::session::ConcurrentSession;

pub(super) use self::request_table::{LATE_RESPONSE_WINDOW, RequestTable};
pub(super) use self::upstream::Upstream;

/// One client's connection.
pub(super) struct ClientConnection {
    pub(super) gateway: Arc<Gateway>,
    pub(super) session: ConcurrentSession,
    /// The verified context of every call: the operator's, and the client's identity.
    pub(super) context: Value,
    pub(super) client: Arc<ClientInfo>,
    pub(super) upstreams: Upstreams,
    pub(super) requests: Arc<RequestTable>,
    pub(super) continuations: PendingContinuations,
    pub(super) tasks: TaskRegistry,
    /// Shared with the gateway, which notifies every client.
    notifier: Arc<ToolChangeNotifier>,
}

impl ClientConnection {
    /// Connects a client to all servers, in a session of its own. `general_sender`: the queue for messages that belong to none of its
    /// requests.
    pub(super) fn open(
        gateway: &Arc<Gateway>,
        client: &ClientContext,
        general_sender: ClientSender,
    ) -> Result<Arc<Self>, UpstreamError> {
        let session = gateway.open_session(client, false);
        Self::open_in_session(gateway, session, client.context.clone(), general_sender)
    }

    /// Connects a client to all servers, in a session that other connections may share. `context`: the verified context of its calls.
    pub(super) fn open_in_session(
        gateway: &Arc<Gateway>,
        session: ConcurrentSession,
        context: Value,
        general_sender: ClientSender,
    ) -> Result<Arc<Self>, UpstreamError> {
        let (connections, event_streams) = mpsc::unbounded_channel();
        let client = Arc::new(ClientInfo::default());
        let requests = Arc::new(RequestTable::new());
        let mut server_list = gateway.watch_servers();
        let shared = UpstreamContext {
            gateway: Arc::clone(gateway),
            client: Arc::clone(&client),
            requests: Arc::clone(&requests),
            connections,
        };
        let servers = Arc::clone(&*server_list.borrow_and_update());
        let upstreams = Upstreams::open(&servers, shared)?;
        let notifier = Arc::new(ToolChangeNotifier {
            client: Arc::clone(&client),
            requests: Arc::clone(&requests),
            general_sender,
        });
        let connection = Arc::new(Self {
            gateway: Arc::clone(gateway),
            session,
            context,
            client,
            upstreams,
            requests,
            continuations: PendingContinuations::default(),
            tasks: TaskRegistry::default(),
            notifier,
        });
        gateway.add_notifier(&connection.notifier);
        let weak = Arc::downgrade(&connection);
        tokio::spawn(server_messages::handle_event_streams(weak, event_streams, server_list));
        Ok(connection)
    }

    /// Takes over a changed list of servers. Requests to removed ones have some time to complete.
    fn update_servers(self: &Arc<Self>, servers: &ServerList) {
        for removed in self.upstreams.update(servers) {
            let connection = Arc::clone(self);
            tokio::spawn(async move {
                removed.drain().await;
                if let Some(mut ended) = removed.close().await {
                    let _ = ended.wait_for(|ended| *ended).await;
                }
                removed.fail_after_close("the server was removed").await;
                connection.upstreams.forget(&removed);
            });
        }
        let notifier = Arc::clone(&self.notifier);
        tokio::spawn(async move { notifier.notify_tools_changed().await });
    }

    /// Redacts a response or a notification about a task.
    fn redact_task(&self, task: &str, message: JsonRpcMessage) -> JsonRpcMessage {
        match self.upstreams.all().iter().any(|server| self.session.redacts_results(server.name())) {
            true => self.tasks.redact(&self.session, task, message),
            false => message,
        }
    }

    /// Whether the client has pending requests that it did not cancel.
    pub(super) fn is_busy(&self) -> bool {
        self.requests.is_busy()
    }

    /// Fails all pending requests to the client, whose input has ended.
    pub(super) async fn fail_server_requests(&self) {
        self.upstreams.fail_server_requests().await;
    }

    /// Closes the connection after the client is gone; returns when its servers have ended.
    pub(super) async fn close(&self) {
        self.upstreams.close().await;
    }
}
