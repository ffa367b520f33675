//! One client's connection: routes messages between the client and its servers, and runs tool calls through the policies.
//!
//! Messages keep their ids if possible. If the other side already uses an id, the message gets a new one there, and its response gets
//! the original id back.

mod client_messages;
mod upstream_requests;
mod server_messages;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

use super::approval_channels::ApprovedContinuation;
use super::client_info::ClientInfo;
use super::client_sender::{ClientSender, QUEUE_CAPACITY};
use super::gateway::Gateway;
use super::http_headers::META_SUBSCRIPTION;
use super::jsonrpc::{JsonRpcMessage, RequestId};
use super::method;
use super::tasks::TaskRegistry;
use super::tool_list::ToolCache;
use super::upstream_server::{ConnectionClosed, ServerSpec, UpstreamConnection};
use crate::call::ToolCall;
use crate::json::{Value, json};
use crate::message::RequestPart;
use crate::session::ConcurrentSession;

/// The maximum number of approved calls of one connection that wait for input. Beyond it the oldest is evicted and needs a new approval.
const GOING_ON: usize = 256;

/// How long responses to a cancelled request are still forwarded.
pub(super) const LATE_RESPONSE_WINDOW: Duration = Duration::from_secs(10);

/// The client of a connection, as far as its transport has verified it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientContext {
    /// The verified context of every call: principal, roles, tenant, anything.
    pub context: Value,
    /// The session of its calls, if it outlives the connection; `None` creates a new one.
    pub session: Option<String>,
    /// The name of the requester, which owns the approvals given under it.
    pub requester: String,
}

/// One client's connection.
pub(super) struct ClientConnection {
    me: Weak<Self>,
    pub(super) gateway: Arc<Gateway>,
    pub(super) session: ConcurrentSession,
    /// The verified context of every call: the operator's, and the client's identity.
    pub(super) context: Value,
    pub(super) client: ClientInfo,
    servers: Vec<ConnectedServer>,
    going_on: Mutex<VecDeque<ApprovedContinuation>>,
    pub(super) tasks: TaskRegistry,
    /// The client's pending requests.
    asked: Mutex<HashMap<RequestId, ClientRequest>>,
    /// Pending requests to the client.
    asking: Mutex<HashMap<RequestId, ClientResponseReceiver>>,
    /// The queue for messages that belong to no request.
    general: ClientSender,
    /// The unguessable prefix of the gateway's own ids.
    secret: String,
    count: AtomicU64,
}

/// One upstream server of the connection.
pub(super) struct ConnectedServer {
    pub(super) spec: Arc<ServerSpec>,
    connected: tokio::sync::RwLock<TransportState>,
    /// Pending requests to it, with the generation of the connection that they were sent on.
    awaiting: Mutex<HashMap<RequestId, (u64, ServerResponseReceiver)>>,
    pub(super) tools: ToolCache,
    /// It timed out, and has sent nothing since.
    pub(super) has_timed_out: AtomicBool,
}

/// The current transport connection to a server.
struct TransportState {
    connection: Option<UpstreamConnection>,
    /// The number of the connection, from 0.
    generation: u64,
    /// The times of recent restarts.
    starts: Vec<Instant>,
    /// No restart is allowed.
    is_closed: bool,
}

/// A pending request of the client.
struct ClientRequest {
    outlet: ClientSender,
    /// Its progress token.
    progress: Option<RequestId>,
    /// It subscribes to changes of the tool list.
    subscribes_to_tools: bool,
    /// The servers it was sent to, with its ids there.
    sent: Vec<(usize, RequestId)>,
    /// Becomes true when the client cancels it.
    cancel: watch::Sender<bool>,
}

/// The receiver of a server's response.
enum ServerResponseReceiver {
    /// The client, with its own id.
    Client { id: RequestId, outlet: ClientSender, then: ResponseProcessing },
    /// The gateway.
    Gateway(oneshot::Sender<JsonRpcMessage>),
}

/// How a server's response is processed before it is forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ResponseProcessing {
    Nothing,
    /// It declares the server's capabilities.
    Handshake,
    /// It lists tools.
    FilterTools,
    /// It belongs to this task.
    RedactTask(String),
}

