//! Which client of a shared connection a message of the server belongs to: every request gets an id of its own at the server, and
//! responses, progress and subscriptions get back what the client used.

use std::collections::HashMap;

use tokio::sync::{mpsc, oneshot};

use crate::http_headers::META_SUBSCRIPTION;
use crate::jsonrpc::{JsonRpcMessage, RequestId};
use crate::method;
use crate::upstream_event::UpstreamEvent;
use callgate::json::{Map, Value, json};

/// The number of a client of the connection.
pub(super) type MemberId = u64;

/// Capacity of the queue to a client. One that does not read its messages must not delay the others: beyond it, it is disconnected.
pub(super) const QUEUE_CAPACITY: usize = 1_024;

/// The clients of a shared connection, and the requests that are pending at the server.
#[derive(Default)]
pub(super) struct MemberTable {
    members: HashMap<MemberId, mpsc::Sender<UpstreamEvent>>,
    /// By their ids at the server.
    requests: HashMap<RequestId, PendingRequest>,
    /// The ids at the server of the clients' requests.
    sent_as: HashMap<(MemberId, RequestId), RequestId>,
    counter: u64,
}

enum PendingRequest {
    Member {
        member: MemberId,
        /// Its id at the client.
        id: RequestId,
        progress_token: Option<Value>,
        /// Its result declares the server's capabilities.
        declares_capabilities: bool,
    },
    Gateway(oneshot::Sender<JsonRpcMessage>),
}

impl MemberTable {
    /// Adds a client, whose events go to `queue`.
    pub(super) fn add_member(&mut self, queue: mpsc::Sender<UpstreamEvent>) -> MemberId {
        self.counter += 1;
        self.members.insert(self.counter, queue);
        self.counter
    }

    /// Removes a client; returns the ids at the server of its pending requests.
    pub(super) fn remove_member(&mut self, member: MemberId) -> Vec<RequestId> {
        self.members.remove(&member);
        let own = self.sent_as.extract_if(|(of, _), _| *of == member);
        let own: Vec<RequestId> = own.map(|(_, sent_as)| sent_as).collect();
        own.iter().for_each(|sent_as| drop(self.requests.remove(sent_as)));
        own
    }

    /// Registers a client's request; returns it as it is sent to the server. `None`: the client is no longer connected, or a request with
    /// this id is pending.
    pub(super) fn register(
        &mut self,
        member: MemberId,
        id: &RequestId,
        mut message: JsonRpcMessage,
    ) -> Option<JsonRpcMessage> {
        let key = (member, id.clone());
        if !self.members.contains_key(&member) || self.sent_as.contains_key(&key) {
            return None;
        }
        let sent_as = self.new_id();
        let progress_token = message.meta("progressToken").cloned();
        if progress_token.is_some() {
            message.set_param_at(&["_meta", "progressToken"], sent_as.to_json());
        }
        let declares_capabilities = message.method() == method::DISCOVER;
        let request =
            PendingRequest::Member { member, id: id.clone(), progress_token, declares_capabilities };
        self.requests.insert(sent_as.clone(), request);
        self.sent_as.insert(key, sent_as.clone());
        Some(message.with_id(&sent_as))
    }

    /// Registers a request of the gateway; returns its id, and the receiver of the response.
    pub(super) fn register_own(&mut self) -> (RequestId, oneshot::Receiver<JsonRpcMessage>) {
        let (sender, response) = oneshot::channel();
        let id = self.new_id();
        self.requests.insert(id.clone(), PendingRequest::Gateway(sender));
        (id, response)
    }

    fn new_id(&mut self) -> RequestId {
        self.counter += 1;
        RequestId::from_text(&format!("callgate-{}", self.counter))
    }

    /// The cancellation of a client's request as it is sent to the server. `None` if the request is not pending.
    pub(super) fn cancellation(&self, member: MemberId, message: &JsonRpcMessage) -> Option<JsonRpcMessage> {
        let id = message.param("requestId").and_then(RequestId::from_value)?;
        let sent_as = self.sent_as.get(&(member, id))?;
        let mut params = json!({ "requestId": sent_as.to_json() });
        if let (Some(reason), Some(params)) = (message.param("reason"), params.as_object_mut()) {
            params.insert("reason", reason.clone());
        }
        Some(JsonRpcMessage::notification(method::CANCELLED, params))
    }

    /// Removes a client's request, which could not be sent.
    pub(super) fn withdraw(&mut self, member: MemberId, id: &RequestId) {
        if let Some(sent_as) = self.sent_as.remove(&(member, id.clone())) {
            self.requests.remove(&sent_as);
        }
    }

    /// Takes a request that the server has answered.
    fn take(&mut self, sent_as: &RequestId) -> Option<PendingRequest> {
        let request = self.requests.remove(sent_as)?;
        if let PendingRequest::Member { member, id, .. } = &request {
            self.sent_as.remove(&(*member, id.clone()));
        }
        Some(request)
    }

