//! An open connection that clients share, and one client's part in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OnceCell, RwLock, Semaphore, mpsc, watch};

use super::member_table::{MemberId, MemberTable, QUEUE_CAPACITY, remove_unshared_capabilities};
use crate::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::method;
use crate::upstream_event::{UpstreamError, UpstreamEvent, UpstreamEventSender};
use crate::upstream_server::{ServerSpec, UpstreamConnection};
use callgate::json::json;

/// Timeout of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// The number of the server's events that wait.
const EVENTS: usize = 256;
/// The number of answers to the server that wait for it to read.
const MAX_ANSWERS: usize = 16;

/// A connection that clients share.
pub(super) struct LiveConnection {
    /// The protocol version of its handshake; `None` if requests need none.
    version: Option<&'static str>,
    /// `None` after it was closed.
    connection: RwLock<Option<UpstreamConnection>>,
    table: Mutex<MemberTable>,
    /// The server's response to the handshake.
    handshake: OnceCell<JsonRpcMessage>,
    answers: Arc<Semaphore>,
    /// Why it ended, once it has.
    end: OnceLock<String>,
}

/// A client's part in a connection. Dropping it cancels what is pending.
pub(super) struct Member {
    connection: Arc<LiveConnection>,
    id: MemberId,
    has_left: Arc<AtomicBool>,
}

impl LiveConnection {
    /// Connects to the server. `limit`: the maximum size of a message, in bytes.
    pub(super) fn open(
        version: Option<&'static str>,
        spec: &Arc<ServerSpec>,
        limit: usize,
    ) -> Result<Arc<Self>, UpstreamError> {
        let (sender, events) = mpsc::channel(EVENTS);
        let connection = Arc::new(Self {
            version,
            connection: RwLock::new(Some(UpstreamConnection::open(spec, sender, limit)?)),
            table: Mutex::default(),
            handshake: OnceCell::new(),
            answers: Arc::new(Semaphore::new(MAX_ANSWERS)),
            end: OnceLock::new(),
        });
        tokio::spawn(handle_events(Arc::downgrade(&connection), events));
        Ok(connection)
    }

    fn table(&self) -> MutexGuard<'_, MemberTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.end.get().is_some()
    }

    async fn send(&self, message: JsonRpcMessage) -> Result<(), UpstreamError> {
        match &*self.connection.read().await {
            Some(connection) => connection.send(message).await,
            None => Err(UpstreamError("the connection is closed".to_owned())),
        }
    }

    /// Closes the connection, for a reason that clients are logged with. Returns a receiver that becomes true when the server has ended.
    pub(super) async fn close(&self, why: &str) -> Option<watch::Receiver<bool>> {
        let _ = self.end.set(why.to_owned());
        self.connection.write().await.take().map(UpstreamConnection::close)
    }

    /// The response to the handshake, which the first client that needs it begins.
    async fn handshake(&self) -> Result<&JsonRpcMessage, UpstreamError> {
        self.handshake.get_or_try_init(|| self.begin_session()).await
    }

    /// A connection whose handshake fails is given up: whoever waits for it fails, too, and the next client opens another one.
    async fn begin_session(&self) -> Result<JsonRpcMessage, UpstreamError> {
        if let Some(why) = self.end.get() {
            return Err(UpstreamError(why.clone()));
        }
        let response = self.shake_hands().await;
        if let Err(UpstreamError(why)) = &response {
            self.close(why).await;
            self.table().clear();
        }
        response
    }

    async fn shake_hands(&self) -> Result<JsonRpcMessage, UpstreamError> {
        let (id, response) = self.table().register_own();
        let client_info = json!({ "name": "callgate", "version": env!("CARGO_PKG_VERSION") });
        let params =
            json!({ "protocolVersion": self.version, "capabilities": {}, "clientInfo": client_info });
        self.send(JsonRpcMessage::request(&id, method::INITIALIZE, params)).await?;
        let mut response = match tokio::time::timeout(HANDSHAKE_TIMEOUT, response).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => return Err(UpstreamError("the connection was lost".to_owned())),
            Err(_) => return Err(UpstreamError("it does not answer the handshake".to_owned())),
        };
        if let Some(error) = response.error_value() {
            return Err(UpstreamError(format!("it rejects the handshake: {error}")));
        }
        remove_unshared_capabilities(&mut response);
        self.send(JsonRpcMessage::notification(method::INITIALIZED, json!({}))).await?;
        Ok(response)
    }

    fn handle_event(self: &Arc<Self>, event: UpstreamEvent) {
        match event {
            UpstreamEvent::Message { message, about } => match message.kind().clone() {
                MessageKind::Response(id) => {
                    let event = |message, own| UpstreamEvent::Message { message, about: about.map(|_| own) };
                    self.table().deliver_response(&id, message, event);
                }
                MessageKind::Request(id) => self.answer(&message, &id),
                MessageKind::Notification => self.table().deliver_notification(message, about.as_ref()),
                MessageKind::UnidentifiedError => {
                    let why = "it could not parse a message".to_owned();
                    self.table().deliver_to_any(UpstreamEvent::Problem(why));
                }
            },
            UpstreamEvent::Failed { response, about } => {
                let event = |response, about| UpstreamEvent::Failed { response, about };
                self.table().deliver_response(&about, response, event);
            }
            UpstreamEvent::Malformed { why, answers } => {
                self.table().deliver_malformed(&why, &answers);
            }
            UpstreamEvent::Problem(why) => self.table().deliver_to_any(UpstreamEvent::Problem(why)),
            UpstreamEvent::Closed(UpstreamError(why)) => {
                let _ = self.end.set(why);
                self.table().clear();
            }
        }
    }

    /// Answers a request of the server: which client it means is unknown, so none is asked.
    fn answer(self: &Arc<Self>, message: &JsonRpcMessage, id: &RequestId) {
        let response = match message.method() {
            method::PING => JsonRpcMessage::response(id, json!({})),
            _ => {
                let why = "several clients share this server, so none can be asked";
                JsonRpcMessage::error_response(Some(id), code::METHOD_NOT_FOUND, why, None)
            }
        };
        // A server that asks without reading answers gets none.
        let Ok(permit) = Arc::clone(&self.answers).try_acquire_owned() else { return };
        let connection = Arc::clone(self);
        tokio::spawn(async move {
            let _ = connection.send(response).await;
            drop(permit);
        });
    }
}