/// The receiver of the client's response.
enum ClientResponseReceiver {
    /// A server, with its own id.
    Server(usize, RequestId),
    /// The gateway.
    Gateway(oneshot::Sender<JsonRpcMessage>),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every update is a single step, so a panic elsewhere leaves the data consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientConnection {
    /// Connects a client to all servers, in a session of its own. `general`: the queue for messages that belong to none of its requests.
    pub(super) fn open(
        gateway: &Arc<Gateway>,
        who: &ClientContext,
        general: ClientSender,
    ) -> Result<Arc<Self>, ConnectionClosed> {
        Self::open_in_session(gateway, gateway.open_session(who, false), who.context.clone(), general)
    }

    /// Connects a client to all servers, in a session that other connections may share. `context`: the verified context of its calls.
    pub(super) fn open_in_session(
        gateway: &Arc<Gateway>,
        session: ConcurrentSession,
        context: Value,
        general: ClientSender,
    ) -> Result<Arc<Self>, ConnectionClosed> {
        let secret = format!("callgate-{:016x}", fastrand::u64(..));
        let mut opened = Vec::new();
        for spec in &gateway.servers {
            let (events, heard) = mpsc::channel(QUEUE_CAPACITY);
            let connection = UpstreamConnection::open(spec, events, gateway.max_message_size).map_err(
                |ConnectionClosed(why)| ConnectionClosed(format!("the server `{}`: {why}", spec.name)),
            )?;
            let server = ConnectedServer {
                spec: Arc::clone(spec),
                connected: tokio::sync::RwLock::new(TransportState {
                    connection: Some(connection),
                    generation: 0,
                    starts: Vec::new(),
                    is_closed: false,
                }),
                awaiting: Mutex::default(),
                tools: ToolCache::default(),
                has_timed_out: AtomicBool::new(false),
            };
            opened.push((server, heard));
        }
        let (servers, heard): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let link = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            gateway: Arc::clone(gateway),
            session,
            context,
            client: ClientInfo::default(),
            servers,
            going_on: Mutex::default(),
            tasks: TaskRegistry::default(),
            asked: Mutex::default(),
            asking: Mutex::default(),
            general,
            secret,
            count: AtomicU64::new(0),
        });
        gateway.add_connection(&link);
        for (index, heard) in heard.into_iter().enumerate() {
            tokio::spawn(server_messages::handle_events(Arc::downgrade(&link), index, 0, heard));
        }
        Ok(link)
    }

    pub(super) fn server(&self, index: usize) -> Option<&ConnectedServer> {
        self.servers.get(index)
    }

    /// Routes a tool name to its server by prefix; returns the server's index and the tool's own name.
    pub(super) fn route<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        self.servers.iter().enumerate().find_map(|(index, server)| match &server.spec.prefix {
            None => Some((index, name)),
            Some(prefix) => Some((index, name.strip_prefix(prefix.as_str())?)),
        })
    }

    /// A new id that no peer uses.
    fn new_id(&self) -> RequestId {
        RequestId::from_text(&format!("{}-{}", self.secret, self.count.fetch_add(1, Ordering::Relaxed)))
    }

    /// A new call id, unique in the store.
    pub(super) fn new_call_id(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        format!("{}-{count}", self.secret.trim_start_matches("callgate-").get(..8).unwrap_or("call"))
    }

    /// Logs a problem with a server.
    pub(super) fn log_server(&self, index: usize, message: &str) {
        let name = self.servers.get(index).map_or("", |server| &server.spec.name);
        self.gateway.log(&format!("the server `{name}`: {message}"));
    }

    /// Adds a server's prefix to the names of its items.
    pub(super) fn prefix_names(&self, index: usize, items: &mut [Value]) {
        let Some(prefix) = self.servers.get(index).and_then(|server| server.spec.prefix.as_ref()) else {
            return;
        };
        for item in items {
            if let Some(Value::String(name)) = item.get_mut("name") {
                name.insert_str(0, prefix);
            }
        }
    }

    /// Sends a request of the gateway to the client, on the stream of one of the client's requests. Returns `None` if no response arrives.
    pub(super) async fn request_client(
        &self,
        method: &str,
        params: Value,
        outlet: &ClientSender,
    ) -> Option<JsonRpcMessage> {
        let id = self.new_id();
        let (tell, told) = oneshot::channel();
        locked(&self.asking).insert(id.clone(), ClientResponseReceiver::Gateway(tell));
        outlet.send(JsonRpcMessage::request(&id, method, params)).await;
        let answer = told.await.ok();
        locked(&self.asking).remove(&id);
        answer
    }

    /// Stores an approved call whose server requested input.
    pub(super) fn add_continuation(&self, call: ApprovedContinuation) {
        let mut going_on = locked(&self.going_on);
        going_on.push_back(call);
        if going_on.len() > GOING_ON {
            going_on.pop_front();
        }
    }

    /// Takes the approved call that this one continues.
    pub(super) fn take_continuation(
        &self,
        call: &ToolCall,
        frame: &JsonRpcMessage,
        question: &RequestPart,
    ) -> Option<ApprovedContinuation> {
        let mut going_on = locked(&self.going_on);
        let place = going_on.iter().position(|known| known.is(call, frame, question))?;
        going_on.remove(place)
    }

    /// Notifies the client that its tool list may have changed: on the general stream after a handshake, and on its subscriptions.
    pub(super) async fn notify_tools_changed(&self) {
        if self.client.initialize().is_some() {
            self.general.send(JsonRpcMessage::notification(method::TOOLS_CHANGED, json!({}))).await;
        }
        let listening: Vec<(RequestId, ClientSender)> = {
            let asked = locked(&self.asked);
            let listening = asked.iter().filter(|(_, asked)| asked.subscribes_to_tools);
            listening.map(|(id, asked)| (id.clone(), asked.outlet.clone())).collect()
        };
        for (id, outlet) in listening {
            let params = json!({ "_meta": { META_SUBSCRIPTION: id.to_json() } });
            outlet.send(JsonRpcMessage::notification(method::TOOLS_CHANGED, params)).await;
        }
    }

    /// Whether policies redact results of any server.
    pub(super) fn redacts_results(&self) -> bool {
        self.servers.iter().any(|server| self.session.redacts_results(&server.spec.name))
    }

    /// Whether the client has pending requests that it did not cancel.
    pub(super) fn is_busy(&self) -> bool {
        locked(&self.asked).values().any(|asked| !*asked.cancel.borrow())
    }
}