    /// Delivers a response to whoever sent the request. Late responses are dropped. `event` makes the event for a client.
    pub(super) fn deliver_response(
        &mut self,
        sent_as: &RequestId,
        mut response: JsonRpcMessage,
        event: impl FnOnce(JsonRpcMessage, RequestId) -> UpstreamEvent,
    ) {
        match self.take(sent_as) {
            None => {}
            Some(PendingRequest::Gateway(receiver)) => drop(receiver.send(response)),
            Some(PendingRequest::Member { member, id, declares_capabilities, .. }) => {
                if declares_capabilities {
                    remove_unshared_capabilities(&mut response);
                }
                self.deliver(member, event(response.with_id(&id), id));
            }
        }
    }

    /// Delivers a notification to the client whose request it belongs to, or to all if it says only that a list has changed. All others
    /// are dropped: they could tell a client what another one does.
    pub(super) fn deliver_notification(&mut self, mut message: JsonRpcMessage, about: Option<&RequestId>) {
        let named = |value: Option<&Value>| value.and_then(RequestId::from_value);
        let token = named(message.param("progressToken"));
        let subscription = named(message.meta(META_SUBSCRIPTION));
        let Some(sent_as) = token.as_ref().or(subscription.as_ref()).or(about) else {
            if is_list_change(message.method()) {
                self.deliver_to_all(|| UpstreamEvent::Message {
                    message: JsonRpcMessage::notification(message.method(), json!({})),
                    about: None,
                });
            }
            return;
        };
        let Some(PendingRequest::Member { member, id, progress_token, .. }) = self.requests.get(sent_as)
        else {
            return;
        };
        if token.is_some() {
            let Some(progress_token) = progress_token.clone() else { return };
            message.set_param("progressToken", progress_token);
        }
        if subscription.is_some() {
            message.set_param_at(&["_meta", META_SUBSCRIPTION], id.to_json());
        }
        let (member, about) = (*member, about.map(|_| id.clone()));
        self.deliver(member, UpstreamEvent::Message { message, about });
    }

    /// Delivers a message that can't be read to the clients whose requests it may answer, or else to any, which logs it.
    pub(super) fn deliver_malformed(&mut self, why: &str, answers: &[RequestId]) {
        let malformed = |answers| UpstreamEvent::Malformed { why: why.to_owned(), answers };
        let mut is_delivered = false;
        for sent_as in answers {
            // The receiver of a handshake's response sees that its sender is gone.
            if let Some(PendingRequest::Member { member, id, .. }) = self.take(sent_as) {
                self.deliver(member, malformed(vec![id]));
                is_delivered = true;
            }
        }
        if !is_delivered {
            self.deliver_to_any(malformed(Vec::new()));
        }
    }

    /// Delivers an event to a client. One whose queue is full is disconnected.
    pub(super) fn deliver(&mut self, member: MemberId, event: UpstreamEvent) {
        let Some(queue) = self.members.get(&member) else { return };
        if queue.try_send(event).is_err() {
            self.remove_member(member);
        }
    }

    /// Delivers an event to one client, such as a problem to log.
    pub(super) fn deliver_to_any(&mut self, event: UpstreamEvent) {
        if let Some(member) = self.members.keys().next() {
            self.deliver(*member, event);
        }
    }

    fn deliver_to_all(&mut self, event: impl Fn() -> UpstreamEvent) {
        for member in self.members.keys().copied().collect::<Vec<_>>() {
            self.deliver(member, event());
        }
    }

    /// Disconnects all clients.
    pub(super) fn clear(&mut self) {
        (self.members, self.requests, self.sent_as) = Default::default();
    }
}

fn is_list_change(method: &str) -> bool {
    let lists = ["tools", "prompts", "resources"];
    lists.iter().any(|list| method.strip_prefix("notifications/") == Some(&format!("{list}/list_changed")))
}

/// Removes the capabilities whose requests are refused because they would affect other clients.
pub(super) fn remove_unshared_capabilities(response: &mut JsonRpcMessage) {
    let capabilities = response.result_mut().and_then(|result| result.get_mut("capabilities"));
    let Some(capabilities) = capabilities.and_then(Value::as_object_mut) else { return };
    for name in ["logging", "tasks"] {
        capabilities.remove(name);
    }
    if let Some(resources) = capabilities.get_mut("resources").and_then(Value::as_object_mut) {
        resources.remove("subscribe");
    }
}

/// Why a request can't be sent on a shared connection, if it would affect other clients or concern what they do.
pub(super) fn unshared_request(method: &str, params: Option<&Map>) -> Option<&'static str> {
    match method {
        "resources/subscribe" | "resources/unsubscribe" => {
            Some("several clients share this server, so it has no subscriptions")
        }
        "logging/setLevel" => Some("several clients share this server, so it has no log level"),
        _ if method.starts_with("tasks/") || params.is_some_and(|params| params.contains_key("task")) => {
            Some("several clients share this server, so it has no tasks")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
