//! The pending requests between one client and its servers: those of the client, and those that servers and the gateway have sent to it.
//!
//! Requests keep their ids if possible. If the receiver already has a pending request with the id, the request gets a new id there, and
//! its response gets the original id back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::client_sender::ClientSender;
use crate::http_headers::META_SUBSCRIPTION;
use crate::jsonrpc::{JsonRpcMessage, RequestId, code};
use crate::method;
use callgate::json::Value;

/// How long responses to a cancelled request are still forwarded.
pub(crate) const LATE_RESPONSE_WINDOW: Duration = Duration::from_secs(10);

/// The pending requests between one client and its servers. Servers are named by their indexes.
pub(crate) struct RequestTable {
    /// The client's pending requests.
    client_requests: Mutex<HashMap<RequestId, ClientRequest>>,
    /// Pending requests to the client.
    server_requests: Mutex<HashMap<RequestId, ClientResponseReceiver>>,
    /// The unguessable prefix of the gateway's own ids.
    id_prefix: String,
    id_counter: AtomicU64,
}

/// A pending request of the client.
struct ClientRequest {
    sender: ClientSender,
    progress_token: Option<RequestId>,
    /// It subscribes to changes of the tool list.
    subscribes_to_tools: bool,
    /// The servers it was sent to, with its ids there.
    sent_to: Vec<(usize, RequestId)>,
    /// Becomes true when the client cancels it.
    cancel: watch::Sender<bool>,
}

/// The receiver of the client's response.
pub(super) enum ClientResponseReceiver {
    /// A server, with its own id.
    Server(usize, RequestId),
    /// The gateway.
    Gateway(oneshot::Sender<JsonRpcMessage>),
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every update is a single step, so a panic elsewhere leaves the data consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RequestTable {
    pub(super) fn new() -> Self {
        Self {
            client_requests: Mutex::default(),
            server_requests: Mutex::default(),
            id_prefix: format!("callgate-{:016x}", fastrand::u64(..)),
            id_counter: AtomicU64::new(0),
        }
    }

    /// A new id that no peer uses.
    pub(crate) fn new_id(&self) -> RequestId {
        RequestId::from_text(&format!(
            "{}-{}",
            self.id_prefix,
            self.id_counter.fetch_add(1, Ordering::Relaxed)
        ))
    }

    /// A new call id, unique in the store.
    pub(crate) fn new_call_id(&self) -> String {
        let count = self.id_counter.fetch_add(1, Ordering::Relaxed);
        format!("{}-{count}", self.id_prefix.trim_start_matches("callgate-").get(..8).unwrap_or("call"))
    }

    /// Adds a request to those that are pending at a peer; returns its id there, which is a new one if the id is in use.
    pub(super) fn insert<T>(
        &self,
        pending: &Mutex<HashMap<RequestId, T>>,
        id: &RequestId,
        request: T,
    ) -> RequestId {
        let mut pending = lock(pending);
        let sent_as = if pending.contains_key(id) { self.new_id() } else { id.clone() };
        pending.insert(sent_as.clone(), request);
        sent_as
    }

    /// Adds a request of the client, whose response and messages go to `sender`; returns a receiver that becomes true when the client
    /// cancels it. Returns `None` if a request with this id is still pending.
    pub(super) fn add(
        &self,
        id: &RequestId,
        message: &JsonRpcMessage,
        sender: &ClientSender,
    ) -> Option<watch::Receiver<bool>> {
        let (cancel, cancelled) = watch::channel(false);
        let request = ClientRequest {
            sender: sender.clone(),
            progress_token: message.meta("progressToken").and_then(RequestId::from_value),
            subscribes_to_tools: message.method() == method::LISTEN
                && message.param_at(&["notifications", "toolsListChanged"]) == Some(&Value::Bool(true)),
            sent_to: Vec::new(),
            cancel,
        };
        match lock(&self.client_requests).entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(entry) => {
                entry.insert(request);
                Some(cancelled)
            }
        }
    }

    /// Records that a request of the client is sent to a server. Returns `false` if the client has cancelled it.
    pub(super) fn record_sent(&self, id: &RequestId, server: usize, sent_as: &RequestId) -> bool {
        lock(&self.client_requests).get_mut(id).is_none_or(|request| {
            request.sent_to.push((server, sent_as.clone()));
            !*request.cancel.borrow()
        })
    }

    /// The servers to which a request of the client was sent, with its ids there.
    pub(super) fn sent_to(&self, id: &RequestId) -> Vec<(usize, RequestId)> {
        lock(&self.client_requests).get(id).map(|request| request.sent_to.clone()).unwrap_or_default()
    }