/// Closes the connection of a removed server when its last client has left.
impl Drop for LiveConnection {
    fn drop(&mut self) {
        // The end of a session is a request, which needs a runtime.
        if tokio::runtime::Handle::try_current().is_ok() {
            drop(self.connection.get_mut().take().map(UpstreamConnection::close));
        }
    }
}

/// Handles the server's events until its connection is closed. Never waits for a client.
async fn handle_events(connection: Weak<LiveConnection>, mut events: mpsc::Receiver<UpstreamEvent>) {
    while let Some(event) = events.recv().await {
        let Some(connection) = connection.upgrade() else { return };
        connection.handle_event(event);
    }
    if let Some(connection) = connection.upgrade() {
        connection.handle_event(UpstreamEvent::Closed(UpstreamError("it was closed".to_owned())));
    }
}

impl Member {
    /// Adds a client. It receives its events and, unless it leaves by itself, the end of the connection.
    pub(super) fn join(connection: Arc<LiveConnection>, events: UpstreamEventSender) -> Self {
        let (queue, mut queued) = mpsc::channel(QUEUE_CAPACITY);
        let id = connection.table().add_member(queue);
        let has_left = Arc::new(AtomicBool::new(false));
        let (joined, left) = (Arc::downgrade(&connection), Arc::clone(&has_left));
        tokio::spawn(async move {
            while let Some(event) = queued.recv().await {
                if events.send(event).await.is_err() {
                    return;
                }
            }
            if left.load(Ordering::Acquire) {
                return;
            }
            let end = joined.upgrade().and_then(|connection| connection.end.get().cloned());
            let why = end.unwrap_or_else(|| "the client does not read its messages".to_owned());
            let _ = events.send(UpstreamEvent::Closed(UpstreamError(why))).await;
        });
        Self { connection, id, has_left }
    }

    /// Answers a client's handshake as the server answered the connection's own, in a task.
    pub(super) fn answer_initialize(self: Arc<Self>, id: RequestId) {
        tokio::spawn(async move {
            let message = match self.connection.handshake().await {
                Ok(response) => response.clone().with_id(&id),
                Err(UpstreamError(why)) => {
                    JsonRpcMessage::error_response(Some(&id), code::INTERNAL_ERROR, &why, None)
                }
            };
            self.connection.table().deliver(self.id, UpstreamEvent::Message { message, about: None });
        });
    }

    /// Sends a client's request.
    pub(super) async fn send_request(
        &self,
        message: JsonRpcMessage,
        id: &RequestId,
    ) -> Result<(), UpstreamError> {
        let connection = &self.connection;
        // The client may have sent it without waiting for the answer to its handshake.
        if connection.version.is_some() {
            connection.handshake().await?;
        }
        let Some(request) = connection.table().register(self.id, id, message) else {
            return Err(UpstreamError("the connection was lost".to_owned()));
        };
        let sent = connection.send(request).await;
        if sent.is_err() {
            connection.table().withdraw(self.id, id);
        }
        sent
    }

    /// Cancels a client's request.
    pub(super) async fn cancel(&self, cancellation: &JsonRpcMessage) {
        let message = self.connection.table().cancellation(self.id, cancellation);
        if let Some(message) = message {
            let _ = self.connection.send(message).await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.has_left.store(true, Ordering::Release);
        let pending = self.connection.table().remove_member(self.id);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if pending.is_empty() || self.connection.is_lost() {
            return;
        }
        let connection = Arc::clone(&self.connection);
        runtime.spawn(async move {
            for id in pending {
                let params = json!({ "requestId": id.to_json(), "reason": "the client is gone" });
                let _ = connection.send(JsonRpcMessage::notification(method::CANCELLED, params)).await;
            }
        });
    }
}