    /// Marks a request of the client as cancelled.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(request) = lock(&self.client_requests).get(id) {
            request.cancel.send_replace(true);
        }
    }

    /// Removes a request of the client; returns the servers to which it was sent, with its ids there.
    pub(super) fn remove(&self, id: &RequestId) -> Vec<(usize, RequestId)> {
        lock(&self.client_requests).remove(id).map(|request| request.sent_to).unwrap_or_default()
    }

    /// Sends the response to a request of the client.
    pub(super) async fn respond(&self, id: &RequestId, sender: &ClientSender, response: JsonRpcMessage) {
        self.remove(id);
        sender.send(response.with_id(id)).await;
    }

    /// Answers a request of the client with an error, unless the client cancelled it.
    pub(super) async fn respond_with_error(&self, id: &RequestId, sender: &ClientSender, why: &str) {
        let request = lock(&self.client_requests).remove(id);
        if request.is_none_or(|request| !*request.cancel.borrow()) {
            sender.send(JsonRpcMessage::error_response(Some(id), code::INTERNAL_ERROR, why, None)).await;
        }
    }

    /// Selects the queue for a server's message: that of the request it belongs to, by its transport, progress token or subscription; else
    /// the general queue; or, if the client does not read that, the queue of the only pending request.
    pub(super) fn select_sender(
        &self,
        message: &JsonRpcMessage,
        about: Option<&RequestId>,
        general: &ClientSender,
    ) -> ClientSender {
        let requests = lock(&self.client_requests);
        let token = message.param("progressToken").and_then(RequestId::from_value);
        let by_token = token.and_then(|token| {
            requests.values().find(|request| request.progress_token.as_ref() == Some(&token))
        });
        let subscription = message.meta(META_SUBSCRIPTION).and_then(RequestId::from_value);
        let by_request = || {
            let about = about.or(subscription.as_ref())?;
            requests.values().find(|request| request.sent_to.iter().any(|(_, id)| id == about))
        };
        let the_only = || match requests.len() {
            1 if general.is_closed() => requests.values().next(),
            _ => None,
        };
        let found = by_token.or_else(by_request).or_else(the_only);
        found.map_or_else(|| general.clone(), |request| request.sender.clone())
    }

    /// The client's subscriptions to changes of the tool list.
    pub(crate) fn tool_subscriptions(&self) -> Vec<(RequestId, ClientSender)> {
        let requests = lock(&self.client_requests);
        let subscriptions = requests.iter().filter(|(_, request)| request.subscribes_to_tools);
        subscriptions.map(|(id, request)| (id.clone(), request.sender.clone())).collect()
    }

    /// Whether the client has pending requests that it did not cancel.
    pub(super) fn is_busy(&self) -> bool {
        lock(&self.client_requests).values().any(|request| !*request.cancel.borrow())
    }

    /// Adds a server's request to the client; returns its id there.
    pub(super) fn add_server_request(&self, server: usize, id: &RequestId) -> RequestId {
        self.insert(&self.server_requests, id, ClientResponseReceiver::Server(server, id.clone()))
    }

    /// Sends a request of the gateway to the client, on the stream of one of the client's requests. Returns `None` if no response arrives.
    pub(crate) async fn request_client(
        &self,
        method: &str,
        params: Value,
        sender: &ClientSender,
    ) -> Option<JsonRpcMessage> {
        let id = self.new_id();
        let (response_sender, response) = oneshot::channel();
        lock(&self.server_requests).insert(id.clone(), ClientResponseReceiver::Gateway(response_sender));
        sender.send(JsonRpcMessage::request(&id, method, params)).await;
        let response = response.await.ok();
        self.take_response_receiver(&id);
        response
    }

    /// Sends a request of a server to the client, on behalf of the gateway, under the server's id unless it is in use there. Returns `None`
    /// if no response arrives.
    pub(crate) async fn forward_to_client(
        &self,
        message: JsonRpcMessage,
        id: &RequestId,
        sender: &ClientSender,
    ) -> Option<JsonRpcMessage> {
        let (response_sender, response) = oneshot::channel();
        let receiver = ClientResponseReceiver::Gateway(response_sender);
        let sent_as = self.insert(&self.server_requests, id, receiver);
        sender.send(message.with_id(&sent_as)).await;
        let response = response.await.ok();
        self.take_response_receiver(&sent_as);
        response
    }

    /// Takes the receiver of the client's response to a request.
    pub(super) fn take_response_receiver(&self, id: &RequestId) -> Option<ClientResponseReceiver> {
        lock(&self.server_requests).remove(id)
    }

    /// Removes all requests to the client; returns those of servers, with their own ids. Requests of the gateway get no response.
    pub(super) fn take_server_requests(&self) -> Vec<(usize, RequestId)> {
        let requests: Vec<ClientResponseReceiver> =
            lock(&self.server_requests).drain().map(|(_, receiver)| receiver).collect();
        let of_server = |receiver| match receiver {
            ClientResponseReceiver::Server(server, id) => Some((server, id)),
            ClientResponseReceiver::Gateway(_) => None,
        };
        requests.into_iter().filter_map(of_server).collect()
    }
}

#[cfg(test)]
mod tests;
